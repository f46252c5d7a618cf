//! The file. Names come from clients: each stands in double quotes, with whatever is not plain
//! escaped, in values and in comments alike.

use std::collections::BTreeSet;

use admin::insights::Insights;
use policy::{UnixTime, load_with_warnings};

use super::apps::{App, Met, Source};

/// Apps with rules and budgets of their own; the others are in the rule for everything else.
const APPS_MAX: usize = 50;

/// Users, or apps, that are named in a comment.
const LISTED_MAX: usize = 5;

/// The file as it stands on standard output.
pub(super) fn file(shown: &Insights, apps: Vec<App>, now: UnixTime) -> String {
    let total = apps.len();
    let clusters = clusters(shown, now);
    let said = (shown, clusters.as_str());
    let mut kept: Vec<Named> = Vec::new();
    let mut left_out: Vec<App> = Vec::new();
    let mut names = BTreeSet::new();
    for app in apps.into_iter().take(APPS_MAX) {
        let named = Named { rule: text(&rule_name(&app.name, &mut names)), app };
        // That would be a prefix.
        let is_plain = !named.app.name.ends_with('*');
        if is_plain && is_good(&write(said, std::slice::from_ref(&named), (&[], 0)), now) {
            kept.push(named);
        } else {
            left_out.push(named.app);
        }
    }
    // An app of several levels is among those that a rule for one of them is about.
    kept.sort_by_key(|named| std::cmp::Reverse(named.app.name.split(':').count()));
    let more = total.saturating_sub(APPS_MAX);
    // What is good alone may still be in another one's way.
    while !is_good(&write(said, &kept, (&left_out, more)), now) {
        match kept.pop() {
            Some(named) => left_out.push(named.app),
            None => break,
        }
    }
    write(said, &kept, (&left_out, more))
}

/// An app with the name of its rule.
struct Named {
    rule: String,
    app: App,
}

fn is_good(text: &str, now: UnixTime) -> bool {
    load_with_warnings(text, now).is_ok_and(|(_, warnings)| warnings.is_empty())
}

fn write(
    (shown, clusters): (&Insights, &str),
    apps: &[Named],
    (left_out, more): (&[App], usize),
) -> String {
    let mut text = head(shown);
    text += clusters;
    text += "\nbudgets:\n";
    text +=
        "  # At most so many statements at the server at once: twice what there was in 99 of 100\n";
    text +=
        "  # seconds. They only warn: sluice_budget_exceeded_total says what would have waited.\n";
    for Named { rule, app } in apps {
        text += &budget(rule, app);
    }
    if apps.is_empty() {
        text += "  []\n";
    }
    text += GUARDS;
    text += "\nrules:\n";
    text += "  # The first that matches decides. An app that changes rows asks its gate; one that only\n";
    text += "  # reads needs no rule.\n";
    for Named { rule, app } in apps.iter().filter(|named| named.app.writes > 0) {
        text += &self::rule(rule, app);
    }
    text += "  # Whoever is not named above passes.\n";
    text += "  - { name: everything-else, gate: none, permanent: true }\n";
    for app in left_out {
        let name = quoted(&app.name);
        text +=
            &format!("# A rule cannot name the app {name}: by `user`, perhaps.{}\n", users(app));
    }
    if more > 0 {
        text += &format!("# {more} more apps took less time at the server.\n");
    }
    text
}

fn head(shown: &Insights) -> String {
    let Insights { from, to, window_s, total, .. } = shown;
    let statements = counted(total.count.saturating_add(total.refused), "statement");
    let (from, to) = (quoted(from), quoted(to));
    let short = short(shown).map(|short| format!("# {short}\n")).unwrap_or_default();
    format!(
        "# Suggested by `sluice suggest` from {statements} between {from} and {to}\n\
         # ({window_s:.0} seconds from the first of them on).\n\
         {short}\
         # Nothing in it holds anything back: the cluster\n\
         # observes, budgets and guards warn. What it would do:\n\
         #   sluice check --config THIS --against insights.json\n\
         # Then take `mode: observe` from the cluster, which changes nothing yet, and let one after the\n\
         # other act: `mode: enforce` of a rule or a budget, `deny` of a guard.\n\
         version: 1\n\
         admin: {{ listen: 127.0.0.1:9307 }}\n\
         clusters:\n"
    )
}

/// One cluster, under the name that it has in the insights: `sluice check --against` goes by that.
fn cluster(name: &str, place: u16) -> String {
    // So far apart that no two share an address.
    let [listen, primary, replica] =
        [3307_u16, 3306, 3316].map(|port| port.saturating_add(place.saturating_mul(100)));
    let address = |port: u16, end: &str| format!("127.0.0.1:{port}{end}");
    format!(
        "\x20 {name}:\n\
         \x20   mode: observe\n\
         \x20   listen: {listen:<20}# where applications connect: yours\n\
         \x20   primary: {primary:<19}# yours\n\
         \x20   replicas: [{replica:<17}# yours: their lag shuts the gate. Without any, name a signal\n\
         \x20                               # of the primary as default_gate, such as threads_running\n\
         \x20   probe: {{ user: sluice }}     # who measures, with password_env or password_file: yours\n",
        listen = address(listen, ""),
        primary = address(primary, ""),
        replica = address(replica, "]"),
    )
}

/// The clusters of the insights, as the file names them; `main` where none can be.
fn clusters(shown: &Insights, now: UnixTime) -> String {
    let names: BTreeSet<&str> = shown.rows.iter().map(|row| row.cluster.as_str()).collect();
    let mut text = String::new();
    for (name, place) in names.into_iter().take(CLUSTERS_MAX).zip(0..) {
        let more = cluster(&quoted(name), place);
        if is_good(&write((shown, &more), &[], (&[], 0)), now) {
            text += &more;
        }
    }
    if text.is_empty() { cluster("main", 0) } else { text }
}

/// Clusters that a file has place for.
const CLUSTERS_MAX: usize = 50;

/// What is to be said of insights that are too short to go by.
pub(super) fn short(shown: &Insights) -> Option<String> {
    (shown.window_s < SHORT_S).then(|| {
        format!(
            "That is from {:.0} seconds only: whoever comes later is not in it, and numbers are those \
             of a moment. Ask again after an hour of usual traffic.",
            shown.window_s
        )
    })
}

/// Below, a window is short: jobs that come each quarter of an hour are mostly not in it.
const SHORT_S: f64 = 900.0;

/// `1 statement`, `2 statements`.
fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

const GUARDS: &str = "
guards:
  # What a text may not do. They warn: sluice_guard_hits_total.
  - { name: where, where_required: warn, no_cross_join: warn }
  - { name: lists, max_in_list: 5000, mode: warn }
";

fn budget(name: &str, app: &App) -> String {
    let Met { others, statements, time_s, at_once: (p99, most), source } = &app.met;
    let how = match source {
        Source::Counted => format!("{p99:.0} at once in 99 of 100 seconds, {most:.0} at most"),
        Source::FromMean => format!(
            "about {p99:.0} at once, from the mean as if they came independently of each other"
        ),
    };
    let limit = (p99 * 2.0).ceil().clamp(1.0, LIMIT_MAX);
    format!(
        "  # {statements}, {time_s:.1} s at the server; {how}.{with}\n  \
         - {{ name: {name}, match: {{ app: {app} }}, max_concurrency: {limit:.0}, mode: warn }}\n",
        statements = counted(*statements, "statement"),
        with = listed("It is a level of", others),
        app = quoted(&app.name),
    )
}

/// More than any server runs at once.
const LIMIT_MAX: f64 = 10_000.0;

fn rule(name: &str, app: &App) -> String {
    format!(
        "  # {writes} or may, {rows} changed.{users}\n  \
         - {{ name: {name}, match: {{ app: {app} }}, mode: observe, permanent: true }}\n",
        writes = match app.writes {
            1 => "1 statement that writes".to_owned(),
            writes => format!("{writes} statements that write"),
        },
        rows = counted(app.rows_changed, "row"),
        users = users(app),
        app = quoted(&app.name),
    )
}

fn users(app: &App) -> String {
    listed("MySQL users:", &app.users)
}

/// A sentence with names of clients, if there are any.
fn listed(what: &str, names: &BTreeSet<String>) -> String {
    let mut named: Vec<String> = names.iter().take(LISTED_MAX).map(|name| quoted(name)).collect();
    let more = names.len().saturating_sub(named.len());
    if more > 0 {
        named.push(format!("{more} more"));
    }
    match named.as_slice() {
        [] => String::new(),
        named => format!(" {what} {}.", named.join(", ")),
    }
}

/// The app's name as far as a rule's may have its characters, and a number where that is taken.
fn rule_name(app: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = app.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let plain: String = plain.take(NAME_LEN).collect::<String>().to_ascii_lowercase();
    let plain = match plain.trim_matches('-') {
        "" => "app",
        // That one is there already.
        "everything-else" => "everything-else-app",
        plain => plain,
    };
    let mut name = plain.to_owned();
    let mut number = 1_u32;
    while !taken.insert(name.clone()) {
        number = number.saturating_add(1);
        name = format!("{plain}-{number}");
    }
    name
}

/// A name of those characters as YAML: in quotes where it would be a number, a boolean or nothing.
fn text(name: &str) -> String {
    match serde_yaml::from_str(name) {
        Ok(serde_yaml::Value::String(_)) => name.to_owned(),
        Ok(_) | Err(_) => quoted(name),
    }
}

/// Characters of an app in the name of its rule.
const NAME_LEN: usize = 40;

/// A double-quoted scalar of YAML, in one line whatever is in it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            ' '..='~' => quoted.push(c),
            _ if c.is_alphanumeric() => quoted.push(c),
            _ => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use admin::insights::Row;
    use policy::load;

    use super::*;

    const HOSTILE: [&str; 14] = [
        "it's \"quoted\"",
        "a: b",
        "<img src=x onerror=alert(1)>",
        "# no comment",
        "line\nrules: []",
        "\u{1F4A5}\u{202E}x",
        "\u{85}\u{2028}",
        "- { name: x, exempt: true }",
        "etl",
        "nightly:etl",
        "star*",
        "^regex.*$",
        "null",
        "\\U0000",
    ];

    fn app(name: &str) -> App {
        let users = [name.to_owned()].into();
        App {
            name: name.to_owned(),
            statements: 7,
            writes: 3,
            users,
            met: Met { at_once: (3.0, 9.0), ..Met::default() },
            ..App::default()
        }
    }

    const NUMBERS: [&str; 5] = ["2024", "true", "1e3", "0x1F", "no"];

    #[test]
    fn whatever_apps_are_called_the_file_is_good_and_names_them() {
        let apps: Vec<App> = HOSTILE.into_iter().chain(NUMBERS).map(app).collect();
        let text = file(&Insights::default(), apps, UnixTime(0));
        let (config, warnings) = load_with_warnings(&text, UnixTime(0)).unwrap();
        assert_eq!(warnings, [], "{text}");
        let cluster = &config.clusters[0];
        let named: BTreeSet<String> = cluster
            .rules
            .iter()
            .flat_map(|rule| rule.condition.apps())
            .map(|app| String::from_utf8(app.to_vec()).unwrap())
            .collect();
        for name in HOSTILE {
            let left_out = format!("# A rule cannot name the app {}", quoted(name));
            assert!(named.contains(name) != text.contains(&left_out), "{name:?} in\n{text}");
        }
        assert!(named.len() >= 8, "{named:?}");
        for number in NUMBERS {
            assert!(named.contains(number), "{number} in\n{text}");
        }
        assert!(cluster.rules.iter().all(|rule| rule.mode == admission::Mode::Observe), "{text}");
        assert!(text.is_ascii() || text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
    }

    #[test]
    fn clusters_are_called_what_they_are_in_the_insights() {
        let row = |cluster: &str| Row { cluster: cluster.to_owned(), ..Row::default() };
        let named = |clusters: &[&str]| -> Vec<String> {
            let rows = clusters.iter().copied().map(row).collect();
            let shown = Insights { rows, ..Insights::default() };
            let text = file(&shown, vec![app("etl")], UnixTime(0));
            let (config, warnings) = load_with_warnings(&text, UnixTime(0)).unwrap();
            assert_eq!(warnings, [], "{text}");
            config.clusters.iter().map(|cluster| cluster.name.to_string()).collect()
        };
        assert_eq!(named(&["shop"]), ["shop"]);
        assert_eq!(named(&["shop", "books", "shop"]), ["books", "shop"]);
        assert_eq!(named(&["null", "true", "1"]), ["1", "null", "true"]);
        assert_eq!(named(&["a: b\n", "shop", ""]), ["shop"]);
        assert_eq!(named(&["# none"]), ["main"]);
        assert_eq!(named(&[]), ["main"]);
    }

    #[test]
    fn a_budget_is_twice_of_what_there_was_and_warns() {
        let text = file(&Insights::default(), vec![app("etl")], UnixTime(0));
        let config = load(&text).unwrap();
        let budgets: Vec<_> = config.clusters[0].budgets.iter().collect();
        assert_eq!(budgets[0].terms.max_concurrency, Some(6));
        assert_eq!(budgets[0].terms.mode, admission::Mode::Observe);
        assert!(config.clusters[0].guards.iter().flat_map(policy::Guard::checks).count() == 3);
    }
}
