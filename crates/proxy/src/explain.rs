//! How many rows the primary expects to read for a statement (`max_rows_expected` of a guard).
//!
//! Theory. The text goes behind EXPLAIN over the probe's account, on a connection of Sluice's own.
//! Servers run parts of what they explain, so a text is explained only if the lexer knows it
//! ([`sql::explainable`]), and only if all of its tables are base tables: a view could call anything.
//! Besides, a plain read is explained in a transaction that may not write, and everything else in one
//! that is rolled back.
//!
//! Nobody waits for longer than the guard says. The answer of an EXPLAIN that comes too late is kept
//! for the next one: by schema and digest for [`FRESH`], and beyond that, while another is asked for,
//! as long as there is room. What has met a lock leaves what is known as it is, and is asked about
//! again soon. Values differ between statements of one digest, so what is above the
//! limit is asked about by its own text: a statement passes by what is known of its like, and is
//! refused by what the server said of itself.
//!
//! The number is the server's own guess, block by block: of each table in the order of the plan, its
//! `rows` for each row that the ones before it leave (`filtered`), summed; of a block that depends on
//! another for each row of that, where that is certain. It is what would be read without a LIMIT; where
//! that alone ends the reading, it counts.

mod asking;
mod cache;
mod plan;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use policy::ClusterPolicy;
use sql::{Completeness, Explainable, LexMode, Server, explainable};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use self::asking::{Asked, Pool, ask};
use self::cache::{Cache, Key};
use crate::link::OwnLinks;

/// How long what is known of a digest stands before it is asked about again.
const FRESH: Duration = Duration::from_secs(60);

/// EXPLAINs of one cluster under way at once, each over a connection of its own.
const EXPLAINS_MAX: usize = 4;

/// Texts that are asked about or wait for that.
const PENDING_MAX: usize = 64;

/// Longest text that is explained: what is longer is mostly values.
const TEXT_LEN_MAX: usize = 64 * 1024;

/// What is known of a statement before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreseen {
    /// So many rows, by what was asked before.
    Cached(u64),
    /// So many rows.
    Asked(u64),
    /// It reads no table.
    NothingRead,
    /// It is not known for certain what its EXPLAIN would do or mean.
    NotExplained,
    /// The server has not answered in time, or gave it up itself: what it asks for is locked.
    TimedOut,
    /// As many are being asked for as may.
    Busy,
    /// The probe's account may not.
    Denied,
    /// The server has said something else.
    Failed,
}

impl Foreseen {
    /// The `result` label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Cached(_) => "cached",
            Self::Asked(_) => "asked",
            Self::NothingRead => "nothing_read",
            Self::NotExplained => "not_explained",
            Self::TimedOut => "timed_out",
            Self::Busy => "busy",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// A text that may be explained.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    text: String,
    writes: bool,
    /// The most rows that it reads, whatever the plan says.
    at_most: Option<u64>,
    schema: String,
    server: Server,
    of_like: Key,
    of_text: Key,
    /// The least that some guard allows.
    most: u64,
}

impl Subject {
    /// The text of a session in this schema, if it may be explained.
    ///
    /// # Errors
    /// What is said of it instead.
    pub(crate) fn of(
        text: &[u8],
        schema: Option<&[u8]>,
        server: Server,
        most: u64,
    ) -> Result<Self, Foreseen> {
        if text.len() > TEXT_LEN_MAX {
            return Err(Foreseen::NotExplained);
        }
        let schema = match schema {
            Some(schema) => std::str::from_utf8(schema).ok(),
            // It is of no account.
            None => are_qualified(text, server).then_some(""),
        };
        let schema = schema.filter(|schema| !schema.contains(['`', '\0']));
        let schema = schema.ok_or(Foreseen::NotExplained)?;
        let explainable = explainable(text, server, &mut sql::Scratch::default());
        let (text, writes, at_most) = match explainable {
            Explainable::Yes { text, writes, at_most } => (text, writes, at_most),
            Explainable::ReadsNothing => return Err(Foreseen::NothingRead),
            Explainable::Unknown => return Err(Foreseen::NotExplained),
        };
        let digest = sql::digest(text.as_bytes(), LexMode::unknown(server), &mut Vec::new());
        Ok(Self {
            of_like: Key::of(schema, &digest.to_le_bytes()),
            of_text: Key::of(schema, text.as_bytes()),
            text: text.to_owned(),
            writes,
            at_most,
            schema: schema.to_owned(),
            server,
            most,
        })
    }
}

/// Whether all tables of a text are named with their schemas.
fn are_qualified(text: &[u8], server: Server) -> bool {
    let mut are = true;
    let complete = sql::tables(text, LexMode::unknown(server), |table| {
        are &= table.schema.is_some();
    });
    are && complete == Completeness::Complete
}

/// What the primary of one cluster has said.
#[derive(Debug)]
pub(crate) struct Explainer {
    cluster: Arc<str>,
    cache: Mutex<Cache>,
    /// Texts that are being asked about.
    pending: Mutex<HashSet<Key>>,
    answered: Notify,
    places: Semaphore,
    pool: Pool,
    denial_logged: AtomicBool,
}

impl Explainer {
    pub(crate) fn new(cluster: Arc<str>, links: &Arc<OwnLinks>) -> Arc<Self> {
        Arc::new(Self {
            cluster,
            cache: Mutex::default(),
            pending: Mutex::default(),
            answered: Notify::new(),
            places: Semaphore::new(EXPLAINS_MAX),
            pool: Pool::new(links),
            denial_logged: AtomicBool::new(false),
        })
    }

    /// The primary is another server than before, and is asked from now on.
    pub(crate) fn primary_moved(&self) {
        self.pool.forget();
    }

    /// What the primary expects of a statement; asked within this time, if it is not known.
    ///
    /// # Cancellation
    /// What is asked goes on being asked.
    pub(crate) async fn foresee(
        self: &Arc<Self>,
        policy: &Arc<ClusterPolicy>,
        subject: Subject,
        timeout: Duration,
    ) -> Foreseen {
        let now = Instant::now();
        let known = self.cache.lock().find(&policy.primary, &subject, now);
        if let Some(known) = known {
            if known.is_stale {
                // Nobody waits for it.
                self.begin(policy, subject).ok();
            }
            return known.foreseen;
        }
        let answered = self.answered.notified();
        tokio::pin!(answered);
        // Heard from now on, also if it is answered before it is waited for.
        answered.as_mut().enable();
        let of_text = subject.of_text;
        if let Err(Full) = self.begin(policy, subject) {
            return Foreseen::Busy;
        }
        let until = now.checked_add(timeout).unwrap_or(now);
        loop {
            if tokio::time::timeout_at(until, answered.as_mut()).await.is_err() {
                let last = self.cache.lock().last_said(of_text);
                return last.unwrap_or(Foreseen::TimedOut);
            }
            answered.set(self.answered.notified());
            answered.as_mut().enable();
            let said = self.cache.lock().said(of_text, now);
            if let Some(said) = said {
                return said;
            }
        }
    }

    /// Has it asked about, unless it is already.
    fn begin(self: &Arc<Self>, policy: &Arc<ClusterPolicy>, subject: Subject) -> Result<(), Full> {
        let mut pending = self.pending.lock();
        if pending.contains(&subject.of_text) {
            return Ok(());
        }
        if pending.len() >= PENDING_MAX {
            return Err(Full);
        }
        pending.insert(subject.of_text);
        drop(pending);
        let asking = Pending { explainer: Arc::clone(self), of_text: subject.of_text };
        let policy = Arc::clone(policy);
        let since = Instant::now();
        tokio::spawn(async move { asking.explainer.ask(&policy, &subject, since).await });
        Ok(())
    }

    async fn ask(&self, policy: &ClusterPolicy, subject: &Subject, since: Instant) {
        // The semaphore is never closed.
        let place = self.places.acquire().await;
        // What its like has met while it waited it would meet as well.
        if self.cache.lock().shares_unknown(subject, since, Instant::now()) {
            return;
        }
        let asked = ask(&self.pool, policy, subject).await;
        drop(place);
        let said = match asked {
            Asked::Rows(rows) => Ok(subject.at_most.map_or(rows, |most| rows.min(most))),
            Asked::NotExplained => Err(Foreseen::NotExplained),
            Asked::Denied(error) => {
                self.log_denial(&error);
                Err(Foreseen::Denied)
            }
            Asked::TimedOut => Err(Foreseen::TimedOut),
            Asked::Failed(code) => {
                tracing::debug!(cluster = %self.cluster, ?code, "a statement was not explained");
                Err(Foreseen::Failed)
            }
        };
        self.cache.lock().note(&policy.primary, subject, said, Instant::now());
    }

    /// One line is enough: the metric counts the others.
    fn log_denial(&self, error: &str) {
        if !self.denial_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                cluster = %self.cluster, %error,
                "a guard's `max_rows_expected` judges nothing: the probe's account may not explain \
                 statements; EXPLAIN needs the rights of what it explains"
            );
        }
    }
}

/// As many are asked about as may be.
struct Full;

/// A text that is being asked about, until there is an answer, or whoever asks has failed.
struct Pending {
    explainer: Arc<Explainer>,
    of_text: Key,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.explainer.pending.lock().remove(&self.of_text);
        self.explainer.answered.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever waited for a place was not told what one like it had met, and waited on for an answer that
    /// nobody asked for.
    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_place_is_told_what_its_like_has_met() {
        let file = "version: 1\nclusters: { a: { listen: 127.0.0.1:1, primary: db:1 } }\n";
        let policy = policy::load(file).unwrap().clusters[0].clone();
        let explainer = Explainer::new("a".into(), &Arc::default());
        let subject = |id| {
            let text = format!("SELECT * FROM a.t WHERE id < {id}");
            Subject::of(text.as_bytes(), None, Server::Unknown, 9).unwrap()
        };
        let others = u32::try_from(EXPLAINS_MAX).unwrap();
        let places = explainer.places.acquire_many(others).await.unwrap();
        let since = Instant::now();
        let foresee = explainer.foresee(&policy, subject(1), Duration::from_secs(2));
        let meet = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let mut cache = explainer.cache.lock();
            cache.note(&policy.primary, &subject(2), Err(Foreseen::Denied), Instant::now());
            drop(places);
        };
        let (foreseen, ()) = tokio::join!(foresee, meet);
        assert_eq!(foreseen, Foreseen::Denied);
        assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    }
}
