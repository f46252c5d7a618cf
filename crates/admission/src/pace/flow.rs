//! The flow to one replica: what it has acknowledged, its delivery rate, and the pace and window
//! that follow. The law is in the documentation of [`super`].

mod beside;
mod blind;
mod busy;
mod falling;
mod follow;
mod found;
mod growth;
mod idle;
mod in_turn;
mod looking;
mod own;
mod queue;
mod room;
mod view;

use std::collections::VecDeque;
use std::time::Duration;

use self::beside::Beside;
use self::busy::{Ack, Busy};
use self::found::Found;
use self::idle::Idle;
pub(super) use self::in_turn::InTurn;
use self::looking::Looking;
use super::base::{Age, Base};
use super::ledger::Ledger;
use crate::MonoTime;
use crate::aged::{RATE_FIRST, aged};

/// Gain of the pace on the relative error of the lag.
const GAIN: f64 = 0.25;

/// So much steeper above the target.
const BRAKE: f64 = 3.0;

/// The pace does not fall below this part of the rate before the gate shuts.
const PACE_MIN: f64 = 0.1;

/// Samples are taken over so many heartbeats, so many times what a usual large statement takes, and
/// at least this many seconds.
const SAMPLE_HEARTBEATS: f64 = 4.0;
const SAMPLE_LUMPS: f64 = 4.0;
const SAMPLE_MIN: f64 = 1.0;

const RATE_MIN: f64 = 0.1;
const RATE_MAX: f64 = 1e8;

/// After so many seconds without a word, former samples say nothing.
const GAP: f64 = 5.0;

/// Acknowledgements remembered at most: a sample's length of them at ten a second.
const ACKS_MAX: usize = 128;

/// What the law aims at; times in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    pub(super) threshold: f64,
    /// The queue that is let stand at a replica that may lag for longer than the others.
    pub(super) lenient: Option<f64>,
    pub(super) heartbeat: f64,
    pub(super) probe: f64,
    /// What looking at the replica takes: a probe interval, or longer where answers are late.
    pub(super) looking: f64,
    /// The size of the usual large statement, in rows.
    pub(super) lump: f64,
    /// How long work runs on the primary before it is committed: the mean over rows.
    pub(super) service: f64,
    /// The same of what is found running: longer, where some runs for longer than the rest.
    pub(super) running: f64,
    /// What other controllers have of the replica, in rows a second; `None`: there are none.
    pub(super) others: Option<f64>,
    /// The size of their usual large statement, in rows.
    pub(super) others_lump: f64,
}

/// One look at a replica.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) now: MonoTime,
    pub(super) answered_at: MonoTime,
    pub(super) asked_at: MonoTime,
    /// As the tracker has it.
    pub(super) lag: Duration,
    /// `None`: that of the signal.
    pub(super) threshold: Option<Duration>,
    /// `None`: the replica tells its lag itself.
    pub(super) shown: Option<u64>,
    pub(super) committed_at: Option<MonoTime>,
    /// How many appliers it says that it has.
    pub(super) appliers: u32,
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// When the answer was there, and when it was looked.
    at: MonoTime,
    looked_at: MonoTime,
    committed_at: MonoTime,
    /// For so many seconds since the one before it there was a queue for certain.
    queued_for: f64,
    /// One statement fills more than the window, or what runs does so for longer than was usual:
    /// whoever waits, waits for that, and the rate is not to blame.
    unlike: bool,
}

#[derive(Debug)]
pub(super) struct Flow {
    /// Seconds; `None`: that of the signal.
    threshold: Option<f64>,
    /// Rows a second.
    rate: f64,
    measured: bool,
    /// A good part of the rate was delivered once: it is no guess, even if nobody knows how far it goes.
    borne: bool,
    /// What it delivered when it was the bottleneck.
    found: Found,
    /// The work that is acknowledged, and by which heartbeat.
    acked: f64,
    shown: Option<u64>,
    /// What was delivered in a second, at the newest acknowledgement.
    delivered: f64,
    /// Acknowledgements of late.
    acks: VecDeque<Ack>,
    /// Since when it applies what is not acknowledged yet.
    busy: Busy,
    /// What replication takes without a queue.
    base: Base,
    /// Seconds from the begin of a heartbeat to its commit: the mean.
    commit: f64,
    /// Seconds, with the base.
    lag: f64,
    /// What of it is certain at the newest acknowledgement, without what looking itself took.
    lag_at_least: f64,
    /// By how much the lag changes in a second, at the newest acknowledgements.
    slope: f64,
    /// For how long a queue had stood for certain at the last look.
    queued_for: f64,
    answered_at: MonoTime,
    /// Before that it was looked at: what it did not show then was not there.
    looked_at: MonoTime,
    /// Since the last acknowledgement somebody had to wait for this flow: first and last.
    limited: Option<(MonoTime, MonoTime)>,
    /// When the rate was last in use: somebody waited, or so much was delivered.
    proved_at: MonoTime,
    looking: Looking,
    beside: Beside,
    idle: Idle,
}

impl Flow {
    pub(super) fn new(now: MonoTime, rate: Option<f64>) -> Self {
        Self {
            threshold: None,
            rate: rate.unwrap_or(RATE_FIRST).clamp(RATE_MIN, RATE_MAX),
            measured: false,
            borne: false,
            found: Found::new(now),
            acked: 0.0,
            shown: None,
            delivered: 0.0,
            acks: VecDeque::new(),
            busy: Busy::new(now),
            base: Base::new(now),
            commit: 0.0,
            lag: 0.0,
            lag_at_least: 0.0,
            slope: 0.0,
            queued_for: 0.0,
            answered_at: now,
            looked_at: now,
            limited: None,
            proved_at: now,
            looking: Looking::default(),
            beside: Beside::new(now),
            idle: Idle::default(),
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn delivered(&self) -> f64 {
        self.delivered
    }

    /// It is to have another part of what all controllers deliver: what is known of the rate is as
    /// if it had had that all along.
    pub(super) fn scale(&mut self, factor: f64) {
        let rate = (self.rate * factor).clamp(RATE_MIN, RATE_MAX);
        let factor = rate / self.rate;
        self.rate = rate;
        for ack in &mut self.acks {
            ack.acked = self.acked - (self.acked - ack.acked) * factor;
        }
        self.base.scale(factor);
        self.found.scale(factor);
        self.idle.scale(factor);
    }

    /// Another process had found out that much.
    pub(super) fn begin_with(&mut self, rate: f64) {
        if !self.measured {
            self.rate = rate.clamp(RATE_MIN, RATE_MAX).max(self.rate);
        }
    }

    pub(super) fn is_measured(&self) -> bool {
        self.measured
    }

    /// Whether another process may begin with the rate.
    pub(super) fn is_known(&self) -> bool {
        self.measured || self.borne
    }

    pub(super) fn shown(&self) -> Option<u64> {
        self.shown
    }

    pub(super) fn seen_at(&self) -> MonoTime {
        self.answered_at
    }

    /// Somebody waits for this flow. A rate that was not in use for a while is an old one.
    pub(super) fn limit(&mut self, now: MonoTime, threshold: Duration) {
        let unused_for = now.saturating_since(self.proved_at);
        if unused_for > UNUSED_AFTER {
            let own = self.threshold.and_then(|own| Duration::try_from_secs_f64(own).ok());
            self.rate = aged(self.rate, unused_for, own.unwrap_or(threshold));
        }
        self.proved_at = now;
        self.mark_limited(now);
    }

    fn mark_limited(&mut self, now: MonoTime) {
        let first = self.limited.map_or(now, |(first, _)| first);
        self.limited = Some((first, now));
    }

    /// Cost a second that may be admitted.
    pub(super) fn pace(&self, aim: &Aim) -> f64 {
        let aim = &self.own(aim);
        if self.lag >= aim.threshold {
            return 0.0;
        }
        let error = 1.0 - self.queue(aim) / self.allowed(aim);
        let gain = if error < 0.0 { GAIN * BRAKE } else { GAIN };
        // What is admitted now is seen so much later: see Stability.
        let gain = gain * acknowledging(aim) / self.way(aim);
        let part = (1.0 + gain * error).max(PACE_MIN);
        self.rate * self.base.part().map_or(part, |most| part.min(most))
    }

    /// Whether so long a queue is braked for that more than what is let in on purpose has made it: of
    /// half of the threshold, and of more than what is aimed for with another of the usual large
    /// statements.
    pub(super) fn is_braked(&self, aim: &Aim) -> bool {
        let own = &self.own(aim);
        let most = (own.threshold / 2.0).max(self.target(own) + self.lump_time(own));
        self.lag >= most && self.pace(aim) < self.rate
    }

    /// Takes in what is seen of the replica.
    pub(super) fn handle(&mut self, look: &Look, ledger: &Ledger, aim: &Aim) {
        self.threshold = look.threshold.map(|own| own.as_secs_f64());
        self.beside.there_are(look.appliers);
        let looked = self.looking.handle(look, aim.probe);
        let aim = &self.own(aim);
        let since = look.answered_at.saturating_since(self.answered_at).as_secs_f64();
        if since > GAP.max(aim.threshold) {
            self.acks.clear();
            self.found.note_gap();
        }
        let Some(shown) = look.shown else {
            self.shown = None;
            self.lag = look.lag.as_secs_f64();
            self.steer_blind(since, aim);
            self.answered_at = self.answered_at.max(look.answered_at);
            return;
        };
        // What was not there when the replica answered cannot have been applied before it looked.
        // Without an answer nothing is known, and the lag grows with the time allowed for one taken
        // off.
        let looked_at = looking::looked_at(look, aim.probe);
        let unseen_for = look.lag.as_secs_f64() - seconds(looked_at, look.now);
        let waiting = look.lag.as_secs_f64() - aim.heartbeat - 2.0 * aim.probe;
        let at_least = (unseen_for - aim.probe).max(waiting).max(0.0);
        match ledger.mark(shown) {
            Some(mark) if self.shown.is_none_or(|before| before < shown) => {
                let committed_at = look.committed_at.unwrap_or(mark.begun_at);
                let commit = seconds(mark.begun_at, committed_at);
                self.commit += COMMIT_NEWEST * (commit - self.commit);
                // It was applied at some time since the look before this one, which did not see it.
                let age = seconds(committed_at, looked.at);
                let base = self.base.seconds(acknowledging(aim));
                let before = self.lag;
                self.lag = (age - looked.since.min(2.0 * aim.probe) / 2.0).max(at_least);
                self.lag_at_least = seconds(committed_at, self.looked_at).max(at_least);
                self.note_slope(before, look.answered_at);
                let completed_at = self.shown.and_then(|before| ledger.completed_after(before));
                let arrived_at = completed_at.map(|at| later(at, base));
                self.busy.applied(later(committed_at, self.lag), arrived_at);
                let large = self.shown.and_then(|before| ledger.large_between(before, shown));
                self.note_large(looked.at, large, aim);
                self.shown = Some(shown);
                let unlike = self.is_unlike(look.now, ledger, aim);
                self.acked = mark.completed;
                let seen = Seen {
                    at: look.answered_at,
                    looked_at: looked.at,
                    committed_at,
                    queued_for: self.queued_for,
                    unlike,
                };
                self.acknowledge(&seen, aim);
            }
            Some(_) | None => {
                if self.shown.is_none() {
                    // What was before the first heartbeat that is remembered is none of this
                    // ledger's.
                    let next = ledger.first_after(shown);
                    self.acked = next.map_or(ledger.completed(), |mark| mark.completed);
                    self.shown = Some(shown);
                }
                self.lag = self.lag.max(at_least);
                // The gate is shut: nobody can ask for room, and what is applied is all it can.
                if self.lag >= aim.threshold {
                    self.mark_limited(look.now);
                }
            }
        }
        self.queued_for = (unseen_for - self.standing(aim)).max(0.0);
        self.answered_at = self.answered_at.max(look.answered_at);
        self.looked_at = self.looked_at.max(self.certain_at(look, aim));
    }

    /// Whether what is on its way says nothing about the rate.
    fn is_unlike(&self, now: MonoTime, ledger: &Ledger, aim: &Aim) -> bool {
        let outstanding = ledger.outstanding(self.acked, now, counts_for(aim));
        let running = outstanding - (ledger.completed() - self.acked).max(0.0);
        let usual = RUNS_LONG * aim.service + acknowledging(aim) / 2.0;
        let runs_long = self.found.is_found() && running > self.rate * usual + aim.lump;
        outstanding > OVERFULL * self.window(aim) || runs_long
    }

    /// Takes in an acknowledgement.
    fn acknowledge(&mut self, seen: &Seen, aim: &Aim) {
        let at = seen.at;
        let limited = self.limited.take();
        let limited_for = limited.map_or(0.0, |(first, last)| seconds(first, last));
        let since = self.acks.back().map_or(0.0, |last| seconds(last.at, at));
        if self.acks.len() >= ACKS_MAX {
            self.acks.pop_front();
        }
        let busy = self.busy.seconds();
        self.acks.push_back(Ack { at, acked: self.acked, busy, queued: false });
        // While a large statement is applied nobody else's writes are, and behind it they catch up.
        let lumps = SAMPLE_LUMPS * self.lump_time(aim).max(self.own_lumps_every(aim));
        let length = SAMPLE_MIN.max(SAMPLE_HEARTBEATS * aim.heartbeat).max(lumps);
        while self.acks.get(1).is_some_and(|second| seconds(second.at, at) >= length) {
            self.acks.pop_front();
        }
        let Some(&first) = self.acks.front() else { return };
        self.base.handle(&Age {
            at,
            committed_at: seen.committed_at,
            most: seconds(seen.committed_at, seen.looked_at),
            about: self.lag,
            aim: self.allowed(aim) + self.alone(aim),
            threshold: aim.threshold,
            acknowledging: acknowledging(aim),
            lump: self.lump_time(aim),
            rate: self.rate,
            limited: limited_for >= MOSTLY * since,
        });
        let target = self.target(aim);
        let queued = self.lag_at_least - self.standing(aim);
        let queue_stands = queued >= Self::queue_least(target);
        self.acks.back_mut().into_iter().for_each(|ack| ack.queued = queue_stands);
        if !queue_stands {
            self.note_idle(aim);
        }
        let span = seconds(first.at, at);
        if span >= aim.heartbeat * SPAN_MIN {
            let rows = self.acked - first.acked;
            let sample = rows / span;
            self.busy.measure(rows, (first.busy, span), aim);
            self.delivered = sample;
            let proves = sample >= self.rate * PROVED;
            if proves {
                self.proved_at = at;
                self.borne = true;
            }
            self.base.delivered(sample);
            // It may have gone by now: whoever waited stood at a shut gate while it was applied.
            let shut_at = aim.threshold - self.standing(aim);
            let stood = seen.queued_for >= (MOSTLY * since).max(shut_at);
            let is_behind = stood || queued >= self.queue_behind(target, aim);
            let bottleneck = is_behind && limited_for >= MOSTLY * since;
            let bottleneck = bottleneck && !self.is_by_chance(bottleneck, aim);
            let busy = self.while_busy(sample, aim);
            // Beside others the idle time is a guess, and tells nothing of the end of the rate.
            let told = if aim.others.is_none() { busy } else { sample };
            self.found.handle(at, bottleneck.then_some(told), proves);
            // Statements go one at a time: no queue tells of the rate, and what it did with each does.
            let alone = seen.unlike && busy > self.rate && sample > self.rate * MOSTLY_USED;
            self.follow((sample, busy), since, bottleneck || alone, aim);
        }
        if limited.is_some() && !queue_stands && !seen.unlike && !self.base.is_drained(at) {
            // Who waited for an instant has not shown that more would have been let in all the time. A lower sample takes
            // as much to count, so else the rate goes up in most intervals and comes down in few. Beside others
            // it brought nothing.
            let waited = if aim.others.is_some() {
                1.0
            } else {
                limited_for / (MOSTLY * since).max(f64::MIN_POSITIVE)
            };
            let clear_for = (since - seen.queued_for).max(0.0) * waited.min(1.0);
            let room = (1.0 - self.queue(aim) / target).max(0.0);
            self.grow(at, (clear_for, room), span.max(SAMPLE_MIN), aim);
        }
    }

    /// Seconds of the lag that are a queue.
    fn queue(&self, aim: &Aim) -> f64 {
        (self.lag - self.standing(aim)).max(0.0)
    }

    /// What passes between an admission and its acknowledgement beside the lag.
    fn cover(&self, aim: &Aim) -> f64 {
        acknowledging(aim) + aim.service + self.commit
    }

    /// And with the lag that is there without any queue.
    fn way(&self, aim: &Aim) -> f64 {
        self.cover(aim) + self.standing(aim)
    }
}

/// Weight of the newest heartbeat in the mean time of a commit.
const COMMIT_NEWEST: f64 = 0.1;

/// The part of the time in which somebody must have waited for a low sample to be the replica's
/// doing.
const MOSTLY: f64 = 0.5;

/// A rate of which so much is delivered is in use, but for what is lost between large statements.
const MOSTLY_USED: f64 = 0.9;

/// From so many windows on its way on, one statement fills more than the window.
const OVERFULL: f64 = 1.5;

/// What runs for more than so many times as long as was usual is not the replica's doing.
const RUNS_LONG: f64 = 2.0;

/// A sample spans at least this part of a heartbeat interval.
const SPAN_MIN: f64 = 0.8;

/// What acknowledging takes at most.
pub(super) fn acknowledging(aim: &Aim) -> f64 {
    aim.heartbeat + aim.looking
}

/// Work that still runs counts as on its way for so long.
fn counts_for(aim: &Aim) -> Duration {
    let service = Duration::try_from_secs_f64(RUNNING_SERVICES * aim.service);
    service.unwrap_or_default().max(RUNNING_COUNTS_FOR)
}

/// Work that still runs counts for at least this long, and for so many times the usual.
const RUNNING_COUNTS_FOR: Duration = Duration::from_secs(2);
const RUNNING_SERVICES: f64 = 3.0;

/// A rate that was in use within this is no old one.
const UNUSED_AFTER: Duration = Duration::from_secs(10);

/// A rate of which so much is delivered is in use.
const PROVED: f64 = 0.5;

fn later(at: MonoTime, seconds: f64) -> MonoTime {
    at.saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

fn seconds(from: MonoTime, to: MonoTime) -> f64 {
    to.saturating_since(from).as_secs_f64()
}
