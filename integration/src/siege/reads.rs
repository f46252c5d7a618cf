//! The other side: statements that change nothing, and a rule that holds writes.

use crate::error::Result;
use crate::raw::{Login, RawConn};
use crate::siege::sequence::Leg;
use crate::siege::target::Target;

/// Those of the statements, one a line, that Sluice refuses to the account `reader`, whose writes it
/// denies. What the server itself refuses does not count.
///
/// # Errors
/// When a connection fails.
pub async fn held(target: &Target, statements: &str) -> Result<Vec<String>> {
    let mut login = Login::new("reader").password("reader");
    login.schema = "w".into();
    let mut direct = RawConn::open(target.server().addr(), &login).await?;
    let mut through = RawConn::open(target.addr(Leg::Plain), &login).await?;
    let mut held = Vec::new();
    for sql in statements.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let is_valid = direct.query(sql).await?.err().is_none();
        let refusal = through.query(sql).await?.err();
        if is_valid && refusal.is_some_and(|(_, message)| message.contains("[sluice ")) {
            held.push(sql.to_owned());
        }
    }
    direct.quit().await?;
    through.quit().await?;
    Ok(held)
}
