//! The apps.

use admission::MonoTime;
use policy::reading::Spanned;
use std::collections::BTreeMap;

use super::{count, name, time, windows};
use crate::scenario::faults::Faults;
use crate::scenario::limits::{
    APPLY_COST_MAX, APPS_MAX, COMES_BACK_AFTER, DIGESTS_MAX, LATENCY, ROWS_MAX, SESSIONS_MAX,
    TRANSACTIONS_MAX,
};
use crate::scenario::raw::{self, Count};
use crate::scenario::{App, Effect, Rows, Table, Window, rule};

pub(super) fn apps(
    raw: Vec<Spanned<raw::App>>,
    signals: &[String],
    proxies: usize,
    faults: &mut Faults,
) -> Vec<App> {
    let sessions = raw.iter().map(|app| count(app.value.sessions, 0));
    let sessions = sessions.fold(0_u32, u32::saturating_add);
    let few = sessions <= SESSIONS_MAX;
    faults.hold(few, "apps", &format!("must have at most {SESSIONS_MAX} sessions in all"));
    faults.hold(raw.len() <= APPS_MAX, "apps", &format!("must be at most {APPS_MAX}"));
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let mut apps: Vec<App> = Vec::with_capacity(raw.len());
    for Spanned { value: raw, place } in raw {
        let path = place.path;
        if let Some(app) = &raw.app
            && let Some(other) = places.insert(app.clone(), path.clone())
        {
            faults.add(&format!("{path}.app"), format!("{other} is called {app:?} already"));
        }
        let proxies = places_of(raw.proxies.as_deref(), proxies, &path, faults);
        let table = raw.table.as_ref().map(|name| table(name, &apps));
        let app = App { proxies, table, ..app(raw, signals, &path, faults) };
        shares_its_rule(&app, &apps, &path, faults);
        apps.push(app);
    }
    apps
}

/// The table of this name, whose number is that of the first app that names it.
fn table(name: &str, before: &[App]) -> Table {
    let known = before.iter().filter_map(|app| app.table.as_ref()).find(|table| table.name == name);
    let new =
        || Table { name: name.to_owned(), number: u64::try_from(before.len()).unwrap_or(u64::MAX) };
    known.cloned().unwrap_or_else(new)
}

/// The Sluices that an app's sessions are spread over.
fn places_of(
    raw: Option<&[Spanned<Count>]>,
    proxies: usize,
    path: &str,
    faults: &mut Faults,
) -> Vec<usize> {
    let Some(raw) = raw else { return Vec::new() };
    let path = format!("{path}.proxies");
    faults.hold(!raw.is_empty(), &path, "names no Sluice; leave it out for all of them");
    let mut places = Vec::with_capacity(raw.len());
    for Spanned { value: Count(place), place: at } in raw {
        let place = usize::try_from(*place).unwrap_or(usize::MAX);
        if place >= proxies && faults.has_read("proxies") {
            let last = proxies.saturating_sub(1);
            faults.add(&at.path, format!("must be from 0 to {last}, by what `proxies` says"));
        }
        faults.hold(!places.contains(&place), &at.path, "is there twice");
        places.push(place);
    }
    places
}

/// Apps that name one rule have its limits in common.
fn shares_its_rule(app: &App, before: &[App], path: &str, faults: &mut Faults) {
    let Some(rule) = &app.rule.name else { return };
    let Some(other) = before.iter().find(|other| other.rule.name.as_ref() == Some(rule)) else {
        return;
    };
    let (Effect::Asks { terms, .. }, Effect::Asks { terms: others, .. }) =
        (&app.rule.effect, &other.rule.effect)
    else {
        return;
    };
    let is_alike = terms.queue_len_max == others.queue_len_max
        && terms.min_rate == others.min_rate
        && terms.max_rate == others.max_rate
        && terms.max_in_flight == others.max_in_flight;
    if !is_alike {
        let message = format!(
            "{rule:?} has another max_queue, min_rate, max_rate or max_in_flight at app {:?}, and \
             a rule has one of each",
            other.name
        );
        faults.add(&format!("{path}.rule"), message);
    }
}

fn app(raw: raw::App, signals: &[String], path: &str, faults: &mut Faults) -> App {
    let rule = rule::compile(&raw, signals, path, faults);
    let at = |key: &str| format!("{path}.{key}");
    let identities = faults.count(count(raw.identities, 1), (1, u32::MAX), &at("identities"));
    let digests = faults.count(count(raw.digests, 1), (1, DIGESTS_MAX), &at("digests"));
    let transactions = count(raw.transactions, 1);
    faults.count(transactions, (1, TRANSACTIONS_MAX), &at("transactions"));
    let rows = raw.rows_per_statement;
    let rows = rows.map_or(Rows { min: 1, max: 1 }, |raw::Rows { min, max }| Rows { min, max });
    faults.hold(rows.min <= rows.max, &at("rows_per_statement"), "must be from min to max");
    let phantom_rows = count(raw.phantom_rows, 0);
    for (key, rows) in [("rows_per_statement", rows.max), ("phantom_rows", phantom_rows)] {
        if f64::from(rows) * f64::from(transactions) > ROWS_MAX {
            faults.add(&at(key), format!("must be at most {ROWS_MAX} rows under one permit"));
        }
    }
    let apply_cost = raw.apply_cost.unwrap_or(1.0);
    let latency = raw.latency.map(|said| faults.time(Some(said.0), LATENCY, &at("latency")));
    let comes_back_after = time(raw.comes_back_after)
        .map(|wait| faults.time(Some(wait), COMES_BACK_AFTER, &at("comes_back_after")));
    let always = || vec![Window { from: MonoTime::ZERO, to: MonoTime::MAX }];
    let active = raw.active.map(|raw::Pairs(active)| {
        let some = !active.is_empty();
        faults.hold(some, &at("active"), "is empty, so nobody would ever ask; leave it out");
        windows(&active, &at("active"), faults)
    });
    App {
        name: name(raw.app, &at("app"), faults),
        sessions: count(raw.sessions, 0),
        proxies: Vec::new(),
        identities,
        rule,
        latency,
        digests,
        rows,
        apply_cost: faults.number(apply_cost, (0.0, APPLY_COST_MAX), &at("apply_cost")),
        table: None,
        phantom_rows,
        transactions,
        think_time: time(raw.think_time).unwrap_or_default(),
        comes_back_after,
        active: active.unwrap_or_else(always),
    }
}
