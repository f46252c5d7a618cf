//! When the replica had work of ours, and how much of it is applied by now.
//!
//! What is acknowledged over time is what the replica can, as long as it is never without work.
//! Large statements that fit into the window one at a time leave it idle from the end of one until
//! the next has been let in, which takes until the end is seen. Such a sample is too low; followed,
//! it makes the window smaller still, so that no two fit for good: statements of 0.7 of a threshold's
//! work used 0.82 of a replica, whatever it could. So a sample that is to be the truth is taken over
//! the time in which the replica had work of ours: from when a heartbeat was applied, or from when the
//! first work behind it had arrived, if that is later, until the next heartbeat is applied.
//!
//! By the same times it is told what is applied though nobody has seen it yet: since the newest
//! heartbeat that it shows, the replica has applied what came behind, at its rate. The rate may have
//! grown while there was nothing to try it on; what was delivered in such times bounds it.
//!
//! The latter is told of nothing that runs for long: it commits when nobody can know. The former is. Behind
//! transactions of seconds a replica has next to nothing to do until the next one commits, and behind each it
//! has a queue: then a sample of all of the time is too low as well. A small app beside them writes all the
//! time, so there is always some work of ours; but where a heartbeat finds no queue the replica did that, at its
//! rate, and had nothing to do else.
//!
//! Beside other controllers it is their work that the replica does between our statements, and nobody knows
//! when it had none. Where work runs for long there may have been none of anybody's: as often as a heartbeat
//! finds no queue. Such times do not lower the rate, and they raise it no more than statements' do: for that
//! they are known too badly.
//!
//! Source: Cardwell et al., BBR (2016), which leaves out of its samples the time in which a sender
//! had nothing to send.

use super::{Aim, Flow, SPAN_MIN, acknowledging, later, seconds};
use crate::MonoTime;

/// Work that runs for this part of the threshold runs for long.
const RUNS_LONG: f64 = 0.5;

impl Aim {
    /// Whether it can be told when work commits.
    pub(super) fn runs_short(&self) -> bool {
        self.service <= RUNS_LONG * self.threshold
    }
}

/// What had been acknowledged at some time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack {
    pub(super) at: MonoTime,
    /// In rows.
    pub(super) acked: f64,
    /// For so many seconds the replica had had work of ours.
    pub(super) busy: f64,
    /// Whether a queue stood.
    pub(super) queued: bool,
}

#[derive(Debug)]
pub(super) struct Busy {
    /// When the newest heartbeat that is shown was applied, as far as is known.
    applied_at: MonoTime,
    seconds: f64,
    /// Rows in a second of it, at the newest sample.
    per_s: f64,
}

impl Busy {
    pub(super) fn new(now: MonoTime) -> Self {
        Self { applied_at: now, seconds: 0.0, per_s: 0.0 }
    }

    /// For so long there has been work of ours at the replica.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Rows a second of that time.
    pub(super) fn per_s(&self) -> f64 {
        self.per_s
    }

    /// A heartbeat was applied. The first work behind the one before it had `arrived_at` the
    /// replica; `None`: there was none.
    pub(super) fn applied(&mut self, at: MonoTime, arrived_at: Option<MonoTime>) {
        let at = at.max(self.applied_at);
        if let Some(arrived_at) = arrived_at {
            self.seconds += seconds(self.applied_at.max(arrived_at), at);
        }
        self.applied_at = at;
    }

    /// So many rows were acknowledged since there had been work for `before` seconds, within `span`
    /// seconds. A time that is too short to be told is left for the whole of it.
    pub(super) fn measure(&mut self, rows: f64, (before, span): (f64, f64), aim: &Aim) {
        let busy = self.seconds - before;
        let told = busy >= SPAN_MIN * aim.heartbeat;
        self.per_s = rows / if told { busy } else { span };
    }

    /// For how long it will have been at what it has not shown yet by the time `at`; the first of
    /// that had `arrived_at` the replica.
    pub(super) fn since(&self, at: MonoTime, arrived_at: MonoTime) -> f64 {
        seconds(self.applied_at.max(arrived_at), at)
    }

    /// For how long it will have been at what came behind the newest heartbeat that it shows, when what
    /// commits at such a time arrives, so many seconds later.
    pub(super) fn applied_for(&self, commits_at: MonoTime, base: f64) -> f64 {
        seconds(self.applied_at, later(commits_at, base))
    }
}

/// What runs for this part of what acknowledging takes is no transaction of seconds. Large statements
/// that go round leave gaps on purpose.
const STATEMENT: f64 = 0.5;

/// A usual large transaction that takes this part of the threshold leaves gaps that are as long.
const LARGE: f64 = 0.4;

/// Beside others the replica was idle for so much of the time at most.
const IDLE_MAX: f64 = 0.2;

impl Flow {
    /// No queue stands: the replica has done what was acknowledged last, at its rate, and had nothing to do
    /// else. For large transactions of seconds; of many that are small chance makes the mean.
    pub(super) fn note_idle(&mut self, aim: &Aim) {
        let lump = self.lump_time(aim);
        if lump < LARGE * aim.threshold || lump > aim.running {
            return;
        }
        let mut newest = self.acks.iter_mut().rev();
        let (Some(last), Some(before)) = (newest.next(), newest.next()) else { return };
        let had = last.busy - before.busy;
        let idle = (had - (last.acked - before.acked) / self.rate).max(0.0);
        let idle = runs_long(aim) * idle;
        self.busy.seconds -= idle;
        last.busy -= idle;
    }

    /// The newest sample, in rows a second of the time in which the replica had work.
    pub(super) fn while_busy(&self, sample: f64, aim: &Aim) -> f64 {
        if aim.others.is_none() {
            return self.busy.per_s().max(sample);
        }
        let all: f64 = self.acks.iter().map(|_| 1.0).sum();
        let clear: f64 = self.acks.iter().filter(|ack| !ack.queued).map(|_| 1.0).sum();
        let idle = (runs_long(aim) * (clear / all.max(1.0))).min(IDLE_MAX);
        (sample / (1.0 - idle)).min(self.rate.max(sample))
    }
}

/// How far work that runs is transactions of seconds, 0 to 1.
fn runs_long(aim: &Aim) -> f64 {
    let running = aim.running / acknowledging(aim);
    ((running - STATEMENT) / (1.0 - STATEMENT)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::growth::tests::aim;
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// At so many rows a second beside others who have 500, and a queue stood at one heartbeat of two.
    fn while_busy(rate: f64, sample: f64, running: f64, others: Option<f64>) -> f64 {
        let mut flow = Flow::new(at(0), Some(rate));
        for queued in [true, false, true, false] {
            flow.acks.push_back(Ack { at: at(0), acked: 0.0, busy: 0.0, queued });
        }
        flow.while_busy(sample, &Aim { others, ..aim(running) })
    }

    #[test]
    fn beside_others_what_no_queue_was_found_in_does_not_lower_the_rate() {
        let others = Some(500.0);
        assert_eq!(
            while_busy(500.0, 400.0, 5.0, others),
            500.0,
            "nothing stood for half of the time"
        );
        assert_eq!(while_busy(500.0, 200.0, 5.0, others), 250.0);
        assert_eq!(while_busy(500.0, 600.0, 5.0, others), 600.0, "nor does it raise it");
        assert_eq!(
            while_busy(500.0, 400.0, 0.0, others),
            400.0,
            "statements come as they are let in"
        );
        assert_eq!(while_busy(500.0, 400.0, 5.0, None), 400.0, "its own work is known");
    }

    /// At 1,000 rows a second; since the look before, a second ago, 200 rows were acknowledged.
    fn idle_for(running: f64, lump: f64) -> f64 {
        let mut flow = Flow::new(at(0), Some(1_000.0));
        flow.busy.seconds = 1.0;
        let ack = Ack { at: at(0), acked: 0.0, busy: 0.0, queued: true };
        flow.acks.push_back(ack);
        flow.acks.push_back(Ack { at: at(1_000), acked: 200.0, busy: 1.0, queued: false });
        flow.note_idle(&Aim { lump, ..aim(running) });
        let newest = flow.acks.back().map_or(0.0, |ack| ack.busy);
        assert_eq!(newest, flow.busy.seconds());
        1.0 - newest
    }

    #[test]
    fn between_large_transactions_a_small_app_keeps_no_replica_at_work() {
        let told = |running, lump, expected: f64| (idle_for(running, lump) - expected).abs() < 1e-9;
        assert!(told(5.0, 1_000.0, 0.8), "{}", idle_for(5.0, 1_000.0));
        assert!(told(0.0, 1_000.0, 0.0), "statements come as they are let in");
        assert!(told(5.0, 100.0, 0.0), "of many small ones the mean is right");
        assert!(told(0.5, 5_000.0, 0.0), "it is the gate that keeps such apart");
    }

    #[test]
    fn the_time_between_large_statements_is_none_of_the_replicas() {
        let mut busy = Busy::new(at(0));
        busy.applied(at(1_000), None);
        assert_eq!(busy.seconds(), 0.0, "nothing was there");
        busy.applied(at(2_000), Some(at(1_300)));
        busy.applied(at(2_100), None);
        busy.applied(at(3_000), Some(at(2_300)));
        assert!((busy.seconds() - 1.4).abs() < 1e-9, "{busy:?}");
        busy.applied(at(3_500), Some(at(2_900)));
        assert!((busy.seconds() - 1.9).abs() < 1e-9, "it had come before: {busy:?}");
        assert!((busy.since(at(4_000), at(3_800)) - 0.2).abs() < 1e-9);
        assert!((busy.since(at(4_000), at(3_400)) - 0.5).abs() < 1e-9);
    }
}
