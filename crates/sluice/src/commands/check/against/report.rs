//! What is told: the JSON of `sluice check --against --format json`.

use std::collections::BTreeMap;

use serde::Serialize;

/// What the file would have done.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// When the insights' window begins, and ends.
    pub(super) from: String,
    pub(super) to: String,
    /// Seconds of it from the first statement on: what means are of.
    pub(super) window_s: f64,
    /// Statements of the insights, refused ones included.
    pub(super) statements: u64,
    /// Of these, those that no row of the file is about.
    pub(super) without_row: u64,
    pub(super) clusters: Vec<OfCluster>,
}

/// What it would have done in one cluster.
#[derive(Debug, Default, Serialize)]
pub(super) struct OfCluster {
    pub(super) cluster: String,
    /// Statements that have a row.
    pub(super) statements: u64,
    /// Of these, those of which nobody can tell what would have become of them, by why.
    pub(super) unknown: u64,
    pub(super) unknown_by_why: BTreeMap<String, u64>,
    /// Statements that no rule matches.
    pub(super) no_rule: u64,
    pub(super) rules: Vec<OfRule>,
    pub(super) budgets: Vec<OfBudget>,
    pub(super) guards: Vec<OfGuard>,
}

/// What a rule would have done.
#[derive(Debug, Default, Serialize)]
pub(super) struct OfRule {
    pub(super) rule: String,
    /// `observe`: it would only have counted.
    pub(super) mode: &'static str,
    /// Statements that it decides.
    pub(super) statements: u64,
    /// Their part of all statements that have a row.
    pub(super) share: f64,
    /// Of these, those that it refuses whatever the load.
    pub(super) denied: u64,
    /// Those that wait until it is lifted.
    pub(super) held: u64,
    /// Those that ask its gate, dice and limits.
    pub(super) asked: u64,
    /// Those that it lets pass.
    pub(super) passed: u64,
    /// The part of the checks that the dice refuse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio: Option<f64>,
    /// Whether the dice refuse a statement, and not only delay it.
    pub(super) dice_refuse: bool,
    /// Of `asked`, those whose first check the dice refuse, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost_to_dice: Option<u64>,
    /// The signals of its gate, which held them only while one was over its threshold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) gate: Vec<String>,
    /// The speed of its sessions, where that is less than their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) speed: Option<f64>,
    /// Statements that it may decide: what it looks at is not known.
    pub(super) unknown: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why_unknown: Option<&'static str>,
    /// Statements that it decides by app.
    pub(super) apps: BTreeMap<String, u64>,
    /// What would have run away from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) runaway: Option<OfRunaway>,
}

/// What a rule's `runaway` would have met.
#[derive(Debug, Default, Serialize)]
pub(super) struct OfRunaway {
    /// Its limits and what is done, for people.
    pub(super) limits: String,
    /// Statements of digests of which some took more.
    #[serde(flatten)]
    pub(super) hits: Hits,
}

/// How full a budget would have been.
#[derive(Debug, Default, Serialize)]
pub(super) struct OfBudget {
    pub(super) budget: String,
    pub(super) mode: &'static str,
    /// Who has a bucket of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per: Option<String>,
    /// Statements that it meets.
    pub(super) statements: u64,
    pub(super) apps: BTreeMap<String, u64>,
    pub(super) limits: Vec<OfLimit>,
    /// Statements that it may meet, or whose bucket is not known.
    pub(super) unknown: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why_unknown: Option<&'static str>,
}

/// A limit of a budget.
#[derive(Debug, Default, Serialize)]
pub(super) struct OfLimit {
    /// The key of the file.
    pub(super) limit: &'static str,
    /// What it allows.
    pub(super) allowed: f64,
    /// What there was, on average over the window, in the fullest bucket.
    pub(super) mean: f64,
    /// Whose bucket that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bucket: Option<String>,
    /// Buckets in which there was more than is allowed on average, or statements that cost more.
    pub(super) over: u64,
    /// The same by the second, of the app with most above it among those whose one bucket is theirs alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peaks: Option<Peaks>,
}

/// What an app did in each second of the last hour, statements included that the budget does not meet.
#[derive(Debug, Serialize)]
pub(super) struct Peaks {
    pub(super) app: String,
    /// In 99 of 100 of the seconds in which there was anything, no more than this.
    pub(super) p99: f64,
    /// What is known of each second. Insights of an older Sluice do not have it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) above: Option<Above>,
}

/// What there was above a limit.
#[derive(Debug, Serialize)]
pub(super) struct Above {
    /// In the fullest second.
    pub(super) max: f64,
    /// The seconds in which there was anything.
    pub(super) seconds: u64,
    /// Of these, those in which there was more than is allowed.
    pub(super) seconds_above: u64,
    /// What there was in these above that, all in all: no more than this.
    pub(super) above: f64,
}

/// What a guard would have done.
#[derive(Debug, Default, Serialize)]
pub(super) struct OfGuard {
    pub(super) guard: String,
    pub(super) check: &'static str,
    /// `warn` or `deny`.
    pub(super) mode: &'static str,
    /// Those that it would have hit.
    #[serde(flatten)]
    pub(super) hits: Hits,
}

/// Statements that something is about.
#[derive(Debug, Default, Serialize)]
pub(super) struct Hits {
    pub(super) statements: u64,
    pub(super) apps: BTreeMap<String, u64>,
    /// The digests of these, those with most statements first.
    pub(super) digests: Vec<OfDigest>,
    pub(super) digests_total: usize,
    /// Statements of which what is known of a digest does not tell.
    pub(super) unknown: u64,
}

/// Statements of one digest and app.
#[derive(Debug, Serialize)]
pub(super) struct OfDigest {
    pub(super) digest: String,
    pub(super) digest_text: String,
    pub(super) app: String,
    pub(super) statements: u64,
    #[serde(skip)]
    pub(super) is_certain: bool,
}
