//! Lag over time of all ways, as a small SVG.

use benches::lag_panel::{LagPanel, thinned};
use benches::plot::{Plot, Stands};

use crate::setup::THRESHOLD;
use crate::watch::Measured;

/// The plot.
pub(crate) fn svg(all: &[Measured]) -> String {
    let longest = all.iter().map(|measured| measured.lag.quantile(1.0)).max().unwrap_or_default();
    let time = all.iter().map(|measured| measured.time).max().unwrap_or_default();
    let panel = LagPanel {
        across: (LEFT, RIGHT),
        down: (10.0, 276.0),
        time_s: time.as_secs_f64().max(1.0),
        lag_s: longest.as_secs_f64().max(2.0),
    };
    let mut plot = Plot::new(760.0, HEIGHT);
    panel.grid(&mut plot, THRESHOLD);
    for measured in all {
        panel.line(&mut plot, measured.way, &thinned(&measured.lag));
    }
    panel.legend(&mut plot, all.iter().map(|measured| measured.way));
    let below = format!("true lag over {:.0} s; red: the threshold", panel.time_s);
    plot.note((RIGHT, HEIGHT - 6.0), Stands::Before, "black", below);
    plot.finish()
}

const LEFT: f64 = 48.0;
const RIGHT: f64 = 748.0;
const HEIGHT: f64 = 300.0;
