//! What became of the statements of each app, for people: sums over the series that there are.

use std::collections::{BTreeMap, HashMap};

use prometheus::core::Collector;

use super::Telemetry;
use super::event::StatementDecision;

/// The statements of one app under one rule, since this process started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppCount {
    /// The cluster.
    pub cluster: String,
    /// The app as metrics show it.
    pub app: String,
    /// The rule's name; `none` where no rule matched.
    pub rule: String,
    /// `enforce` or `observe`.
    pub mode: String,
    /// Passed, at once or after a wait.
    pub admitted: u64,
    /// Refused. Under `observe`: passed, and would have been delayed or refused.
    pub rejected: u64,
    /// Those whose client left while they waited.
    pub client_gone: u64,
    /// Of all these, those that were in the queue.
    pub delayed: u64,
}

impl AppCount {
    /// Whether none has come.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        [self.admitted, self.rejected, self.client_gone, self.delayed].iter().all(|sum| *sum == 0)
    }
}

impl Telemetry {
    /// What became of the statements of each app, in the order of their labels. There are as many
    /// apps as `metrics.max_apps` allows, each with the rules that it met.
    pub fn app_counts(&self) -> Vec<AppCount> {
        let mut counts: BTreeMap<[String; 4], AppCount> = BTreeMap::new();
        for family in self.families.statements.collect() {
            for metric in family.get_metric() {
                let labels = Labels::of(metric);
                let [cluster, app, rule, mode] = ["cluster", "app", "rule", "mode"];
                let key = [cluster, app, rule, mode].map(|name| labels.get(name));
                let count = counts.entry(key).or_default();
                let sum = match labels.get("decision") {
                    said if said == StatementDecision::Admitted.as_str() => &mut count.admitted,
                    said if said == StatementDecision::Rejected.as_str() => &mut count.rejected,
                    _ => &mut count.client_gone,
                };
                *sum = sum.saturating_add(whole(metric.get_counter().get_value()));
            }
        }
        let mut counts: Vec<AppCount> = counts
            .into_iter()
            .map(|([cluster, app, rule, mode], count)| AppCount {
                cluster,
                app,
                rule,
                mode,
                ..count
            })
            .collect();
        self.count_delayed(&mut counts);
        counts
    }

    /// Only what is enforced is ever delayed.
    fn count_delayed(&self, counts: &mut [AppCount]) {
        let mut delayed: HashMap<[String; 3], u64> = HashMap::new();
        for family in self.families.queue_delay.collect() {
            for metric in family.get_metric() {
                let labels = Labels::of(metric);
                let key = ["cluster", "app", "rule"].map(|name| labels.get(name));
                let sum = delayed.entry(key).or_default();
                *sum = sum.saturating_add(metric.get_histogram().get_sample_count());
            }
        }
        for count in counts.iter_mut().filter(|count| count.mode == "enforce") {
            let key = [&count.cluster, &count.app, &count.rule].map(String::clone);
            count.delayed = delayed.get(&key).copied().unwrap_or(0);
        }
    }
}

/// The labels of one series.
struct Labels<'m>(HashMap<&'m str, &'m str>);

impl<'m> Labels<'m> {
    fn of(metric: &'m prometheus::proto::Metric) -> Self {
        Self(metric.get_label().iter().map(|label| (label.name(), label.value())).collect())
    }

    fn get(&self, name: &str) -> String {
        self.0.get(name).copied().unwrap_or_default().to_owned()
    }
}

/// A counter of whole things, which Prometheus has as a float.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::as_conversions,
    reason = "counters are whole, not negative, and `as` saturates"
)]
pub(super) fn whole(counter: f64) -> u64 {
    counter as u64
}
