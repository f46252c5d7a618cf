//! Lag, pace and queue as they went.

use std::collections::VecDeque;

use admin::status::ClusterStatus;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Color;
use ratatui::symbols::Marker;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType};

use super::{Paint, amount};
use crate::commands::status::text::shown;
use crate::commands::top::course::{Look, Watched, gauge, lossy};
use crate::commands::top::plain::governs;
use crate::commands::top::table::rounded;

/// A plot of one value over time.
struct Plot {
    title: String,
    color: Color,
    /// Unbroken stretches: between them nothing was known.
    stretches: Vec<Vec<(f64, f64)>>,
    /// A line across.
    threshold: Option<f64>,
}

/// The three, side by side.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    (watched, cluster): (&Watched, &ClusterStatus),
    paint: Paint,
) {
    let Some(course) = watched.course(&cluster.cluster) else { return };
    let looks = &course.looks;
    let signal = gauge(cluster);
    let (is_open, threshold) = signal.map_or((true, None), |s| (s.open, Some(s.threshold)));
    let title = signal.map_or_else(
        || " no signal ".to_owned(),
        |signal| {
            let gate = if signal.open { "open" } else { "SHUT" };
            let value = amount(signal.value, &signal.unit);
            let threshold = amount(Some(signal.threshold), &signal.unit);
            format!(" {}: {value} of {threshold}, {gate} ", shown(&signal.signal))
        },
    );
    let lag = Plot {
        title,
        color: if is_open { Color::Green } else { Color::Red },
        stretches: stretches(looks, |look| look.signal),
        threshold,
    };
    let pace = cluster.pace.per_second.map(rounded);
    let unit = shown(&cluster.pace.unit);
    let governs = governs(cluster);
    let pace = Plot {
        title: pace.map_or_else(
            || format!(" pace: –{governs} "),
            |pace| format!(" pace: {pace} {unit}/s{governs} "),
        ),
        color: Color::Cyan,
        stretches: stretches(looks, |look| look.pace),
        threshold: None,
    };
    let queue = Plot {
        title: format!(" queue: {} wait ", cluster.waiting_total),
        color: if cluster.waiting_total > 0 { Color::Yellow } else { Color::Green },
        stretches: stretches(looks, |look| Some(look.queue)),
        threshold: None,
    };
    let now = looks.back().map_or(0.0, |look| look.at_s);
    let areas: [Rect; 3] = Layout::horizontal([Constraint::Fill(1); 3]).areas(area);
    for (plot, area) in [lag, pace, queue].iter().zip(areas) {
        plot.draw(frame, area, now, paint);
    }
}

fn stretches(looks: &VecDeque<Look>, pick: impl Fn(&Look) -> Option<f64>) -> Vec<Vec<(f64, f64)>> {
    let mut stretches = vec![Vec::new()];
    for look in looks {
        match (pick(look), stretches.last_mut()) {
            (Some(value), Some(stretch)) => stretch.push((look.at_s, value)),
            (None, _) => stretches.push(Vec::new()),
            (Some(_), None) => {}
        }
    }
    stretches.retain(|stretch| !stretch.is_empty());
    stretches
}

impl Plot {
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, now: f64, paint: Paint) {
        // Two dots of braille in a cell.
        let span = lossy(u64::from(area.width)).max(10.0) * 2.0;
        let from = (now - span).max(0.0);
        let x = [from, from + span];
        let seen = self.stretches.iter().flatten().filter(|(at, _)| *at >= from);
        let highest = seen.map(|(_, value)| *value).fold(self.threshold.unwrap_or(0.0), f64::max);
        let top = if highest > 0.0 { highest * 1.15 } else { 1.0 };
        let across = self.threshold.map(|threshold| [(x[0], threshold), (x[1], threshold)]);
        let line = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line);
        let threshold = across.as_ref().map(|across| line.clone().data(across));
        let color = paint.coloured(self.color);
        let values = self.stretches.iter().map(|stretch| line.clone().style(color).data(stretch));
        let datasets: Vec<Dataset<'_>> = threshold.into_iter().chain(values).collect();
        let y = Axis::default().bounds([0.0, top]).labels(["0".to_owned(), short(top)]);
        let chart = Chart::new(datasets)
            .block(Block::bordered().title(self.title.as_str()))
            .x_axis(Axis::default().bounds(x))
            .y_axis(y)
            .legend_position(None);
        frame.render_widget(chart, area);
    }
}

/// Three digits.
fn short(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.1}"),
        value if value < 10_000.0 => format!("{value:.0}"),
        value => format!("{:.0}k", value / 1_000.0),
    }
}
