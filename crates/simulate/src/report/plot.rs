//! Lag and rate over time, in as many columns as a terminal has.

use std::time::Duration;

use admission::MonoTime;

/// Columns of a plot: with its scale it fits 100.
pub(crate) const PLOT_COLUMNS: u32 = 84;
/// Lines of a plot.
const ROWS: u32 = 4;
/// A cell from one eighth to full.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What is plotted.
#[derive(Debug, Clone)]
pub(crate) struct Plot {
    column: Duration,
    /// The highest of each column, in seconds.
    lag: Vec<f64>,
    /// Rows admitted in each column.
    rows: Vec<f64>,
}

impl Plot {
    pub(crate) fn new(duration: Duration) -> Self {
        let columns = usize::try_from(PLOT_COLUMNS).unwrap_or(1);
        let column = duration.checked_div(PLOT_COLUMNS).unwrap_or(duration);
        Self { column, lag: vec![0.0; columns], rows: vec![0.0; columns] }
    }

    fn column(&self, now: MonoTime) -> usize {
        let passed = now.saturating_since(MonoTime::ZERO).as_nanos();
        let index = passed.checked_div(self.column.as_nanos()).unwrap_or(0);
        usize::try_from(index).unwrap_or(usize::MAX)
    }

    pub(crate) fn lag(&mut self, now: MonoTime, lag_s: f64) {
        let column = self.column(now);
        if let Some(highest) = self.lag.get_mut(column) {
            *highest = highest.max(lag_s);
        }
    }

    pub(crate) fn admitted(&mut self, now: MonoTime, rows: f64) {
        let column = self.column(now);
        if let Some(sum) = self.rows.get_mut(column) {
            *sum += rows;
        }
    }

    /// Two charts, one above the other.
    pub(crate) fn lines(&self) -> Vec<String> {
        let seconds = self.column.as_secs_f64();
        let rates: Vec<f64> = self.rows.iter().map(|rows| rows / seconds).collect();
        let mut lines = chart("lag, s", &self.lag);
        lines.extend(chart("rows/s", &rates));
        let end = format!("{:.0} s", seconds * f64::from(PLOT_COLUMNS));
        let width = usize::try_from(PLOT_COLUMNS).unwrap_or(0).saturating_sub(3);
        lines.push(format!("{:>9}  0 s{end:>width$}", ""));
        lines
    }
}

fn chart(title: &str, values: &[f64]) -> Vec<String> {
    let highest = values.iter().copied().fold(0.0, f64::max);
    let rows = (0..ROWS).rev().map(|row| {
        let label = if row == ROWS.saturating_sub(1) {
            shown(highest)
        } else if row == 0 {
            title.to_owned()
        } else {
            String::new()
        };
        let cells: String = values.iter().map(|value| cell(*value, highest, row)).collect();
        format!("{label:>9} ┤{cells}")
    });
    rows.collect()
}

fn shown(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// What a column of this height has in this row, counted from the bottom.
fn cell(value: f64, highest: f64, row: u32) -> char {
    if highest <= 0.0 {
        return ' ';
    }
    let filled = (value / highest).mul_add(f64::from(ROWS), -f64::from(row));
    let eighths = BLOCKS.iter().zip(1_u32..).take_while(|(_, n)| filled * 8.0 >= f64::from(*n));
    eighths.last().map_or(' ', |(block, _)| *block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_filled_from_the_bottom() {
        let column = |value| [3, 2, 1, 0].map(|row| cell(value, 4.0, row));
        assert_eq!(column(4.0), ['█', '█', '█', '█']);
        assert_eq!(column(1.5), [' ', ' ', '▄', '█']);
        assert_eq!(column(0.0), [' ', ' ', ' ', ' ']);
    }
}
