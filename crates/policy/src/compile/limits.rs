//! Defaults and ranges of what the file sets. The reference in `docs/CONFIG.md` is made from them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The default of a setting and the ends of its range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits<T> {
    pub(crate) default: T,
    pub(crate) min: T,
    pub(crate) max: T,
}

const fn ms(default: u64, min: u64, max: u64) -> Limits<Duration> {
    Limits {
        default: Duration::from_millis(default),
        min: Duration::from_millis(min),
        max: Duration::from_millis(max),
    }
}

const fn count(default: u32, min: u32, max: u32) -> Limits<u32> {
    Limits { default, min, max }
}

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 86_400_000;

pub(crate) const ADMIN_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9307);
pub(crate) const MAX_APPS: Limits<u32> = count(200, 1, 10_000);
/// Of `max_rows_expected` of a guard: a statement waits at most so long for its EXPLAIN.
pub(crate) const EXPLAIN_TIMEOUT: Limits<Duration> = ms(100, 1, 2_000);
pub(crate) const MAX_IN_LIST: Limits<u32> = count(1_000, 1, 1_000_000);
/// `max_allowed_packet` is at most a gibibyte.
pub(crate) const MAX_STATEMENT_BYTES: u64 = 1_073_741_824;
/// A frame has 2^24 - 1 bytes at most, the first of which is the command. Of a text that fills one
/// and goes on in another, no more is known when it has to be judged.
pub(crate) const STATEMENT_BYTES_SEEN: u64 = 16_777_214;
pub(crate) const RUNAWAY_ELAPSED: Limits<Duration> = ms(60_000, 10, 7 * DAY_MS);
pub(crate) const QUARANTINE: Limits<Duration> = ms(10 * MINUTE_MS, 1_000, 7 * DAY_MS);
/// Each is asked about each text.
pub(crate) const GUARDS_MAX: usize = 1_000;
/// Tags that one guard may require.
pub(crate) const GUARD_TAGS_MAX: usize = 16;
/// Tags that insights keep the values of: each combination of values is a row of its own.
pub(crate) const INSIGHT_TAGS_MAX: usize = 4;
pub(crate) const MAX_DIGESTS: Limits<u32> = count(1_000, 10, 20_000);
pub(crate) const HISTORY_AGE: Limits<Duration> = ms(31 * DAY_MS, HOUR_MS, 3_660 * DAY_MS);
/// In MiB.
pub(crate) const HISTORY_MIB: Limits<u32> = count(256, 1, 65_536);
pub(crate) const DRAIN_TIMEOUT: Limits<Duration> = ms(30_000, 0, HOUR_MS);

pub(crate) const HEARTBEAT_INTERVAL: Limits<Duration> = ms(250, 10, MINUTE_MS);
pub(crate) const PROBE_INTERVAL: Limits<Duration> = ms(100, 10, MINUTE_MS);
pub(crate) const STALE_AFTER: Limits<Duration> = ms(3_000, 100, HOUR_MS);
pub(crate) const HOLD_LAST: Limits<Duration> = ms(30_000, 1, DAY_MS);
pub(crate) const LAG_THRESHOLD: Limits<Duration> = ms(5_000, 10, DAY_MS);
pub(crate) const IGNORE_SLOWEST: Limits<u32> = count(0, 0, 1_000);
pub(crate) const MIN_REPLICAS: Limits<u32> = count(1, 0, 1_000);
pub(crate) const CHECK_INTERVAL: Limits<Duration> = ms(100, 1, HOUR_MS);
pub(crate) const RELEASE_PER_S: Limits<u32> = count(1_000, 1, 1_000_000);
pub(crate) const MAX_QUEUE_TOTAL: Limits<u32> = count(10_000, 1, 1_000_000);
pub(crate) const CONNECT_TIMEOUT: Limits<Duration> = ms(5_000, 10, 10 * MINUTE_MS);
pub(crate) const LOGIN_TIMEOUT: Limits<Duration> = ms(10_000, 10, 10 * MINUTE_MS);
pub(crate) const MAX_CONNECTIONS: Limits<u32> = count(10_000, 1, 1_000_000);
/// As open as the server's own socket: who may log in is for the server's accounts to say.
pub(crate) const LISTEN_MODE: u32 = 0o777;
// The kernel takes whole seconds, of 16 bits.
pub(crate) const KEEPALIVE_IDLE: Limits<Duration> = ms(60_000, 1_000, 9 * HOUR_MS);
pub(crate) const KEEPALIVE_INTERVAL: Limits<Duration> = ms(10_000, 1_000, 9 * HOUR_MS);
pub(crate) const KEEPALIVE_COUNT: Limits<u32> = count(3, 1, 127);
pub(crate) const USER_TIMEOUT: Limits<Duration> = ms(0, 0, DAY_MS);
pub(crate) const PROXY_HEADER_TIMEOUT: Limits<Duration> = ms(5_000, 10, MINUTE_MS);

/// zlib's own default, 6, costs two and a half times the CPU for 7 % fewer bytes; 1 halves the CPU
/// for 40 % more.
pub(crate) const ZLIB_LEVEL: Limits<u32> = count(2, 1, 9);
/// The client libraries' default.
pub(crate) const ZSTD_LEVEL: Limits<u32> = count(3, 1, 22);

/// Each look costs the primary as much as a SHOW PROCESSLIST, and more for each session around.
pub(crate) const BYPASS_INTERVAL: Limits<Duration> = ms(10_000, 5_000, HOUR_MS);

/// Ten minutes in twelve hours.
pub(crate) const STARVATION_SHARE: f64 = 0.014;
pub(crate) const STARVATION_WINDOW: Limits<Duration> = ms(12 * HOUR_MS, 10_000, 7 * DAY_MS);

pub(crate) const MAX_DELAY: Limits<Duration> = ms(5_000, 0, DAY_MS);
pub(crate) const MAX_QUEUE: Limits<u32> = count(1_000, 0, 1_000_000);
pub(crate) const LATENCY_THRESHOLD: Limits<Duration> = Limits {
    default: Duration::ZERO,
    min: Duration::from_micros(100),
    max: Duration::from_secs(3_600),
};
pub(crate) const LATENCY_WINDOW: Limits<Duration> = ms(5_000, 1_000, 5 * MINUTE_MS);
pub(crate) const LATENCY_PERCENTILE: f64 = 0.99;
/// Latencies of a cluster: each is counted apart on every thread, in 7 KiB, and every statement is
/// held against all.
pub(crate) const LATENCIES_MAX: usize = 16;
pub(crate) const RATE: Limits<u32> = count(1, 1, 1_000_000_000);
pub(crate) const WEIGHT: Limits<u32> = count(1, 1, admission::Terms::WEIGHT_MAX);

/// As long as a report that is run many times at once has to wait for the others.
pub(crate) const BUDGET_MAX_DELAY: Limits<Duration> = ms(60_000, 0, DAY_MS);
/// Most budgets.
pub(crate) const BUDGETS_MAX: usize = 100_000;
pub(crate) const CONCURRENCY_MAX: u32 = 1_000_000;
pub(crate) const SHARE_MAX: f64 = 100_000.0;
/// Rates and costs of a budget.
pub(crate) const AMOUNT_MIN: f64 = 0.001;
pub(crate) const AMOUNT_MAX: f64 = 1_000_000_000.0;

/// Most rules: ten times as many as reload without a visible pause.
pub(crate) const RULES_MAX: usize = 100_000;
/// Most replicas of a cluster.
pub(crate) const REPLICAS_MAX: usize = 1_000;
/// Longest name of a rule, a cluster or a signal.
pub(crate) const NAME_LEN_MAX: usize = 64;
/// Longest `reason` of a rule.
pub(crate) const REASON_LEN_MAX: usize = 1_000;
/// Longest `message` of an error profile: behind it the key=value part of at most 350 bytes must
/// fit into the 512 bytes that clients keep (`MYSQL_ERRMSG_SIZE`).
pub(crate) const MESSAGE_LEN_MAX: usize = 120;
/// Longest value of a condition: longer ones never match.
pub(crate) const PATTERN_LEN_MAX: usize = crate::identity::APP_LEN_MAX;

/// A duration as the file writes it.
pub(crate) fn show(duration: Duration) -> String {
    let ms = duration.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    for (unit_ms, unit) in units {
        if ms > 0
            && let (Some(count), Some(0)) = (ms.checked_div(unit_ms), ms.checked_rem(unit_ms))
        {
            return format!("{count}{unit}");
        }
    }
    if ms == 0 { "0s".to_owned() } else { format!("{ms}ms") }
}
