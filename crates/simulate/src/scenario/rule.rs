//! What the statements of an app meet: the rule, as far as the controller and the clients feel it.

use std::time::Duration;

use admission::{Mode, OnRefusedCheck, OnTimeout, Ratio, Speed, Terms};

use super::compile::Faults;
use super::raw;

/// The rule that the statements of an app meet.
#[derive(Debug, Clone, PartialEq)]
pub struct MetRule {
    /// Its name. Apps that name the same rule share its `max_queue`; `None`: it is the app's own.
    pub name: Option<String>,
    /// What it does.
    pub effect: Effect,
}

impl MetRule {
    /// The pause that so much time at the server makes of its `speed`, `max_delay` at most. A rule
    /// that only observes would make it.
    #[must_use]
    pub fn pause(&self, server_time: Duration) -> Duration {
        match self.effect {
            Effect::Asks { terms, speed, .. } => {
                speed.pause_after(server_time).min(terms.max_delay)
            }
            Effect::Passes | Effect::Denies(_) => Duration::ZERO,
        }
    }

    /// Whether what it decides is carried out.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.effect {
            Effect::Asks { terms: Terms { mode, .. }, .. } | Effect::Denies(mode) => mode,
            Effect::Passes => Mode::Enforce,
        }
    }
}

/// What a rule does to the statements that meet it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// They pass, and nobody is asked.
    Passes,
    /// They are refused, or would be if the rule only observes.
    Denies(Mode),
    /// They ask for admission.
    Asks {
        /// On these terms.
        terms: Terms,
        /// At this gate.
        gate: Gate,
        /// How fast a session goes.
        speed: Speed,
    },
}

/// What a rule waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The lag.
    Lag,
    /// Nothing: `none`, or signals that the simulator does not have and takes as healthy.
    Open,
    /// Some of the scenario's signals, and perhaps the lag.
    Signals(SignalSet),
}

/// Signals of a scenario, by a bit each: the lowest is the lag, then the others in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SignalSet(u32);

impl SignalSet {
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// Whether the lag is one of them.
    #[must_use]
    pub const fn has_lag(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether the signal with this place in the scenario is one of them.
    #[must_use]
    pub fn has(self, signal: usize) -> bool {
        let bit = u32::try_from(signal).ok().and_then(|n| 2_u32.checked_shl(n));
        bit.is_some_and(|bit| self.0 & bit != 0)
    }

    fn add(&mut self, signal: usize) {
        let bit = u32::try_from(signal).ok().and_then(|n| 2_u32.checked_shl(n));
        self.0 |= bit.unwrap_or(0);
    }
}

/// The rule's own default is shorter: scenarios are about the pace, not about who gives up.
const MAX_DELAY_DEFAULT: Duration = Duration::from_secs(60);

/// As in the product's file.
pub(super) const ON_REFUSED_CHECK: [(&str, OnRefusedCheck); 2] =
    [("delay", OnRefusedCheck::Delay), ("reject", OnRefusedCheck::Reject)];
pub(super) const ON_TIMEOUT: [(&str, OnTimeout); 2] =
    [("reject", OnTimeout::Reject), ("admit", OnTimeout::Admit)];
pub(super) const MODES: [(&str, Mode); 2] =
    [("enforce", Mode::Enforce), ("observe", Mode::Observe)];

pub(super) fn compile(
    raw: &raw::App,
    gates: &[String],
    path: &str,
    faults: &mut Faults,
) -> MetRule {
    let mode = keyword(raw.mode.as_deref(), &MODES, &format!("{path}.mode"), faults);
    if raw.exempt && raw.deny {
        faults.push(format!("{path}: exempt or deny, not both"));
    }
    let gate = gate(raw.gate.as_ref(), gates, path, faults);
    let asks = asks(raw, (mode, gate), path, faults);
    let effect = match (raw.exempt, raw.deny) {
        (true, _) => Effect::Passes,
        (false, true) => Effect::Denies(mode),
        (false, false) => asks,
    };
    MetRule { name: raw.rule.clone(), effect }
}

fn gate(raw: Option<&raw::Gates>, signals: &[String], path: &str, faults: &mut Faults) -> Gate {
    let names = match raw {
        None => return Gate::Lag,
        Some(raw::Gates::One(name)) => std::slice::from_ref(name),
        Some(raw::Gates::Many(names)) => names,
    };
    match names {
        [only] if only == "lag" => return Gate::Lag,
        [only] if only == "none" => return Gate::Open,
        _ => {}
    }
    let mut set = SignalSet::default();
    for name in names {
        match (name.as_str(), signals.iter().position(|signal| signal == name)) {
            ("lag", _) => set.0 |= 1,
            (_, Some(signal)) => set.add(signal),
            (_, None) if signals.is_empty() => {
                faults.push(format!("{path}.gate: lag or none, not {name:?}"));
            }
            (_, None) => faults.push(format!("{path}.gate: lag, none or a signal, not {name:?}")),
        }
    }
    Gate::Signals(set)
}

fn asks(raw: &raw::App, (mode, gate): (Mode, Gate), path: &str, faults: &mut Faults) -> Effect {
    let default = Terms::default();
    let ratio = Ratio::new(raw.ratio).unwrap_or_else(|| {
        faults.push(format!("{path}.ratio: from 0 to 1"));
        Ratio::ZERO
    });
    let weight = raw.weight.unwrap_or(default.weight);
    if !(1..=Terms::WEIGHT_MAX).contains(&weight) {
        faults.push(format!("{path}.weight: from 1 to {}", Terms::WEIGHT_MAX));
    }
    let speed = Speed::new(raw.speed.unwrap_or(1.0)).unwrap_or_else(|| {
        faults.push(format!("{path}.speed: above 0 and at most 1"));
        Speed::FULL
    });
    let limits = [
        ("min_rate", raw.min_rate),
        ("max_rate", raw.max_rate),
        ("max_in_flight", raw.max_in_flight),
    ];
    for (name, _) in limits.iter().filter(|(_, limit)| *limit == Some(0)) {
        faults.push(format!("{path}.{name}: at least 1"));
    }
    if let (Some(least), Some(most)) = (raw.min_rate, raw.max_rate)
        && least > most
    {
        faults.push(format!("{path}.min_rate: not above max_rate"));
    }
    let refused = raw.on_refused_check.as_deref();
    let terms = Terms {
        ratio,
        weight,
        max_delay: raw.max_delay.map_or(MAX_DELAY_DEFAULT, |span| span.0),
        on_refused_check: keyword(
            refused,
            &ON_REFUSED_CHECK,
            &format!("{path}.on_refused_check"),
            faults,
        ),
        on_timeout: keyword(
            raw.on_timeout.as_deref(),
            &ON_TIMEOUT,
            &format!("{path}.on_timeout"),
            faults,
        ),
        queue_len_max: raw.max_queue.unwrap_or(default.queue_len_max),
        hold: raw.hold,
        mode,
        min_rate: raw.min_rate,
        max_rate: raw.max_rate,
        max_in_flight: raw.max_in_flight,
    };
    Effect::Asks { terms, gate, speed }
}

/// The value of a word; the first one where there is none.
fn keyword<T: Copy>(
    word: Option<&str>,
    words: &[(&str, T); 2],
    path: &str,
    faults: &mut Faults,
) -> T {
    let [(_, default), _] = words;
    let found = words.iter().find(|(known, _)| word.is_none_or(|word| word == *known));
    if let (None, Some(word)) = (found, word) {
        let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
        faults.push(format!("{path}: {}, not {word:?}", known.join(" or ")));
    }
    found.map_or(*default, |(_, value)| *value)
}

/// The word of a value.
pub(super) fn word<T: PartialEq>(words: &[(&'static str, T); 2], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
}
