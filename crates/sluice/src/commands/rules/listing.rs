//! `sluice rules` in words.

use admin::rules::{RuleShown, Rules, end};

use super::printable;

/// A table for each cluster.
pub(super) fn table(rules: &Rules) -> String {
    let mut text = String::new();
    let mut cluster = None;
    for rule in &rules.rules {
        if cluster != Some(&rule.cluster) {
            let gap = if cluster.is_none() { "" } else { "\n" };
            text.push_str(&format!("{gap}cluster {}\n", rule.cluster));
            cluster = Some(&rule.cluster);
        }
        text.push_str(&line(rule, &rules.now));
    }
    if rules.rules.is_empty() {
        text.push_str("no rules: everything passes\n");
    }
    text
}

fn line(rule: &RuleShown, now: &str) -> String {
    let RuleShown { rule: name, source, effect, does, author, reason, standing, mode, .. } = rule;
    let mut parts = vec![format!("  {:<32} {effect}", printable(name))];
    if does != effect {
        parts.push(does.clone());
    }
    parts.push(match standing.as_str() {
        "in_force" => end(rule, now),
        other => other.replace('_', " "),
    });
    if mode == "observe" {
        parts.push("observed".to_owned());
    }
    parts.push(match author {
        Some(author) => format!("by {}", printable(author)),
        None => format!("of the {source}"),
    });
    if !reason.is_empty() {
        parts.push(format!("“{}”", printable(reason)));
    }
    format!("{}\n", parts.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_made_a_rule_and_how_long_it_stands_is_in_its_line() {
        let rule = RuleShown {
            cluster: "main".to_owned(),
            rule: "runtime:etl".to_owned(),
            source: "runtime".to_owned(),
            effect: "hold".to_owned(),
            does: "hold, refused after 5.00 s".to_owned(),
            standing: "in_force".to_owned(),
            author: Some("ann".to_owned()),
            expires_at: Some("2026-12-01T04:12:09Z".to_owned()),
            expires_in_s: Some(600),
            reason: "late\u{1b}[2J".to_owned(),
            ..RuleShown::default()
        };
        let rules = Rules { now: "2026-12-01T04:02:09Z".to_owned(), rules: vec![rule] };
        let name = format!("{:<32}", "runtime:etl");
        assert_eq!(
            table(&rules),
            format!(
                "cluster main\n  {name} hold · hold, refused after 5.00 s · until 04:12:09 UTC (in \
                 10 min) · by ann · “late\u{fffd}[2J”\n"
            )
        );
        assert!(table(&Rules::default()).contains("no rules"));
    }
}
