//! What was seen of a Sluice, look by look: plots, and rates from the difference of two counts.

use std::collections::{HashMap, VecDeque};

use admin::status::words::why;
use admin::status::{AppStatus, ClusterStatus, SignalStatus, Status, ThrottledStatus};

/// Looks that are kept of each cluster: the widest plots of a screen have fewer.
const LOOKS_MAX: usize = 300;

/// A Sluice as it is watched.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// The last answer.
    pub(super) status: Status,
    /// Why there is no newer one.
    pub(super) lost: Option<String>,
    /// By cluster.
    courses: HashMap<String, Course>,
}

/// How a cluster went.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// The oldest first.
    pub(super) looks: VecDeque<Look>,
    pub(super) identities: Vec<Identity>,
    counts: HashMap<Key, Counts>,
}

/// What the plots have of one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    /// Seconds since the first look.
    pub(super) at_s: f64,
    /// The signal of [`gauge`].
    pub(super) signal: Option<f64>,
    /// What the default gate lets through in a second.
    pub(super) pace: Option<f64>,
    /// Statements that wait.
    pub(super) queue: f64,
}

/// An app under a rule, and what becomes of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Identity {
    /// As metrics show it.
    pub(super) app: String,
    pub(super) rule: String,
    pub(super) waiting: u64,
    pub(super) oldest_s: Option<f64>,
    /// Since the process started.
    pub(super) counts: Counts,
    /// A second, since the look before. None: there was none.
    pub(super) rates: Option<Rates>,
    /// Why it is held up; empty while it is not.
    pub(super) why: String,
}

/// Statements. Under `observe` all have passed, and nothing waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) delayed: u64,
    pub(super) refused: u64,
    /// Under `observe`: would have been delayed or refused.
    pub(super) would_be_held: u64,
}

/// Of the same, without the last.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) passed: f64,
    pub(super) delayed: f64,
    pub(super) refused: f64,
}

/// App, rule, mode.
type Key = (String, String, String);

impl Watched {
    /// An answer, or why there is none; `at_s` counts from the first look.
    pub(super) fn take(&mut self, at_s: f64, answer: Result<Status, String>) {
        let status = match answer {
            Ok(status) => status,
            Err(why) => {
                self.lost = Some(why);
                return;
            }
        };
        // Another process has begun to count at 0.
        let counts_go_on = self.status.started_at == status.started_at;
        self.lost = None;
        self.courses.retain(|name, _| status.clusters.iter().any(|now| now.cluster == *name));
        for cluster in &status.clusters {
            let course = self.courses.entry(cluster.cluster.clone()).or_default();
            if !counts_go_on {
                course.counts.clear();
            }
            course.take(at_s, cluster);
        }
        self.status = status;
    }

    pub(super) fn course(&self, cluster: &str) -> Option<&Course> {
        self.courses.get(cluster)
    }
}

impl Course {
    fn take(&mut self, at_s: f64, cluster: &ClusterStatus) {
        let since = self.looks.back().map(|look| at_s - look.at_s);
        let counts: HashMap<Key, Counts> =
            cluster.apps.iter().map(|app| (key(app), Counts::of(app))).collect();
        let rates = |app: &AppStatus| {
            let (now, before) = (counts.get(&key(app))?, self.counts.get(&key(app)));
            let since = since.filter(|since| *since > 0.0)?;
            // Who was not there has counted from 0, unless nobody was.
            let before = before.copied().or((!self.counts.is_empty()).then(Counts::default))?;
            Some(now.rates_since(before, since))
        };
        self.identities = identities(cluster, rates);
        self.counts = counts;
        if self.looks.len() >= LOOKS_MAX {
            self.looks.pop_front();
        }
        self.looks.push_back(Look {
            at_s,
            signal: gauge(cluster).and_then(|signal| signal.value),
            pace: cluster.pace.per_second,
            queue: lossy(cluster.waiting_total),
        });
    }
}

/// The signal that is plotted: the first of the default gate, which is the lag's where there is one.
pub(super) fn gauge(cluster: &ClusterStatus) -> Option<&SignalStatus> {
    let of_gate = |signal: &&SignalStatus| cluster.pace.gate.contains(&signal.signal);
    let is_lag = |signal: &&SignalStatus| signal.signal == "lag";
    let signals = &cluster.signals;
    signals.iter().find(is_lag).or_else(|| signals.iter().find(of_gate)).or(signals.first())
}

fn key(app: &AppStatus) -> Key {
    (app.app.clone(), app.rule.clone(), app.mode.clone())
}

impl Counts {
    fn of(app: &AppStatus) -> Self {
        let AppStatus { admitted, delayed, rejected, mode, .. } = app;
        if mode == "observe" {
            let passed = admitted.saturating_add(*rejected);
            return Self { passed, would_be_held: *rejected, ..Self::default() };
        }
        Self { passed: *admitted, delayed: *delayed, refused: *rejected, would_be_held: 0 }
    }

    fn rates_since(self, before: Self, seconds: f64) -> Rates {
        let rate = |now: u64, before: u64| lossy(now.saturating_sub(before)) / seconds;
        Rates {
            passed: rate(self.passed, before.passed),
            delayed: rate(self.delayed, before.delayed),
            refused: rate(self.refused, before.refused),
        }
    }
}

/// What was counted of each app under each rule, with who of it is held up now.
fn identities(
    cluster: &ClusterStatus,
    rates: impl Fn(&AppStatus) -> Option<Rates>,
) -> Vec<Identity> {
    let mut all: Vec<Identity> = cluster
        .apps
        .iter()
        .map(|app| {
            let counts = Counts::of(app);
            let why = match counts.would_be_held {
                0 => String::new(),
                held => format!("observed: {held} would have been held"),
            };
            let (app_name, rule) = (app.app.clone(), app.rule.clone());
            let rates = rates(app);
            Identity { app: app_name, rule, counts, rates, why, ..Identity::default() }
        })
        .collect();
    let mut label = String::new();
    for held in &cluster.throttled {
        policy::app_label(held.app.as_bytes(), &mut label);
        let known = all.iter_mut().find(|one| one.app == label && one.rule == held.rule);
        if let Some(known) = known {
            known.hold(held);
            continue;
        }
        let (app, rule) = (label.clone(), held.rule.clone());
        let mut new = Identity { app, rule, ..Identity::default() };
        new.hold(held);
        all.push(new);
    }
    all
}

impl Identity {
    /// One of those that the label stands for is held up.
    fn hold(&mut self, held: &ThrottledStatus) {
        self.waiting = self.waiting.saturating_add(held.waiting);
        let is_longer = self.oldest_s.is_none_or(|oldest| held.oldest_s > Some(oldest));
        if held.waiting > 0 && is_longer {
            self.oldest_s = held.oldest_s;
            self.why = why(&held.why);
        } else if self.why.is_empty() {
            self.why = format!("refused or gave up {:.0} s ago", held.asked_s);
        }
    }
}

/// Good for plots and rates.
pub(super) fn lossy(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
pub(super) mod tests {
    use admin::status::{Obstacle, PaceStatus};

    use super::*;

    pub(in crate::commands::top) fn app(app: &str, admitted: u64, rejected: u64) -> AppStatus {
        AppStatus {
            app: app.to_owned(),
            rule: "r".to_owned(),
            mode: "enforce".to_owned(),
            admitted,
            rejected,
            ..AppStatus::default()
        }
    }

    pub(in crate::commands::top) fn status(apps: Vec<AppStatus>) -> Status {
        let lag = SignalStatus {
            signal: "lag".to_owned(),
            value: Some(0.5),
            threshold: 1.0,
            unit: "s".to_owned(),
            state: "open".to_owned(),
            open: true,
            ..SignalStatus::default()
        };
        let pace = PaceStatus {
            gate: vec!["lag".to_owned()],
            per_second: Some(120.0),
            unit: "rows".to_owned(),
            ..PaceStatus::default()
        };
        let cluster = ClusterStatus {
            cluster: "main".to_owned(),
            signals: vec![lag],
            pace,
            apps,
            waiting_total: 2,
            ..ClusterStatus::default()
        };
        let (version, started_at) = ("1.0".to_owned(), "then".to_owned());
        Status { version, started_at, clusters: vec![cluster], ..Status::default() }
    }

    #[test]
    fn rates_are_what_was_counted_between_two_looks() {
        let mut watched = Watched::default();
        watched.take(0.0, Ok(status(vec![app("etl", 100, 5)])));
        assert_eq!(watched.course("main").unwrap().identities[0].rates, None);
        watched.take(2.0, Ok(status(vec![app("etl", 110, 5), app("web", 4, 0)])));
        let course = watched.course("main").unwrap();
        let rates = |passed| Some(Rates { passed, ..Rates::default() });
        assert_eq!(course.identities[0].rates, rates(5.0));
        assert_eq!(course.identities[1].rates, rates(2.0), "it is new");
        let look = Look { at_s: 2.0, signal: Some(0.5), pace: Some(120.0), queue: 2.0 };
        assert_eq!(course.looks.back(), Some(&look));
    }

    #[test]
    fn another_process_counts_from_the_start_and_an_answer_that_fails_changes_nothing() {
        let mut watched = Watched::default();
        watched.take(0.0, Ok(status(vec![app("etl", 100, 5)])));
        watched.take(1.0, Err("gone".to_owned()));
        assert_eq!(watched.lost.as_deref(), Some("gone"));
        assert_eq!(watched.status.clusters.len(), 1);
        let mut restarted = status(vec![app("etl", 7, 0)]);
        restarted.started_at = "now".to_owned();
        watched.take(2.0, Ok(restarted));
        let course = watched.course("main").unwrap();
        assert_eq!((course.identities[0].rates, course.identities[0].counts.passed), (None, 7));
        assert_eq!((course.looks.len(), &watched.lost), (2, &None));
    }

    #[test]
    fn who_is_held_up_is_the_app_that_its_label_stands_for() {
        let mut status = status(vec![app("vcopier", 1, 0)]);
        let held = |app: &str, waiting, oldest_s| ThrottledStatus {
            app: app.to_owned(),
            rule: "r".to_owned(),
            waiting,
            oldest_s,
            asked_s: 3.0,
            why: Obstacle { reason: Some("hold".to_owned()), ..Obstacle::default() },
            ..ThrottledStatus::default()
        };
        status.clusters[0].throttled = vec![
            held("17:vcopier", 2, Some(1.0)),
            held("18:vcopier", 3, Some(4.0)),
            held("new", 0, None),
        ];
        let mut watched = Watched::default();
        watched.take(0.0, Ok(status));
        let identities = &watched.course("main").unwrap().identities;
        assert_eq!(identities.len(), 2);
        assert_eq!((identities[0].waiting, identities[0].oldest_s), (5, Some(4.0)));
        assert_eq!(
            (&*identities[0].why, &*identities[1].why),
            ("hold", "refused or gave up 3 s ago")
        );
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut watched = Watched::default();
        for second in 0..1_000_u32 {
            watched.take(f64::from(second), Ok(status(Vec::new())));
        }
        assert_eq!(watched.course("main").unwrap().looks.len(), LOOKS_MAX);
    }
}
