//! The page for people: what is measured, who waits and why, which rules there are.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use admission::{Mode, MonoTime, SignalState, SignalView};
use policy::{Action, ClusterPolicy, Rule, Standing, UnixTime};
use proxy::board::{PrimaryState, Reachability, ReplicaReading};
use proxy::cluster::{Cluster, StarvedIdentity};
use proxy::telemetry::state_label;

use crate::AdminState;

/// Rules shown for each cluster: more is not for reading.
const RULES_MAX: usize = 500;

/// Groups of waiters shown for each cluster.
const WAITING_MAX: usize = 200;

/// The whole page.
pub(crate) fn render(state: &AdminState) -> String {
    let mut html = String::from(HEAD);
    // Writing to a String cannot fail.
    write_page(&mut html, state).ok();
    html
}

fn write_page(html: &mut String, state: &AdminState) -> fmt::Result {
    let obstacles = crate::ready::obstacles(state);
    if obstacles.is_empty() {
        html.push_str("<p class=good>Ready.</p>");
    }
    for obstacle in &obstacles {
        write!(html, "<p class=bad>Not ready: {}</p>", Escaped(obstacle))?;
    }
    for note in &crate::ready::notes(state) {
        write!(html, "<p class=bad>{}</p>", Escaped(note))?;
    }
    let hits = state.telemetry.rule_hits();
    for cluster in state.clusters.iter() {
        write_cluster(html, cluster, &hits)?;
    }
    html.push_str(FOOT);
    Ok(())
}

fn write_cluster(
    html: &mut String,
    cluster: &Arc<Cluster>,
    hits: &HashMap<String, u64>,
) -> fmt::Result {
    let policy = cluster.policy();
    let (views, now) = cluster.control(|controller, now| {
        let views: Vec<SignalView> = controller.signals(now).collect();
        (views, now)
    });
    write!(
        html,
        "<h2>{}</h2><p>{} → {}, {} sessions, mode {}</p>",
        Escaped(&cluster.name),
        policy.listen,
        Escaped(&policy.primary),
        cluster.registry.len(),
        mode(policy.mode),
    )?;
    write_signals(html, &policy, &views, now)?;
    write_servers(html, cluster, &policy, now)?;
    write_waiting(html, cluster, &policy, now)?;
    write_starved(html, cluster, now)?;
    write_rules(html, &policy, hits, UnixTime(cluster.clock().unix_seconds()))
}

fn write_signals(
    html: &mut String,
    policy: &ClusterPolicy,
    views: &[SignalView],
    now: MonoTime,
) -> fmt::Result {
    table(html, "Signals", &["signal", "value", "threshold", "says", "for", "age"], |html| {
        for view in views {
            let Some(signal) = policy.signal(view.key) else { continue };
            let class = if view.lets_through { "good" } else { "bad" };
            let says = match view.state {
                SignalState::Open => "open",
                SignalState::Closed => "closed",
                SignalState::NoData { .. } if view.lets_through => "no data, lets through",
                SignalState::NoData { .. } => "no data",
            };
            let since = now.saturating_since(view.since);
            write!(
                html,
                "<tr class={class}><td>{}<td>{}<td>{}<td>{says}<td>{}<td>{}",
                Escaped(&signal.name),
                view.value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}")),
                view.threshold,
                Span(since),
                view.age.map_or_else(|| "–".to_owned(), |age| Span(age).to_string()),
            )?;
        }
        Ok(())
    })
}

fn write_servers(
    html: &mut String,
    cluster: &Cluster,
    policy: &ClusterPolicy,
    now: MonoTime,
) -> fmt::Result {
    let columns = ["server", "role", "state", "lag", "for", "what is wrong, and what to do"];
    table(html, "Servers", &columns, |html| {
        let (class, state) = match crate::ready::primary(cluster) {
            PrimaryState::Answers(_) => ("good", "answers".to_owned()),
            PrimaryState::NotProbed => ("", "not probed".to_owned()),
            PrimaryState::Unknown => ("", "not heard from yet".to_owned()),
            PrimaryState::Silent(error) => ("bad", error.sentence()),
        };
        let reached = match cluster.probes.reachability(now) {
            Reachability::Reached(age) => format!("reached {} ago", Span(age)),
            Reachability::Unreached(why) => format!("not reached: {why}"),
            Reachability::Awaited => "not heard from yet".to_owned(),
            Reachability::Unknown => "nobody has tried lately".to_owned(),
        };
        let primary = Escaped(&policy.primary);
        write!(
            html,
            "<tr class=\"{class}\"><td>{primary}<td>primary<td>{}<td>–<td>–<td>{}",
            Escaped(&state),
            Escaped(&reached),
        )?;
        for replica in cluster.probes.replicas(now) {
            write_replica(html, &replica, now)?;
        }
        Ok(())
    })
}

fn write_replica(html: &mut String, replica: &ReplicaReading, now: MonoTime) -> fmt::Result {
    let view = &replica.view;
    // Where the state does not say it.
    let counts = match (replica.is_stopped(), view.counts) {
        (true, true) => ", counts",
        (true, false) => ", left out",
        (false, true | false) => "",
    };
    let class = if replica.is_stopped() { "bad" } else { "" };
    write!(
        html,
        "<tr class=\"{class}\"><td>{}<td>replica<td>{}{counts}<td>{}<td>{}<td>{}",
        Escaped(&replica.server),
        state_label(view.state).replace('_', " "),
        view.lag.map_or_else(|| "–".to_owned(), |lag| Span(lag).to_string()),
        Span(now.saturating_since(view.since)),
        Escaped(&replica.trouble().unwrap_or_default()),
    )?;
    match replica.advice() {
        "" => Ok(()),
        advice => write!(html, "<br>{}", Escaped(advice)),
    }
}

fn write_waiting(
    html: &mut String,
    cluster: &Cluster,
    policy: &ClusterPolicy,
    now: MonoTime,
) -> fmt::Result {
    let waiting = cluster.waiting();
    if waiting.is_empty() {
        html.push_str("<p>Nobody waits.</p>");
        return Ok(());
    }
    table(html, "Who waits, and why", &["app", "rule", "waiting", "longest", "why"], |html| {
        for (waiting, app) in waiting.iter().take(WAITING_MAX) {
            let rule = policy.rules.iter().find(|rule| rule.key == waiting.rule);
            let signal = waiting.cause.and_then(|cause| policy.signal(cause.signal));
            write!(
                html,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}",
                Escaped(&String::from_utf8_lossy(app)),
                Escaped(rule.map_or("–", |rule| &rule.name)),
                waiting.depth,
                Span(now.saturating_since(waiting.oldest)),
                waiting.reason,
            )?;
            if let Some(signal) = signal {
                write!(html, " ({})", Escaped(&signal.name))?;
            }
        }
        Ok(())
    })
}

/// Nothing while nobody is.
fn write_starved(html: &mut String, cluster: &Cluster, now: MonoTime) -> fmt::Result {
    let starved = cluster.starved();
    if starved.is_empty() {
        return Ok(());
    }
    let columns = ["identity", "rule", "since", "of the window", "now", "passed meanwhile"];
    table(html, "Who is starved, and by whom", &columns, |html| {
        for starved in &starved {
            let StarvedIdentity {
                identity,
                rule,
                share,
                since,
                blocked,
                meanwhile,
                stopped_replica,
            } = starved;
            write!(
                html,
                "<tr class=bad><td>{}<td>{}<td>{} ago<td>{:.1} %<td>{}<td>",
                Escaped(&String::from_utf8_lossy(identity)),
                Escaped(rule),
                Span(now.saturating_since(*since)),
                share * 100.0,
                if *blocked { "blocked" } else { "let through" },
            )?;
            if let Some(stopped) = stopped_replica {
                write!(html, "<b>the likely cause is {}</b><br>", Escaped(stopped))?;
            }
            for (separator, passed) in
                std::iter::once("").chain(std::iter::repeat(", ")).zip(meanwhile)
            {
                write!(html, "{separator}{}", Escaped(&passed.to_string()))?;
            }
        }
        Ok(())
    })
}

fn write_rules(
    html: &mut String,
    policy: &ClusterPolicy,
    hits: &HashMap<String, u64>,
    now: UnixTime,
) -> fmt::Result {
    let columns = ["rule", "does", "mode", "statements", "expires", "reason"];
    table(html, "Rules, the first that matches decides", &columns, |html| {
        for rule in policy.rules.iter().take(RULES_MAX) {
            let expires = match rule.expires_at {
                Some(UnixTime(at)) if rule.is_expired(now) => {
                    format!("expired {} ago", Span(seconds(now.0.saturating_sub(at))))
                }
                Some(UnixTime(at)) => format!("in {}", Span(seconds(at.saturating_sub(now.0)))),
                None => "never".to_owned(),
            };
            let standing = match rule.standing(now) {
                standing @ Standing::OffSchedule => format!("{}: ", standing.as_str()),
                Standing::InForce | Standing::Expired => String::new(),
            };
            write!(
                html,
                "<tr><td>{}<td>{standing}{}<td>{}<td>{}<td>{expires}<td>{}",
                Escaped(&rule.name),
                Escaped(&action(rule, policy)),
                mode(rule.mode),
                hits.get(&*rule.name).unwrap_or(&0),
                Escaped(&rule.reason),
            )?;
        }
        Ok(())
    })?;
    let further = policy.rules.len().saturating_sub(RULES_MAX);
    if further > 0 {
        write!(html, "<p>… and {further} more.</p>")?;
    }
    Ok(())
}

/// What a rule does, in words.
fn action(rule: &Rule, policy: &ClusterPolicy) -> String {
    match rule.action {
        Action::Exempt => "exempt".to_owned(),
        Action::Deny => "deny".to_owned(),
        Action::Throttle { terms, .. } if terms.hold => "hold".to_owned(),
        Action::Throttle { terms, gate, .. } => {
            let signals: Vec<&str> =
                policy.gate_signals(gate).map(|signal| &*signal.name).collect();
            let gate = if signals.is_empty() { "none".to_owned() } else { signals.join(", ") };
            let speed = rule.speed_to_expect().map(|speed| speed + ", ").unwrap_or_default();
            let ratio = terms.ratio.as_f64();
            format!("{speed}ratio {ratio}, gate {gate}, up to {}", Span(terms.max_delay))
        }
    }
}

fn table(
    html: &mut String,
    caption: &str,
    columns: &[&str],
    rows: impl FnOnce(&mut String) -> fmt::Result,
) -> fmt::Result {
    write!(html, "<table><caption>{caption}</caption><tr>")?;
    for column in columns {
        write!(html, "<th>{column}")?;
    }
    rows(html)?;
    html.push_str("</table>");
    Ok(())
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}

/// A time span to two significant units at most.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
        match seconds {
            0..10 => write!(f, "{:.2} s", self.0.as_secs_f64()),
            10..120 => write!(f, "{seconds} s"),
            120..7_200 => write!(f, "{minutes} min"),
            7_200..172_800 => write!(f, "{hours} h {} min", minutes % 60),
            _ => write!(f, "{days} d {} h", hours % 24),
        }
    }
}

/// Text that is only text in HTML, also inside a quoted attribute.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c if c.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

const HEAD: &str = "<!doctype html><html lang=en><head><meta charset=utf-8>\
<meta http-equiv=refresh content=2><title>Sluice</title><style>\
body{font:15px/1.4 system-ui,sans-serif;margin:2em;max-width:75em;color:#222}\
table{border-collapse:collapse;margin:1em 0}caption{text-align:left;font-weight:600;padding:.2em 0}\
th,td{text-align:left;padding:.15em 1.2em .15em 0;border-bottom:1px solid #ddd;vertical-align:top}\
th{font-weight:400;color:#666}.good{color:#17682b}.bad{color:#a61b1b;font-weight:600}\
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}th{color:#999}\
th,td{border-color:#333}.good{color:#6bc381}.bad{color:#ff8f8f}a{color:#8ab4ff}}\
</style></head><body><h1>Sluice</h1>";

const FOOT: &str =
    "<p><a href=\"/metrics\">metrics</a> · <a href=\"/readyz\">readyz</a></p></body></html>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_clients_are_only_text() {
        let hostile = "<script>&\"'\u{7}";
        assert_eq!(Escaped(hostile).to_string(), "&lt;script&gt;&amp;&quot;&#39;\u{fffd}");
    }

    #[test]
    fn time_spans_read_well() {
        let span = |seconds| Span(Duration::from_secs(seconds)).to_string();
        assert_eq!(Span(Duration::from_millis(1_500)).to_string(), "1.50 s");
        assert_eq!(span(119), "119 s");
        assert_eq!(span(7_199), "119 min");
        assert_eq!(span(90_000), "25 h 0 min");
        assert_eq!(span(200_000), "2 d 7 h");
    }
}
