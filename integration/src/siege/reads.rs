//! The other side: statements that change nothing, and a rule that holds writes.

use crate::error::Result;
use crate::raw::{Login, RawConn};
use crate::siege::sequence::Leg;
use crate::siege::target::Target;

/// Those of the statements, one a line, that Sluice refuses to the account `reader`, whose writes it
/// denies. What the server itself refuses does not count.
///
/// # Errors
/// When the connection fails.
pub async fn held(target: &Target, statements: &str) -> Result<Vec<String>> {
    let mut login = Login::new("reader").password("reader");
    login.schema = "w".into();
    let mut conn = RawConn::open(target.addr(Leg::Plain), &login).await?;
    let mut held = Vec::new();
    for sql in statements.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let answer = conn.query(sql).await?;
        if answer.err().is_some_and(|(_, message)| message.contains("[sluice ")) {
            held.push(sql.to_owned());
        }
    }
    conn.quit().await?;
    Ok(held)
}
