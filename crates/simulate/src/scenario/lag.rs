//! What is said of the lag besides its threshold.

use std::fmt;
use std::time::Duration;

use admission::{OnNoData, SignalConfig, SignalKey};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};

use super::compile::Faults;
use super::raw::Span;

/// The limits of the signal `lag`, and the replicas that count for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LagLimits {
    /// The gate opens below this.
    pub open_at: Duration,
    /// It shuts at this, which is not below `open_at`.
    pub close_at: Duration,
    /// A value older than this is not used.
    pub stale_after: Duration,
    /// What holds without a value.
    pub on_no_data: OnNoData,
    /// How many of the slowest replicas are left out; never the last one.
    pub ignore_slowest: u32,
    /// With fewer replicas that can be measured there is no value.
    pub min_replicas: u32,
}

impl LagLimits {
    /// What the product has where its file says nothing but the threshold.
    #[must_use]
    pub fn at_threshold(threshold: Duration) -> Self {
        let SignalConfig { stale_after, on_no_data, .. } =
            SignalConfig::at_threshold(SignalKey(0), threshold.as_secs_f64());
        Self {
            open_at: threshold,
            close_at: threshold,
            stale_after,
            on_no_data,
            ignore_slowest: 0,
            min_replicas: 1,
        }
    }
}

/// `lag` of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lag {
    open_at: Option<Span>,
    close_at: Option<Span>,
    stale_after: Option<Span>,
    on_no_data: Option<NoData>,
    ignore_slowest: Option<u32>,
    min_replicas: Option<u32>,
}

pub(super) fn compile(raw: Lag, threshold: Duration, faults: &mut Faults) -> LagLimits {
    let default = LagLimits::at_threshold(threshold);
    let or = |span: Option<Span>, default| span.map_or(default, |Span(span)| span);
    let limits = LagLimits {
        open_at: or(raw.open_at, default.open_at),
        close_at: or(raw.close_at, default.close_at),
        stale_after: or(raw.stale_after, default.stale_after),
        on_no_data: raw.on_no_data.map_or(default.on_no_data, |NoData(word)| word),
        ignore_slowest: raw.ignore_slowest.unwrap_or(default.ignore_slowest),
        min_replicas: raw.min_replicas.unwrap_or(default.min_replicas),
    };
    if limits.open_at > limits.close_at || limits.open_at.is_zero() {
        faults.push("lag: open_at is above 0 and not above close_at".to_owned());
    }
    limits
}

/// `open`, `closed` or `{ hold_last: 30s }`.
#[derive(Debug)]
pub(super) struct NoData(pub(super) OnNoData);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldLast {
    hold_last: Span,
}

impl<'de> Deserialize<'de> for NoData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfEither;
        impl<'de> Visitor<'de> for OfEither {
            type Value = NoData;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("open, closed or {hold_last: 30s}")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<NoData, E> {
                match word {
                    "open" => Ok(NoData(OnNoData::Open)),
                    "closed" => Ok(NoData(OnNoData::Closed)),
                    _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NoData, A::Error> {
                let HoldLast { hold_last } =
                    HoldLast::deserialize(MapAccessDeserializer::new(map))?;
                Ok(NoData(OnNoData::HoldLast(hold_last.0)))
            }
        }
        deserializer.deserialize_any(OfEither)
    }
}
