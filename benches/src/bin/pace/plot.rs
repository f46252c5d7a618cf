//! Lag over time of all ways, as a small SVG.

use benches::plot::{Plot, Stands};

use crate::setup::{THRESHOLD, Way};
use crate::watch::Measured;

/// The plot. Lag is on a root scale, so that both a fifth of a second and two minutes can be read.
pub(crate) fn svg(all: &[Measured]) -> String {
    let longest = all.iter().map(|measured| measured.lag.quantile(1.0)).max().unwrap_or_default();
    let time = all.iter().map(|measured| measured.time).max().unwrap_or_default();
    let scale =
        Scale { time_s: time.as_secs_f64().max(1.0), lag_s: longest.as_secs_f64().max(2.0) };
    let mut plot = Plot::new(WIDTH, HEIGHT);
    for lag_s in GRID.into_iter().filter(|lag_s| *lag_s <= scale.lag_s) {
        let colour = if (lag_s - THRESHOLD.as_secs_f64()).abs() < 1e-9 { "red" } else { "#ddd" };
        plot.level((LEFT, RIGHT), scale.y(lag_s), colour, format_args!("{lag_s} s"));
    }
    for (measured, row) in all.iter().zip(0_u32..) {
        let colour = colour(measured.way);
        plot.line(colour, thinned(measured).map(|(at, lag)| scale.point(at, lag)));
        let place = (LEFT + 8.0, TOP + 12.0 + 14.0 * f64::from(row));
        plot.note(place, Stands::Behind, colour, measured.way.as_str());
    }
    let below = format!("true lag over {:.0} s; red: the threshold", scale.time_s);
    plot.note((RIGHT, HEIGHT - 6.0), Stands::Before, "black", below);
    plot.finish()
}

/// The longest lag of each tenth of a second.
fn thinned(measured: &Measured) -> impl Iterator<Item = (f64, f64)> {
    measured.lag.samples.chunks(SAMPLES_PER_POINT).filter_map(|chunk| {
        let (at, _) = chunk.first()?;
        let lag = chunk.iter().map(|(_, lag)| *lag).max()?;
        Some((at.as_secs_f64(), lag.as_secs_f64()))
    })
}

fn colour(way: Way) -> &'static str {
    match way {
        Way::Adaptive => "#0a7d32",
        Way::Binary => "#c07000",
        Way::Direct => "#777",
    }
}

struct Scale {
    time_s: f64,
    lag_s: f64,
}

impl Scale {
    fn y(&self, lag_s: f64) -> f64 {
        BOTTOM - (lag_s / self.lag_s).sqrt() * (BOTTOM - TOP)
    }

    fn point(&self, at_s: f64, lag_s: f64) -> (f64, f64) {
        (LEFT + (at_s / self.time_s).min(1.0) * (RIGHT - LEFT), self.y(lag_s))
    }
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 748.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 276.0;
const GRID: [f64; 8] = [0.0, 0.2, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0];
/// Looks are 20 ms apart.
const SAMPLES_PER_POINT: usize = 5;
