//! The cooperative door: what every dialect's check has in common.
//!
//! A check is answered from memory, but for the first of a while:
//! [`proxy::cluster::Cluster::check`] decides as it would about a write that comes through Sluice.
//! Here are what a check is remembered for ([`Book`]), and what its answer says ([`told`]).

pub(crate) mod asked;
pub(crate) mod book;
pub(crate) mod throttling;
pub(crate) mod told;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use admission::{Purpose, Reason, Refusal, SignalKey};
use axum::http::request::Parts;
use policy::ClusterPolicy;
use proxy::cluster::{Check, CheckAnswer, CheckOutcome, Cluster};
use proxy::telemetry::{CheckEvent, NO_RULE, StatementDecision};

use self::told::Told;
use crate::Shown;

/// Whose language is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Vitess,
    Freno,
}

impl Dialect {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Vitess => "vitess",
            Self::Freno => "freno",
        }
    }

    /// The app that is refused always, for trials of a client.
    pub(crate) const fn always_refused(self) -> &'static str {
        match self {
            Self::Vitess => "always-throttled-app",
            Self::Freno => "abusing-app",
        }
    }
}

/// A check, as its dialect read it.
#[derive(Debug)]
pub(crate) struct Asked<'q> {
    pub(crate) dialect: Dialect,
    /// The cluster by its name; `None`: the first of the file.
    pub(crate) cluster: Option<&'q [u8]>,
    pub(crate) app: &'q [u8],
    pub(crate) urgency: Urgency,
    pub(crate) question: Question<'q>,
}

/// Whether it gives way to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    Normal,
    /// `p=low`: it is refused for a second after another check was.
    Low,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Question<'q> {
    /// May I write?
    Write {
        /// So many rows; `None`: it was not said.
        rows: Option<u64>,
        /// Signals by name that must be healthy beside those of the rule's gate.
        metrics: &'q [Vec<u8>],
    },
    /// Is the lag below this, in seconds? `None`: below its threshold.
    Read { threshold: Option<f64> },
}

/// Asks, counts, and remembers who asked.
pub(crate) async fn ask(shown: &Shown, asked: &Asked<'_>, request: &Parts) -> Told {
    let Some((index, cluster)) = shown.cluster(asked.cluster) else {
        return told::no_cluster(shown, asked);
    };
    let book = shown.checks.of(index);
    let now = cluster.now();
    let recently = book.note_checked(now);
    let mut answer = decide((shown, cluster), book, asked, now).await;
    answer.recently_checked = recently;
    if !answer.is_ok() {
        let policy = cluster.policy();
        answer.name_replica(&policy, cluster.probes.slowest(now).as_deref());
        answer.name_hindrance(|signal| cluster.what_hinders(&policy, signal, now));
    }
    let normal_write =
        asked.urgency == Urgency::Normal && matches!(asked.question, Question::Write { .. });
    if normal_write && answer.status == told::TOO_MANY {
        book.make_others_yield(now);
    }
    let (rejected, reason) = (!answer.is_ok() || answer.would_be_refused, answer.reason);
    let decision = if rejected { StatementDecision::Rejected } else { StatementDecision::Admitted };
    shown.state.telemetry.check(&CheckEvent {
        cluster: &cluster.name,
        rule: answer.rule.as_deref().unwrap_or(NO_RULE),
        app: asked.app,
        dialect: asked.dialect.as_str(),
        decision,
        reason: rejected.then_some(reason),
    });
    shown.checks.recent.note(asked.app, request, now, answer.status);
    answer
}

async fn decide(
    (shown, cluster): (&Shown, &Arc<Cluster>),
    book: &book::ClusterBook,
    asked: &Asked<'_>,
    now: admission::MonoTime,
) -> Told {
    let yields = asked.urgency == Urgency::Low && book.yields(now);
    let refused_always = asked.app == asked.dialect.always_refused().as_bytes();
    if yields || refused_always {
        let answer = cluster.look();
        let why = if yields { told::Denied::LowPriority } else { told::Denied::Always };
        return told::denied(asked, &answer, why);
    }
    match asked.question {
        Question::Write { rows, metrics } => {
            let policy = cluster.policy();
            let named = match named_signals(&policy, metrics) {
                Ok(named) => named,
                Err(unknown) => return told::no_metric(asked, &cluster.look(), unknown),
            };
            let purpose = Purpose::Write { rows };
            let check = Check { app: asked.app, purpose, signals: &named };
            told::told(asked, &answer(shown, cluster, &check).await, &named)
        }
        Question::Read { threshold } => {
            let check = Check { app: asked.app, purpose: Purpose::Read, signals: &[] };
            let answer = answer(shown, cluster, &check).await;
            let named: Vec<SignalKey> = told::lag_of(&answer.policy).into_iter().collect();
            let own = threshold.map(|threshold| told::OwnThreshold {
                threshold,
                highest: highest_lag(cluster, now),
            });
            match read_refused(&answer, own.as_ref()) {
                Some(reason) => told::too_much_lag(asked, &answer, &named, (reason, own)),
                None => told::told(asked, &answer, &named).compared_with(own),
            }
        }
    }
}

/// What a check is told; of a Sluice that drains nobody learns what would hold them elsewhere.
async fn answer(shown: &Shown, cluster: &Arc<Cluster>, check: &Check<'_>) -> CheckAnswer {
    let mut answer = cluster.check(check).await;
    let goes_on = matches!(answer.outcome, CheckOutcome::Passed(_) | CheckOutcome::Allowed);
    if goes_on && shown.state.draining.load(Ordering::Relaxed) {
        answer.outcome = CheckOutcome::Refused(Refusal {
            reason: Reason::Shutdown,
            cause: None,
            budget: None,
            limit: None,
            waited: Duration::ZERO,
            retry_after: Duration::from_secs(1),
        });
    }
    answer
}

/// Why somebody who reads from replicas has to wait, beside the rules.
fn read_refused(answer: &CheckAnswer, own: Option<&told::OwnThreshold>) -> Option<Reason> {
    match answer.outcome {
        CheckOutcome::Passed(_) | CheckOutcome::Allowed | CheckOutcome::Observed(_) => {}
        CheckOutcome::Refused(_) | CheckOutcome::Denied | CheckOutcome::Nameless => return None,
    }
    let lag = answer.signal(told::lag_of(&answer.policy)?)?;
    let usable = !matches!(lag.state, admission::SignalState::NoData { .. });
    match (lag.value.filter(|_| usable), own) {
        (None, _) => (!lag.lets_through).then_some(Reason::NoData),
        // The replica that is nearest to its own threshold need not be the one with the most lag.
        (Some(value), Some(told::OwnThreshold { threshold, highest })) => {
            let highest = highest.as_ref().map_or(value, |(_, lag)| value.max(*lag));
            (highest > *threshold).then_some(Reason::GateClosed)
        }
        (Some(_), None) => (!lag.lets_through).then_some(Reason::GateClosed),
    }
}

/// The replica with the most lag of those that count, and that in seconds.
fn highest_lag(cluster: &Cluster, now: admission::MonoTime) -> Option<(Arc<str>, f64)> {
    let replicas = cluster.probes.replicas(now).into_iter();
    let counted = replicas.filter(|replica| replica.view.counts);
    let lags = counted.filter_map(|replica| Some((replica.view.lag?, replica.server)));
    lags.max().map(|(lag, server)| (server, lag.as_secs_f64()))
}

/// The signals that a check names: `lag`, `shard/lag`, or all of a scope (`self`, `shard`), or those
/// of the usual gate (`default`).
///
/// # Errors
/// The first name that is none.
fn named_signals<'n>(
    policy: &ClusterPolicy,
    names: &'n [Vec<u8>],
) -> Result<Vec<SignalKey>, &'n [u8]> {
    let mut keys = Vec::new();
    for name in names {
        let before = keys.len();
        if name == b"default" {
            keys.extend(policy.gate_signals(policy.default_gate).map(|signal| signal.key));
        }
        let is_meant = |signal: &&policy::Signal| {
            let scope = signal.scope.as_str().as_bytes();
            let rest = name.strip_prefix(scope);
            signal.name.as_bytes() == name
                || rest.is_some_and(<[u8]>::is_empty)
                || rest.and_then(|rest| rest.strip_prefix(b"/")) == Some(signal.name.as_bytes())
        };
        keys.extend(policy.signals.iter().filter(is_meant).map(|signal| signal.key));
        if keys.len() == before {
            return Err(name);
        }
    }
    Ok(keys)
}
