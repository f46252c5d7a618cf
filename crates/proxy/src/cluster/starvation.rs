//! Who is starved, by name: for the metric, the page, and a line in the log when it begins and when
//! it ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use admission::{
    Census, Decision, IdentityKey, MonoTime, Passage, Request, RuleKey, StarvationConfig, Starved,
    StarvedKind,
};
use parking_lot::MutexGuard;
use policy::{Action, ClusterPolicy, Rule, SignalKind, app_key, app_label, ruleless_app_key};
use tokio::time::MissedTickBehavior;

use super::{Cluster, Gatekeeper};
use crate::printable::Printable;
use crate::telemetry::{NO_RULE, NO_RULE_KEY};

/// How often it is looked at who is starved.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Lines that one look may log: when a gate stays shut, many are starved at once.
const LOGGED_MAX: usize = 20;

/// Identities named at a time, each with who was admitted meanwhile: some ten microseconds.
const NAMED_AT_ONCE: usize = 16;

/// Identities whose starving has been logged and whose end has not: as many as are watched.
const TOLD_MAX: usize = admission::IDENTITIES_MAX;

/// An identity that is starved.
#[derive(Debug, Clone, PartialEq)]
pub struct StarvedIdentity {
    /// As the client named it.
    pub identity: Box<[u8]>,
    /// The name of the rule it asks under.
    pub rule: String,
    /// What it suffers from.
    pub kind: StarvedKind,
    /// The share of the window for which it did.
    pub share: f64,
    /// When that began.
    pub since: MonoTime,
    /// Whether it is blocked now.
    pub blocked: bool,
    /// What it received of its fair share while it was below it.
    pub received_of_share: Option<f64>,
    /// Who was admitted meanwhile: the exempt first, then who did not have to ask.
    pub meanwhile: Vec<PassedApp>,
    /// Whether its own rule lets nothing through: then nobody else is to blame.
    pub held: bool,
    /// A replica whose replication is stopped, or was meanwhile, and whose lag shut the gate: then
    /// nobody who passed is to blame.
    pub stopped_replica: Option<String>,
}

impl StarvedIdentity {
    /// What is the likely cause whoever passed meanwhile, in words.
    #[must_use]
    pub fn likely_cause(&self) -> Option<String> {
        if self.held {
            return Some(format!("its own rule {}, which lets nothing through", self.rule));
        }
        self.stopped_replica.clone()
    }
}

/// An app whose statements passed while somebody was blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedApp {
    /// The app as metrics show it, or `others`.
    pub app: String,
    /// The name of the rule; `None` when no rule matched.
    pub rule: Option<String>,
    /// Whether it had to ask.
    pub passage: Passage,
    /// How many statements.
    pub count: u64,
}

impl fmt::Display for PassedApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { app, rule, passage, count } = self;
        let app = Printable(app.as_bytes());
        match (passage, rule) {
            (Passage::Exempt, Some(rule)) => write!(f, "{app} (exempt by rule {rule}): {count}"),
            (Passage::Exempt, None) => write!(f, "{app} (exempt): {count}"),
            (Passage::Ungated, Some(rule)) => {
                write!(f, "{app} (not gated by rule {rule}): {count}")
            }
            (Passage::Ungated, None) => write!(f, "{app} (no rule): {count}"),
            (Passage::Asked, Some(rule)) => write!(f, "{app} (rule {rule}): {count}"),
            (Passage::Asked, None) => write!(f, "{app}: {count}"),
        }
    }
}

/// What the controller is told.
pub(super) fn config(policy: &ClusterPolicy) -> Option<StarvationConfig> {
    let policy::Starvation { share, window } = policy.starvation?;
    Some(StarvationConfig { share, window })
}

/// Who is starved, the name of that identity, and the labels of the apps that wrote meanwhile.
type NamedStarved = (Starved, Box<[u8]>, Vec<Option<String>>);

impl Cluster {
    /// Who is starved now, those first that were blocked longest.
    pub fn starved(&self) -> Vec<StarvedIdentity> {
        let policy = self.policy();
        self.name_starved(&policy).into_iter().map(|(_, starved)| starved).collect()
    }

    /// Whether statements are held back, so that it matters who passes. Costs a load.
    pub(crate) fn is_contended(&self) -> bool {
        self.contended.load(Ordering::Relaxed)
    }

    /// A statement passed that did not ask, while others were held back.
    pub(crate) fn note_passed(&self, passage: Passage, rule: Option<&Rule>, app: &[u8]) {
        self.gatekeeper.lock().note_passed(self.clock.now(), passage, rule, app);
    }

    /// Has [`Cluster::is_contended`] say how it is now.
    pub(super) fn note_contention(&self, gatekeeper: &mut Gatekeeper) {
        let controller = &gatekeeper.controller;
        let contended = controller.is_watching() && controller.is_contended();
        if contended != gatekeeper.contended {
            gatekeeper.contended = contended;
            self.contended.store(contended, Ordering::Relaxed);
        }
    }

    fn name_starved(&self, policy: &ClusterPolicy) -> Vec<(StarvedKey, StarvedIdentity)> {
        let mut census = Census::default();
        loop {
            let gatekeeper = self.gatekeeper.lock();
            let more = gatekeeper.controller.look_for_starved(self.clock.now(), &mut census);
            // Whoever waits for the lock comes before the next piece.
            MutexGuard::unlock_fair(gatekeeper);
            if !more {
                break;
            }
        }
        let mut named: Vec<NamedStarved> = Vec::new();
        let starved = census.into_starved();
        for starved in starved.chunks(NAMED_AT_ONCE) {
            let gatekeeper = self.gatekeeper.lock();
            let names = &gatekeeper.names;
            named.extend(starved.iter().map(|starved| {
                let identity = names.identity(starved.identity).into();
                let apps = starved.meanwhile.iter();
                let apps = apps.map(|by| by.app.map(|app| label(names.app(app)))).collect();
                (starved.clone(), identity, apps)
            }));
            MutexGuard::unlock_fair(gatekeeper);
        }
        let rules: HashMap<RuleKey, &Rule> =
            policy.rules.iter().map(|rule| (rule.key, rule)).collect();
        let now = self.clock.now();
        let with_rules = |(starved, identity, apps): NamedStarved| {
            let key = (starved.rule, starved.identity);
            let rule = rules.get(&starved.rule);
            let waits_for_lag = match starved.kind {
                StarvedKind::Blocked => rule.is_some_and(|rule| depends_on_lag(policy, rule)),
                // Others were admitted meanwhile.
                StarvedKind::BelowShare => false,
            };
            // A stop that explains at least half of it: not every one in passing.
            let blocked = policy.starvation.map_or(Duration::ZERO, |limits| {
                limits.window.mul_f64(starved.share.clamp(0.0, 1.0))
            });
            let named = with_rules(&rules, &starved, identity, apps);
            let held = rule.is_some_and(|rule| rule.lets_nothing_through());
            let stopped_replica = if waits_for_lag && !held {
                self.probes.stopped_since(now, starved.since, blocked / 2)
            } else {
                None
            };
            (key, StarvedIdentity { held, stopped_replica, ..named })
        };
        named.into_iter().map(with_rules).collect()
    }

    /// Logs who begins and who ceases to be starved.
    pub(super) async fn watch_starvation(&self) {
        let mut told: HashMap<StarvedKey, LoggedStarvation> = HashMap::new();
        let mut looks = tokio::time::interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let policy = self.policy();
            let now = self.clock.now();
            let starved = self.name_starved(&policy);
            self.log_begun(&starved, &mut told, now);
            // Whoever is at the limit, now over it and now under it, is told of once.
            let quiet = policy.starvation.map_or(Duration::ZERO, |limits| limits.window / 60);
            self.log_ended(&mut told, now, quiet);
        }
    }

    fn log_begun(
        &self,
        starved: &[(StarvedKey, StarvedIdentity)],
        told: &mut HashMap<StarvedKey, LoggedStarvation>,
        now: MonoTime,
    ) {
        let mut begun = 0_usize;
        for (key, starved) in starved {
            let identity = Printable(&starved.identity).to_string();
            if let Some(told) = told.get_mut(key) {
                told.seen_at = now;
                continue;
            }
            if told.len() >= TOLD_MAX {
                continue;
            }
            let entry =
                LoggedStarvation { identity: identity.as_str().into(), since: now, seen_at: now };
            told.insert(*key, entry);
            begun = begun.saturating_add(1);
            if begun > LOGGED_MAX {
                continue;
            }
            let meanwhile: Vec<String> =
                starved.meanwhile.iter().map(PassedApp::to_string).collect();
            tracing::warn!(
                cluster = %self.name,
                %identity,
                rule = %starved.rule,
                kind = starved.kind.as_str(),
                since_s = now.saturating_since(starved.since).as_secs(),
                share = format_args!("{:.4}", starved.share),
                received_of_share = starved.received_of_share,
                admitted_meanwhile = meanwhile.join(", "),
                "an identity is starved{}",
                likely_cause(starved),
            );
        }
        let further = begun.saturating_sub(LOGGED_MAX);
        if further > 0 {
            tracing::warn!(cluster = %self.name, further, "more identities are starved");
        }
    }

    fn log_ended(
        &self,
        told: &mut HashMap<StarvedKey, LoggedStarvation>,
        now: MonoTime,
        quiet: Duration,
    ) {
        let mut ended = 0_usize;
        told.retain(|_, told| {
            let stays = told.seen_at == now || now.saturating_since(told.seen_at) < quiet;
            if !stays && ended < LOGGED_MAX {
                tracing::warn!(
                    cluster = %self.name,
                    identity = %told.identity,
                    told_for_s = now.saturating_since(told.since).as_secs(),
                    "an identity is not starved any more"
                );
            }
            ended = ended.saturating_add(usize::from(!stays));
            stays
        });
        let further = ended.saturating_sub(LOGGED_MAX);
        if further > 0 {
            tracing::warn!(cluster = %self.name, further, "more identities are not starved any \
                more");
        }
    }
}

impl Gatekeeper {
    /// Something passed that did not ask, while others were held back.
    pub(super) fn note_passed(
        &mut self,
        now: MonoTime,
        passage: Passage,
        rule: Option<&Rule>,
        app: &[u8],
    ) {
        let key = rule.map_or_else(|| ruleless_app_key(app), |rule| app_key(rule, app));
        let Self { controller, names, .. } = self;
        controller.handle_passed(now, passage, rule.map(|rule| rule.key), key);
        names.keep_app(controller, key, app);
    }

    /// Keeps the names that may have to be told.
    pub(super) fn keep_names(
        &mut self,
        now: MonoTime,
        request: &Request,
        app: &[u8],
        decision: &Decision,
    ) {
        let Self { controller, names, .. } = self;
        if !controller.is_watching() {
            return;
        }
        match decision {
            Decision::Queue(_) | Decision::Reject(_) => {
                names.keep(controller, request.identity, request.app, app);
            }
            Decision::Admit(_) | Decision::Observed(..) => {
                if controller.is_anybody_blocked(now) {
                    names.keep_app(controller, request.app, app);
                }
            }
        }
    }
}

type StarvedKey = (RuleKey, IdentityKey);

/// Somebody whose starving was logged.
#[derive(Debug)]
struct LoggedStarvation {
    identity: Box<str>,
    since: MonoTime,
    seen_at: MonoTime,
}

fn with_rules(
    rules: &HashMap<RuleKey, &Rule>,
    starved: &Starved,
    identity: Box<[u8]>,
    apps: Vec<Option<String>>,
) -> StarvedIdentity {
    let name = |key: &RuleKey| match rules.get(key) {
        Some(rule) => rule.name.to_string(),
        None if *key == NO_RULE_KEY => NO_RULE.to_owned(),
        None => "one that is gone".to_owned(),
    };
    let meanwhile = starved
        .meanwhile
        .iter()
        .zip(apps)
        .map(|(by, app)| PassedApp {
            app: app.unwrap_or_else(|| "others".to_owned()),
            rule: by.rule.as_ref().map(name),
            passage: by.passage,
            count: by.count,
        })
        .collect();
    StarvedIdentity {
        identity,
        rule: name(&starved.rule),
        kind: starved.kind,
        share: starved.share,
        since: starved.since,
        blocked: starved.blocked,
        received_of_share: starved.received_of_share,
        meanwhile,
        held: false,
        stopped_replica: None,
    }
}

/// Whether a rule's statements wait for the lag.
fn depends_on_lag(policy: &ClusterPolicy, rule: &Rule) -> bool {
    match rule.action {
        Action::Throttle { gate, .. } => {
            policy.gate_signals(gate).any(|signal| matches!(signal.kind, SignalKind::Lag { .. }))
        }
        Action::Exempt | Action::Deny => false,
    }
}

/// Its own rule, or a replica that is stopped, comes before everybody who passed meanwhile, for without it nobody
/// would have been in anybody's way; then who is exempt.
fn likely_cause(starved: &StarvedIdentity) -> String {
    match starved.kind {
        StarvedKind::Blocked => {}
        // Who need not wait takes nothing of what is shared by those who do.
        StarvedKind::BelowShare => return ": below its fair share".to_owned(),
    }
    if let Some(cause) = starved.likely_cause() {
        return format!("; the likely cause is {}", cause.escape_debug());
    }
    let Some(first) = starved.meanwhile.first() else { return String::new() };
    let app = Printable(first.app.as_bytes());
    match first.passage {
        Passage::Exempt => format!("; the likely cause is {app}, which is exempt"),
        Passage::Ungated => format!("; the likely cause is {app}, which no gate holds"),
        Passage::Asked => String::new(),
    }
}

fn label(app: &[u8]) -> String {
    let mut label = String::new();
    app_label(app, &mut label);
    label
}
