//! The gate: the signals that must be healthy before a statement may run, and the line in front of
//! it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::pacing::{Pacer, Rounds};
use crate::patience::Patience;
use crate::request::Lane;
use crate::ring::{Head, Place, Ring};
use crate::signal::{Signal, SignalState};
use crate::{
    AppKey, BudgetUse, Cause, GateConfig, GateKey, MonoTime, Reason, RuleLimit, SignalKey,
};

/// A set of signals, and who waits for it.
#[derive(Debug)]
pub(crate) struct Gate {
    signals: Vec<SignalKey>,
    phase: Phase,
    pub(crate) ring: Ring,
    pub(crate) rounds: Rounds,
    pub(crate) patience: Patience,
    pub(crate) pacer: Pacer,
    /// The lag is one of its signals and the pace is adaptive.
    pub(crate) paced: bool,
    /// Whoever waits is let through as there is room, and not at a ramped rate: it is paced, or one
    /// of its signals limits the statements in flight.
    pub(crate) by_room: bool,
    /// Until then statements queue although nobody waits. After a reload all waiters come back, one
    /// by one: the first of them must not make the gate look free to the others.
    crowd_until: MonoTime,
    /// Who asked last without waiting, and the last before it that was somebody else.
    askers: [Option<(MonoTime, AppKey)>; 2],
    /// Beside a line that the ramp moves: somebody in it has had a turn since an asker had one.
    pub(crate) askers_turn: bool,
    /// The signal whose pace last had no room for somebody here.
    pub(crate) held_by: Option<SignalKey>,
}

/// Who asks without waiting is there for as long after: its next question is about to come.
const ASKER_STAYS: Duration = Duration::from_secs(1);

/// ```text
///            every signal lets through: the release ramp starts
///   Shut ──────────────────────────────────────────────────────▶ Open { since }
///     ◀──────────────────────────────────────────────────────────
///            the first signal in order that does not is the obstacle
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Phase {
    Open { since: MonoTime },
    Shut(Obstacle),
}

/// What stands in a statement's way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Obstacle {
    pub(crate) reason: Reason,
    pub(crate) cause: Option<Cause>,
    pub(crate) budget: Option<BudgetUse>,
    pub(crate) limit: Option<RuleLimit>,
}

impl Obstacle {
    pub(crate) const fn plain(reason: Reason) -> Self {
        Self { reason, cause: None, budget: None, limit: None }
    }
}

pub(crate) type Signals = BTreeMap<SignalKey, Signal>;

impl Gate {
    pub(crate) fn new(config: &GateConfig, signals: &Signals, now: MonoTime) -> Self {
        let phase = match obstacle(&config.signals, signals, now) {
            Some(obstacle) => Phase::Shut(obstacle),
            None => Phase::Open { since: now },
        };
        let mut pacer = Pacer::default();
        pacer.open(now);
        Self {
            signals: config.signals.clone(),
            phase,
            ring: Ring::default(),
            rounds: Rounds::default(),
            patience: Patience::default(),
            pacer,
            paced: false,
            by_room: false,
            crowd_until: MonoTime::ZERO,
            askers: [None, None],
            askers_turn: false,
            held_by: None,
        }
    }

    /// The same gate, of whose line nobody is left.
    pub(crate) fn without_line(&self, signals: &Signals, now: MonoTime) -> Self {
        let key = GateKey(0);
        let mut gate = Self::new(&GateConfig { key, signals: self.signals.clone() }, signals, now);
        gate.inherit(self);
        gate.paced = self.paced;
        gate.by_room = self.by_room;
        gate
    }

    /// Whether this signal is one of its own.
    pub(crate) fn depends_on(&self, signal: SignalKey) -> bool {
        self.signals.contains(&signal)
    }

    /// Its signals, in its order.
    pub(crate) fn signals(&self) -> &[SignalKey] {
        &self.signals
    }

    /// The signal that shut it.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match self.phase {
            Phase::Open { .. } => None,
            Phase::Shut(obstacle) => obstacle.cause,
        }
    }

    /// Takes over from the gate of the same signals how long it has been open, if both are.
    pub(crate) fn inherit(&mut self, old: &Self) {
        let both_open = self.open_since().is_some() && old.open_since().is_some();
        if both_open && self.signals == old.signals {
            self.phase = old.phase;
            self.pacer = old.pacer;
            self.held_by = old.held_by;
        }
    }

    /// Whether statements that ask here depend on a signal at all.
    pub(crate) fn has_signals(&self) -> bool {
        !self.signals.is_empty()
    }

    /// Everybody is about to come back: see `crowd_until`.
    pub(crate) fn expect_crowd(&mut self, now: MonoTime, for_: Duration) {
        if self.has_signals() {
            self.crowd_until = now.saturating_add(for_);
        }
    }

    /// Somebody asks who does not wait.
    pub(crate) fn note_asker(&mut self, now: MonoTime, app: AppKey) {
        match &mut self.askers {
            [Some((at, last)), _] if *last == app => *at = now,
            [last, before] => *before = last.replace((now, app)),
        }
    }

    /// Whether another app shares this gate: in line, absent for a moment, or asking.
    pub(crate) fn has_rival(&self, now: MonoTime, lane: Lane) -> bool {
        let stays = |at: MonoTime| now.saturating_since(at) <= ASKER_STAYS;
        let mut askers = self.askers.iter().flatten();
        askers.any(|(at, app)| *app != lane.app && stays(*at)) || self.ring.has_rival(now, lane)
    }

    /// Whether somebody who does not wait may have a check of the ramp now; then it is spent.
    pub(crate) fn take_turn_of_askers(&mut self, now: MonoTime, per_s: u32) -> bool {
        self.pacer.catch_up(now);
        let has_turn =
            if self.ring.is_empty() { self.pacer.is_due_soon(now) } else { self.askers_turn };
        if !has_turn {
            return false;
        }
        self.askers_turn = false;
        self.pacer.spend(per_s);
        true
    }

    /// Looks at the signals. The gate must be looked at before any of the answers below is used.
    pub(crate) fn look(&mut self, signals: &Signals, now: MonoTime) {
        match (obstacle(&self.signals, signals, now), self.phase) {
            (Some(obstacle), Phase::Open { .. } | Phase::Shut(_)) => {
                self.phase = Phase::Shut(obstacle);
            }
            (None, Phase::Shut(_)) => {
                self.phase = Phase::Open { since: now };
                self.pacer.open(now);
            }
            (None, Phase::Open { .. }) => {}
        }
    }

    /// Since when the gate is open; `None` while it is shut.
    pub(crate) fn open_since(&self) -> Option<MonoTime> {
        match self.phase {
            Phase::Open { since } => Some(since),
            Phase::Shut(_) => None,
        }
    }

    /// Who is let through next: whoever is owed what the others leave, else whoever has its turn.
    pub(crate) fn head(&self) -> Option<Head> {
        self.owed().or_else(|| self.ring.head())
    }

    /// Who waits here and is not passed by anybody any more.
    pub(crate) fn owed(&self) -> Option<Head> {
        let (lane, ticket) = self.patience.owed()?;
        self.ring.next_of(lane).filter(|head| head.ticket == ticket)
    }

    /// Whether it is open, and paced by the lag: then claims count.
    pub(crate) fn heeds_claims(&self) -> bool {
        self.paced && self.open_since().is_some()
    }

    /// What makes a statement that can wait queue here; `None` if it is checked on arrival.
    pub(crate) fn contention(&self, now: MonoTime) -> Option<Obstacle> {
        match self.phase {
            Phase::Shut(obstacle) => Some(obstacle),
            Phase::Open { .. } if !self.ring.is_empty() || now < self.crowd_until => {
                Some(Obstacle::plain(Reason::Paced))
            }
            Phase::Open { .. } => None,
        }
    }

    /// Whether nothing is in the way here but those who wait.
    pub(crate) fn has_only_a_line(&self, now: MonoTime) -> bool {
        self.open_since().is_some() && !self.ring.is_empty() && now >= self.crowd_until
    }

    /// What refuses a statement that cannot wait; `None` if it is checked on arrival.
    pub(crate) fn contention_now(&self) -> Option<Obstacle> {
        match self.phase {
            Phase::Shut(obstacle) => Some(obstacle),
            Phase::Open { .. } if !self.ring.is_empty() => Some(Obstacle::plain(Reason::Paced)),
            Phase::Open { .. } => None,
        }
    }

    /// Why somebody waits in line here who lost a check at `last_loss`: the dice only if that was
    /// since the gate opened. Of checks that are drawn ahead it is only known that they were lost.
    pub(crate) fn keeps_waiting(
        &self,
        last_loss: Option<MonoTime>,
        lane: Lane,
        place: Place,
    ) -> Obstacle {
        match self.phase {
            Phase::Shut(obstacle) => obstacle,
            Phase::Open { since }
                if last_loss.is_some_and(|at| at >= since) || self.ring.has_lost(lane, place) =>
            {
                Obstacle::plain(Reason::Ratio)
            }
            Phase::Open { .. } => Obstacle::plain(Reason::Paced),
        }
    }

    /// Whether somebody waits who could be let through.
    pub(crate) fn has_line(&self) -> bool {
        !self.ring.is_empty() && self.open_since().is_some()
    }

    /// When its dice have been thrown that must lose before somebody wins, if only that is waited
    /// for.
    pub(crate) fn next_win(&self) -> Option<MonoTime> {
        self.rounds.until().filter(|_| self.has_line())
    }

    /// When the next release is worth a wake-up, if this gate does not wait for room.
    pub(crate) fn next_run(&self) -> Option<MonoTime> {
        (self.has_line() && !self.by_room).then(|| self.pacer.next_run())
    }
}

/// The first signal that does not let through, in the gate's order. One that is not configured has
/// no data.
fn obstacle(keys: &[SignalKey], signals: &Signals, now: MonoTime) -> Option<Obstacle> {
    keys.iter().find_map(|&key| {
        let Some(signal) = signals.get(&key) else {
            let cause = Cause { signal: key, value: None, threshold: 0.0 };
            return Some(Obstacle { cause: Some(cause), ..Obstacle::plain(Reason::NoData) });
        };
        if signal.lets_through(now) {
            return None;
        }
        let reason = match signal.state(now) {
            SignalState::Open | SignalState::Closed => Reason::GateClosed,
            SignalState::NoData { .. } => Reason::NoData,
        };
        Some(Obstacle { cause: Some(signal.cause()), ..Obstacle::plain(reason) })
    })
}
