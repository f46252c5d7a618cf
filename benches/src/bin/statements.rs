//! Passes statements through a session, for tools that count what a process does: see `counts`.
//!
//!   statements KIND[+insights] COUNT
//!
//! KIND is `text` (one text again and again), `literals` (other values each time), `mixed` (eight
//! texts in turn), `many-texts` (64 in turn), `comment`, `traced` (a comment that is another each
//! time), `guarded` (the text, with guards), `prepared`, `rows` (a text that is answered with a
//! thousand), `bulk` (INSERTs of 50 to 57 rows), `asked` or `asked-prepared`. With `+insights` what
//! it costs is counted, by its digest.

use benches::relay::{self, Exchange, Relay};
use benches::{Result, rules};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let kind = args.next().unwrap_or_default();
    let (kind, counted) = match kind.strip_suffix("+insights") {
        Some(kind) => (kind, true),
        None => (kind.as_str(), false),
    };
    let count: usize = args.next().ok_or("how many statements?")?.parse()?;
    let exchanges = exchanges(kind)?;
    let asked = kind.starts_with("asked");
    let policy = match kind {
        "guarded" => rules::guarded()?,
        _ if asked => rules::shaped()?,
        _ => rules::policy(100)?,
    };
    let mut relay = Relay::logged_in(policy)?;
    if counted {
        relay = relay.counted();
    }
    let lock = if asked { " FOR UPDATE" } else { "" };
    relay.statement(&relay::prepare(&format!("SELECT c FROM sbtest1 WHERE id=?{lock}")))?;
    for exchange in exchanges.iter().cycle().take(count) {
        relay.statement(exchange)?;
    }
    Ok(())
}

/// What is sent in turn.
fn exchanges(kind: &str) -> Result<Vec<Exchange>> {
    let select = relay::point_select;
    Ok(match kind {
        "text" | "guarded" => vec![select("SELECT c FROM sbtest1 WHERE id=5042")],
        "literals" => [7, 5042, 81, 999, 10_000, 3, 426, 1_234]
            .map(|id| select(&format!("SELECT c FROM sbtest1 WHERE id={id}")))
            .to_vec(),
        "mixed" => (1..=8)
            .map(|table| select(&format!("SELECT c FROM sbtest{table} WHERE id=5042")))
            .collect(),
        "many-texts" => (1..=64)
            .map(|table| select(&format!("SELECT c FROM sbtest{table} WHERE id={}", table * 77)))
            .collect(),
        "traced" => (10..18)
            .map(|trace| {
                format!("SELECT c FROM sbtest1 WHERE id={trace} /*app='etl',trace='{trace}'*/")
            })
            .map(|text| select(&text))
            .collect(),
        "comment" => vec![select("SELECT c FROM sbtest1 WHERE id=5042 /*app='job-1:etl'*/")],
        "prepared" | "asked-prepared" => vec![relay::execute()],
        "rows" => vec![relay::select("SELECT c FROM sbtest1 WHERE k BETWEEN 10 AND 20", 1_000)],
        "bulk" => (50..58).map(relay::insert).collect(),
        "asked" => vec![select("SELECT c FROM sbtest1 WHERE id=5042 FOR UPDATE /*a='b'*/")],
        other => return Err(format!("{other:?} is not one of those").into()),
    })
}
