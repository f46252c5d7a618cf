//! What is asked of the history, and what of one statement.

use std::sync::Arc;
use std::time::Duration;

use admission::{MonoTime, RuleKey};
use jiff::tz::TimeZone;
use policy::Rule;
use proxy::cluster::{Chain, Cluster, WaitingClient};

use super::{History, gather};
use crate::answer::{Answer, Sources, answer};
use crate::book::Recent;
use crate::disk::{Asked, Reading};
use crate::record::At;
use crate::why::{AheadShown, LineShown, RuleShown, SignalShown, Why, WhyAnswer, label, text};
use crate::{time, words};

/// The time that is answered for if none is said.
const USUAL: &str = "1h ago";

/// What is asked for. All of it may be left out.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The app; also those that have it as a level.
    pub app: Option<String>,
    /// The cluster.
    pub cluster: Option<String>,
    /// The begin, as [`crate::time::parse`] reads it; an hour ago.
    pub since: Option<String>,
    /// The end; now.
    pub until: Option<String>,
    /// The name of the zone in which times are read and said; UTC.
    pub zone: Option<String>,
}

/// Of an app, the longest wait of this time is told: an hour.
const LONGEST_OF_MS: i64 = 3_600_000;

impl History {
    /// What happened. Reads the disk: not for a thread that others wait for.
    ///
    /// # Errors
    /// What of the question cannot be read.
    pub fn answer(&self, query: &Query) -> Result<Answer, String> {
        let now = gather::wall();
        let zone = zone(query.zone.as_deref())?;
        let since = time::parse(query.since.as_deref().unwrap_or(USUAL), now, &zone)?;
        let until = time::parse(query.until.as_deref().unwrap_or("now"), now, &zone)?;
        // What happens now is asked for as well.
        let until = if until == now { At(now.0.saturating_add(1)) } else { until };
        if since >= until {
            return Err(format!("the time begins at {since} and ends at {until}"));
        }
        let (app, cluster) = (query.app.as_deref(), query.cluster.as_deref());
        let asked = Asked { since, until, cluster, app };
        self.inner.look_now();
        let recent = self.inner.book.lock().as_ref().map(|book| book.recent(since, until));
        let recent = recent.unwrap_or_else(|| Recent { since: now, ..Recent::default() });
        let reading = self.reading(&recent);
        let mut made = answer(&asked, &Sources { recent, disk: reading.as_ref() }, now);
        let own = match (&self.inner.state_dir, self.trouble()) {
            _ if !self.is_kept() => {
                Some("nothing is kept, for the file says history.enabled: false".to_owned())
            }
            (None, _) => Some("it is in memory only: the file names no state_dir".to_owned()),
            (Some(_), trouble) => trouble,
        };
        // Without a state_dir nothing is missing unless it is older than the process.
        let is_whole = self.is_kept() && self.inner.state_dir.is_none() && made.kept.since <= since;
        made.kept.trouble = own.filter(|_| !is_whole).or(made.kept.trouble);
        made.sentences = words::sentences(&made, &zone);
        Ok(made)
    }

    fn reading(&self, recent: &Recent) -> Option<Reading> {
        Reading::open(self.inner.state_dir.as_deref()?, recent.from.clone())
    }

    /// Why a statement was refused or waited, by the id of its error; or what is known of an app.
    /// Reads the disk.
    ///
    /// # Errors
    /// That the zone cannot be read.
    pub fn why(&self, asked: &str, zone_name: Option<&str>) -> Result<WhyAnswer, String> {
        let zone = zone(zone_name)?;
        let now = gather::wall();
        let id = (asked.len() <= 8).then(|| u32::from_str_radix(asked, 16).ok()).flatten();
        let mut statements: Vec<Why> = id.and_then(|id| self.statement(id)).into_iter().collect();
        if statements.is_empty() {
            statements = self.of_app(asked);
            self.add_kept(asked, now, &mut statements);
        }
        for why in &mut statements {
            why.sentences = why.sentences(now, &zone);
        }
        let said = statements.iter().flat_map(|why| &why.sentences);
        let mut sentences: Vec<String> = said.cloned().collect();
        if sentences.is_empty() {
            sentences.push(nothing_known(asked));
        }
        Ok(WhyAnswer { asked: asked.to_owned(), now, sentences, statements })
    }

    fn statement(&self, id: u32) -> Option<Why> {
        let found = self.inner.clusters.iter().find_map(|cluster| cluster.chains.find(id));
        if let Some(chain) = found {
            return Some(Why::of(&chain));
        }
        let reading = Reading::open(self.inner.state_dir.as_deref()?, Default::default())?;
        serde_json::from_str(&reading.statement(id).ok()??).ok()
    }

    fn of_app(&self, app: &str) -> Vec<Why> {
        let asked = Asked { since: At(0), until: At(0), cluster: None, app: Some(app) };
        let is_meant = |name: &[u8]| name == app.as_bytes() || asked.is_of(&label(name));
        let mut found = Vec::new();
        for cluster in self.inner.clusters.iter() {
            let waiters = cluster.held_back().into_iter().filter(|waiter| is_meant(waiter.app()));
            let longest = waiters.min_by_key(|waiter| waiter.waiting.arrived);
            found.extend(longest.map(|waiter| waiting(cluster, &waiter)));
            let kept = cluster.chains.of(|chain: &Chain| is_meant(&chain.app));
            found.extend(kept.iter().flatten().map(|chain| Why::of(chain)));
        }
        found
    }

    /// What memory does not have of an app any more.
    fn add_kept(&self, app: &str, now: At, found: &mut Vec<Why>) {
        let ends = |found: &[Why], end: &str| found.iter().any(|why| why.end == end);
        if ["refused", "admitted", "left"].iter().all(|end| ends(found, end)) {
            return;
        }
        let app = label(app.as_bytes());
        let since = At(now.0.saturating_sub(LONGEST_OF_MS));
        let asked = Asked { since, until: now, cluster: None, app: Some(&app) };
        let reading = |directory| Reading::open(directory, Default::default());
        let Some(reading) = self.inner.state_dir.as_deref().and_then(reading) else { return };
        for kept in reading.statements(&asked).unwrap_or_default() {
            let kept = serde_json::from_str::<Why>(&kept).ok();
            found.extend(kept.filter(|kept| !ends(found, &kept.end)));
        }
    }
}

fn nothing_known(asked: &str) -> String {
    format!(
        "nothing is known of `{asked}`: it is neither the id of a refusal that is kept, nor an app of \
         which something waits, was refused, or waited for longer than 0.25 s lately; `sluice \
         history {asked}` tells what became of it, and `sluice explain` what the rules say"
    )
}

/// A statement that waits now.
fn waiting(cluster: &Arc<Cluster>, waiter: &WaitingClient) -> Why {
    let policy = cluster.policy();
    let now = cluster.now();
    // None matches what waits for a budget alone; a rule that is gone has it judged again.
    let rule = rule_of(&policy.rules, waiter.waiting.rule);
    let line = cluster.line(waiter.waiting.arrived, now);
    let told = waiter.introduction();
    let client = told.map(|told| &told.client);
    let ratio = match rule.map(|rule| rule.action) {
        Some(policy::Action::Throttle { terms, .. }) => terms.ratio.as_f64(),
        Some(policy::Action::Exempt | policy::Action::Deny) | None => 0.0,
    };
    let signals = rule.map(|rule| cluster.gate_signals(&policy, rule, now)).unwrap_or_default();
    let cause = waiter.waiting.cause.and_then(|cause| policy.signal(cause.signal));
    let budget = waiter.waiting.budget.and_then(|key| policy.budgets.get(key));
    let length = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
    Why {
        id: None,
        at: gather::wall(),
        cluster: cluster.name.to_string(),
        app: text(waiter.app()),
        source: told.and_then(|told| told.source).map(|source| source.as_str().to_owned()),
        user: client.map(|client| text(&client.user)).unwrap_or_default(),
        client: client.map(|client| client.address.to_string()).unwrap_or_default(),
        connection_id: client.map_or(0, |client| client.connection_id),
        class: told.and_then(|told| told.class).map(|class| class.as_str().to_owned()),
        end: "waiting".to_owned(),
        reason: Some(waiter.waiting.reason.as_str().to_owned()),
        waited_s: waited(now, waiter).as_secs_f64(),
        retry_after_s: None,
        rule: rule
            .map(|rule| RuleShown::of(rule, ratio, policy.check_interval))
            .unwrap_or_default(),
        budget: budget.map(|budget| budget.name.to_string()),
        budget_reason: budget.map(|budget| budget.reason.to_string()),
        guard: None,
        quarantine: None,
        signals: signals.iter().map(SignalShown::of).collect(),
        signal: cause.map(|signal| signal.name.to_string()),
        limit: waiter.waiting.limit.map(|limit| limit.as_str().to_owned()),
        line: waiter.waiting.ticket.map(|_| LineShown {
            ahead_at_first: waiter_ahead(waiter),
            waiting: length(line.waiting),
            ahead: line.ahead.as_ref().map(|_| length(line.ahead_total)),
            ahead_by_app: line
                .ahead
                .iter()
                .flatten()
                .map(|(app, count)| AheadShown { app: text(app), count: length(*count) })
                .collect(),
        }),
        sentences: Vec::new(),
    }
}

fn waiter_ahead(waiter: &WaitingClient) -> u64 {
    u64::try_from(waiter.ahead()).unwrap_or(u64::MAX)
}

fn waited(now: MonoTime, waiter: &WaitingClient) -> Duration {
    now.saturating_since(waiter.waiting.arrived)
}

fn rule_of(rules: &policy::Rules, key: RuleKey) -> Option<&Rule> {
    rules.iter().find(|rule| rule.key == key)
}

/// The zone of this name; UTC without one.
fn zone(name: Option<&str>) -> Result<TimeZone, String> {
    match name {
        None | Some("UTC") => Ok(TimeZone::UTC),
        Some(name) => TimeZone::get(name).map_err(|_| format!("there is no time zone `{name}`")),
    }
}
