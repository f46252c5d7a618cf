//! Passes statements through a session, for tools that count what a process does: see `allocations`.
//!
//!   statements text|comment|prepared COUNT

use benches::relay::{self, Relay};
use benches::{Result, rules};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let kind = args.next().unwrap_or_default();
    let count: u32 = args.next().ok_or("how many statements?")?.parse()?;
    let exchange = match kind.as_str() {
        "text" => relay::point_select("SELECT c FROM sbtest1 WHERE id=5042"),
        "comment" => relay::point_select("SELECT c FROM sbtest1 WHERE id=5042 /*app='job-1:etl'*/"),
        "prepared" => relay::execute(),
        other => return Err(format!("{other:?} is not text, comment or prepared").into()),
    };
    let mut relay = Relay::logged_in(rules::policy(100)?)?;
    relay.statement(&relay::prepare("SELECT c FROM sbtest1 WHERE id=?"))?;
    for _ in 0..count {
        relay.statement(&exchange)?;
    }
    Ok(())
}
