//! The same for people.

use std::collections::BTreeMap;

use super::super::super::rules::printable;
use super::super::count;
use super::report::{
    Above, Hits, OfBudget, OfCluster, OfGuard, OfLimit, OfRule, OfRunaway, Peaks, Report,
};

/// Apps of one line.
const APPS_MAX: usize = 5;

/// Characters of a digest's text in a line.
const TEXT_LEN: usize = 100;

pub(super) fn of(report: &Report) -> String {
    let Report { from, to, statements, without_row, clusters, .. } = report;
    let mut text = format!("\nAgainst {statements} statements from {from} to {to}:\n");
    if *without_row > 0 {
        text += &format!(
            "  {without_row} of them have no row there, and are not judged: take the insights with a \
             larger --limit\n"
        );
    }
    for cluster in clusters {
        of_cluster(cluster, &mut text);
    }
    text += "\nMeans are over the whole window: peaks are higher. A statement within a transaction \
             that was let in passes its gate.\n";
    text
}

fn of_cluster(told: &OfCluster, text: &mut String) {
    let OfCluster { cluster, statements, unknown, unknown_by_why, .. } = told;
    *text += &format!("\ncluster {}: {statements} statements\n", printable(cluster));
    if *unknown > 0 {
        *text += &format!("  unknown: {unknown}, of which nobody can tell what becomes of them\n");
        for (why, statements) in unknown_by_why {
            *text += &format!("    {statements}: {}\n", printable(why));
        }
    }
    for rule in &told.rules {
        *text += &format!("  rule {}\n", of_rule(rule));
        // What is said of its limits is about those that it decides.
        if let Some(runaway) = rule.runaway.as_ref().filter(|_| rule.statements > 0) {
            of_runaway(runaway, text);
        }
    }
    *text += &format!("  no rule: {}\n", told.no_rule);
    for budget in &told.budgets {
        of_budget(budget, text);
    }
    for guard in &told.guards {
        of_guard(guard, text);
    }
}

fn of_rule(told: &OfRule) -> String {
    let OfRule { rule, statements, denied, held, asked, passed, .. } = told;
    let mut parts = Vec::new();
    if *denied > 0 {
        parts.push(format!("denies {denied}"));
    }
    if *held > 0 {
        parts.push(format!("holds {held} until it is lifted"));
    }
    if *asked > 0 {
        parts.push(asks(told));
    }
    if *passed > 0 {
        parts.push(format!("lets {passed} pass"));
    }
    if told.unknown > 0 {
        let why = told.why_unknown.unwrap_or_default();
        parts.push(format!("unknown for {}: {why}", told.unknown));
    }
    let observes = if told.mode == "observe" { " (observes only)" } else { "" };
    let does = if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") };
    let share = told.share * 100.0;
    let apps = of_apps(&told.apps);
    format!("{}{observes}: {statements} statements ({share:.1} %): {does}{apps}", printable(rule))
}

/// What it does to those that it asks.
fn asks(told: &OfRule) -> String {
    let mut does = Vec::new();
    if let (Some(ratio), Some(lost)) = (told.ratio, told.lost_to_dice) {
        let then = if told.dice_refuse { "refuse" } else { "delay" };
        does.push(format!("the dice {then} about {lost} of them (ratio {ratio})"));
    }
    if !told.gate.is_empty() {
        let gate: Vec<String> = told.gate.iter().map(|signal| printable(signal)).collect();
        does.push(format!("they wait while {} is over its threshold", gate.join(" or ")));
    }
    if let Some(speed) = told.speed {
        does.push(format!("their sessions run at {speed} of their own speed"));
    }
    let does = if does.is_empty() { String::new() } else { format!(": {}", does.join(", ")) };
    format!("asks {}{does}", told.asked)
}

fn of_budget(told: &OfBudget, text: &mut String) {
    let OfBudget { budget, statements, limits, apps, .. } = told;
    let warns = if told.mode == "warn" { " (warns only)" } else { "" };
    let per = told.per.as_ref().map(|per| format!(" per {}", printable(per))).unwrap_or_default();
    let apps = of_apps(apps);
    *text += &format!("  budget {}{warns}{per}: meets {statements}{apps}\n", printable(budget));
    // What is said of a limit is about those that it meets.
    for limit in limits.iter().filter(|_| *statements > 0) {
        *text += &format!("    {}\n", of_limit(limit));
    }
    if told.unknown > 0 {
        let why = told.why_unknown.unwrap_or_default();
        *text += &format!("    unknown for {}: {why}\n", told.unknown);
    }
}

fn of_limit(told: &OfLimit) -> String {
    let OfLimit { limit, allowed, mean, bucket, over, peaks } = told;
    let whose = bucket.as_ref().map(|name| format!(" ({})", printable(name))).unwrap_or_default();
    if *limit == "max_query_cost" {
        let refused = match over {
            0 => "refuses none".to_owned(),
            over => format!("refuses {over} statements, whose digest costs more"),
        };
        return format!("{limit} {allowed}: the costliest digest takes {mean:.3}; {refused}");
    }
    let part = if *allowed > 0.0 { mean / allowed * 100.0 } else { 0.0 };
    let holds = match (over, peaks) {
        (0, None) => "holds back in peaks only".to_owned(),
        (0, Some(peaks)) if peaks.p99 <= *allowed => {
            format!("holds back in short peaks only{}", of_peaks(limit, peaks))
        }
        (0, Some(peaks)) => format!("holds back in peaks{}", of_peaks(limit, peaks)),
        (_, None | Some(Peaks { above: None, .. })) => "holds back all the time".to_owned(),
        (_, Some(peaks)) => format!("holds back all the time{}", of_peaks(limit, peaks)),
    };
    let more = if *over > 1 { format!("; {over} buckets are over") } else { String::new() };
    format!("{limit} {allowed}: {mean:.3} on average{whose}, {part:.0} %: {holds}{more}")
}

/// What there was by the second.
fn of_peaks(limit: &str, Peaks { app, p99, above }: &Peaks) -> String {
    let (things, above_them) = match limit {
        "rate" => ("statements in a second", "statements"),
        "rows_per_s" => ("rows in a second", "rows"),
        "share" => ("s of the server in a second", "s of the server"),
        _ => ("at once, on the mean of a second", ""),
    };
    let app = printable(app);
    let mut text =
        format!(": {app} had up to {p99} {things}, in 99 of 100 of its seconds of the last hour");
    let Some(Above { max, seconds, seconds_above, above }) = above else { return text };
    text += &format!(", and {max} at most");
    if *seconds_above > 0 {
        text += &format!("; above the limit in up to {seconds_above} of {seconds} seconds");
        if !above_them.is_empty() {
            text += &format!(", by up to {above:.0} {above_them} in all");
        }
    }
    text
}

fn of_runaway(told: &OfRunaway, text: &mut String) {
    let OfRunaway { limits, hits } = told;
    let meets = match hits.statements {
        0 => "meets none".to_owned(),
        some => format!("meets some of {some}, whose like took more{}", of_apps(&hits.apps)),
    };
    *text += &format!("    runaway {limits}: {meets}\n");
    of_hits(hits, text);
}

fn of_guard(told: &OfGuard, text: &mut String) {
    let OfGuard { guard, check, mode, hits } = told;
    let does = if *mode == "deny" { "refuses" } else { "warns of" };
    let (statements, apps) = (hits.statements, of_apps(&hits.apps));
    *text += &format!("  guard {} {check}: {does} {statements}{apps}\n", printable(guard));
    of_hits(hits, text);
}

fn of_hits(hits: &Hits, text: &mut String) {
    let Hits { digests, digests_total, unknown, .. } = hits;
    for digest in digests {
        let shown: String = printable(&digest.digest_text).chars().take(TEXT_LEN).collect();
        let app = printable(&digest.app);
        *text += &format!("    {} of {app}: {} {shown}\n", digest.statements, digest.digest);
    }
    let more = digests_total.saturating_sub(digests.len());
    if more > 0 {
        *text += &format!("    and {} more\n", count(more, "digest"));
    }
    if *unknown > 0 {
        *text += &format!("    unknown for {unknown}: a digest does not tell\n");
    }
}

/// The apps with most statements.
fn of_apps(apps: &BTreeMap<String, u64>) -> String {
    let mut sorted: Vec<(&String, &u64)> = apps.iter().collect();
    sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
    let shown = sorted.iter().take(APPS_MAX);
    let mut named: Vec<String> =
        shown.map(|(name, count)| format!("{} {count}", printable(name))).collect();
    let more = apps.len().saturating_sub(named.len());
    if more > 0 {
        named.push(format!("{more} more"));
    }
    if named.is_empty() { String::new() } else { format!(" [{}]", named.join(", ")) }
}
