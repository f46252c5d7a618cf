//! The minutes: the one under way, and those of the last hours.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use admission::Reason;
use proxy::telemetry::{CheckKey, Tallied, TallyKey};

use crate::look::SignalLook;
use crate::record::{At, CheckRow, Counts, MinuteRow, SignalRow, Values};

/// Rows that are kept in memory, some 300 bytes each: three hours of a hundred identities.
const ROWS_MAX: usize = 20_000;

/// Minutes that are kept in memory.
const MINUTES_MAX: usize = 24 * 60;

const MINUTE_MS: i64 = 60_000;

#[derive(Debug, Default)]
pub(super) struct Minutes {
    current: Option<Minute>,
    past: VecDeque<Minute>,
    rows: usize,
    /// How many of those past, from the end, are not written.
    unwritten: usize,
    /// What was before is not in memory any more.
    gone_before: Option<At>,
}

#[derive(Debug)]
struct Minute {
    run: i64,
    at: i64,
    counts: BTreeMap<TallyKey, Tallied>,
    signals: BTreeMap<(Arc<str>, Arc<str>), Values>,
    checks: BTreeMap<CheckKey, u64>,
}

/// The rows of some minutes.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) minutes: Vec<MinuteRow>,
    pub(super) signals: Vec<SignalRow>,
    pub(super) checks: Vec<CheckRow>,
}

impl Minutes {
    /// It is the minute of this time.
    pub(super) fn enter(&mut self, run: i64, at: At) {
        let begins = at.0.div_euclid(MINUTE_MS).saturating_mul(MINUTE_MS / 1_000);
        if self.current.as_ref().is_some_and(|minute| minute.at == begins && minute.run == run) {
            return;
        }
        self.close();
        let (counts, signals, checks) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        self.current = Some(Minute { run, at: begins, counts, signals, checks });
    }

    /// The minute under way is over.
    pub(super) fn close(&mut self) {
        let Some(minute) = self.current.take() else { return };
        self.rows = self.rows.saturating_add(minute.len());
        self.past.push_back(minute);
        self.unwritten = self.unwritten.saturating_add(1);
        while self.past.len() > MINUTES_MAX || (self.rows > ROWS_MAX && self.past.len() > 1) {
            if let Some(old) = self.past.pop_front() {
                self.gone_before = Some(At(old.at.saturating_mul(1_000).saturating_add(MINUTE_MS)));
                self.rows = self.rows.saturating_sub(old.len());
            }
        }
        self.unwritten = self.unwritten.min(self.past.len());
    }

    pub(super) fn gone_before(&self) -> Option<At> {
        self.gone_before
    }

    pub(super) fn count(&mut self, key: &TallyKey, counts: &Tallied) {
        if let Some(minute) = &mut self.current {
            minute.counts.entry(key.clone()).or_default().add(counts);
        }
    }

    pub(super) fn count_checks(&mut self, key: &CheckKey, count: u64) {
        if let Some(minute) = &mut self.current {
            let known = minute.checks.entry(key.clone()).or_default();
            *known = known.saturating_add(count);
        }
    }

    pub(super) fn measure(&mut self, cluster: &Arc<str>, signal: &SignalLook, shut: Duration) {
        let Some(minute) = &mut self.current else { return };
        let values = minute.signals.entry((cluster.clone(), signal.signal.clone())).or_default();
        values.note(signal.value, signal.threshold, shut.as_secs_f64());
    }

    pub(super) fn writes(&mut self) -> Rows {
        let begin = self.past.len().saturating_sub(self.unwritten);
        self.unwritten = 0;
        rows(self.past.range(begin..).chain(&self.current))
    }

    pub(super) fn between(&self, since: At, until: At) -> Rows {
        let is_meant = |minute: &&Minute| {
            let begins = minute.at.saturating_mul(1_000);
            begins < until.0 && begins.saturating_add(MINUTE_MS) > since.0
        };
        rows(self.past.iter().chain(&self.current).filter(is_meant))
    }

    /// The first minute of each run that is in memory.
    pub(super) fn first_of_each(&self) -> BTreeMap<i64, i64> {
        let mut first = BTreeMap::new();
        for minute in self.past.iter().chain(&self.current) {
            let at = first.entry(minute.run).or_insert(minute.at);
            *at = minute.at.min(*at);
        }
        first
    }
}

impl Minute {
    fn len(&self) -> usize {
        self.counts.len().saturating_add(self.checks.len())
    }
}

fn rows<'m>(minutes: impl Iterator<Item = &'m Minute>) -> Rows {
    let mut rows = Rows::default();
    for minute in minutes {
        let Minute { run, at, .. } = *minute;
        rows.minutes.extend(minute.counts.iter().map(|(key, counted)| row(run, at, key, counted)));
        rows.signals.extend(minute.signals.iter().map(|((cluster, signal), values)| SignalRow {
            run,
            at,
            cluster: cluster.to_string(),
            signal: signal.to_string(),
            values: *values,
        }));
        rows.checks.extend(minute.checks.iter().map(|(key, count)| CheckRow {
            run,
            at,
            cluster: key.cluster.clone(),
            app: key.app.clone(),
            rule: key.rule.clone(),
            refused: key.refused.unwrap_or_default().to_owned(),
            count: *count,
        }));
    }
    rows
}

fn row(run: i64, at: i64, key: &TallyKey, counted: &Tallied) -> MinuteRow {
    MinuteRow {
        run,
        at,
        cluster: key.cluster.to_string(),
        app: key.app.to_string(),
        user: key.user.to_string(),
        rule: key.rule.to_string(),
        counts: counts_of(counted),
        refused_by: refused_by(counted),
    }
}

pub(super) fn counts_of(counted: &Tallied) -> Counts {
    let p99 = counted.waits.percentile(99).unwrap_or_default();
    Counts {
        asked: counted.asked(),
        admitted: counted.admitted,
        delayed: counted.delayed,
        refused: counted.refused_in_all(),
        observed: counted.observed,
        left: counted.left,
        wait_sum_s: counted.wait_sum.as_secs_f64(),
        wait_max_s: counted.wait_max.as_secs_f64(),
        wait_p99_s: p99.min(counted.wait_max).as_secs_f64(),
        rows: counted.rows,
    }
}

pub(super) fn refused_by(counted: &Tallied) -> BTreeMap<String, u64> {
    let by = Reason::ALL.iter().zip(counted.refused).filter(|(_, count)| *count > 0);
    by.map(|(reason, count)| (reason.as_str().to_owned(), count)).collect()
}
