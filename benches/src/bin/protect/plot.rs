//! What the web app pays for what the reports get; and how the limit was steered.

use benches::plot::{Plot, Stands};

use crate::WITHIN;
use crate::block::{Measured, Way};
use crate::report::{Alone, sluice_p99, undisturbed};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 720.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 280.0;
/// Where a panel over time begins, and how tall it is.
const PROTECTED_TOP: f64 = 320.0;
const BINARY_TOP: f64 = 530.0;
const PANEL: f64 = 150.0;
const BLUE: &str = "#06c";
const GREY: &str = "#888";

/// Above, reports a second to the right and the app's p99 at the server upwards, on a root scale; below, over
/// the time of the protected block and of the binary one, the signal, the limit and what was in flight.
pub(crate) fn svg(all: &[Measured]) -> String {
    let mut plot = Plot::new(WIDTH, HEIGHT);
    upper(&mut plot, all);
    for (way, top) in [(Way::Protected, PROTECTED_TOP), (Way::Binary, BINARY_TOP)] {
        if let Some(it) = all.iter().find(|it| it.way == way) {
            over_time(&mut plot, it, top);
        }
    }
    plot.finish()
}

fn upper(plot: &mut Plot, all: &[Measured]) {
    let Alone { server_p99_s, sluice_p99_s: alone } = undisturbed(all);
    // Without Sluice in between, by the server's own.
    let p99 = |it: &Measured| match it.sluice {
        Some(_) => sluice_p99(it),
        None => it.server.quantile(0.99) / server_p99_s * alone,
    };
    let all: Vec<&Measured> = all.iter().collect();
    let most = all.iter().map(|it| it.reports_per_s).fold(1e-9, f64::max);
    let slowest = all.iter().map(|it| p99(it)).fold(1e-9, f64::max);
    let x = |per_s: f64| LEFT + (RIGHT - LEFT) * per_s / most;
    let y = |p99: f64| BOTTOM - (BOTTOM - TOP) * (p99 / slowest).sqrt();
    let place = |it: &Measured| (x(it.reports_per_s), y(p99(it)));
    for (factor, colour) in [(1.0, "#ddd"), (WITHIN, "red"), (2.0, "#ddd")] {
        let p99 = alone * factor;
        plot.level((LEFT, RIGHT), y(p99), colour, format_args!("{:.2} ms", p99 * 1e3));
    }
    let mut fixed: Vec<&Measured> = all
        .iter()
        .copied()
        .filter(|it| matches!(it.way, Way::Undisturbed | Way::Part(_) | Way::Limit(_)))
        .collect();
    fixed.sort_by(|a, b| a.reports_per_s.total_cmp(&b.reports_per_s));
    plot.line(GREY, fixed.into_iter().map(place));
    for it in all {
        let (x, y) = place(it);
        let colour = match it.way {
            Way::Undisturbed | Way::Part(_) | Way::Limit(_) => GREY,
            Way::Protected => BLUE,
            Way::Binary => "#c60",
            Way::Direct => "#000",
        };
        plot.dot((x, y), colour);
        plot.note((x - 5.0, y - 4.0), Stands::Before, colour, it.way.name());
    }
    let below = format!(
        "reports a second, up to {most:.0}; upwards the web app's p99 at the server; red: {WITHIN} times undisturbed"
    );
    plot.note((RIGHT, BOTTOM + 16.0), Stands::Before, "black", below);
}

fn over_time(plot: &mut Plot, it: &Measured, top: f64) {
    let bottom = top + PANEL;
    let time_s = it.looks.last().map_or(1.0, |look| look.at.as_secs_f64());
    let x = |at_s: f64| LEFT + (RIGHT - LEFT) * at_s / time_s;
    plot.mark(x(it.warm_up.as_secs_f64()), (top, bottom), "#ddd");
    let scaled = |value: f64, most: f64| bottom - PANEL * value / most;
    let values = it.looks.iter().filter_map(|look| Some((look.at.as_secs_f64(), look.value_s?)));
    let limits = it.looks.iter().filter_map(|look| Some((look.at.as_secs_f64(), look.limit?)));
    let flights = it.looks.iter().filter_map(|look| Some((look.at.as_secs_f64(), look.in_flight?)));
    let slowest = values.clone().map(|(_, value)| value).fold(1e-9, f64::max);
    let most = limits.clone().chain(flights.clone()).map(|(_, n)| n).fold(1.0, f64::max);
    plot.level((LEFT, RIGHT), bottom, "#ddd", "0");
    plot.level((LEFT, RIGHT), top, "#ddd", format_args!("{:.2} ms", slowest * 1e3));
    plot.line("#bbb", flights.map(|(at, n)| (x(at), scaled(n, most))));
    plot.line(GREY, limits.map(|(at, n)| (x(at), scaled(n, most))));
    plot.line(BLUE, values.map(|(at, value)| (x(at), scaled(value, slowest))));
    let below = format!(
        "{}, {time_s:.0} s, measured from {:.0} s on; blue: the signal; grey: the limit and what was in flight, up to {most:.0}",
        it.way.name(),
        it.warm_up.as_secs_f64(),
    );
    plot.note((RIGHT, bottom + 16.0), Stands::Before, "black", below);
}
