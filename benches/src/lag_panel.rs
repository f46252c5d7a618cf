//! Lag over time of several ways, in a part of a plot. The lag is on a root scale, so that both a
//! fifth of a second and two minutes can be read.

use std::time::Duration;

use integration::lag_meter::LagSeries;

use crate::plot::{Plot, Stands};
use crate::way::Way;

/// Where the panel is in the plot, and what its edges stand for.
#[derive(Debug, Clone, Copy)]
pub struct LagPanel {
    /// Left and right edge.
    pub across: (f64, f64),
    /// Upper and lower edge.
    pub down: (f64, f64),
    /// At the right edge; the left one is 0.
    pub time_s: f64,
    /// At the upper edge; the lower one is 0.
    pub lag_s: f64,
}

impl LagPanel {
    /// Levels of the lag, the threshold's in red.
    pub fn grid(&self, plot: &mut Plot, threshold: Duration) {
        for lag_s in GRID.into_iter().filter(|lag_s| *lag_s <= self.lag_s) {
            let is_threshold = (lag_s - threshold.as_secs_f64()).abs() < 1e-9;
            let colour = if is_threshold { "red" } else { "#ddd" };
            plot.level(self.across, self.y(lag_s), colour, format_args!("{lag_s} s"));
        }
    }

    /// The lag of one way: points of time and lag, in seconds.
    pub fn line(&self, plot: &mut Plot, way: Way, points: &[(f64, f64)]) {
        plot.line(way.colour(), points.iter().map(|(at, lag)| (self.x(*at), self.y(*lag))));
    }

    /// The names of the ways, below one another in the upper left corner.
    pub fn legend(&self, plot: &mut Plot, ways: impl IntoIterator<Item = Way>) {
        for (way, row) in ways.into_iter().zip(0_u32..) {
            let place = (self.across.0 + 8.0, self.down.0 + 12.0 + 14.0 * f64::from(row));
            plot.note(place, Stands::Behind, way.colour(), way.as_str());
        }
    }

    /// A moment.
    pub fn mark(&self, plot: &mut Plot, at_s: f64) {
        plot.mark(self.x(at_s), self.down, "#9bd");
    }

    fn x(&self, at_s: f64) -> f64 {
        let (left, right) = self.across;
        left + (at_s / self.time_s).clamp(0.0, 1.0) * (right - left)
    }

    fn y(&self, lag_s: f64) -> f64 {
        let (top, bottom) = self.down;
        bottom - (lag_s / self.lag_s).clamp(0.0, 1.0).sqrt() * (bottom - top)
    }
}

/// The longest lag of each tenth of a second, in seconds.
#[must_use]
pub fn thinned(lag: &LagSeries) -> Vec<(f64, f64)> {
    let longest = |chunk: &[(Duration, Duration)]| {
        let (at, _) = chunk.first()?;
        let lag = chunk.iter().map(|(_, lag)| *lag).max()?;
        Some((at.as_secs_f64(), lag.as_secs_f64()))
    };
    lag.samples.chunks(SAMPLES_PER_POINT).filter_map(longest).collect()
}

/// Looks are 20 ms apart.
const SAMPLES_PER_POINT: usize = 5;
const GRID: [f64; 8] = [0.0, 0.2, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_five_looks_the_longest_lag_is_kept() {
        let ms = Duration::from_millis;
        let lags = [10, 20, 400, 30, 40, 50];
        let samples = lags.into_iter().zip(0_u64..).map(|(lag, n)| (ms(20 * n), ms(lag)));
        let points = thinned(&LagSeries { samples: samples.collect() });
        assert_eq!(points, [(0.0, 0.4), (0.1, 0.05)]);
    }

    #[test]
    fn a_quarter_of_the_longest_lag_is_drawn_at_half_the_height() {
        let panel =
            LagPanel { across: (10.0, 110.0), down: (0.0, 50.0), time_s: 20.0, lag_s: 40.0 };
        let mut plot = Plot::new(120.0, 60.0);
        panel.line(&mut plot, Way::Adaptive, &[(0.0, 0.0), (10.0, 10.0), (99.0, 99.0)]);
        let drawn = plot.finish();
        assert!(drawn.contains("points=\"10.0,50.0 60.0,25.0 110.0,0.0\""), "{drawn}");
    }
}
