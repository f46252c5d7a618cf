//! The status as text: readable without colour, and without a wide terminal.

use std::fmt::{self, Write as _};

use admin::status::Status;
use admin::status::words::{self, Line, Table, Tone};

/// Rows of a table that are written: a terminal has few more. The JSON has all that there are.
const ROWS_MAX: usize = 50;

/// Characters of a cell: names come from clients, and reasons of rules from whoever wrote them. What
/// stands last in its row widens no column of others.
const CELL_LEN_MAX: usize = 100;
const LAST_CELL_LEN_MAX: usize = 400;

/// Whether tones are shown in colour as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Style {
    Plain,
    Coloured,
}

pub(super) fn render(status: &Status, style: Style) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    write(&mut text, status, style).ok();
    text
}

fn write(text: &mut String, status: &Status, style: Style) -> fmt::Result {
    write_lines(text, &words::head(status), style)?;
    for cluster in &status.clusters {
        write!(text, "\n{}", style.bold(&format!("cluster {}", shown(&cluster.cluster))))?;
        text.push('\n');
        write_lines(text, &words::cluster_head(cluster), style)?;
        for table in words::tables(cluster) {
            write_table(text, &table, style)?;
        }
    }
    Ok(())
}

fn write_lines(text: &mut String, lines: &[Line], style: Style) -> fmt::Result {
    for line in lines {
        write_line(text, line.tone, &shown(&line.text), style)?;
    }
    Ok(())
}

/// The mark stands where colour is not seen.
pub(in crate::commands) fn write_line(
    text: &mut String,
    tone: Tone,
    line: &str,
    style: Style,
) -> fmt::Result {
    let mark = match tone {
        Tone::Plain | Tone::Good => ' ',
        Tone::Bad => '!',
    };
    writeln!(text, "{}", style.tone(tone, &format!("{mark} {}", line.trim_end())))
}

pub(in crate::commands) fn write_table(
    text: &mut String,
    table: &Table,
    style: Style,
) -> fmt::Result {
    let Table { caption, columns, rows, total } = table;
    let head: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    let cells = rows.iter().take(ROWS_MAX).map(|row| {
        let last = row.cells.len().saturating_sub(1);
        let cells = row.cells.iter().enumerate().map(|(place, cell)| {
            let len_max = if place == last { LAST_CELL_LEN_MAX } else { CELL_LEN_MAX };
            cut(&shown(cell), len_max)
        });
        (row.tone, cells.collect())
    });
    let cells: Vec<(Tone, Vec<String>)> = cells.collect();
    let widths = widths(&head, &cells);
    write!(text, "\n{}", style.bold(caption))?;
    text.push('\n');
    write_line(text, Tone::Plain, &padded(&head, &widths), style)?;
    for (tone, row) in &cells {
        write_line(text, *tone, &padded(row, &widths), style)?;
    }
    let written = u64::try_from(cells.len()).unwrap_or(u64::MAX);
    let further = total.saturating_sub(written);
    if further > 0 {
        writeln!(text, "  … and {further} more")?;
    }
    Ok(())
}

fn widths(head: &[String], rows: &[(Tone, Vec<String>)]) -> Vec<usize> {
    let length = |cell: &String| cell.chars().count();
    let mut widths: Vec<usize> = head.iter().map(length).collect();
    for (_, row) in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(length(cell));
        }
    }
    widths
}

fn padded(cells: &[String], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
    cells.collect::<Vec<String>>().join("  ")
}

fn cut(cell: &str, len_max: usize) -> String {
    match cell.char_indices().nth(len_max) {
        Some((end, _)) => format!("{}…", cell.get(..end).unwrap_or_default()),
        None => cell.to_owned(),
    }
}

/// Names come from clients: nothing in them may move the cursor, colour the terminal, turn its
/// lines round or begin a new one.
pub(in crate::commands) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

impl Style {
    fn bold(self, text: &str) -> String {
        self.painted("1", text)
    }

    fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => text.to_owned(),
            Tone::Good => self.painted("32", text),
            Tone::Bad => self.painted("1;31", text),
        }
    }

    fn painted(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use admin::status::{ClusterStatus, RuleStatus, SignalStatus};

    use super::*;

    fn status() -> Status {
        let signal = SignalStatus { signal: "lag".to_owned(), ..SignalStatus::default() };
        let hostile =
            RuleStatus { rule: "a\x1b[2J\nb\u{202e}".to_owned(), ..RuleStatus::default() };
        let cluster = ClusterStatus {
            cluster: "main".to_owned(),
            signals: vec![signal],
            rules: vec![hostile],
            rules_total: 7,
            ..ClusterStatus::default()
        };
        Status { version: "1.0".to_owned(), clusters: vec![cluster], ..Status::default() }
    }

    #[test]
    fn what_wants_attention_is_marked_with_and_without_colour() {
        let plain = render(&status(), Style::Plain);
        assert!(plain.contains("\n! lag     –"), "{plain}");
        assert!(!plain.contains('\x1b'), "{plain}");
        let coloured = render(&status(), Style::Coloured);
        assert!(coloured.contains("\n\x1b[1;31m! lag     –"), "{coloured}");
    }

    #[test]
    fn a_name_is_neither_a_line_nor_a_command_to_the_terminal() {
        let plain = render(&status(), Style::Plain);
        assert!(plain.contains("a\\u{1b}[2J\\nb\\u{202e}"), "{plain}");
        assert!(plain.contains("  … and 6 more\n"), "{plain}");
    }

    #[test]
    fn a_long_cell_is_cut() {
        assert_eq!(cut(&"ü".repeat(200), CELL_LEN_MAX).chars().count(), CELL_LEN_MAX + 1);
        assert_eq!(cut("short", CELL_LEN_MAX), "short");
    }
}
