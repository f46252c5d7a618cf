//! What the web app pays for what the reports get, as a small SVG.

use benches::plot::{Plot, Stands};

use crate::load::Measured;
use crate::{WITHIN, Way};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 280.0;

/// The plot: reports a second to the right, p99 of the web app upwards, on a root scale.
pub(crate) fn svg(all: &[(Way, Measured)]) -> String {
    let most = all.iter().map(|(_, it)| it.reports_per_s()).fold(1e-9, f64::max);
    let slowest = all.iter().map(|(_, it)| it.quantile(0.99)).fold(1e-9, f64::max);
    let x = |per_s: f64| LEFT + (RIGHT - LEFT) * per_s / most;
    let y = |p99: f64| BOTTOM - (BOTTOM - TOP) * (p99 / slowest).sqrt();
    let place = |it: &Measured| (x(it.reports_per_s()), y(it.quantile(0.99)));
    let mut plot = Plot::new(WIDTH, HEIGHT);
    let undisturbed = all.iter().find(|(way, _)| *way == Way::Undisturbed);
    let alone = undisturbed.map_or(0.0, |(_, it)| it.quantile(0.99));
    for (factor, colour) in [(1.0, "#ddd"), (WITHIN, "red"), (2.0, "#ddd")] {
        let p99 = alone * factor;
        plot.level((LEFT, RIGHT), y(p99), colour, format_args!("{:.2} ms", p99 * 1e3));
    }
    let limits = all.iter().filter(|(way, _)| matches!(way, Way::Undisturbed | Way::Limit(_)));
    plot.line("#888", limits.map(|(_, it)| place(it)));
    for (way, it) in all {
        let (x, y) = place(it);
        let colour = match way {
            Way::Undisturbed | Way::Limit(_) => "#888",
            Way::Protected => "#06c",
            Way::Binary => "#c60",
            Way::Ungated => "#000",
        };
        plot.dot((x, y), colour);
        plot.note((x - 5.0, y - 4.0), Stands::Before, colour, way.name());
    }
    let below = format!(
        "reports a second, up to {most:.1}; upwards the web app's p99; red: {WITHIN} times undisturbed"
    );
    plot.note((RIGHT, HEIGHT - 6.0), Stands::Before, "black", below);
    plot.finish()
}
