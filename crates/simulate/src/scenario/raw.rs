//! The file as it is written: which keys there are and what type their values have.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::lag::Lag;
use super::signals::{RawService, RawSignal};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) duration: Span,
    #[serde(default)]
    pub(super) warmup: Span,
    #[serde(default)]
    pub(super) seed: u64,
    pub(super) pacing: Option<String>,
    pub(super) row_costs: Option<String>,
    pub(super) threshold: Option<Span>,
    #[serde(default)]
    pub(super) lag: Lag,
    pub(super) check_interval: Option<Span>,
    pub(super) release_per_s: Option<u32>,
    pub(super) max_queue_total: Option<u32>,
    pub(super) heartbeat_interval: Option<Span>,
    pub(super) probe_interval: Option<Span>,
    pub(super) probe_delay: Option<Span>,
    pub(super) primary: Primary,
    #[serde(default)]
    pub(super) signals: BTreeMap<String, RawSignal>,
    pub(super) replicas: Vec<Replica>,
    pub(super) background: Option<Background>,
    pub(super) proxies: Option<usize>,
    #[serde(default)]
    pub(super) restarts: Vec<Span>,
    pub(super) handover: Option<bool>,
    pub(super) apps: Vec<App>,
    #[serde(default)]
    pub(super) expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Primary {
    pub(super) writes_per_s: Amount,
    pub(super) latency: Option<Span>,
    pub(super) service: Option<RawService>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replica {
    pub(super) apply_per_s: Amount,
    #[serde(default)]
    pub(super) jitter: f64,
    pub(super) group: Option<String>,
    pub(super) threshold: Option<Span>,
    #[serde(default)]
    pub(super) away: Vec<(Span, Span)>,
    #[serde(default)]
    pub(super) transit: Transit,
    pub(super) appliers: Option<u32>,
    pub(super) preserve_commit_order: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Background {
    pub(super) writes_per_s: Amount,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct App {
    pub(super) app: String,
    pub(super) sessions: u32,
    #[serde(default)]
    pub(super) proxies: Vec<usize>,
    pub(super) identities: Option<u32>,
    #[serde(default)]
    pub(super) ratio: f64,
    pub(super) weight: Option<u32>,
    pub(super) rows_per_statement: Option<Rows>,
    pub(super) apply_cost: Option<f64>,
    #[serde(default)]
    pub(super) phantom_rows: u32,
    pub(super) transactions: Option<u32>,
    #[serde(default)]
    pub(super) think_time: Span,
    pub(super) max_delay: Option<Span>,
    pub(super) active: Option<Vec<(Span, Span)>>,
    pub(super) latency: Option<Span>,
    pub(super) rule: Option<String>,
    #[serde(default)]
    pub(super) exempt: bool,
    #[serde(default)]
    pub(super) deny: bool,
    #[serde(default)]
    pub(super) hold: bool,
    pub(super) gate: Option<Gates>,
    pub(super) on_refused_check: Option<String>,
    pub(super) on_timeout: Option<String>,
    pub(super) max_queue: Option<u32>,
    pub(super) mode: Option<String>,
    pub(super) speed: Option<f64>,
    pub(super) min_rate: Option<u32>,
    pub(super) max_rate: Option<u32>,
    pub(super) max_in_flight: Option<u32>,
    pub(super) comes_back_after: Option<Span>,
}

/// One signal or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Gates {
    One(String),
    Many(Vec<String>),
}

/// A duration with its unit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span(pub(super) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfText;
        impl Visitor<'_> for OfText {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, as in 250ms, 1.5s or 10m")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                let parsed = duration(text);
                parsed
                    .map(Span)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(OfText)
    }
}

/// The longest time that is read: a simulated day is a minute's work.
const SPAN_S_MAX: f64 = 86_400.0;

/// A duration with its unit, as in `250ms`, `1.5s` or `10m`, of a day at most; `None` for any other
/// text.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at_checked(unit_at)?;
    let per_unit_s = match unit.trim_start() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * per_unit_s;
    if !(0.0..=SPAN_S_MAX).contains(&seconds) {
        return None;
    }
    Duration::try_from_secs_f64((seconds * 1e6).round() / 1e6).ok()
}

/// How long the stream to a replica takes: a duration, or steps of them.
#[derive(Debug, Default)]
pub(super) struct Transit(pub(super) Vec<(Span, Span)>);

impl<'de> Deserialize<'de> for Transit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfAny;
        impl<'de> Visitor<'de> for OfAny {
            type Value = Transit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration, as in 150ms, or steps [[0s, 100ms], [100s, 300ms]]")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Transit, E> {
                let parsed = duration(text);
                parsed
                    .map(|always| Transit(vec![(Span::default(), Span(always))]))
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Transit, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = elements.next_element()? {
                    steps.push(step);
                }
                Ok(Transit(steps))
            }
        }
        deserializer.deserialize_any(OfAny)
    }
}

/// A number, steps, or a sine.
#[derive(Debug)]
pub(super) enum Amount {
    Number(f64),
    Steps(Vec<(Span, f64)>),
    Sine(Sine),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sine {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) period: Span,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    sine: Sine,
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfAny;
        impl<'de> Visitor<'de> for OfAny {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a number, steps [[0s, 1000], [100s, 300]] or {sine: {min, max, period}}",
                )
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
                let number = u32::try_from(number).map_err(|_| E::custom("too large a number"))?;
                Ok(Amount::Number(f64::from(number)))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Amount, E> {
                Ok(Amount::Number(number))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Amount, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = elements.next_element()? {
                    steps.push(step);
                }
                Ok(Amount::Steps(steps))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Amount, A::Error> {
                let Shape { sine } = Shape::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Amount::Sine(sine))
            }
        }
        deserializer.deserialize_any(OfAny)
    }
}

/// A number, or the least and the most.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowsRange {
    pub(super) min: u32,
    pub(super) max: u32,
}

#[derive(Debug)]
pub(super) struct Rows(pub(super) RowsRange);

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfAny;
        impl<'de> Visitor<'de> for OfAny {
            type Value = Rows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of rows, or {min: 1, max: 9}")
            }

            fn visit_u64<E: Error>(self, rows: u64) -> Result<Rows, E> {
                let rows = u32::try_from(rows).map_err(|_| E::custom("too many rows"))?;
                Ok(Rows(RowsRange { min: rows, max: rows }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rows, A::Error> {
                RowsRange::deserialize(MapAccessDeserializer::new(map)).map(Rows)
            }
        }
        deserializer.deserialize_any(OfAny)
    }
}

/// What is expected: ranges by the names of figures, nested or with dots between them.
#[derive(Debug, Default)]
pub(super) struct Expect(pub(super) Vec<(String, Expected)>);

/// One value under `expect`.
#[derive(Debug)]
pub(super) enum Expected {
    Range(Vec<f64>),
    Number(f64),
    Nested(Expect),
}

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Expect;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("figures and their ranges")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Expect, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Expect(entries))
            }
        }
        deserializer.deserialize_map(OfMap)
    }
}

impl<'de> Deserialize<'de> for Expected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfAny;
        impl<'de> Visitor<'de> for OfAny {
            type Value = Expected;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a range [low, high] or figures and their ranges")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Expected, E> {
                let number = u32::try_from(number).map_err(|_| E::custom("too large a number"))?;
                Ok(Expected::Number(f64::from(number)))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Expected, E> {
                Ok(Expected::Number(number))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Expected, A::Error> {
                let mut ends = Vec::new();
                while let Some(end) = elements.next_element()? {
                    ends.push(end);
                }
                Ok(Expected::Range(ends))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Expected, A::Error> {
                Expect::deserialize(MapAccessDeserializer::new(map)).map(Expected::Nested)
            }
        }
        deserializer.deserialize_any(OfAny)
    }
}
