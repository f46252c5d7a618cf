//! What has a value at any time: read when somebody scrapes, into families made for that scrape. So
//! nothing is left over from a server or a waiter that is gone, and two scrapers do not meet.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use admission::lag::ReplicaState;
use admission::{AppKey, CheckCount, InFlightView, MonoTime, RuleKey, SignalState, SignalView};
use parking_lot::Mutex;
use policy::{ClusterPolicy, FixedKey, Rule, Scope, SignalKind, app_key as key_of_app};
use prometheus::{GaugeVec, Registry, TextEncoder};

use super::around::Around;
use super::budgets::BudgetFamilies;
use super::certificates::Certificates;
use super::gauges::gauges;
use super::limits::Limits;
use super::servers::Servers;
use super::starved::StarvedFamilies;
use super::{NO_RULE, NO_RULE_KEY, Telemetry};
use crate::cluster::Cluster;

/// Checks of identities that no statement has made known yet, for one cluster. Beyond it they count
/// for `other`.
const UNRESOLVED_MAX: usize = 4_096;

/// Checks whose app is not known yet: a check comes before the statement that tells whose it was.
pub(super) type Unresolved = Mutex<BTreeMap<(Arc<str>, RuleKey, AppKey), CheckCount>>;

/// Series of what rows cost, by cluster.
const ROW_COSTS_MAX: usize = 20;

/// What has a value at any time is read when somebody asks.
impl Telemetry {
    /// Everything, in Prometheus's text format 0.0.4.
    pub fn gather(&self, clusters: &[Arc<Cluster>]) -> String {
        self.retire_rules(Instant::now());
        let now = Now::new();
        now.fixed_keys(&self.fixed_keys.lock());
        for cluster in clusters {
            self.read_cluster(cluster, &now);
        }
        let mut families = now.registry.gather();
        families.extend(self.registry.gather());
        match TextEncoder::new().encode_to_string(&families) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(%error, "the metrics could not be written");
                String::new()
            }
        }
    }

    fn read_cluster(&self, cluster: &Arc<Cluster>, now: &Now) {
        let policy = cluster.policy();
        let gate = policy.default_gate;
        let (mut checks, mut costs) = (Vec::new(), Default::default());
        let (signals, limits, (release_per_s, pace), at) = cluster.control(|controller, at| {
            controller.drain_checks(|count| checks.push(count));
            let signals: Vec<SignalView> = controller.signals(at).collect();
            let limits: Vec<InFlightView> = controller.in_flight_limits(at).collect();
            let limits = (limits, controller.governing(at));
            let pace = (controller.release_per_s(gate, at), controller.pace_view(at));
            costs = (controller.row_costs(ROW_COSTS_MAX), controller.transaction_cost());
            (signals, limits, pace, at)
        });
        now.signals(cluster, &policy, &signals, at);
        now.limits.read(&policy, &signals, &limits);
        if let Some(pace) = &pace {
            now.limits.read_pace(cluster, pace);
        }
        now.limits.read_costs(cluster, &costs.0, costs.1);
        now.budgets.read(cluster, &policy);
        if policy.gate_signals(gate).next().is_some() {
            now.pace.with_label_values(&[&cluster.name]).set(release_per_s.unwrap_or(0.0));
        }
        let rules: HashMap<RuleKey, &Rule> =
            policy.rules.iter().map(|rule| (rule.key, rule)).collect();
        self.read_queue(cluster, &rules, now, at);
        now.starved.read(cluster, self);
        now.certificates.read(cluster);
        now.around.read(cluster);
        self.count_checks(cluster, &rules, checks);
    }

    fn read_queue(
        &self,
        cluster: &Arc<Cluster>,
        rules: &HashMap<RuleKey, &Rule>,
        now: &Now,
        at: MonoTime,
    ) {
        let hits = self.rule_hits();
        let is_used = |rule: &&&Rule| hits.get(&*rule.name).is_some_and(|count| *count > 0);
        for rule in rules.values().filter(is_used) {
            now.queue_depth.with_label_values(&[&*cluster.name, &*rule.name]).set(0.0);
        }
        if cluster.policy().budgets.iter().next().is_some() {
            now.queue_depth.with_label_values(&[&*cluster.name, NO_RULE]).set(0.0);
        }
        for (waiting, app) in cluster.waiting() {
            let rule = rules.get(&waiting.rule).map(|rule| &*rule.name);
            let Some(rule) = rule.or((waiting.rule == NO_RULE_KEY).then_some(NO_RULE)) else {
                continue;
            };
            let app = self.app_label(&app);
            let depth = u32::try_from(waiting.depth).unwrap_or(u32::MAX);
            now.queue_depth.with_label_values(&[&*cluster.name, rule]).add(f64::from(depth));
            let waits = at.saturating_since(waiting.oldest).as_secs_f64();
            let oldest = now.queue_oldest.with_label_values(&[&*cluster.name, &*app]);
            oldest.set(oldest.get().max(waits));
        }
    }

    /// Counts checks for the apps behind their keys.
    fn count_checks(
        &self,
        cluster: &Arc<Cluster>,
        rules: &HashMap<RuleKey, &Rule>,
        checks: Vec<CheckCount>,
    ) {
        let mut unresolved = self.unresolved.lock();
        for count in checks {
            let Some(app_key) = count.app else {
                self.count_check(cluster, rules, &self.apps.other(), &count);
                continue;
            };
            let key = (cluster.name.clone(), count.rule, app_key);
            let sum = unresolved.entry(key).or_insert(CheckCount {
                passed: 0,
                lost: 0,
                stopped: 0,
                ..count
            });
            sum.passed = sum.passed.saturating_add(count.passed);
            sum.lost = sum.lost.saturating_add(count.lost);
            sum.stopped = sum.stopped.saturating_add(count.stopped);
        }
        let mut apps: HashMap<RuleKey, HashMap<AppKey, Arc<str>>> = HashMap::new();
        let full = self.apps.is_full() || unresolved.len() > UNRESOLVED_MAX;
        unresolved.retain(|(name, rule_key, app_key), count| {
            if *name != cluster.name {
                return true;
            }
            let Some(rule) = rules.get(rule_key) else { return false };
            let apps = apps.entry(*rule_key).or_insert_with(|| self.apps_of(rule));
            let app = apps.get(app_key).cloned().or_else(|| full.then(|| self.apps.other()));
            if let Some(app) = &app {
                self.count_check(cluster, rules, app, count);
            }
            app.is_none()
        });
    }

    /// Every app that has a label, by the key that a rule knows it by.
    fn apps_of(&self, rule: &Rule) -> HashMap<AppKey, Arc<str>> {
        let nameless = (key_of_app(rule, b""), self.apps.other());
        let named = self.apps.all().into_iter().map(|app| (key_of_app(rule, app.as_bytes()), app));
        named.chain([nameless]).collect()
    }

    fn count_check(
        &self,
        cluster: &Arc<Cluster>,
        rules: &HashMap<RuleKey, &Rule>,
        app: &str,
        count: &CheckCount,
    ) {
        let Some(rule) = rules.get(&count.rule) else { return };
        for (result, checks) in
            [("passed", count.passed), ("ratio", count.lost), ("gate", count.stopped)]
        {
            let labels = [&*cluster.name, &*rule.name, app, result];
            self.families.checks.with_label_values(&labels).inc_by(checks);
        }
    }
}

/// The families of one scrape.
struct Now {
    registry: Registry,
    queue_depth: GaugeVec,
    queue_oldest: GaugeVec,
    signal_value: GaugeVec,
    signal_threshold: GaugeVec,
    signal_age: GaugeVec,
    gate_open: GaugeVec,
    servers: Servers,
    limits: Limits,
    budgets: BudgetFamilies,
    restart_pending: GaugeVec,
    pace: GaugeVec,
    starved: StarvedFamilies,
    certificates: Certificates,
    around: Around,
}

impl Now {
    fn new() -> Self {
        let registry = Registry::new();
        let gauges = |name, help, labels: &[&str]| gauges(&registry, name, help, labels);
        Self {
            queue_depth: gauges(
                "sluice_queue_depth",
                "Statements waiting now, by rule.",
                &["cluster", "rule"],
            ),
            queue_oldest: gauges(
                "sluice_queue_oldest_seconds",
                "How long the longest waiting statement of an app has waited.",
                &["cluster", "app"],
            ),
            signal_value: gauges(
                "sluice_signal_value",
                "The last value of a signal. Without a server it is the value that decides, with \
                 one it is what was measured there.",
                &["cluster", "signal", "scope", "server"],
            ),
            signal_threshold: gauges(
                "sluice_signal_threshold",
                "The limit that a signal is held against.",
                &["cluster", "signal"],
            ),
            signal_age: gauges(
                "sluice_signal_age_seconds",
                "How old the value of a signal is; if it never had one, how long it has been \
                 missing. There is no series for the latency of an app that is idle.",
                &["cluster", "signal"],
            ),
            gate_open: gauges(
                "sluice_gate_open",
                "1 if a signal lets statements through.",
                &["cluster", "signal"],
            ),
            servers: Servers::new(&registry),
            limits: Limits::new(&registry),
            budgets: BudgetFamilies::new(&registry),
            restart_pending: gauges(
                "sluice_config_restart_pending",
                "1 while the file says something else than what runs of a key that cannot change \
                 live. What runs stays in force until a restart.",
                &["cluster", "key"],
            ),
            pace: gauges(
                "sluice_pace_per_second",
                "Checks a second that the default gate hands out when statements wait; 0 while it \
                 is shut.",
                &["cluster"],
            ),
            starved: StarvedFamilies::new(&registry),
            certificates: Certificates::new(&registry),
            around: Around::new(&registry),
            registry,
        }
    }

    fn fixed_keys(&self, keys: &[FixedKey]) {
        for FixedKey { cluster, key, pending } in keys {
            let labels = [cluster.as_deref().unwrap_or(""), *key];
            let waits = f64::from(u8::from(pending.is_some()));
            self.restart_pending.with_label_values(&labels).set(waits);
        }
    }

    fn signals(
        &self,
        cluster: &Cluster,
        policy: &ClusterPolicy,
        views: &[SignalView],
        now: MonoTime,
    ) {
        let name = &*cluster.name;
        for view in views {
            let Some(signal) = policy.signal(view.key) else { continue };
            let labels = [name, &*signal.name];
            self.signal_threshold.with_label_values(&labels).set(view.threshold);
            self.gate_open.with_label_values(&labels).set(f64::from(u8::from(view.lets_through)));
            // A latency without a value is of an app that is idle: nobody failed to measure it.
            let idle = matches!(signal.kind, SignalKind::Latency(_))
                && matches!(view.state, SignalState::NoData { .. });
            if !idle {
                let age = view.age.unwrap_or_else(|| now.saturating_since(view.since));
                self.signal_age.with_label_values(&labels).set(age.as_secs_f64());
            }
            if let Some(value) = view.value {
                let labels = [name, &*signal.name, signal.scope.as_str(), ""];
                self.signal_value.with_label_values(&labels).set(value);
            }
        }
        for reading in cluster.probes.values(now) {
            let Some(signal) = policy.signal(reading.signal) else { continue };
            let labels = [name, &*signal.name, signal.scope.as_str(), &*reading.server];
            self.signal_value.with_label_values(&labels).set(reading.value);
        }
        self.servers.read(cluster, now);
        for replica in cluster.probes.replicas(now) {
            if let Some(lag) = replica.view.lag {
                let labels = [name, "lag", Scope::Replicas.as_str(), &*replica.server];
                self.signal_value.with_label_values(&labels).set(lag.as_secs_f64());
            }
        }
    }
}

/// The `state` label of a replica.
pub const fn state_label(state: ReplicaState) -> &'static str {
    match state {
        ReplicaState::Counted => "counted",
        ReplicaState::Unreachable => "unreachable",
        ReplicaState::NeverCaughtUp => "never_caught_up",
        ReplicaState::DelayedOnPurpose => "delayed_on_purpose",
        ReplicaState::IgnoredSlowest => "ignored_slowest",
        ReplicaState::NoData => "no_data",
        ReplicaState::ApplierStopped => "applier_stopped",
        ReplicaState::ReceiverStopped => "receiver_stopped",
    }
}
