//! Rules that end a tool which they name, or never let it finish.
//!
//! Theory. A refusal costs a tool one of its tries, and a tool has few. So a gate that stays shut
//! ends it after `tries × max_delay` and the pauses between. gh-ost copies and follows the table's
//! changes one transaction after another; dice make each of them wait, so there is a rate of
//! changes that it can no longer follow. And a statement that waits leaves its session idle, which
//! the server ends after a wait_timeout that some tools set themselves. The numbers are the tools'
//! defaults: see docs/TOOLS.md.

use std::time::Duration;

use admission::{Mode, OnRefusedCheck, OnTimeout, Terms};
use sql::Class;

use super::Found;
use crate::cluster::ClusterPolicy;
use crate::fault::Faults;
use crate::rule::{Action, Rule};

/// What a tool bears by its own defaults.
struct Tool {
    app: &'static str,
    /// How often it tries one statement.
    tries: u32,
    /// Between two tries.
    pause: Duration,
    /// What it sets wait_timeout to, in seconds.
    wait_timeout_s: Option<u64>,
    /// What becomes of it when it has none left.
    fate: &'static str,
    /// The changes of one transaction, where it follows those of its table.
    changes: Option<u32>,
}

pub(super) fn look(found: &Found<'_>, warnings: &mut Faults) {
    for rule in found.rules() {
        let policies = found.compiled(&rule.value);
        let Some(conditions) = &rule.value.conditions else { continue };
        for value in conditions.value.app.iter().flat_map(|apps| &apps.value.0) {
            for tool in TOOLS.iter().filter(|tool| names(&value.value, tool.app)) {
                let mut faults = policies.iter().filter_map(|policy| policy.fault(tool, None));
                if let Some(message) = faults.next() {
                    warnings.add(&value.place, message);
                }
            }
        }
    }
}

/// The same of a rule that was made while Sluice runs, for so long, and is about this app.
pub(super) fn of_made(policy: (&ClusterPolicy, &Rule), app: &str, lasts: Duration) -> Vec<String> {
    let tools = TOOLS.iter().filter(|tool| names(app, tool.app));
    tools.filter_map(|tool| policy.fault(tool, Some(lasts))).collect()
}

/// Whether an app as a rule names it is this one. `*` names nobody in particular.
fn names(value: &str, app: &str) -> bool {
    match value.strip_suffix('*') {
        Some("") => false,
        Some(prefix) => app.starts_with(prefix),
        None => value == app,
    }
}

/// A rule, in a cluster that has it.
trait Policy {
    /// What it does to the tool; of a rule that was made while Sluice runs, while it lasts.
    fn fault(&self, tool: &Tool, made_for: Option<Duration>) -> Option<String>;
}

impl Policy for (&ClusterPolicy, &Rule) {
    fn fault(&self, tool: &Tool, made_for: Option<Duration>) -> Option<String> {
        let (cluster, rule) = self;
        let Action::Throttle { terms, gate, .. } = &rule.action else { return None };
        let covers =
            rule.condition.allows_class(Class::Write) && rule.statements.contains(Class::Write);
        if rule.mode == Mode::Observe || !covers {
            return None;
        }
        let has_gate = cluster.gate_signals(*gate).next().is_some();
        let holds = terms.hold || has_gate || terms.ratio.as_f64() > 0.0;
        never_ends(tool, terms, cluster.check_interval, made_for.is_some())
            .or_else(|| if holds { is_ended(tool, terms, made_for) } else { None })
            .or_else(|| if holds { loses_its_session(tool, terms) } else { None })
    }
}

/// Dice for a tool that must keep up with the writers of its table.
fn never_ends(
    tool: &Tool,
    terms: &Terms,
    check_interval: Duration,
    is_made: bool,
) -> Option<String> {
    let (changes, ratio) = (f64::from(tool.changes?), terms.ratio.as_f64());
    // Where nothing passes its tries are used up.
    if ratio <= 0.0 || ratio >= 1.0 || terms.hold {
        return None;
    }
    let app = tool.app;
    // Checks are thrown until one wins: ratio / (1 - ratio) of them lose before.
    let wait_s = check_interval.as_secs_f64() * ratio / (1.0 - ratio);
    let at_most = changes / wait_s;
    let outcome = if is_made {
        "falls behind meanwhile"
    } else {
        "never ends. Leave `ratio` out: the gate and its pace suit it"
    };
    Some(format!(
        "`{app}` with dice: it follows the changes of its table in transactions of {changes}, and \
         with `ratio: {ratio}` each waits {wait_s:.2} s on average, so that it follows \
         {at_most:.0} changes a second at most; on a table that is written faster it {outcome}"
    ))
}

/// Refusals that use up its tries.
fn is_ended(tool: &Tool, terms: &Terms, made_for: Option<Duration>) -> Option<String> {
    let Tool { app, tries, pause, fate, .. } = tool;
    let at_once = terms.on_refused_check == OnRefusedCheck::Reject;
    // A hold refuses whatever `on_timeout` says.
    if terms.on_timeout == OnTimeout::Admit && !terms.hold && !at_once {
        return None;
    }
    let each = if at_once { Duration::ZERO } else { terms.max_delay };
    let all =
        each.saturating_mul(*tries).saturating_add(pause.saturating_mul(tries.saturating_sub(1)));
    if all >= SHUT_FOR || made_for.is_some_and(|lasts| lasts < all) {
        return None;
    }
    let shut = match terms.ratio.as_f64() {
        _ if terms.hold => "a hold",
        ratio if ratio >= 1.0 => "a ratio of 1",
        _ => "a gate that stays shut",
    };
    let times = if *tries == 1 { "once".to_owned() } else { format!("{tries} times") };
    let remedy = match made_for {
        Some(_) => "a rule of the file can say `max_delay: 2h`",
        None if at_once => "leave `on_refused_check` out",
        None => "say `max_delay: 2h`",
    };
    Some(format!(
        "`{app}` tries {times}: {shut} for {} {fate}; {remedy}, so that it waits instead",
        in_words(all)
    ))
}

/// A wait that outlasts its sessions.
fn loses_its_session(tool: &Tool, terms: &Terms) -> Option<String> {
    let limit = tool.wait_timeout_s?;
    if terms.max_delay.as_secs() < limit {
        return None;
    }
    let app = tool.app;
    Some(format!(
        "`{app}` sets wait_timeout to {limit} s: the server ends a session whose statement \
         waits longer than that; keep `max_delay` below"
    ))
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        0..=119 => format!("{} s", time.as_secs()),
        seconds => format!("{} min", seconds.saturating_add(30) / 60),
    }
}

/// A gate may well be shut that long: a replica that is rebuilt, a night's lag.
const SHUT_FOR: Duration = Duration::from_secs(3600);

const fn tool(app: &'static str, tries: u32, pause_ms: u64) -> Tool {
    Tool {
        app,
        tries,
        pause: Duration::from_millis(pause_ms),
        wait_timeout_s: None,
        fate: "ends it with an error",
        changes: None,
    }
}

/// What Percona's tools set wait_timeout to.
const PERCONA_S: Option<u64> = Some(10_000);

const TOOLS: [Tool; 7] = [
    Tool { changes: Some(10), ..tool("gh-ost", 60, 1000) },
    Tool { wait_timeout_s: PERCONA_S, ..tool("pt-online-schema-change", 10, 250) },
    Tool { wait_timeout_s: PERCONA_S, ..tool("pt-archiver", 2, 0) },
    Tool {
        wait_timeout_s: PERCONA_S,
        fate: "makes it leave chunks out",
        ..tool("pt-table-checksum", 2, 0)
    },
    tool("lhm", 20, 1000),
    Tool { fate: "makes it leave out the rest of a file", ..tool("myloader", 1, 0) },
    tool("mysqlimport", 1, 0),
];
