//! One identity under one rule, as far as it is watched.

use std::time::Duration;

use super::ASKS_WITHIN;
use super::buckets::{BUCKETS_MAX, Buckets, Mask};
use super::shares::Below;
use crate::{AppKey, MonoTime};

/// One identity.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) app: AppKey,
    pub(super) waiters: u32,
    /// When the spell under way began.
    pub(super) blocked_since: Option<MonoTime>,
    /// When it last asked, or stopped waiting.
    pub(super) asked_at: MonoTime,
    /// When the first spell began that is in `spells`.
    pub(super) first: Option<MonoTime>,
    /// The spells that are over and count, in nanoseconds.
    pub(super) spells: Buckets,
    pub(super) below: BelowShare,
}

/// When it was below its share.
#[derive(Debug, Default)]
pub(super) struct BelowShare {
    /// When the first time began that is in `times`.
    pub(super) first: MonoTime,
    /// In nanoseconds.
    pub(super) times: Buckets,
    entitled: f64,
    received: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) bucket_ns: u64,
    pub(super) spell_min: Duration,
}

impl Watched {
    pub(super) fn new(now: MonoTime, app: AppKey) -> Self {
        Self {
            app,
            waiters: 0,
            blocked_since: None,
            asked_at: now,
            first: None,
            spells: Buckets::default(),
            below: BelowShare::default(),
        }
    }

    /// For how long it was blocked or below its share, in nanoseconds.
    pub(super) fn suffered(&self, bucket: u64) -> u64 {
        let below = self.below.times.sum(bucket, Mask::ALL);
        self.spells.sum(bucket, Mask::ALL).saturating_add(below)
    }

    /// Whether it still wants to work, as far as can be told.
    pub(super) fn still_asks(&self, now: MonoTime) -> bool {
        self.waiters > 0 || now.saturating_since(self.asked_at) <= ASKS_WITHIN
    }

    /// Until when the spell under way is known to have lasted.
    pub(super) fn spell_end(&self, now: MonoTime) -> MonoTime {
        if self.waiters > 0 { now } else { self.asked_at }
    }

    /// The spell under way is over, and is counted if it was long enough. Whoever is admitted at
    /// its first attempt after a refusal has wanted to work until then.
    pub(super) fn end_spell(&mut self, now: MonoTime, scale: Scale) {
        let end = if self.still_asks(now) { now } else { self.asked_at };
        let Some(since) = self.blocked_since.take() else { return };
        if end.saturating_since(since) < scale.spell_min {
            return;
        }
        if self.spells.mask(bucket_of(now, scale.bucket_ns)) == Mask::NONE {
            self.first = Some(since);
        }
        add_time(&mut self.spells, (since, end), scale, 1.0);
    }

    /// Nothing is left in the window.
    pub(super) fn says_nothing(&self, bucket: u64) -> bool {
        self.spells.is_over(bucket) && self.below.times.is_over(bucket)
    }

    /// Nothing is to be known about it.
    pub(super) fn is_idle(&self, bucket: u64) -> bool {
        self.waiters == 0 && self.blocked_since.is_none() && self.says_nothing(bucket)
    }
}

impl BelowShare {
    /// It was below its share for some time more.
    pub(super) fn add(&mut self, below: &Below, scale: Scale) {
        let Below { from, to, time, entitled, received, .. } = *below;
        if self.times.mask(bucket_of(to, scale.bucket_ns)) == Mask::NONE {
            *self = Self { first: from, ..Self::default() };
        }
        self.entitled += entitled;
        self.received += received;
        // Somewhere between these it contended for so long.
        let whole = to.saturating_since(from);
        let part = if whole > time { time.div_duration_f64(whole) } else { 1.0 };
        add_time(&mut self.times, (from, to), scale, part);
    }

    /// What it received of its share since the first time that counts.
    pub(super) fn received_of_share(&self) -> f64 {
        (self.received / self.entitled.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }
}

/// Adds this part of the time between two.
fn add_time(times: &mut Buckets, (since, end): (MonoTime, MonoTime), scale: Scale, part: f64) {
    let last = bucket_of(end, scale.bucket_ns);
    let first = bucket_of(since, scale.bucket_ns).max(last.saturating_sub(BUCKETS_MAX));
    for bucket in first..=last {
        let begins = bucket.saturating_mul(scale.bucket_ns);
        let ends = begins.saturating_add(scale.bucket_ns).min(end.as_nanos());
        let time = ends.saturating_sub(begins.max(since.as_nanos()));
        let time = Duration::from_nanos(time).mul_f64(part);
        times.add(bucket, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
}

pub(super) fn bucket_of(at: MonoTime, bucket_ns: u64) -> u64 {
    at.as_nanos().checked_div(bucket_ns).unwrap_or(0)
}
