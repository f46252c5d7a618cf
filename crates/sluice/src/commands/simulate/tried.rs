//! `--rule`: a configuration file with one more rule, before all others, to be tried.

use std::fs;
use std::path::Path;

use policy::Config;
use serde_yaml::{Mapping, Value};

use super::Faults;

/// What a rule is called that does not say.
const NAME: &str = "tried";

/// The file, which has been found good, with this rule as its first.
///
/// # Errors
/// What is wrong with the rule: its keys are those of `rules` in the file.
pub(super) fn load(config: &Path, rule: &str) -> Result<Config, Faults> {
    let text = fs::read_to_string(config)
        .map_err(|error| vec![format!("{}: cannot read it: {error}", config.display())])?;
    let text = with_rule(&text, rule).map_err(|fault| vec![format!("--rule: {fault}")])?;
    policy::load(&text).map_err(|faults| {
        let line = |fault: &policy::Fault| {
            let path = fault.path.strip_prefix("rules[0]").unwrap_or(&fault.path);
            let path = path.trim_start_matches('.');
            let colon = if path.is_empty() { "" } else { ": " };
            format!("--rule: {path}{colon}{}", fault.message)
        };
        faults.iter().map(line).collect()
    })
}

fn with_rule(text: &str, rule: &str) -> Result<String, String> {
    let mut file: Mapping = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    let mut rule: Mapping = serde_yaml::from_str(rule)
        .map_err(|error| format!("{error}: {{ match: {{ app: etl }}, ratio: 0.9 }} is one"))?;
    if !rule.contains_key("name") {
        rule.insert("name".into(), NAME.into());
    }
    if !rule.contains_key("permanent") && !rule.contains_key("expires_at") {
        rule.insert("permanent".into(), true.into());
    }
    let rules = file.entry("rules".into()).or_insert_with(|| Value::Sequence(Vec::new()));
    match rules {
        Value::Sequence(rules) => rules.insert(0, Value::Mapping(rule)),
        Value::Null => *rules = Value::Sequence(vec![Value::Mapping(rule)]),
        Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Mapping(_)
        | Value::Tagged(_) => return Err("the file's rules are no list".to_owned()),
    }
    serde_yaml::to_string(&file).map_err(|error| error.to_string())
}
