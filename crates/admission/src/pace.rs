//! The adaptive pace: how much work may be on its way to the replicas.
//!
//! # Model
//!
//! Replication is a network path. The primary puts committed work (rows) into a stream; a replica
//! applies it in order, at a capacity C that nobody tells and that changes; other writes, which no
//! rule gates, take their part of it. Sluice's heartbeats travel in the same stream. So a heartbeat
//! that a replica shows is an
//! *acknowledgement*: whatever had completed before that heartbeat was begun has been applied. With
//!
//! - `completed(k)`: the work that had completed when heartbeat k was begun ([`ledger`]),
//! - `acked`: `completed(k)` of the newest heartbeat k that the replica shows,
//! - *outstanding* = work admitted and not acknowledged: what is still being executed, and what has
//!   completed since,
//! - *age* of heartbeat k: from its commit until it was seen, which is the lag at that time; it is
//!   a queue and the *base*, the way to the replica and of its answers back ([`base`]),
//!
//! outstanding is the data in flight, acknowledged work over time is the delivery rate R, and by
//! Little's law outstanding = R × (queue + way), where *way* is what passes without any queue: one
//! heartbeat interval and one probe interval, or what late answers take (`flow::looking`), for
//! acknowledging, c; K, the time that a heartbeat's
//! own commit takes; S, the mean time from an admission to its commit; and the base. S is
//! milliseconds for statements and seconds for transactions. K is as long as a primary waits for
//! somebody afar to acknowledge (semi-synchronous replication); it is no lag.
//!
//! # Law
//!
//! For every replica that counts ([`flow`]), with T the threshold, L the lag, q = L − base the
//! queue, and q* the queue aimed for:
//!
//! ```text
//!   q*     = T/5, at least c/2 and at most 0.85 c, but 0.4 (T − base) at most; and most of the
//!            time that a usual large statement takes on top, up to (T − base)/2
//!   pace   = R · (1 + κ·e)         e = 1 − q/q*; three times as steep for e < 0; 0 from L ≥ T
//!   window = R · (q* + way − 0.15 c)   nothing is admitted while outstanding ≥ window
//! ```
//!
//! A statement of more than a third of the window goes by the clock: once what is ahead of it will
//! have been applied, when it commits, to where the lag stays below 0.9 T ([`flow`], `room`).
//!
//! Acknowledging takes c at most and half of that on the mean, and the queue bridges the rest: a
//! window for all of c keeps the replica no busier, and is what a fall of capacity leaves behind.
//!
//! The pace steers the queue at the replica to q*, where pace = R for any share of the replica that
//! background writes leave. The window bounds what a replica that stalls can receive before anybody
//! can know. The pace paces inside the window (a token bucket of [`BURST`]), so an acknowledgement
//! opens no flood gate. The slowest replica governs: the lowest pace and the smallest room of all
//! that count. A replica that stops counting stops governing; one that returns goes on from its own
//! rate and the cluster's. Beside both, each app has its part of the pace for certain
//! ([`crate::claims`]), and a large head waits for who is before it and away for a moment
//! ([`crate::patience`]).
//!
//! A replica may have a threshold T of its own; then the law holds for it with that (`flow::own`).
//! Where a replica applies several transactions at once, what the usual large statement takes by
//! itself is no queue: it counts to the base (`flow::beside`).
//!
//! R is the delivery rate while a queue stands at the replica (q ≥ 0.15 q* for certain) and either
//! somebody waits most of the time or the gate is shut: then the replica is the bottleneck and the
//! sample is the truth. (A lower sample is, if the queue is more than half of what a usual large
//! statement takes, or a quarter of q*: the one that is being applied stands behind nothing, and
//! while the rate is found work of seconds ago is acknowledged, at the rate of then.) Where transactions
//! of seconds run, chance says how much commits in the time of a sample: higher and lower ones are
//! followed alike there, with 3.5 s, once the rate was found (`flow::follow`). Time in which
//! the replica had nothing of ours does not count: between large statements that go one at a time it
//! waits for us (`flow::busy`). A sample spans four of the usual large statements: while one is
//! applied nobody else's writes are, so that a second of it tells of more than is ours. R follows a
//! higher sample at once and a lower one with a time constant of 3.5 s, since a pause of a second
//! (a stall, a large transaction) is not a lower capacity, and the window and the gate hold
//! meanwhile. With no queue and statements waiting, capacity is unknown
//! but larger, and R grows by half in the time of the way: near by, from the first guess of 100 to
//! 20,000 rows a second in 5 s, from 300 to 1,000 in a second; by up to nine tenths where
//! most of the way is work at the primary and the rate was never found yet; and once it was found,
//! by no more than leaves a queue of a quarter of what the way leaves of T, at first (`flow::growth`).
//! Where its appliers are looked at, the time for which these have nothing to do tells how much more a
//! replica can, whatever the lag says (`flow::idle`).
//! Until R was found the way that counts for growth is that of what is found running. What is delivered
//! bounds it: R
//! grows no further above that than growth leads within the way and the time of a sample. Only the time
//! since the last look at which a queue stood for certain counts for growth. While nobody waits
//! (application-limited) a sample can raise R, never lower it. A statement that overfills the
//! window, and work that runs for longer than was usual, says nothing about R: whoever waits then
//! waits for that, and R does not grow. A rate that was not in use for ten seconds and more is
//! an old one when somebody waits again ([`crate::aged`]).
//!
//! A statement whose digest nobody has seen is charged [`PRUDENT`] of the rate, until one has completed: a
//! job that begins lets one in, not as many as its guess of a row would, and the next of its kind when
//! that has completed ([`crate::slow_start`]). What it was charged too much is given back, and the more of
//! an app's new texts have been seen the less the next is feared ([`crate::costs`]). Whoever waits for
//! what is only feared tells nothing of R: where R grew for it, fear, which is a part of R, grew with it,
//! and once all was known there was room for everybody at once.
//!
//! # Stability
//!
//! Around q*, dq/dt = pace/C − 1 = κ(1 − q/q*), seen after about the way: loop gain κ/q* · way. κ
//! is 0.25 · c/way, so that the gain is the same for work of any length and replicas at any
//! distance; so is growth, which takes the time of the way. With the defaults (q* = 0.2 s, c =
//! 0.35 s) the gain is 0.44 below q* and 1.3 above, under the π/2 at which an integrator with delay
//! begins to swing. Raising q* raises the lag and what a stall leaves behind, lowering it
//! empties the replica when capacity rises; a fifth of the threshold held both in simulation
//! (docs/SIMULATE.md tells the scenarios, and seeds that no constant was chosen on). What bounds q*
//! for short and long thresholds is what can be seen: below c/2 a queue is not told from none;
//! while one far above c builds up, nothing tells that there is enough, and growth compounds. Large
//! statements make lag in steps of their own size: q* grows by most of the time that the usual
//! large one takes, up to half the threshold. Usual is the mean over rows, not over statements: a
//! small app's statements may come between two large ones by the thousand, and those are no
//! smaller for it. Forgotten between them, a large one was a queue that everybody was braked for.
//!
//! # Beside other controllers
//!
//! All in front of one primary see the same lag, and each only what it delivers itself. Their rates
//! are moved to the parts that are due to each, in a way that leaves the sum as it is ([`share`]).
//! A sample that is higher is then followed like a lower one, with 3.5 s: of many that follow luck
//! at once, whoever has the smallest part would gain. A statement takes the time that the whole of
//! the replica needs for it, not the part of it that is one's own: with its own rate alone, whoever
//! has the smallest part would aim for the longest queue. Several that have large statements
//! let them through in turns ([`rota`]).
//!
//! # Without heartbeats of our own
//!
//! A replica that tells its lag itself acknowledges nothing. R is then steered by the lag alone: it
//! grows by a tenth a second below q* while statements wait, and falls with the excess above it
//! ([`flow`]).
//!
//! Sources: Brakmo and Peterson, TCP Vegas (1995); Jin, Wei and Low, FAST TCP (2004); Cardwell et
//! al., BBR (2016); RFC 7661 (2015) for rates that were not in use.

mod base;
mod by_turns;
mod debt;
mod exchange;
mod flow;
mod ledger;
mod rota;
mod served;
mod share;
mod sizes;
mod view;
mod wishes;

use std::collections::BTreeMap;
use std::time::Duration;

use self::by_turns::Goes;
use self::flow::{Flow, Look};
use self::ledger::Ledger;
pub(crate) use self::ledger::{Charge, Cost};
use self::rota::{Held, Small};
pub use self::rota::{Round, Turn};
use self::served::Served;
pub use self::share::{Demand, Share};
use self::sizes::Sizes;
pub use self::view::{FlowView, PaceView};
pub(crate) use self::wishes::Wishes;
use crate::claims::Speeds;
use crate::lag::{LagReading, ReplicaKey};
use crate::{AdaptivePacing, MonoTime};

/// Tokens collected at most, as time at the present pace. More would be a burst, less would lose
/// capacity to a shell whose timer is late.
const BURST: Duration = Duration::from_millis(20);

/// Shortest time between two looks at the tokens: at most 1,000 wake-ups a second.
const TICK: Duration = Duration::from_millis(1);

/// Flows of replicas that do not count are forgotten after this long.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// Work of one cluster on its way to its replicas.
#[derive(Debug)]
pub(crate) struct Pace {
    config: AdaptivePacing,
    /// The threshold of the lag.
    threshold: Duration,
    ledger: Ledger,
    flows: BTreeMap<ReplicaKey, Flow>,
    /// Those of `flows` that count now.
    governing: Vec<ReplicaKey>,
    /// Cost that may be admitted; below zero: debt.
    tokens: f64,
    /// Tokens are collected for a turn of this cost that is kept for somebody.
    kept: f64,
    at: MonoTime,
    /// Sizes of admissions, and of those that go by turns.
    sizes: Sizes,
    large_sizes: Sizes,
    served: Served,
    /// What another controller had found out, for the first replica that is seen.
    handed_over: Option<f64>,
    /// What is due to this controller beside others, and since when.
    share: Option<(MonoTime, Share)>,
    /// Up to when it has moved there.
    moved_at: MonoTime,
    /// What is owed to it of what the others were given, in rows.
    owed: f64,
    /// Its turn for large statements beside others, and since when.
    turn: Option<(MonoTime, Turn)>,
    /// Large statements that wait for its turn beside others.
    held: Held,
    /// What is let through in smaller ones meanwhile.
    small: Small,
    /// When whoever had no room last is to be looked at again.
    look_at: Option<MonoTime>,
    /// Completed work that was larger than a window.
    oversize: u64,
}

impl Pace {
    pub(crate) fn new(config: AdaptivePacing, threshold: Duration, now: MonoTime) -> Self {
        Self {
            config,
            threshold,
            ledger: Ledger::default(),
            flows: BTreeMap::new(),
            governing: Vec::new(),
            tokens: 1.0,
            kept: 0.0,
            at: now,
            sizes: Sizes::default(),
            large_sizes: Sizes::default(),
            served: Served::default(),
            handed_over: None,
            share: None,
            moved_at: now,
            owed: 0.0,
            turn: None,
            held: Held::default(),
            small: Small::default(),
            look_at: None,
            oversize: 0,
        }
    }

    /// Live reload: what is known of replicas stays.
    pub(crate) fn reconfigure(&mut self, config: AdaptivePacing, threshold: Duration) {
        self.config = config;
        self.threshold = threshold;
    }

    pub(crate) fn heartbeat_begun(&mut self, now: MonoTime, seq: u64) {
        self.ledger.begin_epoch(now, seq);
    }

    /// The replicas were looked at.
    pub(crate) fn handle_progress(&mut self, now: MonoTime, reading: &LagReading) {
        self.collect_tokens(now);
        let fallback = self.slowest().map(Flow::rate).or(self.handed_over);
        self.governing.clear();
        let aim = self.aim();
        for progress in &reading.governing {
            self.governing.push(progress.replica);
            let flow =
                self.flows.entry(progress.replica).or_insert_with(|| Flow::new(now, fallback));
            let look = Look {
                now,
                answered_at: progress.answered_at,
                asked_at: progress.asked_at,
                lag: progress.lag,
                threshold: progress.threshold,
                shown: progress.shown,
                committed_at: progress.committed_at,
                appliers: progress.appliers,
            };
            flow.handle(&look, &self.ledger, &aim);
        }
        self.move_to_share(now);
        self.flows.retain(|_, flow| now.saturating_since(flow.seen_at()) < FORGET_AFTER);
        let shown = self.flows.values().map(Flow::shown).min().flatten();
        self.ledger.forget_before(shown);
    }

    /// The appliers of a replica were looked at.
    pub(crate) fn handle_appliers(
        &mut self,
        now: MonoTime,
        replica: ReplicaKey,
        are_at_work: bool,
    ) {
        if let Some(flow) = self.flows.get_mut(&replica) {
            flow.handle_appliers(now, are_at_work);
        }
    }

    /// Whether work of this cost may be admitted now. A no is remembered: somebody is waiting for
    /// room.
    pub(crate) fn has_room(&mut self, now: MonoTime, cost: Cost) -> bool {
        self.collect_tokens(now);
        self.look_at = None;
        match self.goes(now, cost) {
            Goes::Anytime => {}
            Goes::InTurn(in_turn) => return self.has_room_in_turn(now, &in_turn),
            Goes::Later(at) => {
                self.wait_for_turn(now, at);
                return false;
            }
        }
        let mut room = true;
        let aim = self.aim();
        let out_of_tokens = self.tokens <= 0.0;
        let feared = self.ledger.feared(now, FEARED_FOR);
        let would_be_out = self.tokens + feared <= 0.0;
        let lowest = self.per_s().unwrap_or(f64::INFINITY);
        for replica in &self.governing {
            let Some(flow) = self.flows.get_mut(replica) else { continue };
            let paces = flow.pace(&aim) <= lowest;
            if (out_of_tokens && paces) || !flow.has_room(&self.ledger, &aim, cost, now) {
                // A large statement that does not fit beside others says nothing about the rate,
                // and neither does one that may be large.
                if (would_be_out && paces) || flow.is_full(&self.ledger, &aim, now) {
                    flow.limit(now, self.threshold);
                }
                room = false;
            }
        }
        room
    }

    /// Whether there is room for a small one, though perhaps for none that is large.
    pub(crate) fn has_any_room(&self, now: MonoTime) -> bool {
        let aim = self.aim();
        self.tokens > 0.0
            && self
                .flows_that_count()
                .all(|flow| flow.has_room(&self.ledger, &aim, Cost::known(0.0), now))
    }

    /// Until it is told otherwise, tokens are collected for a turn of this cost: nobody else takes
    /// them before.
    pub(crate) fn keep(&mut self, cost: f64) {
        self.kept = cost;
    }

    /// Work of this cost is admitted, whether or not there was room.
    pub(crate) fn admit(&mut self, now: MonoTime, cost: Cost) -> Charge {
        self.collect_tokens(now);
        self.tokens -= cost.rows;
        self.remember_size(cost.rows);
        self.note_in_turn(now, cost);
        self.ledger.admit(now, cost)
    }

    /// Takes an admission into the size of the usual large statement.
    fn remember_size(&mut self, cost: f64) {
        let rate = self.slowest().map_or(0.0, Flow::rate);
        self.sizes.remember(cost, rate * LUMP_MEMORY.as_secs_f64());
    }

    /// A statement that nobody paced is admitted: it takes no tokens, but it is on its way.
    pub(crate) fn note(&mut self, now: MonoTime, cost: Cost) -> Charge {
        self.ledger.admit(now, cost)
    }

    /// Admitted work turns out larger while it still runs.
    pub(crate) fn charge(&mut self, charge: &mut Charge, cost: f64) {
        self.tokens -= self.ledger.charge(charge, cost);
    }

    /// Admitted work has completed, at this cost.
    pub(crate) fn complete(&mut self, now: MonoTime, charge: Charge, cost: f64) {
        self.end(now, charge, cost, LARGE * self.sizes.usual());
    }

    /// Work that was admitted bit by bit has completed by now.
    pub(crate) fn complete_bits(&mut self, now: MonoTime, charge: Charge) {
        self.end(now, charge, charge.cost(), f64::INFINITY);
    }

    fn end(&mut self, now: MonoTime, charge: Charge, cost: f64, large_from: f64) {
        self.tokens -= cost - charge.cost();
        self.count_oversize(cost);
        let took = now.saturating_since(charge.admitted_at());
        self.served.handle(took, cost, self.slowest().map_or(0.0, Flow::rate));
        self.ledger.complete(now, charge, cost, large_from);
    }

    /// Whether so much that was charged for fear has held others back.
    pub(crate) fn held_back(&self, feared: f64) -> bool {
        feared > self.per_s().unwrap_or(f64::INFINITY) * TICK.as_secs_f64()
    }

    /// Admitted work was taken back before it ran.
    pub(crate) fn take_back(&mut self, charge: Charge) {
        self.tokens += charge.cost();
        self.held.takes_back(charge.cost());
        self.ledger.take_back(charge);
    }

    /// Cost a second that is admitted while there is room in the window; `None` if nothing governs.
    pub(crate) fn per_s(&self) -> Option<f64> {
        let aim = self.aim();
        self.flows_that_count().map(|flow| flow.pace(&aim)).min_by(f64::total_cmp)
    }

    /// How fast it goes, and could.
    pub(crate) fn speeds(&self) -> Speeds {
        Speeds { pace: self.per_s().unwrap_or(0.0), rate: self.rate().unwrap_or(0.0) }
    }

    /// The threshold of the lag.
    pub(crate) fn threshold(&self) -> Duration {
        self.threshold
    }

    /// What a statement may cost of which nothing is known, in rows: one is no harm, and the next
    /// waits for it.
    pub(crate) fn prudent_cost(&self) -> f64 {
        self.slowest().map_or(0.0, |flow| flow.rate() * PRUDENT.as_secs_f64())
    }

    /// The rate of the slowest replica, in rows a second.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.slowest().map(Flow::rate)
    }

    /// Whether the delivery rate has been measured, or is still a guess.
    pub(crate) fn is_measured(&self) -> bool {
        self.flows_that_count().all(Flow::is_measured)
    }

    /// The rate of the slowest replica, if it is more than a guess.
    pub(crate) fn found_rate(&self) -> Option<f64> {
        self.slowest().filter(|flow| flow.is_known()).map(Flow::rate)
    }

    /// How long work runs on the primary: the mean over rows.
    pub(crate) fn service(&self) -> Duration {
        Duration::try_from_secs_f64(self.served.mean()).unwrap_or_default()
    }

    /// When there may be room by the passing of time alone; `None` if only an acknowledgement makes
    /// some.
    pub(crate) fn next_room(&self, now: MonoTime) -> Option<MonoTime> {
        let per_s = self.per_s()?;
        if per_s <= 0.0 || self.tokens > 0.0 {
            return None;
        }
        let pays = self.pays(per_s);
        let wait = Duration::try_from_secs_f64(-self.tokens / pays).unwrap_or(Duration::MAX);
        Some(now.saturating_add(wait.max(TICK)))
    }

    fn collect_tokens(&mut self, now: MonoTime) {
        let passed = now.saturating_since(self.at);
        self.at = now;
        let Some(per_s) = self.per_s() else {
            self.tokens = 1.0;
            return;
        };
        let most = burst(per_s).max(self.kept);
        let owed = self.tokens.max(-self.debt_max(per_s));
        let fills = if owed < 0.0 { self.pays(per_s) } else { per_s };
        self.tokens = (owed + fills * passed.as_secs_f64()).min(most);
    }

    fn flows_that_count(&self) -> impl Iterator<Item = &Flow> {
        self.governing.iter().filter_map(|replica| self.flows.get(replica))
    }

    fn slowest(&self) -> Option<&Flow> {
        self.flows_that_count().min_by(|a, b| a.rate().total_cmp(&b.rate()))
    }

    fn aim(&self) -> flow::Aim {
        flow::Aim {
            threshold: self.threshold.as_secs_f64(),
            lenient: None,
            heartbeat: self.config.heartbeat_interval.as_secs_f64(),
            probe: self.config.probe_interval.as_secs_f64(),
            looking: self.config.probe_interval.as_secs_f64(),
            lump: self.sizes.usual(),
            service: self.served.mean(),
            running: self.served.running(),
            others: self.share.map(|(_, share)| share.others_per_s.max(0.0)),
            others_lump: self.share.map_or(0.0, |(_, share)| share.large_rows),
        }
    }
}

/// From this part of the usual large statement on work is large.
const LARGE: f64 = 0.5;

/// What a statement of which nothing is known is charged, as time at the rate: more than half of a
/// window, so that two are not on their way before one is known.
const PRUDENT: Duration = Duration::from_millis(600);

/// Tokens taken for fear are collected anew within this time.
const FEARED_FOR: Duration = Duration::from_secs(1);

/// Tokens at most, at this pace.
fn burst(per_s: f64) -> f64 {
    per_s * BURST.as_secs_f64() + 1.0
}

/// The size of the usual large statement is remembered for so many rows, as time at the rate.
const LUMP_MEMORY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
