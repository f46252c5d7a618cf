//! What is said of the lag besides its threshold.

use std::time::Duration;

use admission::{OnNoData, SignalConfig, SignalKey};

use super::compile::time;
use super::faults::Faults;
use super::limits::{LEFT_OUT_MAX, STALE_AFTER};
use super::raw;

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

pub(super) fn compile(
    raw: Option<raw::Lag>,
    threshold: Duration,
    replicas: usize,
    faults: &mut Faults,
) -> LagLimits {
    let default = LagLimits::at_threshold(threshold);
    let Some(raw) = raw else { return default };
    let or = |span: Option<raw::Span>, default| time(span).unwrap_or(default);
    let count = |count: Option<raw::Count>, default| count.map_or(default, |count| count.0);
    let (ignored, least) = (
        count(raw.ignore_slowest, default.ignore_slowest),
        count(raw.min_replicas, default.min_replicas),
    );
    let limits = LagLimits {
        open_at: or(raw.open_at, default.open_at),
        close_at: or(raw.close_at, default.close_at),
        stale_after: faults.time(time(raw.stale_after), STALE_AFTER, "lag.stale_after"),
        on_no_data: raw.on_no_data.map_or(default.on_no_data, on_no_data),
        ignore_slowest: faults.count(ignored, (0, LEFT_OUT_MAX), "lag.ignore_slowest"),
        min_replicas: faults.count(least, (0, LEFT_OUT_MAX), "lag.min_replicas"),
    };
    let opens = limits.open_at <= limits.close_at && !limits.open_at.is_zero();
    if !opens && faults.has_read("threshold") {
        let key = if raw.open_at.is_some() { "lag.open_at" } else { "lag.close_at" };
        faults.add(key, "open_at must be above 0 and not above close_at; each is the threshold");
    }
    let there = usize::try_from(least).is_ok_and(|least| least <= replicas);
    if !there && replicas > 0 && faults.has_read("replicas") {
        let message =
            format!("must be at most {replicas}, all there are: else the lag is never known");
        faults.add("lag.min_replicas", message);
    }
    limits
}

pub(super) fn on_no_data(word: raw::NoData) -> OnNoData {
    match word {
        raw::NoData::Open => OnNoData::Open,
        raw::NoData::Closed => OnNoData::Closed,
        raw::NoData::HoldLast(time) => OnNoData::HoldLast(time.0),
    }
}
