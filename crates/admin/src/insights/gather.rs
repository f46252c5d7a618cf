//! What the boards of the clusters know, as an answer.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use insights::{By, Compared, Counts, Group, Stats, Time, View, ViewRow, compare, most, p99};
use policy::UnixTime;
use proxy::cluster::Cluster;
use proxy::insights::refusal_name;

use super::asked::{Asked, Query, Sort};
use super::{AppSeconds, Cost, Insights, Row, Sender};
use crate::refusal::{Error, Refusal};
use crate::request::query;
use crate::{AdminState, Shown, aside};

pub(crate) async fn insights(
    State(Shown { state, slow, .. }): State<Shown>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked = Asked::of(query::<Query>(&uri)?)?;
    let known = |name: &String| state.clusters.iter().any(|cluster| *cluster.name == **name);
    if asked.cluster.as_ref().is_some_and(|name| !known(name)) {
        return Err(Refusal::new(Error::NotFound, "there is no cluster of this name"));
    }
    for tag in asked.tags() {
        let is_kept = |cluster: &_| kept_tags(cluster).any(|kept| kept == tag);
        if !state.clusters.iter().any(is_kept) {
            let message = format!("values of the tag {tag:?} are not kept");
            let remedy = "name it in the file: insights: { tags: [..] }";
            return Err(Refusal::new(Error::BadRequest, message).remedy(remedy));
        }
    }
    // A day of many digests takes a while.
    let answer = aside(slow, move || Json(gather(&state, &asked)).into_response()).await?;
    Ok(([(CACHE_CONTROL, "no-store")], answer).into_response())
}

fn gather(state: &AdminState, asked: &Asked) -> Insights {
    let mut answer =
        Insights { by: asked.by_word(), sort: asked.sort_word().to_owned(), ..Insights::default() };
    let mut totals = Totals::default();
    let mut rows: Vec<(String, Compared)> = Vec::new();
    for cluster in state.clusters.iter() {
        if asked.cluster.as_ref().is_some_and(|name| *cluster.name != **name) {
            continue;
        }
        let before = asked.before.as_ref();
        let (view, before) = cluster.insights.look_twice(&asked.look, before, &cluster.policy());
        for tag in kept_tags(cluster) {
            if !answer.tags.contains(&tag) {
                answer.tags.push(tag);
            }
        }
        answer.enabled |= cluster.policy().insights.enabled;
        totals.now.merge(&view.total);
        answer.apps.extend(view.by_second.iter().map(|(app, by_second)| AppSeconds {
            cluster: cluster.name.to_string(),
            app: app.clone(),
            concurrency_p99: p99(&by_second.at_once),
            concurrency_max: most(&by_second.at_once),
            by_concurrency: by_second.at_once.clone(),
            by_statements: by_second.statements.clone(),
            by_rows: by_second.rows.clone(),
        }));
        (answer.from, answer.to) = (shown(view.from), shown(view.to));
        answer.window_s = seen_s(&view, answer.window_s);
        if let Some(before) = &before {
            totals.before.merge(&before.total);
            (answer.compared_from, answer.compared_to) =
                (Some(shown(before.from)), Some(shown(before.to)));
            answer.compared_window_s =
                Some(seen_s(before, answer.compared_window_s.unwrap_or_default()));
        }
        let compared = compare(&before.unwrap_or_else(|| nothing(&view)), view);
        rows.extend(compared.into_iter().map(|row| (cluster.name.to_string(), row)));
    }
    answer.rows_total = rows.len();
    rows.sort_by_cached_key(|(_, row)| {
        (Reverse(sort_key(asked.sort, &row.row.stats)), row.row.group.clone())
    });
    let compared = asked.before.is_some();
    let row = |(cluster, row): (String, Compared)| {
        let before = compared.then(|| totals.before_of(&row));
        Row { cluster, ..shown_row(row.row, asked.look.by, &totals.now) }.with_before(before)
    };
    answer.rows = rows.into_iter().take(asked.limit).map(row).collect();
    answer.total = cost(&totals.now, &totals.now);
    answer
}

/// What everything together has cost: shares are of that.
#[derive(Default)]
struct Totals {
    now: Stats,
    /// In the window that rows are compared with.
    before: Stats,
}

impl Totals {
    /// What has changed of a row, and what it has cost before.
    fn before_of(&self, row: &Compared) -> (String, Cost) {
        (row.change.as_str().to_owned(), cost(&row.before, &self.before))
    }
}

impl Row {
    fn with_before(self, before: Option<(String, Cost)>) -> Self {
        let (change, before) = before.unzip();
        Self { change, before, ..self }
    }
}

/// The tags of which values are kept.
fn kept_tags(cluster: &Arc<Cluster>) -> impl Iterator<Item = String> {
    let policy = cluster.policy();
    let keys: Vec<String> = policy.insights.tags.keys().map(str::to_owned).collect();
    keys.into_iter()
}

/// A window of the same length in which nothing came.
fn nothing(view: &View) -> View {
    View {
        from: view.from,
        to: view.to,
        counted_from: view.from,
        rows: Vec::new(),
        total: Stats::default(),
        by_second: Vec::new(),
    }
}

/// Seconds from the first statement in the window on, or as many as there were before. Its whole time
/// is counted, so the window begins no later than it did, as far as that is known.
fn seen_s(view: &View, before: f64) -> f64 {
    let stats = view.rows.iter().map(|row| &row.stats).chain([&view.total]);
    let from = stats.filter_map(begun).min().map_or(view.to, |first| first.max(view.from));
    let span = std::time::Duration::from_millis(view.to.0.saturating_sub(from.0));
    span.as_secs_f64().max(before)
}

/// When the first of them began at the latest.
fn begun(stats: &Stats) -> Option<Time> {
    let first = stats.first_seen?;
    // Where some were refused, or left, the first may be one that never was at the server.
    let were_all_there = stats.refused.sum() == 0 && stats.client_gone == 0;
    let least_ns = if were_all_there { stats.time_min_ns } else { 0 };
    Some(Time(first.0.saturating_sub(least_ns / 1_000_000)))
}

fn sort_key(sort: Sort, stats: &Stats) -> u64 {
    let quantile = |share: f64| {
        let time = stats.quantile_s(share).unwrap_or_default();
        u64::try_from(std::time::Duration::from_secs_f64(time).as_nanos()).unwrap_or(u64::MAX)
    };
    match sort {
        Sort::Count => stats.count,
        Sort::Time => stats.time_ns,
        Sort::Mean => stats.time_ns.checked_div(stats.count).unwrap_or_default(),
        Sort::P50 => quantile(0.5),
        Sort::P95 => quantile(0.95),
        Sort::P99 => quantile(0.99),
        Sort::Max => stats.time_max_ns,
        Sort::Errors => stats.errors.sum(),
        Sort::Lost => stats.lost,
        Sort::Warnings => stats.warnings,
        Sort::Queued => stats.queued_ns,
        Sort::Refused => stats.refused.sum(),
        Sort::ClientGone => stats.client_gone,
        Sort::RowsSent => stats.rows_sent,
        Sort::RowsAffected => stats.rows_affected,
        Sort::BytesIn => stats.bytes_in,
        Sort::BytesOut => stats.bytes_out,
        Sort::FirstSeen => stats.first_seen.map_or(0, |seen| seen.0),
        Sort::LastSeen => stats.last_seen.map_or(0, |seen| seen.0),
    }
}

fn shown_row(row: ViewRow, by: By, total: &Stats) -> Row {
    let ViewRow { group, stats, text, tables, all_tables, kind, senders, sample } = row;
    let Group { other, digest, app, schema, user, table, tag } = group;
    let name = |name: Option<String>| Some(name.unwrap_or_else(|| missing(other).to_owned()));
    let cost = cost(&stats, total);
    match by {
        By::Digest => Row {
            app: name(app),
            schema: Some(schema.unwrap_or_default()),
            digest: name(digest.map(|digest| format!("{digest:016x}"))),
            digest_text: Some(text.unwrap_or_default()),
            tables: digest.map(|_| tables),
            tables_complete: digest.map(|_| all_tables),
            class: kind.classes.first().map(|class| class.clone().into_owned()),
            classes: match kind.classes.as_slice() {
                [] | [_] => Vec::new(),
                several => several.iter().map(|class| class.clone().into_owned()).collect(),
            },
            exemption: kind.exemption.map(Cow::into_owned),
            senders: senders.into_iter().map(sender).collect(),
            sample_text: sample,
            cost,
            ..Row::default()
        },
        By::App => Row { app: name(app), cost, ..Row::default() },
        By::User => Row { user: name(user), cost, ..Row::default() },
        By::Tag => Row { tag: name(tag), cost, ..Row::default() },
        By::Table => Row { table: name(table), cost, ..Row::default() },
    }
}

fn sender(sender: insights::Sender) -> Sender {
    Sender {
        user: sender.user,
        tags: sender.tags.into_iter().collect(),
        count: sender.count,
        refused: sender.refused,
        time_total_s: std::time::Duration::from_nanos(sender.time_ns).as_secs_f64(),
        rows_sent: sender.rows_sent,
        rows_affected: sender.rows_affected,
    }
}

/// The name of what has none.
fn missing(other: bool) -> &'static str {
    if other { "other" } else { "unknown" }
}

fn cost(stats: &Stats, total: &Stats) -> Cost {
    let seconds = |nanos: u64| std::time::Duration::from_nanos(nanos).as_secs_f64();
    let some = |time: f64| (stats.count > 0).then_some(time);
    let share = seconds(stats.time_ns) / seconds(total.time_ns.max(1));
    Cost {
        count: stats.count,
        errors: stats.errors.sum(),
        errors_by_number: by_name(&stats.errors, |number| number.to_string()),
        lost: stats.lost,
        warnings: stats.warnings,
        time_total_s: seconds(stats.time_ns),
        share: share.min(1.0),
        time_mean_s: stats.time_ns.checked_div(stats.count).map(seconds),
        time_p50_s: stats.quantile_s(0.5),
        time_p95_s: stats.quantile_s(0.95),
        time_p99_s: stats.quantile_s(0.99),
        time_max_s: some(seconds(stats.time_max_ns)),
        queued_total_s: seconds(stats.queued_ns),
        refused: stats.refused.sum(),
        refused_by_reason: by_name(&stats.refused, |number| refusal_name(number).to_owned()),
        client_gone: stats.client_gone,
        rows_sent: stats.rows_sent,
        rows_affected: stats.rows_affected,
        bytes_in: stats.bytes_in,
        bytes_out: stats.bytes_out,
        first_seen: stats.first_seen.map(shown),
        last_seen: stats.last_seen.map(shown),
    }
}

fn by_name(counts: &Counts, name: impl Fn(u16) -> String) -> BTreeMap<String, u64> {
    let mut named: BTreeMap<String, u64> =
        counts.iter().map(|(number, count)| (name(number), count)).collect();
    if counts.others() > 0 {
        named.insert("other".to_owned(), counts.others());
    }
    named
}

fn shown(time: Time) -> String {
    UnixTime(i64::try_from(time.0 / 1_000).unwrap_or(i64::MAX)).to_string()
}

#[cfg(test)]
mod tests {
    use insights::Change;

    use super::*;

    /// A statement of 75 s among short ones that ended 28 s ago at the earliest was there 2.7 times at
    /// once, on average.
    #[test]
    fn a_window_begins_no_later_than_its_first_statements() {
        let seen = |count: u64, min_s: u64, (first, last): (u64, u64)| Stats {
            count,
            time_min_ns: min_s.saturating_mul(1_000_000_000),
            first_seen: Some(Time(first)),
            last_seen: Some(Time(last)),
            ..Stats::default()
        };
        let long = seen(1, 75, (999_000, 999_000));
        let total = seen(5, 0, (972_000, 999_000));
        let mut view = View { rows: vec![row_of(long)], total, ..empty() };
        assert_eq!(seen_s(&view, 0.0), 76.0);
        assert_eq!(seen_s(&view, 90.0), 90.0, "another cluster's is longer");
        view.from = Time(950_000);
        assert_eq!(seen_s(&view, 0.0), 50.0, "it is the window that was asked for at most");
        view.from = Time(0);
        for row in &mut view.rows {
            row.stats.client_gone = 1;
        }
        assert_eq!(seen_s(&view, 0.0), 28.0, "the first was at no server, perhaps");
        assert_eq!(seen_s(&empty(), 0.0), 0.0);
    }

    fn empty() -> View {
        let (from, to) = (Time(0), Time(1_000_000));
        View {
            from,
            to,
            counted_from: from,
            rows: Vec::new(),
            total: Stats::default(),
            by_second: Vec::new(),
        }
    }

    fn row_of(stats: Stats) -> ViewRow {
        ViewRow {
            group: Group::default(),
            stats,
            text: None,
            tables: Vec::new(),
            all_tables: true,
            kind: insights::Kind::default(),
            senders: Vec::new(),
            sample: None,
        }
    }

    #[test]
    fn a_share_of_the_window_before_is_of_that_window() {
        let of_s = |seconds: u64| Stats {
            count: 1,
            time_ns: seconds.saturating_mul(1_000_000_000),
            ..Stats::default()
        };
        let totals = Totals { now: of_s(1), before: of_s(100) };
        let compared = Compared { row: row_of(of_s(1)), before: of_s(25), change: Change::Shrunk };
        let (change, before) = totals.before_of(&compared);
        assert_eq!((change.as_str(), before.share), ("shrunk", 0.25));
    }
}
