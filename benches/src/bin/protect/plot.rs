//! What the web app pays for what the reports get, as a small SVG.

use std::fmt::Write as _;

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
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let undisturbed = all.iter().find(|(way, _)| *way == Way::Undisturbed);
    let alone = undisturbed.map_or(0.0, |(_, it)| it.quantile(0.99));
    for (factor, colour) in [(1.0, "#ddd"), (WITHIN, "red"), (2.0, "#ddd")] {
        let at = y(alone * factor);
        // Writing to a String cannot fail.
        writeln!(
            text,
            "<path d=\"M{LEFT} {at:.1}H{RIGHT}\" stroke=\"{colour}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.2} ms</text>",
            LEFT - 4.0,
            at + 4.0,
            alone * factor * 1e3
        )
        .ok();
    }
    let limits = all.iter().filter(|(way, _)| matches!(way, Way::Undisturbed | Way::Limit(_)));
    let line: Vec<String> = limits
        .map(|(_, it)| format!("{:.1},{:.1}", x(it.reports_per_s()), y(it.quantile(0.99))))
        .collect();
    writeln!(text, "<polyline fill=\"none\" stroke=\"#888\" points=\"{}\"/>", line.join(" ")).ok();
    for (way, it) in all {
        let (x, y) = (x(it.reports_per_s()), y(it.quantile(0.99)));
        let colour = match way {
            Way::Undisturbed | Way::Limit(_) => "#888",
            Way::Protected => "#06c",
            Way::Binary => "#c60",
            Way::Ungated => "#000",
        };
        writeln!(
            text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\" text-anchor=\"end\">{}</text>",
            x - 5.0,
            y - 4.0,
            way.name()
        )
        .ok();
    }
    writeln!(
        text,
        "<text x=\"{RIGHT}\" y=\"{}\" text-anchor=\"end\">reports a second, up to {most:.1}; \
         upwards the web app's p99; red: 1.25 times undisturbed</text>\n</svg>",
        HEIGHT - 6.0
    )
    .ok();
    text
}
