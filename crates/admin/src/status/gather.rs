//! Reads what is shown. The controller's lock is taken for moments only; whatever sorts or counts
//! does so without it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admission::{
    BudgetKey, Cause, InFlightView, Mode, MonoTime, Reason, RuleKey, RuleLimit, SignalKey,
    SignalState, SignalView,
};
use policy::{
    Action, ClusterPolicy, FixedKey, PacingKind, Pending, Rule, SignalKind, Standing, UnixTime,
};
use proxy::board::{BypassUser, PrimaryState, Reachability, ReplicaReading};
use proxy::cluster::{Cluster, StarvedIdentity, Throttled, WaitingClient};
use proxy::cut_overs::PendingCutOver;
use proxy::telemetry::{AppCount, Reload, state_label};

use super::{
    AppStatus, BypassStatus, ClusterStatus, ConfigStatus, CutOverStatus, Obstacle, PaceStatus,
    PassedStatus, PendingStatus, PrimaryStatus, ReplicaStatus, RuleStatus, SignalStatus,
    StarvedStatus, Status, ThrottledStatus, Waiting, WaitingStatus, budgets, guards, refused,
    words,
};
use crate::{AdminState, quarantine};

/// Waiting statements that one answer lists for each cluster, at most.
pub const WAITING_MAX: usize = 1_000;

/// Rules listed for each cluster: more is not for reading.
const RULES_MAX: usize = 500;

/// Apps listed for each cluster, each with each of its rules.
const APPS_MAX: usize = 200;

/// Everything, with so many of each cluster's waiting statements.
#[must_use]
pub fn gather(state: &AdminState, waiting_len: usize) -> Status {
    let counts = state.telemetry.app_counts();
    let hits = state.telemetry.rule_hits();
    read(state, |seen| seen.status(state, (&counts, &hits), waiting_len))
}

/// The same without the lists of apps and of rules, which are long to make, and with so many of each
/// cluster's refusals.
pub(crate) fn live(state: &AdminState, waiting_len: usize, refused_len: usize) -> Status {
    read(state, |seen| {
        let mut cluster = seen.guarded(state, waiting_len);
        cluster.refused.truncate(refused_len);
        cluster
    })
}

fn read(state: &AdminState, cluster: impl Fn(&Seen<'_>) -> ClusterStatus) -> Status {
    let not_ready = crate::ready::obstacles(state);
    let seen: Vec<Seen<'_>> = state.clusters.iter().map(Seen::of).collect();
    let first = seen.first().map(|seen| (seen.unix, seen.cluster.clock().started_at()));
    let (now, started_at) = first.unwrap_or_default();
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: now.to_string(),
        started_at: UnixTime(started_at).to_string(),
        ready: not_ready.is_empty(),
        not_ready,
        notes: crate::ready::notes(state),
        config: ConfigStatus {
            last_reload_successful: state.telemetry.config_is_valid(),
            waits_for_files: state.telemetry.last_reload() == Some(Reload::Waiting),
            last_reload_at: UnixTime(whole(state.telemetry.config_applied_at())).to_string(),
            restart_pending: state.telemetry.pending_keys().iter().filter_map(pending).collect(),
        },
        clusters: seen.iter().map(cluster).collect(),
    }
}

/// The statements that wait, so many of each cluster.
#[must_use]
pub fn waiting(state: &AdminState, waiting_len: usize) -> Waiting {
    let mut all = Waiting::default();
    for cluster in state.clusters.iter() {
        let seen = Seen::of(cluster);
        let waiters = cluster.held_back();
        all.now = seen.unix.to_string();
        all.waiting_total = all.waiting_total.saturating_add(length(waiters.len()));
        all.waiting.extend(seen.waiting(&waiters, waiting_len));
    }
    all
}

/// One cluster, and the time at which it is looked at.
struct Seen<'s> {
    cluster: &'s Arc<Cluster>,
    policy: Arc<ClusterPolicy>,
    /// The names of rules by their keys.
    rules: HashMap<RuleKey, Arc<str>>,
    now: MonoTime,
    unix: UnixTime,
}

impl<'s> Seen<'s> {
    fn of(cluster: &'s Arc<Cluster>) -> Self {
        let policy = cluster.policy();
        let rules = policy.rules.iter().map(|rule| (rule.key, rule.name.clone())).collect();
        let unix = UnixTime(cluster.clock().unix_seconds());
        Self { cluster, policy, rules, now: cluster.now(), unix }
    }

    fn status(
        &self,
        state: &AdminState,
        (counts, hits): (&[AppCount], &HashMap<String, u64>),
        waiting_len: usize,
    ) -> ClusterStatus {
        let (apps, apps_total) = self.apps(counts);
        let rules = self.policy.rules.iter().take(RULES_MAX);
        let rules = rules.map(|rule| self.rule(rule, hits)).collect();
        ClusterStatus { apps, apps_total, rules, ..self.guarded(state, waiting_len) }
    }

    /// With whom anything has refused, and what guards have met.
    fn guarded(&self, state: &AdminState, waiting_len: usize) -> ClusterStatus {
        let (refused, refused_total) = refused::gather(self.cluster, self.unix);
        let (guards, guards_total) = guards::gather(&self.policy, &state.telemetry);
        let cluster = self.cluster(waiting_len);
        ClusterStatus { refused, refused_total, guards, guards_total, ..cluster }
    }

    fn cluster(&self, waiting_len: usize) -> ClusterStatus {
        let Self { cluster, policy, .. } = self;
        let gate = policy.default_gate;
        let (views, limits, pace, in_flight) = cluster.control(|controller, now| {
            let views: Vec<SignalView> = controller.signals(now).collect();
            let limits: Vec<InFlightView> = controller.in_flight_limits(now).collect();
            let pace = (controller.release_per_s(gate, now), controller.governing(now));
            (views, limits, pace, controller.in_flight())
        });
        let waiters = cluster.held_back();
        let (throttled, throttled_total) = cluster.throttled(&waiters);
        let bypass = cluster.probes.bypass();
        ClusterStatus {
            cluster: cluster.name.to_string(),
            listen: policy.listen.to_string(),
            mode: mode(policy.mode).to_owned(),
            client_connections: length(cluster.registry.len()),
            in_flight,
            pace: self.pace(pace),
            primary: self.primary(),
            replicas: self.replicas(),
            signals: views.iter().filter_map(|view| self.signal(view, &limits)).collect(),
            throttled: throttled.iter().map(|throttled| self.throttled(throttled)).collect(),
            throttled_total: length(throttled_total),
            waiting: self.waiting(&waiters, waiting_len),
            waiting_total: length(waiters.len()),
            bypass: bypass.iter().flat_map(|seen| &seen.users).take(APPS_MAX).map(around).collect(),
            bypass_unknown: bypass.as_ref().map(|seen| seen.unknown),
            cut_overs: cluster.cut_overs().iter().map(cut_over).collect(),
            starved: cluster.starved().into_iter().map(|starved| self.starved(starved)).collect(),
            apps: Vec::new(),
            apps_total: 0,
            refused: Vec::new(),
            refused_total: 0,
            budgets: budgets::gather(cluster, policy),
            guards: Vec::new(),
            guards_total: 0,
            quarantine: quarantine::of_cluster(cluster),
            rules: Vec::new(),
            rules_total: length(policy.rules.len()),
        }
    }

    fn pace(&self, (per_second, governs): (Option<f64>, Option<SignalKey>)) -> PaceStatus {
        let kinds = || self.policy.gate_signals(self.policy.default_gate).map(|it| &it.kind);
        let is_lag = |kind: &SignalKind| matches!(kind, SignalKind::Lag { .. });
        let has_others = kinds().any(|kind| !is_lag(kind));
        let has_lag =
            !self.policy.replicas.is_empty() && self.policy.probe.is_some() && kinds().any(is_lag);
        let (pacing, unit) = match self.policy.pacing {
            PacingKind::Adaptive if has_lag => ("adaptive", "rows"),
            PacingKind::Adaptive if has_others => ("adaptive", "statements"),
            PacingKind::Adaptive => ("adaptive", "checks"),
            PacingKind::Binary => ("binary", "checks"),
        };
        let gate = self.policy.gate_signals(self.policy.default_gate);
        PaceStatus {
            gate: gate.map(|signal| signal.name.to_string()).collect(),
            pacing: pacing.to_owned(),
            per_second,
            unit: unit.to_owned(),
            governs: governs.and_then(|key| self.policy.signal(key)).map(|it| it.name.to_string()),
        }
    }

    fn primary(&self) -> PrimaryStatus {
        let (state, age_s, error) = match crate::ready::primary(self.cluster) {
            PrimaryState::Answers(age) => ("answers", Some(seconds(age)), None),
            PrimaryState::NotProbed => ("not_probed", None, None),
            PrimaryState::Unknown => ("unknown", None, None),
            PrimaryState::Silent(error) => ("silent", None, Some(error.sentence())),
        };
        let (reached_s, unreached) = match self.cluster.probes.reachability(self.now) {
            Reachability::Reached(age) => (Some(seconds(age)), None),
            Reachability::Unreached(why) => (None, Some(why)),
            Reachability::Awaited | Reachability::Unknown => (None, None),
        };
        let server = self.policy.primary.to_string();
        let blocked = self.cluster.probes.heartbeat_blocked();
        let heartbeat_blocked = blocked.map(|(blocked, _)| blocked.to_string());
        let state = state.to_owned();
        PrimaryStatus { server, state, age_s, error, reached_s, unreached, heartbeat_blocked }
    }

    fn replicas(&self) -> Vec<ReplicaStatus> {
        let terms = &self.policy.replica_terms;
        let group = |server: &str| Some(terms.of(server)?.group.as_ref()?.to_string());
        let status = |reading: ReplicaReading| ReplicaStatus {
            group: group(&reading.server),
            threshold_s: terms.of(&reading.server).and_then(|it| it.threshold).map(seconds),
            server: reading.server.to_string(),
            state: state_label(reading.view.state).to_owned(),
            for_s: seconds(self.now.saturating_since(reading.view.since)),
            lag_s: reading.view.lag.map(seconds),
            counts: reading.view.counts,
            error: reading.trouble(),
            advice: Some(reading.advice().to_owned()).filter(|advice| !advice.is_empty()),
        };
        self.cluster.probes.replicas(self.now).into_iter().map(status).collect()
    }

    fn signal(&self, view: &SignalView, limits: &[InFlightView]) -> Option<SignalStatus> {
        let limit = limits.iter().find(|limit| limit.signal == view.key);
        let signal = self.policy.signal(view.key)?;
        let state = match view.state {
            SignalState::Open => "open",
            SignalState::Closed => "closed",
            SignalState::NoData { .. } => "no_data",
        };
        Some(SignalStatus {
            signal: signal.name.to_string(),
            value: view.value,
            threshold: view.threshold,
            server: self.cluster.highest_at(signal, self.now).map(|server| server.to_string()),
            unit: unit(&signal.kind).to_owned(),
            state: state.to_owned(),
            for_s: seconds(self.now.saturating_since(view.since)),
            age_s: view.age.map(seconds),
            open: view.lets_through,
            in_flight: limit.map(|limit| limit.in_flight),
            in_flight_limit: limit.and_then(|limit| limit.limit),
        })
    }

    fn throttled(&self, throttled: &Throttled) -> ThrottledStatus {
        let ago = |at: MonoTime| self.now.saturating_since(at);
        let waiting = throttled.waiting;
        ThrottledStatus {
            app: text(&throttled.app),
            rule: self.rule_name(throttled.rule),
            since: throttled.since.map(|at| before(self.unix, ago(at))),
            for_s: throttled.since.map(|at| seconds(ago(at))),
            asked_s: seconds(ago(throttled.asked_at)),
            waiting: waiting.map_or(0, |waiting| length(waiting.depth)),
            oldest_s: waiting.map(|waiting| seconds(ago(waiting.oldest))),
            why: waiting
                .map(|waiting| {
                    self.obstacle(waiting.reason, waiting.cause, (waiting.budget, waiting.limit))
                })
                .unwrap_or_default(),
        }
    }

    fn waiting(&self, waiters: &[WaitingClient], len: usize) -> Vec<WaitingStatus> {
        let mut longest: Vec<&WaitingClient> = waiters.iter().collect();
        longest.sort_by_key(|waiter| (waiter.waiting.arrived, waiter.waiting.ticket));
        longest.truncate(len.min(WAITING_MAX));
        longest.into_iter().map(|waiter| self.waiting_client(waiter)).collect()
    }

    fn waiting_client(&self, waiter: &WaitingClient) -> WaitingStatus {
        let waiting = &waiter.waiting;
        let client = waiter.client();
        WaitingStatus {
            cluster: self.cluster.name.to_string(),
            connection_id: client.map_or(0, |client| client.connection_id),
            user: client.map(|client| text(&client.user)).unwrap_or_default(),
            client: client.map(|client| client.address.to_string()).unwrap_or_default(),
            app: text(waiter.app()),
            rule: self.rule_name(waiting.rule),
            waited_s: seconds(self.now.saturating_since(waiting.arrived)),
            left_s: seconds(waiting.deadline.saturating_since(self.now)),
            why: self.obstacle(waiting.reason, waiting.cause, (waiting.budget, waiting.limit)),
        }
    }

    fn obstacle(
        &self,
        reason: Reason,
        cause: Option<Cause>,
        (budget, limit): (Option<BudgetKey>, Option<RuleLimit>),
    ) -> Obstacle {
        let budget = budget.and_then(|budget| self.policy.budgets.get(budget));
        let signal = cause.and_then(|cause| self.policy.signal(cause.signal));
        Obstacle {
            reason: Some(reason.as_str().to_owned()),
            signal: signal.map(|signal| signal.name.to_string()),
            value: cause.and_then(|cause| cause.value),
            threshold: cause.map(|cause| cause.threshold),
            unit: signal.map(|signal| unit(&signal.kind).to_owned()),
            budget: budget.map(|budget| budget.name.to_string()),
            limit: limit.map(|limit| limit.as_str().to_owned()),
        }
    }

    fn starved(&self, starved: StarvedIdentity) -> StarvedStatus {
        let ago = self.now.saturating_since(starved.since);
        let likely_cause = starved.likely_cause();
        let passed = starved.meanwhile.into_iter().map(|passed| PassedStatus {
            app: passed.app,
            rule: passed.rule,
            passage: passed.passage.as_str().to_owned(),
            count: passed.count,
        });
        StarvedStatus {
            app: text(&starved.identity),
            rule: starved.rule,
            kind: starved.kind.as_str().to_owned(),
            share: starved.share,
            received_of_share: starved.received_of_share,
            since: before(self.unix, ago),
            for_s: seconds(ago),
            blocked: starved.blocked,
            likely_cause,
            stopped_replica: starved.stopped_replica,
            passed: passed.collect(),
        }
    }

    fn apps(&self, counts: &[AppCount]) -> (Vec<AppStatus>, u64) {
        let mut own: Vec<&AppCount> =
            counts.iter().filter(|count| *count.cluster == *self.cluster.name).collect();
        // Of those that a rule names there are series before anybody comes.
        own.retain(|count| !count.is_zero());
        let all = length(own.len());
        let held = |count: &AppCount| count.rejected.saturating_add(count.delayed);
        own.sort_by(|a, b| held(b).cmp(&held(a)).then(b.admitted.cmp(&a.admitted)));
        let status = |count: &AppCount| AppStatus {
            app: count.app.clone(),
            rule: count.rule.clone(),
            mode: count.mode.clone(),
            admitted: count.admitted,
            delayed: count.delayed,
            rejected: count.rejected,
            client_gone: count.client_gone,
        };
        (own.into_iter().take(APPS_MAX).map(status).collect(), all)
    }

    fn rule(&self, rule: &Rule, hits: &HashMap<String, u64>) -> RuleStatus {
        let action = match rule.action {
            Action::Exempt => "exempt",
            Action::Deny => "deny",
            Action::Throttle { terms, .. } if terms.hold => "hold",
            Action::Throttle { .. } => "throttle",
        };
        let standing = match rule.standing(self.unix) {
            Standing::InForce => "in_force",
            Standing::Expired => "expired",
            Standing::OffSchedule => "off_schedule",
        };
        RuleStatus {
            rule: rule.name.to_string(),
            action: action.to_owned(),
            does: words::action(rule, &self.policy),
            mode: mode(rule.mode).to_owned(),
            standing: standing.to_owned(),
            expires_at: rule.expires_at.map(|at| at.to_string()),
            expires_in_s: rule.expires_at.map(|at| at.0.saturating_sub(self.unix.0)),
            hits: hits.get(&*rule.name).copied().unwrap_or(0),
            author: rule.author.as_deref().map(str::to_owned),
            reason: rule.reason.clone(),
        }
    }

    /// Rules come and go while statements wait under them.
    fn rule_name(&self, key: RuleKey) -> String {
        if key == RuleKey(0) {
            // Only its budgets were asked.
            return "none".to_owned();
        }
        self.rules.get(&key).map_or_else(|| "one that is gone".to_owned(), |name| name.to_string())
    }
}

fn pending(key: &FixedKey) -> Option<PendingStatus> {
    let Pending { running, file } = key.pending.clone()?;
    Some(PendingStatus { key: key.path(), running, file })
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}

fn unit(kind: &SignalKind) -> &'static str {
    if kind.is_time() { "s" } else { "" }
}

/// What clients call themselves is seldom, but may be, no UTF-8.
pub(super) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

pub(super) fn length(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// To the millisecond: nobody reads more.
pub(super) fn seconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 1_000.0).round() / 1_000.0
}

/// The time so long ago.
pub(super) fn before(now: UnixTime, ago: Duration) -> String {
    let ago = i64::try_from(ago.as_secs()).unwrap_or(i64::MAX);
    UnixTime(now.0.saturating_sub(ago)).to_string()
}

#[expect(clippy::cast_possible_truncation, clippy::as_conversions, reason = "`as` saturates")]
fn whole(seconds: f64) -> i64 {
    seconds as i64
}

fn cut_over(pending: &PendingCutOver) -> CutOverStatus {
    CutOverStatus {
        connection_id: pending.connection_id,
        user: text(&pending.cut_over.user),
        schema: text(&pending.cut_over.schema),
        table: text(&pending.cut_over.table),
        for_s: seconds(pending.age),
        passed: pending.passed,
    }
}

fn around(user: &BypassUser) -> BypassStatus {
    BypassStatus {
        user: text(user.user.as_bytes()),
        hosts: user.hosts.iter().map(|host| text(host.as_bytes())).collect(),
        sessions: user.sessions,
        share: user.share,
    }
}
