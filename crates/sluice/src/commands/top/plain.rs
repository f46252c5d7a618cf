//! A look as text.

use std::fmt::Write as _;

use admin::status::words::{Table, Tone, amount, tables};
use admin::status::{ClusterStatus, SignalStatus};

use super::course::{Course, Look, Watched, gauge};
use super::table::{Sorting, rounded, sorted, table};
use crate::commands::status::text::{Style, shown, write_line, write_table};

/// Looks in a plot of one line.
const PLOT_LEN: usize = 60;

/// What is shown of the cluster's tables, besides identities, by how its caption begins.
const CAPTIONS: [&str; 6] =
    ["Servers", "Who was refused", "Budgets", "Guards", "Quarantine", "Rules"];

/// One look. `cluster`: only that one.
pub(super) fn look(watched: &Watched, cluster: Option<&str>, by: Sorting, style: Style) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    write_look(&mut text, watched, cluster, (by, style)).ok();
    text
}

fn write_look(
    text: &mut String,
    watched: &Watched,
    only: Option<&str>,
    (by, style): (Sorting, Style),
) -> std::fmt::Result {
    let status = &watched.status;
    if let Some(why) = &watched.lost {
        return write_line(text, Tone::Bad, &format!("no answer: {}", shown(why)), style);
    }
    let head = format!("Sluice {} at {}", shown(&status.version), shown(&status.now));
    write_line(text, Tone::Plain, &head, style)?;
    for trouble in status.not_ready.iter().chain(&status.notes) {
        write_line(text, Tone::Bad, &shown(trouble), style)?;
    }
    let wanted = |cluster: &&ClusterStatus| only.is_none_or(|only| only == cluster.cluster);
    for cluster in status.clusters.iter().filter(wanted) {
        let Some(course) = watched.course(&cluster.cluster) else { continue };
        write_cluster(text, cluster, course, (by, style))?;
    }
    text.push('\n');
    Ok(())
}

fn write_cluster(
    text: &mut String,
    cluster: &ClusterStatus,
    course: &Course,
    (by, style): (Sorting, Style),
) -> std::fmt::Result {
    write_line(text, Tone::Plain, &title(cluster), style)?;
    for signal in &cluster.signals {
        let tone = if signal.open { Tone::Plain } else { Tone::Bad };
        let is_gauge = gauge(cluster).is_some_and(|gauge| gauge.signal == signal.signal);
        let plot = if is_gauge { plot(course, |look| look.signal) } else { String::new() };
        write_line(text, tone, &format!("{:<34}{plot}", signal_line(signal)), style)?;
    }
    let pace = format!("{:<34}{}", pace_line(cluster), plot(course, |look| look.pace));
    write_line(text, Tone::Plain, &pace, style)?;
    let tone = if cluster.waiting_total > 0 { Tone::Bad } else { Tone::Plain };
    let queue = format!("queue: {} wait", cluster.waiting_total);
    let queue = format!("{queue:<34}{}", plot(course, |look| Some(look.queue)));
    write_line(text, tone, &queue, style)?;
    let identities = table(&sorted(&course.identities, by), cluster.apps_total);
    let is_shown =
        |table: &Table| CAPTIONS.iter().any(|caption| table.caption.starts_with(caption));
    let others = tables(cluster).into_iter().filter(is_shown);
    let filled = |table: &Table| !table.rows.is_empty();
    for table in std::iter::once(identities).chain(others).filter(filled) {
        write_table(text, &table, style)?;
    }
    Ok(())
}

/// The cluster in a line.
pub(super) fn title(cluster: &ClusterStatus) -> String {
    let ClusterStatus { cluster: name, mode, client_connections, in_flight, .. } = cluster;
    format!(
        "cluster {}: {client_connections} client connections, {in_flight} admitted statements at \
         the server, mode {mode}",
        shown(name)
    )
}

/// A signal against its threshold.
pub(super) fn signal_line(signal: &SignalStatus) -> String {
    let SignalStatus { signal: name, value, threshold, unit, open, .. } = signal;
    let value = value.map_or_else(|| "no value".to_owned(), |value| amount(value, unit));
    let gate = if *open { "open" } else { "SHUT" };
    format!("{}: {value} of {}, {gate}", shown(name), amount(*threshold, unit))
}

/// What is let through while somebody waits.
pub(super) fn pace_line(cluster: &ClusterStatus) -> String {
    let governs = governs(cluster);
    match cluster.pace.per_second {
        Some(pace) => {
            format!("pace: {} {} a second{governs}", rounded(pace), shown(&cluster.pace.unit))
        }
        None => format!("pace: –{governs}"),
    }
}

/// The signal that has least room, if somebody lately found none.
pub(in crate::commands::top) fn governs(cluster: &ClusterStatus) -> String {
    let governs = cluster.pace.governs.as_deref();
    governs.map(|signal| format!(", by {}", shown(signal))).unwrap_or_default()
}

/// The last looks as bars, the highest of them as tall as a line; a dot where nothing was known.
fn plot(course: &Course, pick: impl Fn(&Look) -> Option<f64>) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let from = course.looks.len().saturating_sub(PLOT_LEN);
    let values: Vec<Option<f64>> = course.looks.iter().skip(from).map(pick).collect();
    let highest = values.iter().flatten().copied().fold(0.0, f64::max);
    let bar = |value: &Option<f64>| {
        let Some(value) = value else { return '·' };
        // From 0 to 7; whatever is no number is 0.
        let steps = if highest > 0.0 { (value / highest * 7.0).round() } else { 0.0 };
        let place = (0_u8..8).rfind(|place| f64::from(*place) <= steps).unwrap_or(0);
        BARS.get(usize::from(place)).copied().unwrap_or('█')
    };
    let mut plot = String::with_capacity(values.len());
    for value in &values {
        write!(plot, "{}", bar(value)).ok();
    }
    plot
}

#[cfg(test)]
mod tests {
    use super::super::course::tests::{app, status};
    use super::super::table::Order;
    use super::super::view::tests::refusing;
    use super::*;
    use crate::cli::Column;

    const BY: Sorting = Sorting { column: Column::Waiting, order: Order::Natural };

    #[test]
    fn a_look_says_lag_pace_queue_identities_and_what_became_of_them() {
        let mut watched = Watched::default();
        watched.take(0.0, Ok(status(vec![app("etl", 10, 1)])));
        watched.take(1.0, Ok(status(vec![app("etl", 30, 4)])));
        let text = look(&watched, None, BY, Style::Plain);
        for part in [
            "Sluice 1.0 at",
            "cluster main: 0 client connections",
            "lag: 0.5 s of 1 s, open           ██",
            "pace: 120 rows a second           ██",
            "! queue: 2 wait                     ██",
            "app  rule  waiting  oldest  passed/s  delayed/s  refused/s",
            "! etl  r     0        –       20        0          3.0        30      0        4",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert_eq!(look(&watched, Some("other"), BY, Style::Plain).lines().count(), 2);
        let mut governed = status(Vec::new());
        governed.clusters[0].pace.governs = Some("web_p99".to_owned());
        assert_eq!(pace_line(&governed.clusters[0]), "pace: 120 rows a second, by web_p99");
    }

    #[test]
    fn who_was_refused_and_what_budgets_and_guards_have_met_is_in_it() {
        let text = look(&refusing(), None, BY, Style::Plain);
        for part in [
            "Who was refused in the last ten minutes, and by what",
            "sluice why 7f3a9c01",
            "guard where: where_required",
            "… and 47 more",
            "Budgets",
            "75 %",
            "Guards, and the statements",
            "4321",
            "main:1",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn a_name_is_neither_a_line_nor_a_command_to_the_terminal() {
        let mut watched = Watched::default();
        let mut hostile = status(vec![app("a\x1b[2J\nb\u{202e}", 1, 0)]);
        hostile.clusters[0].cluster = "m\r".to_owned();
        watched.take(0.0, Ok(hostile));
        let text = look(&watched, None, BY, Style::Plain);
        assert!(text.contains("a\\u{1b}[2J\\nb\\u{202e}"), "{text}");
        assert!(!text.contains(['\x1b', '\r', '\u{202e}']), "{text}");
        watched.take(1.0, Err("no\x1b[2J".to_owned()));
        let text = look(&watched, None, BY, Style::Plain);
        assert_eq!(text, "! no answer: no\\u{1b}[2J\n");
    }

    #[test]
    fn a_plot_shows_what_was_not_known_as_dots() {
        let mut watched = Watched::default();
        for (second, value) in [Some(0.0), None, Some(0.5), Some(1.0)].into_iter().enumerate() {
            let mut status = status(Vec::new());
            status.clusters[0].signals[0].value = value;
            watched.take(f64::from(u8::try_from(second).unwrap()), Ok(status));
        }
        assert_eq!(plot(watched.course("main").unwrap(), |look| look.signal), "▁·▅█");
    }
}
