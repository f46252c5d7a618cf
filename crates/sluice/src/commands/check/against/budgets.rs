//! How full budgets would have been.
//!
//! Insights are sums over a window, so what is told is the mean: the load of a bucket by the second.
//! Peaks are higher, and a budget whose mean is below its limit holds back in them. What an app did in each
//! second is known ([`super::peaks`]): where a bucket is that app's, it had no more than that.
//!
//! The whole time of a statement is counted where it ends, whose window may have begun long after it.
//! So the mean is also bounded by what was there at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use admin::insights::{AppSeconds, Insights, Row, Sender};
use policy::{Budget, ClusterPolicy, Foreseen, Per, Unseen};

use super::peaks::{Of, Peaked};
use super::report::{OfBudget, OfLimit};
use super::tally::{mode, number};

/// Below one second a mean says nothing.
const WINDOW_MIN_S: f64 = 1.0;

/// For how long it is known what was there at once.
const AT_ONCE_WINDOW_S: f64 = 3_600.0;

/// What ran for longer was not counted at once from its beginning on.
const AT_ONCE_STATEMENT_S: f64 = 120.0;

/// The budgets of a cluster, and what met them.
pub(super) struct Budgets<'c> {
    list: Vec<Filled<'c>>,
    places: HashMap<u64, usize>,
    /// By app: what it did in each second.
    apps: HashMap<&'c str, &'c AppSeconds>,
    /// By digest, whosever they were: `max_query_cost` goes by the text alone.
    ran: HashMap<&'c str, Ran>,
}

/// What of a digest ran.
#[derive(Clone, Copy, Default)]
struct Ran {
    count: u64,
    time_s: f64,
}

struct Filled<'c> {
    budget: &'c Budget,
    told: OfBudget,
    buckets: HashMap<u64, Bucket>,
    /// Statements that cost more than `max_query_cost` on average.
    too_costly: u64,
    costliest_s: f64,
}

#[derive(Default)]
struct Bucket {
    name: String,
    apps: BTreeSet<String>,
    count: u64,
    time_s: f64,
    /// Of the statement that took longest.
    longest_s: f64,
    rows: u64,
}

/// Statements of one sender.
pub(super) struct Load<'l> {
    pub(super) app: &'l str,
    pub(super) user: &'l str,
    pub(super) row: &'l Row,
    pub(super) sender: &'l Sender,
}

impl<'c> Budgets<'c> {
    pub(super) fn new(policy: &'c ClusterPolicy, shown: &'c Insights) -> Self {
        let filled = |budget: &'c Budget| Filled {
            budget,
            told: OfBudget {
                budget: budget.name.to_string(),
                mode: match mode(budget.terms.mode) {
                    "observe" => "warn",
                    mode => mode,
                },
                per: budget.per.as_ref().map(per),
                ..OfBudget::default()
            },
            buckets: HashMap::new(),
            too_costly: 0,
            costliest_s: 0.0,
        };
        let list: Vec<Filled<'c>> = policy.budgets.iter().map(filled).collect();
        let places = list.iter().enumerate().map(|(place, of)| (of.budget.key.0, place)).collect();
        let apps = shown.apps.iter().filter(|app| *app.cluster == *policy.name);
        let apps = apps.map(|app| (&*app.app, app)).collect();
        let mut ran: HashMap<&str, Ran> = HashMap::new();
        for row in shown.rows.iter().filter(|row| *row.cluster == *policy.name) {
            let of_digest = ran.entry(row.digest.as_deref().unwrap_or_default()).or_default();
            of_digest.count = of_digest.count.saturating_add(row.cost.count);
            of_digest.time_s += row.cost.time_total_s;
        }
        Self { list, places, apps, ran }
    }

    /// Adds statements to the budgets that meet them.
    pub(super) fn add(&mut self, foreseen: &Foreseen<'_>, load: &Load<'_>) {
        let digest = load.row.digest.as_deref().unwrap_or_default();
        let ran = self.ran.get(digest).filter(|ran| ran.count > 0);
        let cost_s = ran.map(|ran| ran.time_s / number(ran.count));
        for met in &foreseen.budgets {
            if let Some(filled) = self.filled(met.budget) {
                filled.add(met.bucket, load, cost_s);
            }
        }
        for (budget, why) in &foreseen.budgets_perhaps {
            if let Some(filled) = self.filled(budget) {
                filled.unknown(load, *why);
            }
        }
    }

    fn filled(&mut self, budget: &Budget) -> Option<&mut Filled<'c>> {
        self.list.get_mut(*self.places.get(&budget.key.0)?)
    }

    pub(super) fn told(self, window_s: f64) -> Vec<OfBudget> {
        let window_s = window_s.max(WINDOW_MIN_S);
        let Self { list, apps, .. } = self;
        list.into_iter().map(|filled| filled.told(window_s, &apps)).collect()
    }
}

impl Filled<'_> {
    fn unknown(&mut self, load: &Load<'_>, why: Unseen) {
        self.told.unknown = self.told.unknown.saturating_add(load.came());
        self.told.why_unknown = Some(why.as_str());
    }

    fn add(&mut self, bucket: Option<u64>, load: &Load<'_>, cost_s: Option<f64>) {
        let told = &mut self.told;
        told.statements = told.statements.saturating_add(load.came());
        let of_app = told.apps.entry(load.app.to_owned()).or_default();
        *of_app = of_app.saturating_add(load.came());
        match (self.budget.terms.max_query_cost, cost_s) {
            (None, _) => {}
            (Some(_), None) => {
                told.unknown = told.unknown.saturating_add(load.came());
                told.why_unknown = Some("nothing of their digest ran, so its cost is not known");
            }
            (Some(most), Some(cost_s)) => {
                if cost_s > most {
                    self.too_costly = self.too_costly.saturating_add(load.came());
                }
                self.costliest_s = self.costliest_s.max(cost_s);
            }
        }
        let Some(bucket) = bucket else {
            told.unknown = told.unknown.saturating_add(load.came());
            told.why_unknown = Some("whose bucket it uses is not known");
            return;
        };
        let bucket = self.buckets.entry(bucket).or_default();
        if bucket.name.is_empty() {
            bucket.name = load.bucket(self.budget.per.as_ref());
        }
        let Sender { count, time_total_s, rows_sent, rows_affected, .. } = load.sender;
        bucket.apps.insert(load.app.to_owned());
        bucket.count = bucket.count.saturating_add(*count);
        bucket.time_s += *time_total_s;
        // Where it is not told, it may have been any time.
        bucket.longest_s = bucket.longest_s.max(load.row.cost.time_max_s.unwrap_or(f64::INFINITY));
        bucket.rows = bucket.rows.saturating_add(rows_sent.saturating_add(*rows_affected));
    }

    fn told(self, window_s: f64, apps: &HashMap<&str, &AppSeconds>) -> OfBudget {
        let Self { budget, mut told, buckets, too_costly, costliest_s } = self;
        let terms = &budget.terms;
        let busy = |bucket: &Bucket| bucket.busy(window_s, apps);
        let peaked = Peaked::of(buckets.values().map(|bucket| &bucket.apps), apps);
        let mut limit = |(name, of): (&'static str, Of),
                         allowed: Option<f64>,
                         mean: &dyn Fn(&Bucket) -> f64| {
            let Some(allowed) = allowed else { return };
            let fullest = buckets.values().max_by(|a, b| mean(a).total_cmp(&mean(b)));
            let over = buckets.values().filter(|bucket| mean(bucket) > allowed).count();
            told.limits.push(OfLimit {
                limit: name,
                allowed,
                mean: fullest.map(mean).unwrap_or_default(),
                bucket: fullest.map(|bucket| bucket.name.clone()).filter(|name| !name.is_empty()),
                over: u64::try_from(over).unwrap_or(u64::MAX),
                peaks: peaked.above(of, allowed),
            });
        };
        limit(("max_concurrency", Of::Concurrency), terms.max_concurrency.map(f64::from), &busy);
        limit(("rate", Of::Statements), terms.rate, &|bucket| number(bucket.count) / window_s);
        limit(("rows_per_s", Of::Rows), terms.rows_per_s, &|bucket| number(bucket.rows) / window_s);
        limit(("share", Of::Concurrency), terms.share, &busy);
        if let Some(allowed) = terms.max_query_cost {
            told.limits.push(OfLimit {
                limit: "max_query_cost",
                allowed,
                mean: costliest_s,
                over: too_costly,
                ..OfLimit::default()
            });
        }
        told
    }
}

impl Bucket {
    /// How many of its statements were there on average: no more than ever were there at once.
    fn busy(&self, window_s: f64, by_app: &HashMap<&str, &AppSeconds>) -> f64 {
        let mean = (self.time_s / window_s).min(number(self.count));
        self.at_once_max(window_s, by_app).map_or(mean, |most| mean.min(most))
    }

    /// How many statements of its apps were there at once at most, where that is known of all of them
    /// and for the whole window.
    fn at_once_max(&self, window_s: f64, by_app: &HashMap<&str, &AppSeconds>) -> Option<f64> {
        if window_s > AT_ONCE_WINDOW_S || self.longest_s > AT_ONCE_STATEMENT_S {
            return None;
        }
        self.apps.iter().map(|app| Some(by_app.get(&**app)?.concurrency_max)).sum()
    }
}

impl Load<'_> {
    fn came(&self) -> u64 {
        self.sender.count.saturating_add(self.sender.refused)
    }

    /// Whose bucket it is.
    fn bucket(&self, per: Option<&Per>) -> String {
        match per {
            None | Some(Per::Client) => String::new(),
            Some(Per::App) => self.app.to_owned(),
            Some(Per::User) => self.user.to_owned(),
            Some(Per::Tag(key)) => {
                let tags: &BTreeMap<String, String> = &self.sender.tags;
                tags.get(String::from_utf8_lossy(key).as_ref()).cloned().unwrap_or_default()
            }
            Some(Per::Digest) => self.row.digest.clone().unwrap_or_default(),
        }
    }
}

fn per(per: &Per) -> String {
    match per {
        Per::App => "app".to_owned(),
        Per::User => "user".to_owned(),
        Per::Tag(key) => format!("tag:{}", String::from_utf8_lossy(key)),
        Per::Client => "client".to_owned(),
        Per::Digest => "digest".to_owned(),
    }
}
