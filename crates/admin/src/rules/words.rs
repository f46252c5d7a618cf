//! Runtime rules in words: what was done, until when, and where it is kept.

use super::{Changed, Kept, RuleShown, TableKept};

/// What a change has come to, in a sentence.
#[must_use]
pub fn told(changed: &Changed) -> String {
    let Some(rule) = changed.rules.first() else { return "nothing was changed".to_owned() };
    let clusters = clusters(&changed.rules);
    let kept = kept(&changed.kept);
    if changed.change == super::LIFTED {
        let mut names: Vec<String> = changed.rules.iter().map(lifted).collect();
        names.dedup();
        return format!("{} lifted on {clusters}, {kept}", names.join(", "));
    }
    let observed = observed(&changed.rules);
    let does = effect(&rule.effect, rule.ratio);
    let whom = whom(rule);
    let until = end(rule, &changed.now);
    format!("{whom}: {does} on {clusters} {until}, {kept}{observed}{}", alone(rule))
}

/// Where it is only counted. An exemption is not: whom it is about passes anywhere.
fn observed(rules: &[RuleShown]) -> String {
    let observing: Vec<RuleShown> = rules
        .iter()
        .filter(|rule| rule.mode == "observe" && rule.effect != "exempt")
        .cloned()
        .collect();
    if observing.is_empty() {
        return String::new();
    }
    let are = if observing.len() == 1 { "is" } else { "are" };
    let clusters = clusters(&observing);
    format!("; {clusters} {are} in mode observe, where it is counted and not carried out")
}

/// That a name of several levels is met by nobody who has more, where somebody may have meant those:
/// what is shown of an app is without its levels that are ids.
fn alone(rule: &RuleShown) -> String {
    let app = rule.app.as_deref().filter(|app| !app.ends_with('*'));
    let Some((app, (_, level))) = app.and_then(|app| Some((app, app.rsplit_once(':')?))) else {
        return String::new();
    };
    format!(
        "; it is about the app {app} alone: one with further levels, such as the ids that are not \
         shown, is met by its level {level}"
    )
}

/// The effect of a rule.
pub(super) fn effect(effect: &str, ratio: Option<f64>) -> String {
    match (effect, ratio) {
        ("throttle", Some(ratio)) => share(ratio),
        ("hold", _) => "held, nothing passes".to_owned(),
        ("exempt", _) => "exempt from dice and gate".to_owned(),
        ("deny", _) => "denied".to_owned(),
        (other, _) => other.to_owned(),
    }
}

/// The part of checks that lose.
fn share(ratio: f64) -> String {
    let tenths = ratio * 10.0;
    if ratio >= 1.0 {
        "every check refused".to_owned()
    } else if ratio <= 0.0 {
        "no check refused by dice".to_owned()
    } else if (tenths - tenths.round()).abs() < 1e-9 {
        format!("{tenths:.0} of 10 checks refused")
    } else {
        let percent = format!("{:.3}", ratio * 100.0);
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        format!("{percent} % of checks refused")
    }
}

/// `until 04:12:09 UTC (in 1 h)`, with the date where it is another day.
#[must_use]
pub fn end(rule: &RuleShown, now: &str) -> String {
    let (Some(at), Some(seconds)) = (&rule.expires_at, rule.expires_in_s) else {
        return "for good".to_owned();
    };
    let clock = match (at.split_once('T'), now.split_once('T')) {
        (Some((day, time)), Some((today, _))) => {
            let time = time.trim_end_matches('Z');
            if day == today { format!("{time} UTC") } else { format!("{day} {time} UTC") }
        }
        (Some(_) | None, _) => at.clone(),
    };
    format!("until {clock} (in {})", span(seconds))
}

/// Two units, for people: `1 h`, `1 h 30 min`, `59 min 58 s`.
fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(parts.len() - 1);
    let shown = parts.iter().skip(first).take(2).enumerate();
    let shown = shown.filter(|(place, (count, _))| *place == 0 || *count > 0);
    shown.map(|(_, (count, unit))| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}

/// Where a change is kept, and what that means where it is not.
#[must_use]
pub fn kept(kept: &Kept) -> String {
    let Kept { journal, journal_error, tables, outlives_restart } = kept;
    let unwritten: Vec<&TableKept> = tables.iter().filter(|table| !table.written).collect();
    let mut places = Vec::new();
    if *journal {
        places.push("in the journal");
    }
    if !tables.is_empty() && unwritten.is_empty() {
        places.push(if tables.len() == 1 { "on the primary" } else { "on the primaries" });
    }
    let mut text = match places.as_slice() {
        [] => "kept nowhere yet".to_owned(),
        places => format!("kept {}", places.join(" and ")),
    };
    let mut but = Vec::new();
    if let Some(error) = journal_error {
        but.push(format!("no journal: {error}"));
    }
    for TableKept { cluster, error, .. } in unwritten {
        let why = error.as_deref().unwrap_or("it is not written");
        but.push(format!("not on the primary of {cluster}: {why}"));
    }
    if !outlives_restart {
        but.push("a restart of this Sluice would forget it".to_owned());
    }
    if !but.is_empty() {
        text.push_str(&format!(" ({})", but.join("; ")));
    }
    text
}

/// Whom a rule is about.
fn whom(rule: &RuleShown) -> String {
    let classes = if rule.classes.is_empty() {
        String::new()
    } else {
        format!(" ({})", rule.classes.join(", "))
    };
    match (&rule.app, &rule.user) {
        (Some(app), Some(user)) => format!("{app} of user {user}{classes}"),
        (Some(app), None) => format!("{app}{classes}"),
        (None, Some(user)) => format!("user {user}{classes}"),
        (None, None) => format!("{}{classes}", rule.rule),
    }
}

fn lifted(rule: &RuleShown) -> String {
    format!("{}: {}", whom(rule), rule.effect)
}

fn clusters(rules: &[RuleShown]) -> String {
    let mut names: Vec<&str> = rules.iter().map(|rule| rule.cluster.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [one] => format!("cluster {one}"),
        several => format!("clusters {}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(effect: &str, ratio: Option<f64>) -> Changed {
        Changed {
            now: "2026-12-01T03:12:09Z".to_owned(),
            change: "made".to_owned(),
            rules: vec![RuleShown {
                cluster: "main".to_owned(),
                app: Some("etl".to_owned()),
                effect: effect.to_owned(),
                ratio,
                expires_at: Some("2026-12-01T04:12:09Z".to_owned()),
                expires_in_s: Some(3_600),
                ..RuleShown::default()
            }],
            kept: Kept {
                outlives_restart: true,
                journal: true,
                journal_error: None,
                tables: vec![TableKept {
                    cluster: "main".to_owned(),
                    written: true,
                    version: Some(7),
                    error: None,
                }],
            },
            ..Changed::default()
        }
    }

    #[test]
    fn what_was_done_is_a_sentence() {
        assert_eq!(
            told(&made("throttle", Some(0.9))),
            "etl: 9 of 10 checks refused on cluster main until 04:12:09 UTC (in 1 h), kept in the \
             journal and on the primary"
        );
        let does = |effect, ratio| told(&made(effect, ratio));
        assert!(does("throttle", Some(0.125)).contains("12.5 % of checks refused"));
        assert!(does("throttle", Some(1.0)).contains("every check refused"));
        assert!(does("hold", None).starts_with("etl: held, nothing passes on cluster main until"));
        let mut of_two = made("hold", None);
        let observing = RuleShown {
            cluster: "old".to_owned(),
            mode: "observe".to_owned(),
            ..of_two.rules[0].clone()
        };
        of_two.rules.push(observing);
        let told_of_two = told(&of_two);
        assert!(
            told_of_two.ends_with(
                "; cluster old is in mode observe, where it is counted and not carried out"
            ),
            "{told_of_two}"
        );
        of_two.rules[1].effect = "exempt".to_owned();
        assert!(!told(&of_two).contains("observe"));
        let mut of_levels = made("hold", None);
        of_levels.rules[0].app = Some("vcopier:online-ddl".to_owned());
        let told_alone = told(&of_levels);
        assert!(told_alone.contains("is about the app vcopier:online-ddl alone"), "{told_alone}");
        assert!(told_alone.ends_with("is met by its level online-ddl"), "{told_alone}");
        let mut lifted = made("hold", None);
        lifted.change = "lifted".to_owned();
        let kept = "kept in the journal and on the primary";
        assert_eq!(told(&lifted), format!("etl: hold lifted on cluster main, {kept}"));
    }

    #[test]
    fn what_is_not_kept_is_said_with_its_reason() {
        let mut changed = made("hold", None);
        changed.kept.journal = false;
        changed.kept.journal_error = Some("the file has no `state_dir`".to_owned());
        changed.kept.tables[0].written = false;
        changed.kept.tables[0].error = Some("the primary is read only".to_owned());
        changed.kept.outlives_restart = false;
        assert_eq!(
            kept(&changed.kept),
            "kept nowhere yet (no journal: the file has no `state_dir`; not on the primary of main: \
             the primary is read only; a restart of this Sluice would forget it)"
        );
    }

    #[test]
    fn another_day_is_named_and_spans_have_two_units() {
        let rule = made("hold", None).rules.remove(0);
        assert_eq!(end(&rule, "2026-11-30T23:00:00Z"), "until 2026-12-01 04:12:09 UTC (in 1 h)");
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (600, "10 min"),
            (3_599, "59 min 59 s"),
            (5_400, "1 h 30 min"),
            (3_601, "1 h"),
            (604_800, "7 d"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }
}
