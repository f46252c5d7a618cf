//! The rules that were made at a Sluice that runs, before those of the file.

use admin::rules::{RuleShown, Rules};
use policy::{ClusterPolicy, RuntimeChange, RuntimeEffect, RuntimeRule, RuntimeSpec, UnixTime};

use crate::cli::Asked;
use crate::commands::door::{Failure, ask};
use crate::commands::rules::{RULES_PATH, encoded};

/// The file's policy behind the runtime rules that stand there, and how many those are.
///
/// # Errors
/// Why they cannot be had, for people.
pub(super) fn behind(
    policy: &ClusterPolicy,
    asked: &Asked,
) -> Result<(ClusterPolicy, usize), String> {
    let path = format!("{RULES_PATH}?source=runtime&cluster={}", encoded(&policy.name));
    let body = ask(asked, None, ("GET", &path, "")).map_err(|Failure { message, .. }| message)?;
    let shown: Rules = serde_json::from_str(&body)
        .map_err(|error| format!("what was answered is not Sluice's: {error}"))?;
    let rules = shown.rules.iter().enumerate();
    let rules: Result<Vec<RuntimeRule>, String> =
        rules.map(|(place, rule)| read(place, rule)).collect();
    let rules = rules?;
    let count = rules.len();
    Ok((policy.with_runtime_changes(rules.into_iter().map(RuntimeChange::Stands)), count))
}

/// The rule at this place of the order in which they are tried.
fn read(place: usize, shown: &RuleShown) -> Result<RuntimeRule, String> {
    let RuleShown { rule, app, user, classes, effect, ratio, reason, expires_at, .. } = shown;
    let unread = || format!("{}: it is of a later Sluice than this", rule.escape_debug());
    let effect = match (effect.as_str(), ratio) {
        ("throttle", Some(ratio)) => RuntimeEffect::Throttle { ratio: *ratio },
        ("hold", _) => RuntimeEffect::Hold,
        ("exempt", _) => RuntimeEffect::Exempt,
        ("deny", _) => RuntimeEffect::Deny,
        (_, _) => return Err(unread()),
    };
    let ends: UnixTime = expires_at.as_deref().and_then(|at| at.parse().ok()).ok_or_else(unread)?;
    let spec = RuntimeSpec {
        name: rule.clone(),
        app: app.clone(),
        user: user.clone(),
        classes: classes.clone(),
        effect,
        reason: reason.clone(),
        // The newest is tried first, and seconds do not tell which that is.
        made_at_ms: i64::try_from(place).map_or(i64::MIN, |place| place.saturating_neg()),
    };
    let author = shown.author.as_deref().unwrap_or_default().into();
    RuntimeRule::new(spec, author, ends).map_err(|_| unread())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rule: &policy::Rule, effect: &str, ratio: Option<f64>) -> RuleShown {
        RuleShown {
            rule: rule.name.to_string(),
            app: Some("etl".to_owned()),
            effect: effect.to_owned(),
            ratio,
            classes: rule.classes().map(str::to_owned).collect(),
            expires_at: rule.expires_at.map(|at| at.to_string()),
            ..RuleShown::default()
        }
    }

    #[test]
    fn every_rule_is_read_as_it_was_made() {
        let file = "version: 1\nclusters: { a: { listen: 127.0.0.1:1, primary: db:1 } }\n";
        let file = policy::load(file).unwrap().clusters[0].clone();
        for effect in [
            RuntimeEffect::Throttle { ratio: 0.25 },
            RuntimeEffect::Hold,
            RuntimeEffect::Exempt,
            RuntimeEffect::Deny,
        ] {
            let spec = RuntimeSpec {
                name: "runtime:etl".to_owned(),
                app: Some("etl".to_owned()),
                user: None,
                classes: Vec::new(),
                effect,
                reason: String::new(),
                made_at_ms: 0,
            };
            let made = RuntimeRule::new(spec, "ann".into(), UnixTime(9)).unwrap();
            let with = |rule| {
                let policy = file.with_runtime_changes([RuntimeChange::Stands(rule)]);
                policy.rules.iter().next().unwrap().clone()
            };
            let made = with(made);
            let ratio = match effect {
                RuntimeEffect::Throttle { ratio } => Some(ratio),
                RuntimeEffect::Hold | RuntimeEffect::Exempt | RuntimeEffect::Deny => None,
            };
            let again = with(read(0, &shown(&made, effect.as_str(), ratio)).unwrap());
            assert_eq!(again.expires_at, made.expires_at);
            assert_eq!(format!("{:?}", again.action), format!("{:?}", made.action));
            let classes = |rule: &policy::Rule| rule.classes().collect::<Vec<_>>();
            assert_eq!(classes(&again), classes(&made), "{effect:?}");
        }
    }

    #[test]
    fn what_a_later_version_may_make_is_not_guessed_at() {
        let odd = RuleShown { rule: "runtime:x".to_owned(), ..RuleShown::default() };
        assert!(read(0, &odd).unwrap_err().contains("later Sluice"));
    }
}
