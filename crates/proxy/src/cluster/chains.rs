//! What led to a refusal, or to a long wait: kept for whoever asks why, never the statement's text.
//!
//! All of it is noted when the answer is made, for rules, signals and lines are others a moment
//! later. The last refusals stay, the last of each app and cause among them, and the longest waits
//! of the last hour.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use admission::{Cause, MonoTime, Reason, RuleLimit, SignalState, SignalView, WaitingStatement};
use parking_lot::Mutex;
use policy::identity::Source;
use policy::{Action, ClusterPolicy, Quarantined, Rule, Signal, SignalKind, UnixTime};
use sql::Class;

use super::refused::{Refused, RefusedBook};
use super::{ClientName, Cluster, QuarantineTimes};
use crate::board::Hindrance;

/// Refusals that are kept, the last ones: about a megabyte.
const REFUSALS_MAX: usize = 1_000;

/// Long waits that are kept.
const WAITS_MAX: usize = 100;

/// A wait makes room for shorter ones after this.
const WAIT_KEPT: Duration = Duration::from_secs(3_600);

/// A shorter wait needs no explanation.
const LONG_WAIT: Duration = Duration::from_millis(250);

/// Looks at who else waits in a second: each takes the controller's lock for some microseconds.
const LOOKS_PER_S: u64 = 50;

/// Waiters that one look counts by app.
const AHEAD_LOOKED_AT: usize = 256;

/// Apps that are named of those ahead.
const AHEAD_NAMED: usize = 5;

/// What led to a refusal, or to a long wait.
#[derive(Debug, Clone)]
pub struct Chain {
    /// As in the client's error, and in the log.
    pub id: u32,
    /// Counts the chains of this cluster.
    pub seq: u64,
    /// When the wait ended.
    pub at: MonoTime,
    /// The same by the wall clock.
    pub at_unix: UnixTime,
    /// The cluster.
    pub cluster: Arc<str>,
    /// The app as the client named it.
    pub app: Box<[u8]>,
    /// Where that comes from.
    pub source: Option<Source>,
    /// User, address and connection.
    pub client: ClientName,
    /// Its class, where it was known when it ended.
    pub class: Option<Class>,
    /// The rule as it stood; none where no rule matched, or a guard decided before them.
    pub rule: Option<Rule>,
    /// The budget that decided, if one did.
    pub budget: Option<Arc<str>>,
    /// Why that exists.
    pub budget_reason: Option<Arc<str>>,
    /// What refused it whatever its rule's dice and gate said.
    pub stop: Option<Stop>,
    /// How soon a lost check is repeated.
    pub check_interval: Duration,
    /// What the rule's dice were, scaled by the priority that the statement named.
    pub ratio: f64,
    /// How it ended.
    pub end: ChainEnd,
    /// How long it waited.
    pub waited: Duration,
    /// The signals of the rule's gate when it ended.
    pub signals: Vec<GateSignal>,
    /// Its place in line. None: it did not wait.
    pub line: Option<Line>,
}

/// What refuses a statement whatever the dice and the gate of its rule say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// A guard.
    Guard(GuardStop),
    /// What is in quarantine like it, and when that was and will be.
    Quarantine(Arc<Quarantined>, QuarantineTimes),
}

/// What a guard has objected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardStop {
    /// The guard's name.
    pub guard: Arc<str>,
    /// What it checks, as in the file.
    pub check: &'static str,
    /// Where in the text, in bytes from its beginning.
    pub offset: u64,
    /// What is wrong, and how to write it: what the client was told.
    pub advice: String,
    /// Why the guard exists, from the file.
    pub reason: String,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChainEnd {
    /// It was refused.
    Refused {
        /// Why.
        reason: Reason,
        /// The index of its signal in the chain's, if there is one behind it.
        signal: Option<usize>,
        /// What of its own rule is behind it, if that is it.
        limit: Option<RuleLimit>,
        /// What the client was advised.
        retry_after: Duration,
    },
    /// It was admitted; with the reason if no check was won.
    Admitted(Option<Reason>),
    /// Its client left while it waited.
    Left {
        /// What it waited for.
        reason: Reason,
        /// The index of its signal in the chain's, if there is one behind it.
        signal: Option<usize>,
        /// What of its own rule is behind it, if that is it.
        limit: Option<RuleLimit>,
    },
}

/// A signal of a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct GateSignal {
    /// Its name.
    pub name: Arc<str>,
    /// Whether its unit is the second.
    pub is_time: bool,
    /// The last value.
    pub value: Option<f64>,
    /// What it is held against.
    pub threshold: f64,
    /// Whether it let statements through.
    pub lets_through: bool,
    /// The server that it was highest at, where that is known.
    pub server: Option<Arc<str>>,
    /// What keeps it shut besides the load, where that is known.
    pub hindrance: Option<Hindrance>,
}

/// A place in line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// How many waited when it came.
    pub ahead_at_first: usize,
    /// How many wait when it leaves, in the whole cluster.
    pub waiting: usize,
    /// Of those, who came before it, by app, those with most first. None: too many asked in that
    /// second, and nobody looked.
    pub ahead: Option<Vec<(Box<[u8]>, usize)>>,
    /// How many those are, of the first few hundred in line.
    pub ahead_total: usize,
}

/// The chains of one cluster.
#[derive(Debug, Default)]
pub struct Chains {
    refused: Mutex<VecDeque<Arc<Chain>>>,
    waited: Mutex<Vec<Arc<Chain>>>,
    book: RefusedBook,
    /// In microseconds: a wait that is not longer is not kept.
    worth_us: AtomicU64,
    next_seq: AtomicU64,
    /// The second, and the looks in it.
    looks: Mutex<(u64, u64)>,
}

impl Chains {
    /// The chain with this id.
    #[must_use]
    pub fn find(&self, id: u32) -> Option<Arc<Chain>> {
        let is_it = |chain: &&Arc<Chain>| chain.id == id;
        let refused = self.last_refused(|chain| chain.id == id);
        refused.or_else(|| self.waited.lock().iter().find(is_it).cloned())
    }

    /// Those with a number of at least `seq`, in the order of their numbers: of the refusals so many
    /// at most, and the last of each app and cause.
    #[must_use]
    pub fn since(&self, seq: u64, most: usize) -> Vec<Arc<Chain>> {
        let is_new = |chain: &&Arc<Chain>| chain.seq >= seq;
        let mut new: Vec<Arc<Chain>> =
            self.refused.lock().iter().rev().take_while(is_new).take(most).cloned().collect();
        new.extend(self.waited.lock().iter().filter(is_new).cloned());
        new.extend(self.book.since(seq));
        new.sort_by_key(|chain| chain.seq);
        new.dedup_by_key(|chain| chain.seq);
        new
    }

    /// Of the refusals with a number of at least `seq`, the last of each app and cause.
    #[must_use]
    pub fn last_since(&self, seq: u64) -> Vec<Arc<Chain>> {
        self.book.since(seq)
    }

    /// Of those that are meant the last refusal, the longest wait of the last hour that ended well, and
    /// the last whose client left.
    pub fn of(&self, is_meant: impl Fn(&Chain) -> bool) -> [Option<Arc<Chain>>; 3] {
        let refused = self.last_refused(&is_meant);
        let waited = self.waited.lock();
        let (left, passed): (Vec<_>, Vec<_>) = waited
            .iter()
            .filter(|chain| is_meant(chain))
            .partition(|chain| matches!(chain.end, ChainEnd::Left { .. }));
        let passed = passed.into_iter().max_by_key(|chain| chain.waited);
        let left = left.into_iter().max_by_key(|chain| chain.seq);
        [refused, passed.cloned(), left.cloned()]
    }

    /// One client that spins has soon driven all others out of the last ones; their rows stay.
    fn last_refused(&self, is_meant: impl Fn(&Chain) -> bool) -> Option<Arc<Chain>> {
        let found = self.refused.lock().iter().rev().find(|chain| is_meant(chain)).cloned();
        found.or_else(|| self.book.last(is_meant))
    }

    /// Whose statements are refused, by what and since when; those that were not within
    /// [`super::REFUSED_KEPT`] are not in it.
    pub fn refused(&self, now: MonoTime) -> Vec<Refused> {
        self.book.rows(now)
    }

    /// Whether a wait that was not refused is to be kept.
    pub(crate) fn is_worth(&self, waited: Duration) -> bool {
        waited >= LONG_WAIT && micros(waited) > self.worth_us.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, mut chain: Chain) {
        chain.seq = self.next_seq.fetch_add(1, Ordering::Relaxed);
        let chain = Arc::new(chain);
        match chain.end {
            ChainEnd::Refused { reason, .. } => {
                self.book.note(&chain, reason);
                let mut refused = self.refused.lock();
                if refused.len() >= REFUSALS_MAX {
                    refused.pop_front();
                }
                refused.push_back(chain);
            }
            ChainEnd::Admitted(_) | ChainEnd::Left { .. } => self.note_waited(chain),
        }
    }

    fn note_waited(&self, chain: Arc<Chain>) {
        let now = chain.at;
        let mut waited = self.waited.lock();
        waited.retain(|old| now.saturating_since(old.at) < WAIT_KEPT);
        waited.push(chain);
        if waited.len() > WAITS_MAX {
            waited.sort_by_key(|chain| std::cmp::Reverse(chain.waited));
            waited.truncate(WAITS_MAX);
        }
        let shortest = waited.iter().map(|chain| chain.waited).min().unwrap_or_default();
        let worth = if waited.len() < WAITS_MAX { 0 } else { micros(shortest) };
        self.worth_us.store(worth, Ordering::Relaxed);
    }

    /// Whether somebody may look at the line now.
    fn may_look(&self, now: MonoTime) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        let mut looks = self.looks.lock();
        if looks.0 != second {
            *looks = (second, 0);
        }
        looks.1 = looks.1.saturating_add(1);
        looks.1 <= LOOKS_PER_S
    }
}

/// Who stands at an admission point.
pub(crate) struct Asker<'a> {
    pub(crate) app: &'a [u8],
    pub(crate) source: Option<Source>,
    pub(crate) client: ClientName,
    pub(crate) class: Option<Class>,
    pub(crate) stop: Option<Stop>,
    pub(crate) arrived: Option<MonoTime>,
    pub(crate) ahead_at_first: Option<usize>,
    pub(crate) ratio: f64,
    pub(crate) policy: &'a Arc<ClusterPolicy>,
    pub(crate) rule: Option<&'a Rule>,
}

/// What was decided.
#[derive(Clone, Copy)]
pub(crate) enum Verdict<'a> {
    Refused(u32, &'a admission::Refusal),
    Admitted(Option<Reason>, Duration),
    Left(&'a WaitingStatement, Duration),
}

impl Verdict<'_> {
    fn budget(&self) -> Option<admission::BudgetKey> {
        match self {
            Self::Refused(_, refusal) => refusal.budget,
            Self::Admitted(..) => None,
            Self::Left(waiting, _) => waiting.budget,
        }
    }
}

impl Cluster {
    /// Keeps what led to this.
    pub(crate) fn note_chain(&self, asker: Asker<'_>, verdict: Verdict<'_>) {
        let now = self.now();
        let Asker { app, source, client, class, stop, arrived, ahead_at_first, .. } = asker;
        let Asker { ratio, policy, rule, .. } = asker;
        let signals = rule.map(|rule| self.gate_signals(policy, rule, now)).unwrap_or_default();
        let budget = verdict.budget().and_then(|key| policy.budgets.get(key));
        let place = |cause: Option<Cause>| {
            let cause = policy.signal(cause?.signal)?;
            signals.iter().position(|seen| seen.name == cause.name)
        };
        let (id, end, waited) = match verdict {
            Verdict::Refused(id, refusal) => {
                let signal = place(refusal.cause);
                let (reason, retry_after) = (refusal.reason, refusal.retry_after);
                let end = ChainEnd::Refused { reason, signal, limit: refusal.limit, retry_after };
                (id, end, refusal.waited)
            }
            Verdict::Admitted(reason, waited) => {
                (rand::random(), ChainEnd::Admitted(reason), waited)
            }
            Verdict::Left(waiting, waited) => {
                let WaitingStatement { reason, cause, limit, .. } = *waiting;
                (rand::random(), ChainEnd::Left { reason, signal: place(cause), limit }, waited)
            }
        };
        let line = ahead_at_first.map(|ahead_at_first| Line {
            ahead_at_first,
            ..self.line(arrived.unwrap_or(now), now)
        });
        self.chains.note(Chain {
            id,
            seq: 0,
            at: now,
            at_unix: UnixTime(self.clock().unix_seconds()),
            cluster: self.name.clone(),
            app: app.into(),
            source,
            client,
            class,
            rule: rule.cloned(),
            budget: budget.map(|budget| budget.name.clone()),
            budget_reason: budget.map(|budget| budget.reason.clone()),
            stop,
            check_interval: policy.check_interval,
            ratio,
            end,
            waited,
            signals,
            line,
        });
    }

    /// The signals of a rule's gate, and where each is highest.
    pub fn gate_signals(
        &self,
        policy: &ClusterPolicy,
        rule: &Rule,
        now: MonoTime,
    ) -> Vec<GateSignal> {
        let Action::Throttle { gate, .. } = rule.action else { return Vec::new() };
        let views: Vec<SignalView> = self.gatekeeper.lock().controller.signals(now).collect();
        let named = policy.gate_signals(gate).filter_map(|signal| {
            let view = views.iter().find(|view| view.key == signal.key)?;
            let server = self.highest_at(signal, now);
            Some(GateSignal {
                hindrance: self.hindrance(signal, view, server.as_deref()),
                name: signal.name.clone(),
                is_time: signal.kind.is_time(),
                value: view.value,
                threshold: view.threshold,
                lets_through: view.lets_through,
                server,
            })
        });
        named.collect()
    }

    /// What keeps the gate of the signal of this name shut besides the load, where that is known.
    pub fn what_hinders(
        &self,
        policy: &ClusterPolicy,
        name: &str,
        now: MonoTime,
    ) -> Option<Hindrance> {
        let signal = policy.signals.iter().find(|signal| *signal.name == *name)?;
        let is_its = |view: &SignalView| view.key == signal.key;
        let view = self.gatekeeper.lock().controller.signals(now).find(is_its)?;
        self.hindrance(signal, &view, self.highest_at(signal, now).as_deref())
    }

    /// What keeps a signal's gate shut besides the load.
    fn hindrance(
        &self,
        signal: &Signal,
        view: &SignalView,
        highest_at: Option<&str>,
    ) -> Option<Hindrance> {
        if view.lets_through {
            return None;
        }
        match (&signal.kind, view.state) {
            (SignalKind::Lag { .. }, SignalState::NoData { .. }) => {
                self.probes.lag_hindrance(self.now())
            }
            (SignalKind::Lag { .. }, SignalState::Open | SignalState::Closed) => {
                self.probes.hindrance_of(highest_at?, self.now())
            }
            (
                SignalKind::Latency(_)
                | SignalKind::ThreadsRunning
                | SignalKind::HistoryListLength
                | SignalKind::Query(_)
                | SignalKind::Status(_),
                _,
            ) => None,
        }
    }

    /// The server at which a signal is highest now, by its address in the file.
    pub fn highest_at(&self, signal: &Signal, now: MonoTime) -> Option<Arc<str>> {
        match signal.kind {
            SignalKind::Lag { .. } => self.probes.slowest(now),
            SignalKind::Latency(_) => None,
            SignalKind::ThreadsRunning
            | SignalKind::HistoryListLength
            | SignalKind::Query(_)
            | SignalKind::Status(_) => {
                let values = self.probes.values(now).into_iter();
                let own = values.filter(|reading| reading.signal == signal.key);
                let highest = own.max_by(|a, b| a.value.total_cmp(&b.value));
                highest.map(|reading| reading.server)
            }
        }
    }

    /// Who waits now, and who of them came first.
    pub fn line(&self, arrived: MonoTime, now: MonoTime) -> Line {
        if !self.chains.may_look(now) {
            let waiting = self.gatekeeper.lock().controller.waiting_len();
            return Line { waiting, ..Line::default() };
        }
        let mut apps: BTreeMap<Box<[u8]>, usize> = BTreeMap::new();
        let gatekeeper = self.gatekeeper.lock();
        let waiting = gatekeeper.controller.waiting_len();
        let ahead = gatekeeper.controller.waiters_after(None).take(AHEAD_LOOKED_AT);
        for waiter in ahead.filter(|waiter| waiter.arrived < arrived) {
            let Some(queued) = waiter.ticket.and_then(|ticket| gatekeeper.waiters.get(&ticket))
            else {
                continue;
            };
            let count = apps.entry(queued.name.app.clone()).or_default();
            *count = count.saturating_add(1);
        }
        drop(gatekeeper);
        let ahead_total = apps.values().sum();
        let mut ahead: Vec<(Box<[u8]>, usize)> = apps.into_iter().collect();
        ahead.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        ahead.truncate(AHEAD_NAMED);
        Line { ahead_at_first: 0, waiting, ahead: Some(ahead), ahead_total }
    }
}

fn micros(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)
}
