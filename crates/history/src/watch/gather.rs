//! Takes a look.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use admission::{
    MonoTime, Reason, RuleKey, RuleLimit, SignalState, SignalView, StarvedKind, Waiting,
};
use policy::{Action, ClusterPolicy, Rule};
use proxy::board::{LATELY, PrimaryState};
use proxy::cluster::{Chain, ChainEnd, Cluster, StarvedIdentity, Stop};
use proxy::telemetry::{NO_RULE, RuleEdit, Telemetry, state_label};

use crate::diff;
use crate::look::{
    CauseLook, ClusterLook, Happened, Look, RuleLook, ServerLook, SignalLook, StarvedLook,
    WaitingLook,
};
use crate::record::{At, StatementRow};
use crate::why::{Why, effect, label};

/// Looks at who is starved only this often: it is told to the second.
const STARVED_EVERY: u32 = 4;

/// With more waiters than this, they are looked at once in so many looks.
const WAITERS_MANY: u64 = 1_000;

/// Statements of one cluster that one write keeps.
const STATEMENTS_MAX: usize = 500;

#[derive(Debug)]
pub(super) struct Gatherer {
    begin: Instant,
    telemetry: Arc<Telemetry>,
    clusters: Vec<Watched>,
    looks: u32,
}

#[derive(Debug)]
struct Watched {
    cluster: Arc<Cluster>,
    policy: Option<Arc<ClusterPolicy>>,
    rules: HashMap<RuleKey, Arc<str>>,
    starved: Vec<StarvedLook>,
    waiting: Vec<WaitingLook>,
    /// Of the look before.
    causes: Vec<CauseLook>,
    next_cause: u64,
    next_chain: u64,
}

impl Gatherer {
    pub(super) fn new(clusters: &[Arc<Cluster>], telemetry: &Arc<Telemetry>) -> Self {
        let watched = |cluster: &Arc<Cluster>| Watched {
            cluster: cluster.clone(),
            policy: None,
            rules: HashMap::new(),
            starved: Vec::new(),
            waiting: Vec::new(),
            causes: Vec::new(),
            next_cause: 0,
            next_chain: 0,
        };
        Self {
            begin: Instant::now(),
            telemetry: telemetry.clone(),
            clusters: clusters.iter().map(watched).collect(),
            looks: 0,
        }
    }

    pub(super) fn look(&mut self) -> Look {
        self.looks = self.looks.wrapping_add(1);
        let looks = self.looks;
        // Before what is counted: a rule is known before the statements that it has held.
        let clusters = self.clusters.iter_mut().map(|cluster| cluster.look(looks)).collect();
        Look {
            mono: self.begin.elapsed(),
            at: wall(),
            counted: self.telemetry.take_tally(),
            checks: self.telemetry.take_checks(),
            clusters,
            happened: self.telemetry.edits.take().into_iter().map(happened).collect(),
        }
    }

    /// What was told of rules is forgotten: all of it is news to another book.
    pub(super) fn forget(&mut self) {
        self.clusters.iter_mut().for_each(|cluster| cluster.policy = None);
    }

    /// What led to the refusals and long waits since the last call.
    pub(super) fn statements(&mut self) -> Vec<StatementRow> {
        let clusters = self.clusters.iter_mut();
        clusters.flat_map(Watched::statements).collect()
    }
}

impl Watched {
    fn look(&mut self, looks: u32) -> ClusterLook {
        let policy = self.cluster.policy();
        let rules = self.take_policy(&policy);
        let now = self.cluster.now();
        if looks.is_multiple_of(STARVED_EVERY) {
            let starved = self.cluster.starved();
            self.starved = starved.into_iter().map(|it| starved_look(it, now)).collect();
        }
        let waited: u64 = self.waiting.iter().map(|it| it.depth).sum();
        if waited < WAITERS_MANY || looks.is_multiple_of(STARVED_EVERY) {
            self.waiting = self.waiting_now(&policy, now);
        }
        ClusterLook {
            cluster: self.cluster.name.clone(),
            waiting: self.waiting.clone(),
            causes: self.causes(),
            signals: self.signals(&policy, now),
            servers: self.servers(&policy, now),
            starved: self.starved.clone(),
            rules,
        }
    }

    /// The rules, if they are others than before.
    fn take_policy(&mut self, policy: &Arc<ClusterPolicy>) -> Option<Vec<RuleLook>> {
        if self.policy.as_ref().is_some_and(|known| Arc::ptr_eq(known, policy)) {
            return None;
        }
        self.policy = Some(policy.clone());
        self.rules = policy.rules.iter().map(|rule| (rule.key, rule.name.clone())).collect();
        Some(policy.rules.iter().map(rule_look).collect())
    }

    fn waiting_now(&self, policy: &ClusterPolicy, now: MonoTime) -> Vec<WaitingLook> {
        let look = |(waiting, app): (Waiting, Box<[u8]>)| WaitingLook {
            app: label(&app),
            rule: self.rules.get(&waiting.rule).cloned().unwrap_or_else(|| NO_RULE.into()),
            depth: u64::try_from(waiting.depth).unwrap_or(u64::MAX),
            oldest: now.saturating_since(waiting.oldest),
            reason: waiting.reason.as_str(),
            behind: behind_waiting(&waiting, policy),
        };
        self.cluster.waiting().into_iter().map(look).collect()
    }

    /// What is behind what was refused since the look before that of before.
    fn causes(&mut self) -> Vec<CauseLook> {
        let last = self.cluster.chains.last_since(self.next_cause);
        let next = last.iter().map(|chain| chain.seq.saturating_add(1)).max();
        self.next_cause = next.unwrap_or(self.next_cause);
        let causes: Vec<CauseLook> = last.iter().filter_map(|chain| cause_look(chain)).collect();
        let mut both = std::mem::replace(&mut self.causes, causes);
        both.extend_from_slice(&self.causes);
        both
    }

    fn signals(&self, policy: &ClusterPolicy, now: MonoTime) -> Vec<SignalLook> {
        let views: Vec<SignalView> =
            self.cluster.control(|controller, now| controller.signals(now).collect());
        let look = |view: &SignalView| {
            if view.awaited {
                return None;
            }
            let signal = policy.signal(view.key)?;
            let (value, shut) = match (view.state, view.lets_through) {
                (SignalState::NoData { .. }, true) => (None, None),
                (SignalState::NoData { .. }, false) => (None, Some("no_data")),
                (SignalState::Open | SignalState::Closed, true) => (view.value, None),
                (SignalState::Open | SignalState::Closed, false) => (view.value, Some("closed")),
            };
            Some(SignalLook {
                signal: signal.name.clone(),
                unit: if signal.kind.is_time() { "s" } else { "" },
                value,
                threshold: view.threshold,
                shut,
                lasts: now.saturating_since(view.since),
                server: self.cluster.highest_at(signal, now),
            })
        };
        views.iter().filter_map(look).collect()
    }

    fn servers(&self, policy: &ClusterPolicy, now: MonoTime) -> Vec<ServerLook> {
        let probes = &self.cluster.probes;
        let (state, trouble) = match probes.primary(now, LATELY) {
            PrimaryState::Answers(_) => ("answers", None),
            PrimaryState::NotProbed => ("not_probed", None),
            PrimaryState::Unknown => ("unknown", None),
            PrimaryState::Silent(error) => ("silent", Some(error.sentence())),
        };
        let primary = ServerLook {
            server: policy.primary.to_string(),
            is_primary: true,
            state: state.to_owned(),
            lasts: None,
            trouble,
        };
        let replicas = probes.replicas(now).into_iter().map(|replica| ServerLook {
            server: replica.server.to_string(),
            is_primary: false,
            state: state_label(replica.view.state).to_owned(),
            lasts: Some(now.saturating_since(replica.view.since)),
            trouble: replica.trouble(),
        });
        std::iter::once(primary).chain(replicas).collect()
    }

    fn statements(&mut self) -> Vec<StatementRow> {
        let chains = self.cluster.chains.since(self.next_chain, STATEMENTS_MAX);
        if let Some(last) = chains.last() {
            self.next_chain = last.seq.saturating_add(1);
        }
        let row = |why: Why, id: u32, app: &[u8]| StatementRow {
            id,
            at: why.at,
            cluster: why.cluster.clone(),
            app: label(app),
            why: serde_json::to_string(&why).unwrap_or_default(),
        };
        chains.iter().map(|chain| row(Why::of(chain), chain.id, &chain.app)).collect()
    }
}

fn behind_waiting(waiting: &Waiting, policy: &ClusterPolicy) -> Option<String> {
    let budget = waiting.budget.and_then(|key| policy.budgets.get(key));
    let signal = waiting.cause.and_then(|cause| policy.signal(cause.signal));
    match (budget, waiting.reason) {
        (Some(budget), _) => Some(budget.name.to_string()),
        (None, Reason::Paced) => Some(of_pace(waiting.limit)),
        (None, _) => signal.map(|signal| signal.name.to_string()),
    }
}

/// The pace of a signal is no fault of it.
fn of_pace(limit: Option<RuleLimit>) -> String {
    limit.map(|limit| limit.as_str().to_owned()).unwrap_or_default()
}

fn cause_look(chain: &Chain) -> Option<CauseLook> {
    let ChainEnd::Refused { reason, signal, limit, .. } = chain.end else { return None };
    let signal = signal.and_then(|place| chain.signals.get(place));
    let behind = match (&chain.stop, &chain.budget, reason) {
        (Some(Stop::Guard(stop)), ..) => stop.guard.to_string(),
        (Some(Stop::Quarantine(like, _)), ..) => format!("{}:{}", chain.cluster, like.id()),
        (None, Some(budget), _) => budget.to_string(),
        (None, None, Reason::Paced) => of_pace(limit),
        (None, None, _) => signal?.name.to_string(),
    };
    let signal = signal.filter(|signal| *signal.name == *behind).cloned();
    let rule = chain.rule.as_ref().map_or_else(|| NO_RULE.into(), |rule| rule.name.clone());
    Some(CauseLook { app: label(&chain.app), rule, reason: reason.as_str(), behind, signal })
}

fn starved_look(starved: StarvedIdentity, now: MonoTime) -> StarvedLook {
    let meanwhile: Vec<String> = starved.meanwhile.iter().map(ToString::to_string).collect();
    let meanwhile = match starved.likely_cause() {
        Some(cause) => format!("the likely cause is {cause}"),
        None if meanwhile.is_empty() => String::new(),
        None => format!("admitted meanwhile: {}", meanwhile.join(", ")),
    };
    let meanwhile = match starved.received_of_share {
        Some(part) if starved.kind == StarvedKind::BelowShare => {
            format!("got {:.0} % of its fair share; {meanwhile}", part * 100.0)
        }
        Some(_) | None => meanwhile,
    };
    StarvedLook {
        app: label(&starved.identity),
        rule: starved.rule,
        lasts: now.saturating_since(starved.since),
        meanwhile,
    }
}

fn rule_look(rule: &Rule) -> RuleLook {
    let does = match rule.action {
        Action::Throttle { terms, .. } if !terms.hold => {
            format!("throttle, ratio {}", terms.ratio.as_f64())
        }
        Action::Throttle { .. } | Action::Exempt | Action::Deny => effect(&rule.action).to_owned(),
    };
    RuleLook {
        name: rule.name.clone(),
        author: rule.author.clone(),
        reason: rule.reason.clone(),
        does,
        ends: rule.expires_at.map(|at| At(at.0.saturating_mul(1_000))),
        slows: !rule.speed.is_full(),
    }
}

fn happened(edit: RuleEdit) -> Happened {
    match edit {
        RuleEdit::File { path, before, after, changes } => {
            Happened::File { path, changes, diff: diff::lines(&before, &after) }
        }
        RuleEdit::Runtime { cluster, rule, author, what } => {
            Happened::Rule { cluster, rule, author, what }
        }
    }
}

/// The wall clock, which can jump.
pub(super) fn wall() -> At {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
