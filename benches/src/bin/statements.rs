//! Passes statements through a session, for tools that count what a process does: see `counts`.
//!
//!   statements text|comment|prepared|asked|asked-prepared[+insights] COUNT
//!
//! With `+insights` what it costs is counted, by its digest.

use benches::relay::{self, Relay};
use benches::{Result, rules};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let kind = args.next().unwrap_or_default();
    let (kind, counted) = match kind.strip_suffix("+insights") {
        Some(kind) => (kind, true),
        None => (kind.as_str(), false),
    };
    let count: u32 = args.next().ok_or("how many statements?")?.parse()?;
    let exchange = match kind {
        "text" => relay::point_select("SELECT c FROM sbtest1 WHERE id=5042"),
        "comment" => relay::point_select("SELECT c FROM sbtest1 WHERE id=5042 /*app='job-1:etl'*/"),
        "prepared" | "asked-prepared" => relay::execute(),
        "asked" => relay::point_select("SELECT c FROM sbtest1 WHERE id=5042 FOR UPDATE /*a='b'*/"),
        other => return Err(format!("{other:?} is not one of those").into()),
    };
    let asked = kind.starts_with("asked");
    let mut relay = Relay::logged_in(if asked { rules::shaped()? } else { rules::policy(100)? })?;
    if counted {
        relay = relay.counted();
    }
    let lock = if asked { " FOR UPDATE" } else { "" };
    relay.statement(&relay::prepare(&format!("SELECT c FROM sbtest1 WHERE id=?{lock}")))?;
    for _ in 0..count {
        relay.statement(&exchange)?;
    }
    Ok(())
}
