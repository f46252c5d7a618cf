//! Counting what the file would have done.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use admin::insights::{Insights, Row, Sender};
use admission::{Mode, OnRefusedCheck, Ratio};
use policy::{
    Action, Ahead, ClusterPolicy, Config, Foreseen, Gated, GuardReport, Rule, UnixTime, Verdict,
};

use super::budgets::{Budgets, Load};
use super::digests::{Hit, hits, of_row};
use super::past::Past;
use super::report::{OfCluster, OfDigest, OfGuard, OfRule, OfRunaway, Report};
use super::runaways::took_more;

/// Everything that is counted.
pub(super) struct Tally<'c> {
    shown: &'c Insights,
    window: (UnixTime, UnixTime),
    clusters: Vec<Cluster<'c>>,
    /// Statements of clusters that the file does not have, by cluster.
    strange: BTreeMap<String, u64>,
}

struct Cluster<'c> {
    policy: &'c ClusterPolicy,
    ahead: Ahead<'c>,
    told: OfCluster,
    /// The rules' places in what is told, by index.
    places: HashMap<u32, usize>,
    budgets: Budgets<'c>,
    guards: HashMap<(Arc<str>, &'static str), Vec<OfDigest>>,
    /// What would have run away, by the rule's index.
    runaways: HashMap<u32, Vec<OfDigest>>,
}

impl<'c> Tally<'c> {
    pub(super) fn new(
        config: &'c Config,
        shown: &'c Insights,
        window: (UnixTime, UnixTime),
    ) -> Self {
        let clusters = config.clusters.iter().map(|policy| Cluster::new(policy, shown, window));
        Self { shown, window, clusters: clusters.collect(), strange: BTreeMap::new() }
    }

    /// Puts the statements of a row through the file.
    pub(super) fn add(&mut self, row: &Row) {
        let came = row.cost.count.saturating_add(row.cost.refused);
        let Some(cluster) =
            self.clusters.iter_mut().find(|known| *known.policy.name == *row.cluster)
        else {
            let sum = self.strange.entry(row.cluster.clone()).or_default();
            *sum = sum.saturating_add(came);
            return;
        };
        cluster.told.statements = cluster.told.statements.saturating_add(came);
        let mut left = came;
        match Past::of(row, self.window) {
            Err(why) => return cluster.unknown(why, came),
            Ok(past) => {
                for sender in &row.senders {
                    let count = sender.count.saturating_add(sender.refused);
                    left = left.saturating_sub(count);
                    match past.ask(sender, |past| cluster.ahead.foresee(past)) {
                        Err(why) => cluster.unknown(why, count),
                        Ok(foreseen) => cluster.add(&foreseen, (row, sender), count),
                    }
                }
            }
        }
        if left > 0 {
            cluster.unknown("who sent them is not known", left);
        }
    }

    pub(super) fn report(self) -> Report {
        let Self { shown, clusters, strange, .. } = self;
        let total = shown.total.count.saturating_add(shown.total.refused);
        let in_rows = shown.rows.iter();
        let in_rows = in_rows.map(|row| row.cost.count.saturating_add(row.cost.refused));
        let in_rows = in_rows.fold(0, u64::saturating_add);
        let mut told: Vec<OfCluster> =
            clusters.into_iter().map(|cluster| cluster.told(shown.window_s)).collect();
        told.extend(strange.into_iter().map(|(cluster, statements)| OfCluster {
            unknown_by_why:
                [("the file has no cluster of this name".to_owned(), statements)].into(),
            cluster,
            statements,
            unknown: statements,
            ..OfCluster::default()
        }));
        Report {
            from: shown.from.clone(),
            to: shown.to.clone(),
            window_s: shown.window_s,
            statements: total.max(in_rows),
            without_row: total.saturating_sub(in_rows),
            clusters: told,
        }
    }
}

impl<'c> Cluster<'c> {
    fn new(
        policy: &'c Arc<ClusterPolicy>,
        shown: &'c Insights,
        window: (UnixTime, UnixTime),
    ) -> Self {
        let rules: Vec<&Rule> = policy.rules.iter().collect();
        let told = OfCluster {
            cluster: policy.name.to_string(),
            rules: rules.iter().map(|rule| of_rule(policy, rule)).collect(),
            ..OfCluster::default()
        };
        let mut guards = HashMap::new();
        for guard in policy.guards.iter() {
            for (check, _) in guard.checks() {
                guards.insert((guard.name.clone(), check), Vec::new());
            }
        }
        Self {
            policy,
            ahead: Ahead::new(policy, &shown.tags, window),
            told,
            places: rules.iter().enumerate().map(|(place, rule)| (rule.index, place)).collect(),
            budgets: Budgets::new(policy, shown),
            guards,
            runaways: HashMap::new(),
        }
    }

    fn unknown(&mut self, why: &str, statements: u64) {
        let told = &mut self.told;
        told.unknown = told.unknown.saturating_add(statements);
        let sum = told.unknown_by_why.entry(why.to_owned()).or_default();
        *sum = sum.saturating_add(statements);
    }

    fn add(&mut self, foreseen: &Foreseen<'c>, (row, sender): (&Row, &Sender), came: u64) {
        let app = row.app.as_deref().unwrap_or_default();
        if foreseen.perhaps.is_empty() {
            self.decided(foreseen.verdict, app, came);
            self.ran(foreseen.verdict, row, came);
        } else {
            for (rule, why) in &foreseen.perhaps {
                if let Some(told) = self.rule(rule) {
                    told.unknown = told.unknown.saturating_add(came);
                    told.why_unknown = Some(why.as_str());
                }
            }
            let names = foreseen.perhaps.iter().map(|(rule, _)| format!("`{}`", rule.name));
            let names: Vec<String> = names.collect();
            self.unknown(&format!("perhaps decided by {}", names.join(" or ")), came);
        }
        // A rule that refuses comes before the budgets.
        let is_denied = foreseen.perhaps.is_empty() && is_denied(foreseen.verdict);
        if !is_denied {
            let load = Load { app, user: sender.user.as_deref().unwrap_or_default(), row, sender };
            self.budgets.add(foreseen, &load);
        }
        self.guarded(&foreseen.guards, row, came);
    }

    fn rule(&mut self, rule: &Rule) -> Option<&mut OfRule> {
        self.told.rules.get_mut(*self.places.get(&rule.index)?)
    }

    fn decided(&mut self, verdict: Verdict<'_>, app: &str, came: u64) {
        let Some(rule) = verdict.rule() else {
            self.told.no_rule = self.told.no_rule.saturating_add(came);
            return;
        };
        let Some(told) = self.rule(rule) else { return };
        let holds = matches!(rule.action, Action::Throttle { terms, .. } if terms.hold);
        let sum = match verdict {
            Verdict::Pass { .. } => &mut told.passed,
            Verdict::Deny(_) => &mut told.denied,
            Verdict::Ask(_) if holds => &mut told.held,
            Verdict::Ask(_) => &mut told.asked,
        };
        *sum = sum.saturating_add(came);
        told.statements = told.statements.saturating_add(came);
        let of_app = told.apps.entry(app.to_owned()).or_default();
        *of_app = of_app.saturating_add(came);
    }

    /// A rule that lets statements to the server looks at them there.
    fn ran(&mut self, verdict: Verdict<'_>, row: &Row, came: u64) {
        let rule = verdict.rule().filter(|_| !is_denied(verdict));
        let Some((rule, runaway)) = rule.and_then(|rule| Some((rule, rule.runaway?))) else {
            return;
        };
        if let Some(hit) = took_more(runaway, row) {
            self.runaways.entry(rule.index).or_default().push(of_row(row, came, hit));
        }
    }

    fn guarded(&mut self, report: &GuardReport, row: &Row, came: u64) {
        for hit in &report.hits {
            if let Some(digests) = self.guards.get_mut(&(hit.guard.clone(), hit.check)) {
                digests.push(of_row(row, came, Hit::Certain));
            }
        }
        for (guard, check) in &report.unjudged {
            if let Some(digests) = self.guards.get_mut(&(guard.clone(), *check)) {
                digests.push(of_row(row, came, Hit::Unknown));
            }
        }
    }

    fn told(self, window_s: f64) -> OfCluster {
        let Self { policy, mut told, places, budgets, mut guards, mut runaways, .. } = self;
        let all = told.statements.max(1);
        for rule in &mut told.rules {
            rule.share = part(rule.statements, all);
            if let Some(ratio) = rule.ratio {
                rule.lost_to_dice = Some(times(rule.asked, ratio));
            }
        }
        for rule in policy.rules.iter() {
            let place = places.get(&rule.index).copied();
            let told = place.and_then(|place| told.rules.get_mut(place));
            if let (Some(told), Some(runaway)) = (told, rule.runaway) {
                let digests = runaways.remove(&rule.index).unwrap_or_default();
                told.runaway = Some(OfRunaway { limits: runaway.in_words(), hits: hits(digests) });
            }
        }
        told.budgets = budgets.told(window_s);
        for guard in policy.guards.iter() {
            for (check, mode) in guard.checks() {
                let digests = guards.remove(&(guard.name.clone(), check)).unwrap_or_default();
                let (guard, mode) = (guard.name.to_string(), mode.as_str());
                told.guards.push(OfGuard { guard, check, mode, hits: hits(digests) });
            }
        }
        told
    }
}

/// Whether a statement would never have come to its budgets.
fn is_denied(verdict: Verdict<'_>) -> bool {
    match verdict {
        Verdict::Pass { .. } | Verdict::Ask(_) => false,
        Verdict::Deny(rule) => rule.mode == Mode::Enforce,
    }
}

fn of_rule(policy: &ClusterPolicy, rule: &Rule) -> OfRule {
    let mode = mode(rule.mode);
    let name = rule.name.to_string();
    let Action::Throttle { terms, gate, gated: Gated::Yes } = rule.action else {
        return OfRule { rule: name, mode, ..OfRule::default() };
    };
    let dice = (terms.ratio != Ratio::ZERO).then(|| terms.ratio.as_f64());
    OfRule {
        rule: name,
        mode,
        ratio: dice,
        gate: policy.gate_signals(gate).map(|signal| signal.name.to_string()).collect(),
        speed: (!rule.speed.is_full()).then(|| rule.speed.as_f64()),
        dice_refuse: terms.on_refused_check == OnRefusedCheck::Reject,
        ..OfRule::default()
    }
}

pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}

#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "shown to three digits")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

fn part(count: u64, of: u64) -> f64 {
    number(count) / number(of)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::as_conversions,
    reason = "a part of a count is below it"
)]
fn times(count: u64, ratio: f64) -> u64 {
    (number(count) * ratio).round() as u64
}
