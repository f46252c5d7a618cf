//! The fair queue of one gate: lanes by identity, turns between rules, between the apps of a rule
//! and between the identities of an app.
//!
//! Theory. Every identity that waits has one lane; within a lane the first to have arrived is at
//! the head, or whoever comes back as told and asked before that ([`crate::Appointment`]). Checks
//! are handed out to heads. A rule has its turn, within it one of its apps, and within that one of
//! its identities ([`Turns`]): so the twenty apps that one rule matches share what its weight
//! gives, in equal parts, and a thousand identities of one app get together what one identity of
//! another gets. A check is charged at what the statement is expected to write,
//! whether it wins or loses (what nobody knows loses at a row, and wins with prudence, which is
//! given back when it has run): so in the long run rules get checks in proportion to weight / cost,
//! and since a check of ratio r wins with probability 1 − r, what they write is shared in
//! proportion to weight × (1 − r). With equal costs that is the same number of checks for
//! everybody, and 0.9 and 0.1 give 1 : 9. The turn is kept while the gate is shut and goes on from
//! where it stopped: starting over at every opening would favour whoever is first.
//!
//! How many checks are lost before one wins is drawn at each level for whoever is next there, with
//! the ratio of the statement that will win. Each level on its own loses as many checks to a win as
//! throwing them one at a time would; those of the rules are the ones that are counted, for the app
//! that wins, and while nobody does, for all that wait under the rule.
//!
//! A lane that empties leaves the ring; when it comes back it queues up behind everybody's turn.
//! All operations are O(log waiters).

mod ahead;
mod learned;
mod line;
mod passed_over;
mod young;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::Bound;
use std::time::Duration;

use rand::rngs::StdRng;

pub(crate) use self::ahead::{Absent, BySince, Part, Standing, Stands};
pub(crate) use self::learned::is_news;
use self::line::Line;
use self::young::Young;
use crate::request::Lane;
use crate::turns::{Bid, Turns};
use crate::{AppKey, IdentityKey, MonoTime, Ratio, RuleKey, Terms, Ticket};

/// A line of an app, from when somebody waits to when nobody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineKey(NonZeroU64);

/// A place in a lane: first arrival, then the order of asking.
pub(crate) type Place = (MonoTime, Ticket);

#[derive(Debug, Default)]
pub(crate) struct Ring {
    rules: BTreeMap<RuleKey, Branch>,
    turns: Turns<RuleKey>,
    len: usize,
    lanes: usize,
    /// Those of them whose checks may be lost.
    diced: usize,
    /// What all who wait are known to cost.
    cost: f64,
    /// Weights of the rules that wait.
    weight: u64,
    /// What they get of what is admitted: their parts, by millionths.
    parts: u64,
    /// Up to which rule lost checks have been counted that nobody has won behind.
    counted_to: Option<RuleKey>,
    /// How many lines of apps have begun.
    begun: u64,
    young: Young,
}

/// A rule that waits, or whose apps are remembered.
#[derive(Debug, Default)]
struct Branch {
    weight: u32,
    /// Its weight × (1 − ratio), by millionths, with the ratio of whoever waited first.
    part: u64,
    turns: Turns<AppKey>,
    /// None is empty.
    apps: BTreeMap<AppKey, App>,
}

#[derive(Debug, Default)]
struct App {
    line_since: MonoTime,
    /// Which of all lines that began it is.
    begun: u64,
    identities: Turns<IdentityKey>,
    standing: BySince,
    /// None is empty.
    lanes: BTreeMap<IdentityKey, Line>,
}

/// A statement, as far as turns are concerned.
#[derive(Debug, Clone, Copy)]
struct Stake {
    cost: f64,
    known: f64,
    ratio: Ratio,
    kept: bool,
}

/// What a waiter brings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joining {
    pub(crate) lane: Lane,
    pub(crate) place: Place,
    pub(crate) weight: u32,
    /// What it is expected to cost.
    pub(crate) cost: f64,
    /// The same without prudence: what is not known is a row.
    pub(crate) known: f64,
    /// Of the checks that are drawn ahead; [`Ratio::ZERO`] if they are thrown one by one.
    pub(crate) ratio: Ratio,
    /// It was refused, and has come back as it was told.
    pub(crate) kept: bool,
}

/// Who gets the next check that wins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) ticket: Ticket,
    pub(crate) lane: Lane,
    pub(crate) cost: f64,
    /// The same without prudence.
    pub(crate) known: f64,
    pub(crate) ratio: Ratio,
}

impl Ring {
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many lanes there are.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Gives how many checks its rule has lost since they were counted, as does what follows.
    pub(crate) fn join(&mut self, now: MonoTime, joining: &Joining, dice: &mut StdRng) -> u64 {
        let Lane { rule, app: app_key, identity } = joining.lane;
        let Joining { cost, known, ratio, kept, .. } = *joining;
        let stake = Stake { cost, known, ratio, kept };
        let weight = joining.weight.clamp(1, Terms::WEIGHT_MAX);
        // Who has come back takes its turns as of when it first asked.
        let times = (if kept { joining.place.0.min(now) } else { now }, now);
        let branch = self.rules.entry(rule).or_default();
        if branch.apps.is_empty() {
            branch.weight = weight;
            branch.part = part_of(weight, ratio);
            self.parts = self.parts.saturating_add(branch.part);
            self.turns.join_as_of(times, rule, &stake.bid(weight), dice);
            self.weight = self.weight.saturating_add(u64::from(weight));
        }
        let bid = stake.bid(1);
        if !branch.apps.contains_key(&app_key) {
            branch.turns.join_as_of(times, app_key, &bid, dice);
        }
        let (begun, young) = (&mut self.begun, &mut self.young);
        let app = branch.apps.entry(app_key).or_insert_with(|| {
            *begun = begun.saturating_add(1);
            let app = App { line_since: now, begun: *begun, ..App::default() };
            app.key().into_iter().for_each(|line| young.begin(line, rule, app_key));
            app
        });
        if !app.lanes.contains_key(&identity) {
            app.identities.join_as_of(times, identity, &bid, dice);
            self.lanes = self.lanes.saturating_add(1);
        }
        let line = app.lanes.entry(identity).or_default();
        if line.places.insert(joining.place, stake).is_none() {
            line.cost += known;
            app.standing.add(joining.place.0, known);
            if kept {
                line.kept.add(stake.standing());
            }
            self.cost += known;
            self.len = self.len.saturating_add(1);
            self.diced = self.diced.saturating_add(usize::from(ratio > Ratio::ZERO));
        }
        self.refresh(joining.lane, dice)
    }

    pub(crate) fn leave(
        &mut self,
        now: MonoTime,
        lane: Lane,
        place: Place,
        dice: &mut StdRng,
    ) -> u64 {
        let Lane { rule, app: app_key, identity } = lane;
        let Some(branch) = self.rules.get_mut(&rule) else { return 0 };
        let Some(app) = branch.apps.get_mut(&app_key) else { return 0 };
        let Some(line) = app.lanes.get_mut(&identity) else { return 0 };
        let Some(stake) = line.places.remove(&place) else { return 0 };
        line.cost -= stake.known;
        app.standing.take(place.0, stake.known);
        if stake.kept {
            line.kept.take(stake.standing());
        }
        self.cost -= stake.known;
        self.len = self.len.saturating_sub(1);
        let lost = if line.places.is_empty() {
            app.lanes.remove(&identity);
            app.identities.leave(now, identity);
            self.lanes = self.lanes.saturating_sub(1);
            self.leave_app(now, lane)
        } else {
            0
        };
        let lost = lost.saturating_add(self.refresh(lane, dice));
        self.diced = self.diced.saturating_sub(usize::from(stake.ratio > Ratio::ZERO));
        if self.is_empty() {
            // Sums of floats drift; nothing is left to be summed.
            self.cost = 0.0;
        }
        lost
    }

    /// A lane of it has emptied, perhaps the last.
    fn leave_app(&mut self, now: MonoTime, Lane { rule, app, .. }: Lane) -> u64 {
        let Some(branch) = self.rules.get_mut(&rule) else { return 0 };
        if branch.apps.get(&app).is_some_and(|app| !app.lanes.is_empty()) {
            return 0;
        }
        branch.turns.leave(now, app);
        branch.apps.remove(&app);
        if !branch.apps.is_empty() {
            return 0;
        }
        let lost = self.turns.leave(now, rule);
        self.weight = self.weight.saturating_sub(u64::from(branch.weight));
        self.parts = self.parts.saturating_sub(branch.part);
        self.forget();
        lost
    }

    /// Forgets the rules of which nothing is remembered. For each that is looked at, one has been
    /// added since.
    fn forget(&mut self) {
        if self.rules.len() > RULES_KEPT && self.rules.len() / 2 > self.turns.known() {
            let turns = &self.turns;
            self.rules.retain(|rule, _| turns.knows(*rule));
        }
    }

    /// Whoever is next in an app and in a rule may be another statement now. While no check can be
    /// lost it does not matter which.
    fn refresh(&mut self, Lane { rule, app, identity }: Lane, dice: &mut StdRng) -> u64 {
        if self.diced == 0 {
            return 0;
        }
        let Some(branch) = self.rules.get_mut(&rule) else { return 0 };
        if let Some(app) = branch.apps.get_mut(&app)
            && let Some(stake) = app.stake_of(identity)
        {
            app.identities.rebid(identity, &stake.bid(1), dice);
        }
        if let Some((_, _, stake)) = branch.apps.get(&app).and_then(App::next) {
            branch.turns.rebid(app, &stake.bid(1), dice);
        }
        let next = branch.next();
        next.map_or(0, |(_, (_, _, stake))| self.turns.rebid(rule, &stake.bid(branch.weight), dice))
    }

    /// Whether other apps share this line, also those that are absent for a moment.
    pub(crate) fn has_rival(&self, now: MonoTime, lane: Lane) -> bool {
        let branch = self.rules.get(&lane.rule);
        self.turns.has_rival(now, lane.rule)
            || branch.is_some_and(|branch| branch.turns.has_rival(now, lane.app))
    }

    /// Whether an app that is absent for a moment only has its turn before this one's statement.
    pub(crate) fn rival_is_ahead(
        &self,
        now: MonoTime,
        lane: Lane,
        known: f64,
        weight: u32,
    ) -> bool {
        let of_rule = self.turns.rival_is_ahead(now, lane.rule, (known, weight));
        let branch = self.rules.get(&lane.rule);
        of_rule || branch.is_some_and(|b| b.turns.rival_is_ahead(now, lane.app, (known, 1)))
    }

    /// Who wins the next check that is won.
    pub(crate) fn head(&self) -> Option<Head> {
        let rule = self.turns.first()?;
        let (app, (identity, ticket, stake)) = self.rules.get(&rule)?.next()?;
        Some(stake.head(ticket, Lane { rule, app, identity }))
    }

    /// Who is next of this lane, if its app serves it next.
    pub(crate) fn next_of(&self, lane: Lane) -> Option<Head> {
        let app = self.rules.get(&lane.rule)?.apps.get(&lane.app)?;
        let (identity, ticket, stake) = app.next()?;
        (identity == lane.identity).then(|| stake.head(ticket, lane))
    }

    /// Whether it wins the next check that is won.
    pub(crate) fn is_head(&self, ticket: Ticket) -> bool {
        self.head().is_some_and(|head| head.ticket == ticket)
    }

    /// How many checks its rule loses before the head wins its own.
    pub(crate) fn losses_before_win(&self) -> u64 {
        self.turns.losses_before_win()
    }

    /// How many rounds of all lanes are lost before the head wins.
    pub(crate) fn rounds_before_win(&self) -> f64 {
        let losses = self.turns.losses_before_win();
        let Some(branch) = self.turns.first().and_then(|rule| self.rules.get(&rule)) else {
            return 0.0;
        };
        if losses == 0 {
            return 0.0;
        }
        // While this rule loses one, the others lose as many more as their weights say.
        let of_all = count(losses) * count(self.weight) / f64::from(branch.weight.max(1));
        of_all / count(u64::try_from(self.lanes).unwrap_or(u64::MAX)).max(1.0)
    }

    /// A lane won its check, of a statement of this cost; the turn passes on.
    pub(crate) fn take(&mut self, head: &Head, cost: f64, dice: &mut StdRng) -> u64 {
        let Lane { rule, app, identity } = head.lane;
        let Some(branch) = self.rules.get_mut(&rule) else { return 0 };
        let bid = Bid { cost, weight: branch.weight, ratio: head.ratio };
        let lost = self.turns.take(rule, &bid, dice);
        let bid = Bid { weight: 1, ..bid };
        branch.turns.take(app, &bid, dice);
        if let Some(app) = branch.apps.get_mut(&app) {
            app.identities.take(identity, &bid, dice);
        }
        lost
    }

    /// The head has lost a check that was thrown now.
    pub(crate) fn lose(&mut self, head: &Head) {
        self.turns.lose(head.lane.rule, 1);
    }

    /// A lane had a check of a statement of this cost that was none of its turns.
    pub(crate) fn charge(&mut self, lane: Lane, cost: f64, weight: u32) {
        self.turns.charge(lane.rule, cost, weight);
        let Some(branch) = self.rules.get_mut(&lane.rule) else { return };
        branch.turns.charge(lane.app, cost, 1);
        if let Some(app) = branch.apps.get_mut(&lane.app) {
            app.identities.charge(lane.identity, cost, 1);
        }
    }

    /// The line of its app in which an identity that is served now was charged for its turn. `None`:
    /// there is none any more, or there never was one, and what identities had is forgotten.
    pub(crate) fn line_of(&self, lane: Lane) -> Option<LineKey> {
        let app = self.rules.get(&lane.rule)?.apps.get(&lane.app)?;
        app.key().filter(|_| app.identities.knows(lane.identity))
    }

    /// A statement that was charged has cost so much more, or less. Its identity was charged in
    /// `line` alone: in another it would get back what it never paid.
    pub(crate) fn settle(&mut self, lane: Lane, more: f64, weight: u32, line: Option<LineKey>) {
        self.turns.settle(lane.rule, more, weight);
        let Some(branch) = self.rules.get_mut(&lane.rule) else { return };
        branch.turns.settle(lane.app, more, 1);
        if let Some(app) = branch.apps.get_mut(&lane.app)
            && line == app.key()
        {
            app.identities.settle(lane.identity, more, 1);
        }
    }

    /// The rules that wait.
    pub(crate) fn waiting_rules(&self) -> impl Iterator<Item = RuleKey> + '_ {
        let waiting = self.rules.iter().filter(|(_, branch)| !branch.apps.is_empty());
        waiting.map(|(rule, _)| *rule)
    }

    /// Whether somebody of this app waits.
    pub(crate) fn has_line(&self, rule: RuleKey, app: AppKey) -> bool {
        self.rules.get(&rule).is_some_and(|branch| branch.apps.contains_key(&app))
    }

    /// Since when this app has had somebody in line; `None` while it has nobody.
    pub(crate) fn line_since(&self, lane: Lane) -> Option<MonoTime> {
        self.rules.get(&lane.rule)?.apps.get(&lane.app).map(|app| app.line_since)
    }

    /// Whether this waiter has lost a check.
    pub(crate) fn has_lost(&self, lane: Lane, place: Place) -> bool {
        let app = self.rules.get(&lane.rule).and_then(|branch| branch.apps.get(&lane.app));
        app.is_some_and(|app| {
            let line = app.lanes.get(&lane.identity);
            let head = line.and_then(|line| line.places.first_key_value());
            head.is_some_and(|(at, _)| *at == place) && app.identities.has_lost(lane.identity)
        })
    }

    /// Counts the checks that were lost behind the last win, of so many apps about, going on from
    /// where it stopped.
    pub(crate) fn count_lost(
        &mut self,
        apps_max: usize,
        mut each: impl FnMut(RuleKey, AppKey, u64),
    ) {
        if self.diced == 0 {
            return;
        }
        let from = self.counted_to.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut left = apps_max;
        for (&rule, branch) in self.rules.range((from, Bound::Unbounded)) {
            if left == 0 {
                return;
            }
            self.counted_to = Some(rule);
            left = left.saturating_sub(1);
            let lost = self.turns.account(rule);
            if lost == 0 {
                continue;
            }
            let apps = u64::try_from(branch.apps.len().clamp(1, left.max(1))).unwrap_or(1);
            let (part, rest) = (lost.checked_div(apps), lost.checked_rem(apps));
            for (&app, n) in branch.apps.keys().zip(0..apps) {
                let one_more = u64::from(rest.is_some_and(|rest| n < rest));
                each(rule, app, part.unwrap_or(0).saturating_add(one_more));
                left = left.saturating_sub(1);
            }
        }
        self.counted_to = None;
    }
}

impl Branch {
    fn next(&self) -> Option<(AppKey, (IdentityKey, Ticket, Stake))> {
        let app = self.turns.first()?;
        Some((app, self.apps.get(&app)?.next()?))
    }
}

impl App {
    fn key(&self) -> Option<LineKey> {
        NonZeroU64::new(self.begun).map(LineKey)
    }

    fn next(&self) -> Option<(IdentityKey, Ticket, Stake)> {
        let identity = self.identities.first()?;
        let ((_, ticket), stake) = self.lanes.get(&identity)?.places.first_key_value()?;
        Some((identity, *ticket, *stake))
    }

    fn stake_of(&self, identity: IdentityKey) -> Option<Stake> {
        self.lanes.get(&identity)?.places.first_key_value().map(|(_, stake)| *stake)
    }
}

impl Stake {
    /// What a check that is lost costs. Prudence is for what is let through: that is charged when it
    /// is, and given back when it has run. Nothing gives back what checks were charged that were
    /// lost before anybody knew what such a statement writes.
    fn bid(self, weight: u32) -> Bid {
        Bid { cost: self.known, weight, ratio: self.ratio }
    }

    fn head(self, ticket: Ticket, lane: Lane) -> Head {
        let Self { cost, known, ratio, kept: _ } = self;
        Head { ticket, lane, cost, known, ratio }
    }

    fn standing(self) -> Standing {
        Standing { statements: 1, cost: self.known }
    }
}

/// Rules of which nothing is known any more are kept up to so many.
const RULES_KEPT: usize = 64;

/// What a rule gets of what is admitted, beside others: weight × (1 − ratio), by millionths.
pub(crate) fn part_of(weight: u32, ratio: Ratio) -> u64 {
    let weight = weight.clamp(1, Terms::WEIGHT_MAX);
    let part = Duration::try_from_secs_f64(f64::from(weight) * (1.0 - ratio.as_f64()));
    part.map_or(1, |part| u64::try_from(part.as_micros()).unwrap_or(u64::MAX)).max(1)
}

/// Beyond four thousand million it does not matter how many.
fn count(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests;
