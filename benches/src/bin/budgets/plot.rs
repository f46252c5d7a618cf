//! What the web application saw in each second, above what was at the server.

use benches::plot::{Plot, Stands};
use benches::stats::quantile;

use crate::reports::Measured;
use crate::share::{self, BUDGETED};

/// All parts, one behind the other.
pub(crate) fn reports(parts: &[Measured]) -> String {
    let time_s: f64 = parts.iter().map(|part| part.time.as_secs_f64()).sum();
    let scale = Scale { per_s: (RIGHT - LEFT) / time_s.max(1.0) };
    let mut plot = Plot::new(WIDTH, HEIGHT);
    for p99_ms in [0.1, 1.0, 10.0, 100.0, 1_000.0] {
        plot.level((LEFT, RIGHT), scale.latency(p99_ms / 1e3), GRID, format_args!("{p99_ms} ms"));
    }
    for reports in [0_u32, 4, 20, 40] {
        let colour = if reports == 4 { "red" } else { GRID };
        plot.level((LEFT, RIGHT), scale.reports(reports), colour, reports);
    }
    let mut from_s = 0.0;
    for part in parts {
        let x = |at_s: f64| LEFT + (from_s + at_s) * scale.per_s;
        let p99 = by_second(part);
        plot.line(BLUE, p99.iter().map(|(at_s, p99)| (x(*at_s), scale.latency(*p99))));
        let looks = part.looks.iter().map(|look| {
            let at_s = look.at.saturating_duration_since(part.began).as_secs_f64();
            (x(at_s.min(part.time.as_secs_f64())), scale.reports(look.reports))
        });
        plot.line(BLACK, looks);
        plot.mark(x(0.0), (TOP, LOWER_BOTTOM), GRID);
        let name = (x(0.0) + 4.0, TOP + 10.0);
        plot.note(name, Stands::Behind, BLACK, part.part.name());
        let p99 = format!("p99 {:.2} ms", part.p99_s() * 1e3);
        plot.note((x(0.0) + 4.0, TOP + 24.0), Stands::Behind, BLUE, p99);
        from_s += part.time.as_secs_f64();
    }
    let below = format!(
        "blue: the web application's p99 of each second; black: reports at the server; red: the budget; {time_s:.0} s"
    );
    plot.note((RIGHT, HEIGHT - 6.0), Stands::Before, BLACK, below);
    plot.finish()
}

/// Server-seconds over time of what each budget is about, and the most that it allows: its burst and its
/// share of the time.
pub(crate) fn shares(measured: &share::Measured) -> String {
    let time_s = measured.taken.last().map_or(1.0, |taken| taken.at.as_secs_f64());
    let most = BUDGETED.iter().map(|it| it.burst_s + it.share * time_s).fold(1.0, f64::max);
    let x = |at_s: f64| LEFT + (RIGHT - LEFT) * at_s / time_s;
    let y = |seconds: f64| LOWER_BOTTOM - (LOWER_BOTTOM - TOP) * seconds / most;
    let mut plot = Plot::new(WIDTH, HEIGHT);
    for seconds in [0.0, 10.0, 20.0, 30.0, 40.0].into_iter().filter(|it| *it < most) {
        plot.level((LEFT, RIGHT), y(seconds), GRID, format_args!("{seconds} s"));
    }
    for it in BUDGETED {
        let allowed = |at_s: f64| it.burst_s + it.share * at_s;
        plot.line("red", [0.0, time_s].map(|at_s| (x(at_s), y(allowed(at_s)))));
        let points = measured.taken.iter().map(|now| (x(now.at.as_secs_f64()), y((it.of)(now))));
        plot.line(BLUE, points);
        let place = (RIGHT - 4.0, y(allowed(time_s)) + 24.0);
        plot.note(place, Stands::Before, BLUE, format_args!("{}, {}", it.name, it.share));
    }
    let below = format!(
        "blue: server-seconds by the server's statement timers; red: burst + share of the time; {time_s:.0} s"
    );
    plot.note((RIGHT, HEIGHT - 6.0), Stands::Before, BLACK, below);
    plot.finish()
}

/// The 99th percentile of the statements sent in each second of a part, at that second's middle.
fn by_second(part: &Measured) -> Vec<(f64, f64)> {
    let mut seconds: Vec<(u64, f64)> = part
        .web
        .iter()
        .map(|seen| (seen.at.saturating_duration_since(part.began).as_secs(), seen.took_s))
        .collect();
    seconds.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let of_each = seconds.chunk_by(|a, b| a.0 == b.0);
    of_each
        .filter_map(|chunk| {
            let (second, _) = chunk.first()?;
            let sorted: Vec<f64> = chunk.iter().map(|(_, took_s)| *took_s).collect();
            let middle = f64::from(u32::try_from(*second).ok()?) + 0.5;
            Some((middle.min(part.time.as_secs_f64()), quantile(&sorted, 0.99)))
        })
        .collect()
}

struct Scale {
    per_s: f64,
}

impl Scale {
    /// From 0.1 ms to 1 s, by powers of ten.
    fn latency(&self, seconds: f64) -> f64 {
        let part = (seconds.clamp(1e-4, 1.0).log10() + 4.0) / 4.0;
        UPPER_BOTTOM - (UPPER_BOTTOM - TOP) * part
    }

    fn reports(&self, reports: u32) -> f64 {
        LOWER_BOTTOM - (LOWER_BOTTOM - LOWER_TOP) * f64::from(reports.min(40)) / 40.0
    }
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 748.0;
const TOP: f64 = 10.0;
const UPPER_BOTTOM: f64 = 220.0;
const LOWER_TOP: f64 = 240.0;
const LOWER_BOTTOM: f64 = 350.0;
const GRID: &str = "#ddd";
const BLUE: &str = "#06c";
const BLACK: &str = "#333";
