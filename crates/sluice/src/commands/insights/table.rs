//! Insights as a table, and as CSV.

use std::collections::BTreeMap;

use admin::insights::{Cost, Insights, Row};

use super::super::rules::printable;

/// Characters of a text that stand in the table.
const TEXT_LEN: usize = 80;

/// A table for people.
pub(super) fn text(shown: &Insights) -> String {
    let compared = shown.compared_from.is_some();
    // Rows of several clusters look alike otherwise.
    let first = shown.rows.first().map(|row| &row.cluster);
    let of_clusters = shown.rows.iter().any(|row| Some(&row.cluster) != first);
    let mut head =
        vec!["time %", "count", "errors", "mean", "p50", "p99", "queued", "refused", "rows"];
    if compared {
        head.extend(["change", "was count", "was mean"]);
    }
    if of_clusters {
        head.push("cluster");
    }
    head.extend(names(&shown.by));
    let mut lines = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    lines.extend(shown.rows.iter().map(|row| {
        let mut cells = numbers(row, compared);
        cells.extend(of_clusters.then(|| printable(&row.cluster)));
        cells.extend(named(row, &shown.by));
        cells
    }));
    let mut text = format!("{} to {}, by {}\n", shown.from, shown.to, shown.by);
    if let (Some(from), Some(to)) = (&shown.compared_from, &shown.compared_to) {
        text.push_str(&format!("compared with {from} to {to}\n"));
        if shown.compared_window_s == Some(0.0) {
            text.push_str("! Nothing was counted then: that all is new says nothing.\n");
        }
    }
    text.push_str(&aligned(&lines));
    if !shown.enabled {
        text.push_str("! Nothing is counted now: insights.enabled of the file is false.\n");
    }
    let Cost { count, errors, refused, time_total_s, .. } = &shown.total;
    let more = shown.rows_total.saturating_sub(shown.rows.len());
    let more = if more > 0 { format!(", {more} more rows") } else { String::new() };
    text.push_str(&format!(
        "in all: {count} statements, {errors} errors, {refused} refused, {} at the server{more}\n",
        span(Some(*time_total_s))
    ));
    text
}

fn names(by: &str) -> &'static [&'static str] {
    match by {
        "app" => &["app"],
        "user" => &["user"],
        "table" => &["table"],
        _ if by.starts_with("tag:") => &["tag"],
        _ => &["app", "schema", "digest", "text"],
    }
}

fn numbers(row: &Row, compared: bool) -> Vec<String> {
    let cost = &row.cost;
    let mut line = vec![
        format!("{:.1}", cost.share * 100.0),
        cost.count.to_string(),
        cost.errors.to_string(),
        span(cost.time_mean_s),
        span(cost.time_p50_s),
        span(cost.time_p99_s),
        span(Some(cost.queued_total_s).filter(|queued| *queued > 0.0)),
        cost.refused.to_string(),
        cost.rows_sent.saturating_add(cost.rows_affected).to_string(),
    ];
    if compared {
        let before = row.before.clone().unwrap_or_default();
        line.push(row.change.clone().unwrap_or_default());
        line.push(before.count.to_string());
        line.push(span(before.time_mean_s));
    }
    line
}

/// What it is about.
fn named(row: &Row, by: &str) -> Vec<String> {
    match by {
        "app" => vec![name(&row.app)],
        "user" => vec![name(&row.user)],
        _ if by.starts_with("tag:") => vec![name(&row.tag)],
        "table" => vec![name(&row.table)],
        _ => {
            let text = name(&row.digest_text).chars().take(TEXT_LEN).collect();
            vec![name(&row.app), name(&row.schema), name(&row.digest), text]
        }
    }
}

/// Columns as wide as their widest cell; the last is as long as it is.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line: Vec<String> = cells.collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Three digits and a unit.
fn span(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(s) if s < 0.001 => format!("{:.0}us", s * 1e6),
        Some(s) if s < 1.0 => format!("{:.1}ms", s * 1e3),
        Some(s) if s < 600.0 => format!("{s:.1}s"),
        Some(s) => format!("{:.0}min", s / 60.0),
    }
}

/// A line for each row, after one with the names of the columns (RFC 4180).
pub(super) fn csv(shown: &Insights) -> String {
    let mut text = String::new();
    let mut put = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    };
    put(COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect());
    for row in &shown.rows {
        put(COLUMNS.iter().map(|(_, cell)| cell(row)).collect());
    }
    text
}

type Cell = fn(&Row) -> String;

const COLUMNS: [(&str, Cell); 34] = [
    ("cluster", |row| row.cluster.clone()),
    ("app", |row| name(&row.app)),
    ("schema", |row| name(&row.schema)),
    ("user", |row| name(&row.user)),
    ("table", |row| name(&row.table)),
    ("tag", |row| name(&row.tag)),
    ("digest", |row| name(&row.digest)),
    ("digest_text", |row| name(&row.digest_text)),
    ("count", |row| row.cost.count.to_string()),
    ("errors", |row| row.cost.errors.to_string()),
    ("lost", |row| row.cost.lost.to_string()),
    ("warnings", |row| row.cost.warnings.to_string()),
    ("time_total_s", |row| row.cost.time_total_s.to_string()),
    ("share", |row| row.cost.share.to_string()),
    ("time_mean_s", |row| seconds(row.cost.time_mean_s)),
    ("time_p50_s", |row| seconds(row.cost.time_p50_s)),
    ("time_p95_s", |row| seconds(row.cost.time_p95_s)),
    ("time_p99_s", |row| seconds(row.cost.time_p99_s)),
    ("time_max_s", |row| seconds(row.cost.time_max_s)),
    ("queued_total_s", |row| row.cost.queued_total_s.to_string()),
    ("refused", |row| row.cost.refused.to_string()),
    ("client_gone", |row| row.cost.client_gone.to_string()),
    ("rows_sent", |row| row.cost.rows_sent.to_string()),
    ("rows_affected", |row| row.cost.rows_affected.to_string()),
    ("bytes_in", |row| row.cost.bytes_in.to_string()),
    ("bytes_out", |row| row.cost.bytes_out.to_string()),
    ("first_seen", |row| name(&row.cost.first_seen)),
    ("last_seen", |row| name(&row.cost.last_seen)),
    ("change", |row| name(&row.change)),
    ("class", |row| name(&row.class)),
    ("tables", |row| name(&row.tables.as_ref().map(|tables| tables.join(" ")))),
    ("errors_by_number", |row| counts(&row.cost.errors_by_number)),
    ("refused_by_reason", |row| counts(&row.cost.refused_by_reason)),
    ("sample_text", |row| name(&row.sample_text)),
];

/// `1062=3 1205=1`
fn counts(counts: &BTreeMap<String, u64>) -> String {
    let each: Vec<String> = counts.iter().map(|(of, count)| format!("{of}={count}")).collect();
    each.join(" ")
}

fn name(name: &Option<String>) -> String {
    name.as_deref().map(printable).unwrap_or_default()
}

fn seconds(seconds: Option<f64>) -> String {
    seconds.map(|seconds| seconds.to_string()).unwrap_or_default()
}

/// In quotes where a comma, a quote or a line end wants it. What a spreadsheet would take for a
/// formula is made text.
fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err();
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Insights {
        let cost = Cost {
            count: 3,
            time_total_s: 0.012,
            share: 0.5,
            time_mean_s: Some(0.004),
            ..Cost::default()
        };
        let some = |text: &str| Some(text.to_owned());
        let row = Row {
            cluster: "main".to_owned(),
            app: some("=etl"),
            schema: some("shop"),
            digest: some("00ff"),
            digest_text: some("SELECT a, \"b\" FROM t\u{1b}[2J"),
            cost: cost.clone(),
            ..Row::default()
        };
        Insights {
            from: "2026-12-01T04:00:00Z".to_owned(),
            to: "2026-12-01T04:10:09Z".to_owned(),
            by: "digest".to_owned(),
            rows: vec![row],
            rows_total: 4,
            total: cost,
            enabled: true,
            ..Insights::default()
        }
    }

    #[test]
    fn the_table_has_what_it_cost_and_no_control_characters() {
        let table = text(&shown());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "2026-12-01T04:00:00Z to 2026-12-01T04:10:09Z, by digest");
        assert!(lines[2].starts_with("50.0    3      0       4.0ms"), "{table}");
        assert!(lines[2].ends_with("=etl  shop    00ff    SELECT a, \"b\" FROM t\u{fffd}[2J"));
        assert!(!table.contains("! Nothing is counted"), "{table}");
        let off = text(&Insights { enabled: false, ..shown() });
        assert!(off.contains("\n! Nothing is counted now: insights.enabled"), "{off}");
        assert!(lines[3].contains("3 statements") && lines[3].ends_with("3 more rows"), "{table}");
    }

    #[test]
    fn csv_is_read_by_spreadsheets_and_runs_nothing_there() {
        let csv = csv(&shown());
        let mut lines = csv.split("\r\n");
        assert!(lines.next().unwrap().starts_with("cluster,app,schema,user,table,tag,digest,"));
        let row = lines.next().unwrap();
        assert!(row.starts_with("main,'=etl,shop,,,,00ff,\"SELECT a, \"\"b\"\" FROM t"), "{row}");
    }

    #[test]
    fn csv_has_what_was_refused_and_what_failed_by_what_it_was() {
        let counts = |of: [(&str, u64); 2]| of.map(|(of, count)| (of.to_owned(), count)).into();
        let cost = Cost {
            errors_by_number: counts([("1205", 1), ("1062", 3)]),
            refused_by_reason: counts([("guard", 2), ("budget_rate", 1)]),
            ..Cost::default()
        };
        let row = Row {
            class: Some("write".to_owned()),
            tables: Some(vec!["shop.t".to_owned(), "shop.u".to_owned()]),
            sample_text: Some("DELETE FROM t, \n u".to_owned()),
            cost,
            ..Row::default()
        };
        let csv = csv(&Insights { rows: vec![row], ..shown() });
        let (head, row) = csv.split_once("\r\n").unwrap();
        let last = "change,class,tables,errors_by_number,refused_by_reason,sample_text";
        assert!(head.ends_with(last), "{head}");
        let last = ",,write,shop.t shop.u,1062=3 1205=1,budget_rate=1 guard=2,\"DELETE FROM t, \u{fffd} u\"\r\n";
        assert!(row.ends_with(last), "{row}");
    }

    #[test]
    fn compared_with_nothing_says_that_new_means_nothing() {
        let compared = |seconds| Insights {
            compared_from: Some("2026-12-01T03:54:00Z".to_owned()),
            compared_to: Some("2026-12-01T04:00:00Z".to_owned()),
            compared_window_s: Some(seconds),
            ..shown()
        };
        assert!(text(&compared(0.0)).contains("\n! Nothing was counted then: "));
        assert!(!text(&compared(0.5)).contains("! Nothing"));
    }

    #[test]
    fn the_table_names_the_cluster_where_there_are_several() {
        let mut both = shown();
        assert!(!text(&both).contains("main"), "{}", text(&both));
        both.rows.push(Row { cluster: "other".to_owned(), ..both.rows[0].clone() });
        let table = text(&both);
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[1].ends_with("rows  cluster  app   schema  digest  text"), "{table}");
        assert!(lines[2].contains("main     =etl"), "{table}");
        assert!(lines[3].contains("other    =etl"), "{table}");
    }

    #[test]
    fn csv_by_tag_says_which_value() {
        let row = Row { tag: Some("acme, \"inc\"".to_owned()), ..Row::default() };
        let by_tag = Insights { by: "tag:tenant".to_owned(), rows: vec![row], ..shown() };
        let csv = csv(&by_tag);
        assert!(csv.contains("\r\n,,,,,\"acme, \"\"inc\"\"\",,"), "{csv}");
    }
}
