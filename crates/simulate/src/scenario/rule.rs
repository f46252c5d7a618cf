//! What the statements of an app meet: the rule, as far as the controller and the clients feel it.

use std::time::Duration;

use admission::{Mode, OnRefusedCheck, OnTimeout, Ratio, Speed, Terms};
use policy::reading::OneOrMany;

use super::compile::time;
use super::faults::Faults;
use super::limits::{MAX_DELAY, QUEUE_MAX, SPEED_MIN};
use super::raw::{self, Count};

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

/// As in the product's file.
pub(super) const ON_REFUSED_CHECK: [(&str, OnRefusedCheck); 2] =
    [("delay", OnRefusedCheck::Delay), ("reject", OnRefusedCheck::Reject)];
pub(super) const ON_TIMEOUT: [(&str, OnTimeout); 2] =
    [("reject", OnTimeout::Reject), ("admit", OnTimeout::Admit)];
pub(super) const MODES: [(&str, Mode); 2] =
    [("enforce", Mode::Enforce), ("observe", Mode::Observe)];

pub(super) fn compile(
    raw: &raw::App,
    signals: &[String],
    path: &str,
    faults: &mut Faults,
) -> MetRule {
    let mode = keyword(raw.mode.as_deref(), &MODES, &format!("{path}.mode"), faults);
    let [exempt, deny, hold] = [raw.exempt, raw.deny, raw.hold].map(|flag| flag.unwrap_or(false));
    let one = [exempt, deny, hold].iter().filter(|flag| **flag).count() <= 1;
    faults.hold(one, path, "exempt, deny or hold: only one of them");
    if let Some(rule) = &raw.rule {
        let path = format!("{path}.rule");
        faults.hold(!rule.trim().is_empty(), &path, "must be a name, or be left out");
    }
    let gate = gate(raw.gate.as_ref(), signals, &format!("{path}.gate"), faults);
    let asks = asks(raw, (mode, gate), path, faults);
    let effect = match (exempt, deny) {
        (true, _) => Effect::Passes,
        (false, true) => Effect::Denies(mode),
        (false, false) => asks,
    };
    MetRule { name: raw.rule.clone(), effect }
}

fn gate(
    raw: Option<&OneOrMany<String>>,
    signals: &[String],
    path: &str,
    faults: &mut Faults,
) -> Gate {
    let Some(OneOrMany(names)) = raw else { return Gate::Lag };
    let names: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
    match names.as_slice() {
        [] => faults.add(path, "names no signal; `none` is the gate that is always open"),
        ["lag"] => return Gate::Lag,
        ["none"] => return Gate::Open,
        _ => {}
    }
    let mut set = SignalSet::default();
    for (index, name) in names.iter().enumerate() {
        if names.iter().take(index).any(|other| other == name) {
            faults.add(path, format!("{name:?} is there twice"));
        }
        match (*name, signals.iter().position(|signal| signal == name)) {
            ("lag", _) => set.0 |= 1,
            (_, Some(signal)) => set.add(signal),
            ("none", None) => faults.add(path, "none is no signal: it stands alone"),
            (_, None) if !faults.has_read("signals") => {}
            (_, None) => {
                let known: Vec<&str> = ["lag", "none"].into_iter().collect();
                let known = known.into_iter().chain(signals.iter().map(String::as_str));
                let known = known.collect::<Vec<_>>().join(", ");
                faults.add(path, format!("there is no signal {name:?}; there are {known}"));
            }
        }
    }
    Gate::Signals(set)
}

fn asks(raw: &raw::App, (mode, gate): (Mode, Gate), path: &str, faults: &mut Faults) -> Effect {
    let default = Terms::default();
    let at = |key: &str| format!("{path}.{key}");
    let number = |count: Option<Count>| count.map(|Count(count)| count);
    let ratio = faults.number(raw.ratio.unwrap_or_default(), (0.0, 1.0), &at("ratio"));
    let weight = number(raw.weight).unwrap_or(default.weight);
    let speed = faults.number(raw.speed.unwrap_or(1.0), (SPEED_MIN, 1.0), &at("speed"));
    let [min_rate, max_rate, max_in_flight] =
        [raw.min_rate, raw.max_rate, raw.max_in_flight].map(number);
    let limits = [("min_rate", min_rate), ("max_rate", max_rate), ("max_in_flight", max_in_flight)];
    for (key, limit) in limits {
        faults.hold(limit != Some(0), &at(key), "must be at least 1");
    }
    let order = min_rate.zip(max_rate).is_none_or(|(least, most)| least <= most);
    faults.hold(order, &at("min_rate"), "must not be above max_rate");
    let refused = raw.on_refused_check.as_deref();
    let timeout = raw.on_timeout.as_deref();
    let queue_len_max = number(raw.max_queue).unwrap_or(default.queue_len_max);
    let terms = Terms {
        ratio: Ratio::new(ratio).unwrap_or(Ratio::ZERO),
        weight: faults.count(weight, (1, Terms::WEIGHT_MAX), &at("weight")),
        max_delay: faults.time(time(raw.max_delay), MAX_DELAY, &at("max_delay")),
        on_refused_check: keyword(refused, &ON_REFUSED_CHECK, &at("on_refused_check"), faults),
        on_timeout: keyword(timeout, &ON_TIMEOUT, &at("on_timeout"), faults),
        queue_len_max: faults.count(queue_len_max, (0, QUEUE_MAX), &at("max_queue")),
        hold: raw.hold.unwrap_or(false),
        mode,
        min_rate,
        max_rate,
        max_in_flight,
    };
    Effect::Asks { terms, gate, speed: Speed::new(speed).unwrap_or(Speed::FULL) }
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
        faults.add(path, format!("must be {}, not {word:?}", known.join(" or ")));
    }
    found.map_or(*default, |(_, value)| *value)
}

/// The word of a value.
pub(super) fn word<T: PartialEq>(words: &[(&'static str, T); 2], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
}
