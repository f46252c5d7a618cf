//! What budgets have to know over a takeover: what the old process has at the server counts in the new
//! one too, and what is owed to it is owed here.
//!
//! ```text
//! new                                             old
//!  │ TAKEN ─────────────────────────────────────▶ │
//!  │ ◀───────────── debts, and how many are there │ drains
//!  │ ◀───── how many are there, and what is added │
//!  │        to debts, whenever any of that changes │
//!  │ ◀───────────────────────── its end: none is │
//! ```
//!
//! Lines of text, on the connection over which the listeners came; each is a word, a cluster, a bucket
//! as two numbers (or a digest as one) and what it has, and `end` completes a picture of all. Whoever
//! is told by one tells the next of it, and stays until it has ended. A process of another version
//! that says nothing, or does not listen, takes nothing away: each counts its own then, as two
//! processes do anyway.

use std::collections::HashMap;
use std::io;
use std::str::SplitAsciiWhitespace;
use std::sync::Arc;
use std::time::Duration;

use admission::{BudgetDebt, BudgetKey, BudgetNews, BudgetUse, DigestCost, DigestKey};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;

/// How often the old process looks whether it has anything to say.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// For the last that this process says: the other one may not listen.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Most lines of a picture that are believed: as many as buckets are remembered, of several clusters.
const LINES_MAX: usize = 1_000_000;

/// What the process behind this one is told, until it ends or this one does.
#[derive(Debug)]
pub struct Telling {
    ends: oneshot::Sender<()>,
    task: JoinHandle<Option<UnixStream>>,
}

impl Telling {
    /// Begins with it, on this connection.
    pub fn begin(stream: UnixStream, clusters: Arc<[Arc<Cluster>]>) -> Self {
        let (ends, ended) = oneshot::channel();
        Self { ends, task: tokio::spawn(tell(stream, clusters, ended)) }
    }

    /// Tells the last: nothing changes any more. The connection stays until the process ends: what it
    /// writes yet is written then.
    pub async fn end(self) {
        drop(self.ends);
        if let Ok(Ok(Some(stream))) = tokio::time::timeout(LAST_WORD, self.task).await {
            tokio::spawn(async move {
                std::future::pending::<()>().await;
                drop(stream);
            });
        }
    }
}

async fn tell(
    mut stream: UnixStream,
    clusters: Arc<[Arc<Cluster>]>,
    mut ended: oneshot::Receiver<()>,
) -> Option<UnixStream> {
    clusters.iter().for_each(Cluster::begin_to_tell);
    let mut last = String::new();
    let mut is_last = false;
    loop {
        let News { there, mut text } = News::of(&clusters);
        if !text.is_empty() || there != last {
            text.push_str(&there);
            if stream.write_all(text.as_bytes()).await.is_err() {
                break;
            }
            last = there;
        }
        if is_last {
            return Some(stream);
        }
        tokio::select! {
            _ = &mut ended => is_last = true,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    clusters.iter().for_each(Cluster::tell_no_more);
    None
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

/// What is told, as lines.
struct News {
    /// What is at the server, in an order of its own: two that are the same are equal.
    there: String,
    /// The rest, which has been told with that.
    text: String,
}

impl News {
    fn of(clusters: &[Arc<Cluster>]) -> Self {
        let mut news = Self { there: String::new(), text: String::new() };
        for cluster in clusters {
            news.add(&cluster.name, cluster.budget_news());
        }
        news.there.push_str(END);
        news.there.push('\n');
        news
    }

    fn add(&mut self, cluster: &str, news: BudgetNews) {
        let BudgetNews { there, owed, costs } = news;
        for (DigestKey(digest), cost) in costs {
            let DigestCost { seconds, rows, believed_for } = cost;
            let believed_ms = believed_for.as_millis();
            self.text
                .push_str(&format!("cost {cluster} {digest} {seconds} {rows} {believed_ms}\n"));
        }
        for (BudgetUse { budget: BudgetKey(budget), instance }, more) in owed {
            let BudgetDebt { statements, rows, seconds } = more;
            self.text.push_str(&format!(
                "owed {cluster} {budget} {instance} {statements} {rows} {seconds}\n"
            ));
        }
        let mut there: Vec<(BudgetUse, u32)> = there.into_iter().collect();
        there.sort_unstable();
        for (BudgetUse { budget: BudgetKey(budget), instance }, count) in there {
            self.there.push_str(&format!("there {cluster} {budget} {instance} {count}\n"));
        }
    }
}

/// What the process before has said of all clusters, by their names.
#[derive(Debug, Default)]
struct Picture {
    clusters: HashMap<String, BudgetNews>,
    lines: usize,
}

impl Picture {
    /// One line. `None`: it is none.
    fn read(&mut self, line: &str) -> Option<()> {
        self.lines = self.lines.saturating_add(1);
        let mut words = line.split_ascii_whitespace();
        let (what, cluster) = (words.next()?, words.next()?);
        let news = self.clusters.entry(cluster.to_owned()).or_default();
        match what {
            _ if self.lines > LINES_MAX => None,
            "there" => {
                let (at, count) = (bucket(&mut words)?, number(&mut words)?);
                news.there.insert(at, count);
                Some(())
            }
            "owed" => {
                let at = bucket(&mut words)?;
                let debt = BudgetDebt {
                    statements: amount(&mut words)?,
                    rows: amount(&mut words)?,
                    seconds: amount(&mut words)?,
                };
                news.owed.push((at, debt));
                Some(())
            }
            "cost" => {
                let digest = DigestKey(number(&mut words)?);
                let cost = DigestCost {
                    seconds: amount(&mut words)?.max(0.0),
                    rows: amount(&mut words)?.max(0.0),
                    believed_for: Duration::from_millis(number(&mut words)?),
                };
                news.costs.push((digest, cost));
                Some(())
            }
            _ => None,
        }
    }

    fn apply(mut self, clusters: &[Arc<Cluster>]) {
        for cluster in clusters {
            let news = self.clusters.remove(&*cluster.name).unwrap_or_default();
            cluster.note_budget_news(news);
        }
    }
}

fn bucket(words: &mut SplitAsciiWhitespace<'_>) -> Option<BudgetUse> {
    Some(BudgetUse { budget: BudgetKey(number(words)?), instance: number(words)? })
}

fn number<T: std::str::FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

/// A debt is a number, and what is added to it may be less than nothing.
fn amount(words: &mut SplitAsciiWhitespace<'_>) -> Option<f64> {
    number(words).filter(|amount: &f64| amount.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_read_and_nothing_else() {
        let mut picture = Picture::default();
        picture.read("there main 7 0 4").unwrap();
        picture.read("owed main 7 18446744073709551615 0 -2.5 1e-3").unwrap();
        let at = |instance| BudgetUse { budget: BudgetKey(7), instance };
        assert_eq!(picture.clusters["main"].there, HashMap::from([(at(0), 4)]));
        let debt = BudgetDebt { statements: 0.0, rows: -2.5, seconds: 0.001 };
        assert_eq!(picture.clusters["main"].owed, [(at(u64::MAX), debt)]);
        picture.read("cost main 9 2.5 10 1500").unwrap();
        let believed_for = Duration::from_millis(1_500);
        let cost = DigestCost { seconds: 2.5, rows: 10.0, believed_for };
        assert_eq!(picture.clusters["main"].costs, [(DigestKey(9), cost)]);
        for line in [
            "",
            "cost main 9 2.5 10",
            "cost main 9 inf 10 1500",
            "there main 7 0",
            "there main 7 0 -1",
            "owed main 7 0 1 2",
            "owed main 7 0 NaN 0 0",
            "owed main 7 0 inf 0 0",
            "gone main 7 0 1",
        ] {
            assert_eq!(Picture::default().read(line), None, "{line}");
        }
    }
}
