//! What budgets have to know over a takeover: what the old process has at the server counts in the new
//! one too, and what is owed to it is owed here.
//!
//! ```text
//! new                                             old
//!  │ TAKEN ─────────────────────────────────────▶ │
//!  │ ◀───────────── debts, and how many are there │ drains
//!  │ ◀──── how many are there, whenever it changes │
//!  │ ◀───────────────────────── its end: none is │
//! ```
//!
//! Lines of text, on the connection over which the listeners came; each is a word, a cluster, a bucket
//! as two numbers and what it has, and `end` completes a picture of all. Whoever is told by one tells
//! the next of it, and stays until it has ended. A process of another version
//! that says nothing, or does not listen, takes nothing away: each counts its own then, as two
//! processes do anyway.

use std::collections::HashMap;
use std::io;
use std::str::SplitAsciiWhitespace;
use std::sync::Arc;
use std::time::Duration;

use admission::{BudgetDebt, BudgetKey, BudgetUse};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::cluster::Cluster;

/// How often the old process looks whether it has anything to say.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Most lines of a picture that are believed: as many as buckets are remembered, of several clusters.
const LINES_MAX: usize = 1_000_000;

/// Tells the process behind this one what is at the server, until it ends or this one does.
///
/// # Cancellation
/// The other process takes it for the end of this one.
pub async fn tell(mut stream: UnixStream, clusters: Arc<[Arc<Cluster>]>) {
    clusters.iter().for_each(|cluster| cluster.neighbours.set_behind(true));
    let mut said = stream.write_all(debts(&clusters).as_bytes()).await;
    let mut last = String::new();
    while said.is_ok() {
        let now = there(&clusters);
        if now != last {
            said = stream.write_all(now.as_bytes()).await;
            last = now;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    clusters.iter().for_each(|cluster| cluster.neighbours.set_behind(false));
}

/// Counts what the process before this one says that it has at the server, until that has ended.
///
/// # Cancellation
/// What it has said last stays.
pub async fn follow(stream: UnixStream, clusters: Arc<[Arc<Cluster>]>) {
    clusters.iter().for_each(|cluster| cluster.neighbours.set_before(true));
    let mut lines = BufReader::new(stream).lines();
    let mut picture = Picture::default();
    let ended = loop {
        match lines.next_line().await {
            Ok(Some(line)) if line == END => std::mem::take(&mut picture).apply(&clusters),
            Ok(Some(line)) => {
                if picture.read(&line).is_none() {
                    break Err(io::Error::new(io::ErrorKind::InvalidData, "it cannot be read"));
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    if let Err(error) = ended {
        tracing::warn!(%error, "what the process before has at the server is not counted any more");
    }
    Picture::default().apply(&clusters);
    clusters.iter().for_each(|cluster| cluster.neighbours.set_before(false));
}

/// Completes a picture.
const END: &str = "end";

fn debts(clusters: &[Arc<Cluster>]) -> String {
    let mut text = String::new();
    for cluster in clusters {
        for (BudgetUse { budget, instance }, debt) in cluster.budget_debts() {
            let (name, BudgetDebt { statements, rows, seconds }) = (&cluster.name, debt);
            text.push_str(&format!(
                "owed {name} {} {instance} {statements} {rows} {seconds}\n",
                budget.0
            ));
        }
    }
    text
}

/// In an order of its own, so that two that are the same are equal.
fn there(clusters: &[Arc<Cluster>]) -> String {
    let mut text = String::new();
    for cluster in clusters {
        let mut there: Vec<(BudgetUse, u32)> = cluster.budgeted_there().into_iter().collect();
        there.sort_unstable();
        for (BudgetUse { budget, instance }, count) in there {
            text.push_str(&format!("there {} {} {instance} {count}\n", cluster.name, budget.0));
        }
    }
    text.push_str(END);
    text.push('\n');
    text
}

/// What the process before has said of all clusters, by their names.
#[derive(Debug, Default)]
struct Picture {
    there: HashMap<String, HashMap<BudgetUse, u32>>,
    owed: HashMap<String, Vec<(BudgetUse, BudgetDebt)>>,
    lines: usize,
}

impl Picture {
    /// One line. `None`: it is none.
    fn read(&mut self, line: &str) -> Option<()> {
        self.lines = self.lines.saturating_add(1);
        let mut words = line.split_ascii_whitespace();
        let (what, cluster) = (words.next()?, words.next()?);
        let at =
            BudgetUse { budget: BudgetKey(number(&mut words)?), instance: number(&mut words)? };
        match what {
            _ if self.lines > LINES_MAX => None,
            "there" => {
                let count = number(&mut words)?;
                self.there.entry(cluster.to_owned()).or_default().insert(at, count);
                Some(())
            }
            "owed" => {
                let debt = BudgetDebt {
                    statements: amount(&mut words)?,
                    rows: amount(&mut words)?,
                    seconds: amount(&mut words)?,
                };
                self.owed.entry(cluster.to_owned()).or_default().push((at, debt));
                Some(())
            }
            _ => None,
        }
    }

    fn apply(mut self, clusters: &[Arc<Cluster>]) {
        for cluster in clusters {
            let owed = self.owed.remove(&*cluster.name).unwrap_or_default();
            let there = self.there.remove(&*cluster.name).unwrap_or_default();
            cluster.note_budgeted_elsewhere(there, owed);
        }
    }
}

fn number<T: std::str::FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

/// A debt is a number, and nobody is owed anything.
fn amount(words: &mut SplitAsciiWhitespace<'_>) -> Option<f64> {
    number(words).filter(|amount: &f64| amount.is_finite() && *amount >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_and_nothing_else() {
        let mut picture = Picture::default();
        picture.read("there main 7 0 4").unwrap();
        picture.read("owed main 7 18446744073709551615 0 2.5 1e-3").unwrap();
        let at = |instance| BudgetUse { budget: BudgetKey(7), instance };
        assert_eq!(picture.there["main"], HashMap::from([(at(0), 4)]));
        let debt = BudgetDebt { statements: 0.0, rows: 2.5, seconds: 0.001 };
        assert_eq!(picture.owed["main"], [(at(u64::MAX), debt)]);
        for line in [
            "",
            "there main 7 0",
            "there main 7 0 -1",
            "owed main 7 0 1 2",
            "owed main 7 0 NaN 0 0",
            "owed main 7 0 inf 0 0",
            "owed main 7 0 -1 0 0",
            "gone main 7 0 1",
        ] {
            assert_eq!(Picture::default().read(line), None, "{line}");
        }
    }
}
