//! What became of statements, a line for each part of the time.

use history::Answer;
use history::words::{Times, figures, quantity};
use jiff::tz::TimeZone;

const HEAD: [&str; 9] =
    ["from", "asked", "admitted", "delayed", "refused", "rows", "wait max", "wait p99", "lag max"];

/// The table; empty where nothing came.
pub(super) fn table(answer: &Answer, zone: &TimeZone) -> String {
    let times = Times::new(answer.since, answer.until, answer.now, zone);
    let mut rows = vec![HEAD.map(str::to_owned)];
    for part in &answer.parts {
        let counts = &part.counts;
        let lag = answer.signals.iter().filter(|it| it.at == part.at && it.signal == "lag");
        let lag = lag.map(|it| it.values.max).reduce(f64::max);
        rows.push([
            times.show(part.at),
            figures(counts.asked),
            figures(counts.admitted),
            figures(counts.delayed),
            figures(counts.refused),
            figures(counts.rows),
            quantity(counts.wait_max_s, "s"),
            quantity(counts.wait_p99_s, "s"),
            lag.map_or_else(|| "-".to_owned(), |lag| quantity(lag, "s")),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut text = String::from("\n");
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        text.push_str(&cells.join("  "));
        text.push('\n');
    }
    text
}
