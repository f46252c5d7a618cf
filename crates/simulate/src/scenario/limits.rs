//! Ranges of what a scenario may say. `docs/SIMULATE.md` has them in its tables.

use std::time::Duration;

/// A time that may be left out, and the ends of its range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    pub(super) default: Duration,
    pub(super) min: Duration,
    pub(super) max: Duration,
}

const fn ms(default: u64, min_us: u64, max: Duration) -> Time {
    let min = Duration::from_micros(min_us);
    Time { default: Duration::from_millis(default), min, max }
}

/// The longest time that is read, as a run's: what is interesting happens in minutes.
pub(super) const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

pub(super) const THRESHOLD: Time = ms(1_000, 100, DAY);
pub(super) const HEARTBEAT_INTERVAL: Time = ms(250, 1_000, MINUTE);
pub(super) const PROBE_INTERVAL: Time = ms(100, 1_000, MINUTE);
pub(super) const PROBE_DELAY: Time = ms(100, 0, MINUTE);
pub(super) const CHECK_INTERVAL: Time = ms(100, 1_000, HOUR);
/// Of a statement; shorter is nothing but events.
pub(super) const LATENCY: Time = ms(5, 100, HOUR);
pub(super) const STALE_AFTER: Time = ms(3_000, 100_000, HOUR);
pub(super) const WINDOW: Time = ms(5_000, 100_000, HOUR);
/// The rule's own default is shorter: scenarios are about the pace, not about who gives up.
pub(super) const MAX_DELAY: Time = ms(60_000, 0, DAY);
/// Until one that was refused asks again: there is no default.
pub(super) const COMES_BACK_AFTER: Time = ms(0, 100, DAY);
/// Of a stream to a replica.
pub(super) const TRANSIT_MAX: Duration = HOUR;
pub(super) const PERIOD_MIN: Duration = Duration::from_millis(100);

/// Longest text of a scenario: two hundred times the longest of the repository.
pub(super) const TEXT_LEN_MAX: usize = 1024 * 1024;
/// Longest name: it is a label of figures.
pub(super) const NAME_CHARS_MAX: usize = 200;
/// Most apps of a scenario: its answer has a line for each.
pub(super) const APPS_MAX: usize = 5_000;
/// Most sessions of a scenario: each costs an event or two at any time.
pub(super) const SESSIONS_MAX: u32 = 100_000;
/// Most texts of an app: a hundred times as many as a controller remembers.
pub(super) const DIGESTS_MAX: u32 = 1_000_000;
/// Most rows a second, and most rows of one permit: sums of them stay exact.
pub(super) const ROWS_MAX: f64 = 1e9;
/// Most statements under one permit: the rows of each are drawn.
pub(super) const TRANSACTIONS_MAX: u32 = 10_000;
/// Most replicas: each is looked at a hundred times a second.
pub(super) const REPLICAS_MAX: usize = 64;
/// Most threads of a replica: as many as a server has.
pub(super) const APPLIERS_MAX: u32 = 1_024;
/// Most statements at work at a time, for the same reason.
pub(super) const SLOTS_MAX: f64 = 1_024.0;
/// Most Sluices in front of one primary: each writes and reads heartbeats of its own.
pub(super) const PROXIES_MAX: u32 = 64;
/// The dearest row: more is a statement of its own.
pub(super) const APPLY_COST_MAX: f64 = 1e6;
/// The dearest commit.
pub(super) const COMMIT_COST_MAX: f64 = 1e6;
/// Most steps, windows or restarts in one list: it is gone through at each look.
pub(super) const LIST_MAX: usize = 1_000;
/// Most intervals that an answer may be late: the lag is told anew after each of them.
pub(super) const PROBE_DELAY_INTERVALS_MAX: u32 = 1_000;
/// A gate is a set of at most so many signals.
pub(super) const SIGNALS_MAX: usize = 31;
/// Most waiters of a rule and of all, as in the configuration.
pub(super) const QUEUE_MAX: u32 = 1_000_000;
/// Most checks a second after a gate opens, as in the configuration.
pub(super) const RELEASE_PER_S_MAX: u32 = 1_000_000;
/// Most of what replicas may be left out or asked for, as in the configuration.
pub(super) const LEFT_OUT_MAX: u32 = 1_000;
/// Highest number of statements that a threshold may say.
pub(super) const RUNNING_MAX: f64 = 1e6;
/// Slowest speed: what takes a millisecond is followed by a quarter of an hour.
pub(super) const SPEED_MIN: f64 = 1e-6;
