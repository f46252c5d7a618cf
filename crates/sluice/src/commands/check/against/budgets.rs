//! How full budgets would have been.
//!
//! Insights are sums over a window, so what is told is the mean: the load of a bucket by the second.
//! Peaks are higher, and a budget whose mean is below its limit may hold back in them. How many statements
//! were there at once is known by app: where a bucket is one app's it had no more than that.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use admin::insights::{AppAtOnce, Row, Sender};
use policy::{Budget, ClusterPolicy, Foreseen, Per, Unseen};

use super::report::{AtOnce, OfBudget, OfLimit};
use super::tally::{mode, number};

/// Below one second a mean says nothing.
const WINDOW_MIN_S: f64 = 1.0;

/// The budgets of a cluster, and what met them.
pub(super) struct Budgets<'c> {
    list: Vec<Filled<'c>>,
    places: HashMap<u64, usize>,
    /// By app: how many statements were there at once.
    at_once: HashMap<&'c str, f64>,
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
    pub(super) fn new(policy: &'c ClusterPolicy, apps: &'c [AppAtOnce]) -> Self {
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
        let apps = apps.iter().filter(|app| *app.cluster == *policy.name);
        let at_once = apps.map(|app| (&*app.app, app.concurrency_p99)).collect();
        Self { list, places, at_once }
    }

    /// Adds statements to the budgets that meet them.
    pub(super) fn add(&mut self, foreseen: &Foreseen<'_>, load: &Load<'_>) {
        for met in &foreseen.budgets {
            if let Some(filled) = self.filled(met.budget) {
                filled.add(met.bucket, load);
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
        let Self { list, at_once, .. } = self;
        list.into_iter().map(|filled| filled.told(window_s, &at_once)).collect()
    }
}

impl Filled<'_> {
    fn unknown(&mut self, load: &Load<'_>, why: Unseen) {
        self.told.unknown = self.told.unknown.saturating_add(load.came());
        self.told.why_unknown = Some(why.as_str());
    }

    fn add(&mut self, bucket: Option<u64>, load: &Load<'_>) {
        let told = &mut self.told;
        told.statements = told.statements.saturating_add(load.came());
        let of_app = told.apps.entry(load.app.to_owned()).or_default();
        *of_app = of_app.saturating_add(load.came());
        let cost_s = load.row.cost.time_mean_s.unwrap_or_default();
        if self.budget.terms.max_query_cost.is_some_and(|most| cost_s > most) {
            self.too_costly = self.too_costly.saturating_add(load.came());
        }
        self.costliest_s = self.costliest_s.max(cost_s);
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
        bucket.rows = bucket.rows.saturating_add(rows_sent.saturating_add(*rows_affected));
    }

    fn told(self, window_s: f64, at_once: &HashMap<&str, f64>) -> OfBudget {
        let Self { budget, mut told, buckets, too_costly, costliest_s } = self;
        let terms = &budget.terms;
        let mut limit = |name: &'static str,
                         allowed: Option<f64>,
                         load: &dyn Fn(&Bucket) -> f64| {
            let Some(allowed) = allowed else { return };
            let mean = |bucket: &Bucket| load(bucket) / window_s;
            let fullest = buckets.values().max_by(|a, b| load(a).total_cmp(&load(b)));
            let over = buckets.values().filter(|bucket| mean(bucket) > allowed).count();
            told.limits.push(OfLimit {
                limit: name,
                allowed,
                mean: fullest.map(mean).unwrap_or_default(),
                bucket: fullest.map(|bucket| bucket.name.clone()).filter(|name| !name.is_empty()),
                over: u64::try_from(over).unwrap_or(u64::MAX),
                at_once: (name == "max_concurrency").then(|| fullest?.at_once(at_once)).flatten(),
            });
        };
        limit("max_concurrency", terms.max_concurrency.map(f64::from), &|bucket| bucket.time_s);
        limit("rate", terms.rate, &|bucket| number(bucket.count));
        limit("rows_per_s", terms.rows_per_s, &|bucket| number(bucket.rows));
        limit("share", terms.share, &|bucket| bucket.time_s);
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
    /// How many of its statements were there at once at most, but for one second of a hundred.
    fn at_once(&self, by_app: &HashMap<&str, f64>) -> Option<AtOnce> {
        let mut apps = self.apps.iter();
        let (Some(app), None) = (apps.next(), apps.next()) else { return None };
        let p99 = *by_app.get(&**app)?;
        Some(AtOnce { app: app.clone(), p99 })
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
