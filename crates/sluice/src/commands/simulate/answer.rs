//! What came of a simulation, for people and as JSON.

use std::fmt;

use ::simulate::{Distribution, Report};
use admission::MonoTime;
use serde_json::{Map, Value, json};

use super::ruled::Ruled;

/// A report, and where its scenario comes from.
pub(super) struct Answer<'a> {
    pub(super) report: &'a Report,
    /// With the report of the same load without rules.
    pub(super) ruled: Option<(&'a Ruled, &'a Report)>,
}

impl fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, ruled } = self;
        let Some((ruled, without)) = ruled else { return report.fmt(f) };
        rules(f, ruled)?;
        report.fmt(f)?;
        compared(f, report, without)?;
        if !ruled.not_modelled.is_empty() {
            writeln!(f, "\nnot modelled, or to be known:")?;
        }
        for line in &ruled.not_modelled {
            writeln!(f, "  - {line}")?;
        }
        Ok(())
    }
}

/// What each app meets, and why.
fn rules(f: &mut fmt::Formatter<'_>, ruled: &Ruled) -> fmt::Result {
    let Ruled { config, cluster, at, met, .. } = ruled;
    writeln!(f, "rules of cluster {cluster} of {}, at {at}\n", config.display())?;
    let chars = |text: &str| text.chars().count();
    let rule = |name: &Option<String>| name.clone().unwrap_or_else(|| "no rule".to_owned());
    let width = met.iter().map(|met| chars(&met.name)).max().unwrap_or(0).max(3);
    let rules = met.iter().map(|met| chars(&rule(&met.rule.name))).max().unwrap_or(0);
    for met in met {
        let (name, rule) = (&met.name, rule(&met.rule.name));
        writeln!(f, "{name:width$}  meets {rule:rules$}  {}", met.does)?;
        let why = &met.explanation;
        let source = why.source.replace('_', " ");
        write!(f, "{:width$}  as app {} (from {source}), class {}", "", why.app, why.class)?;
        match &why.reason {
            Some(reason) => writeln!(f, "; its reason: {reason}")?,
            None => writeln!(f)?,
        }
    }
    let replicas = ruled.scenario.replicas.iter();
    let rates: Vec<String> =
        replicas.map(|replica| replica.apply.at(MonoTime::ZERO).to_string()).collect();
    let background = ruled.scenario.background.at(MonoTime::ZERO);
    let rates = rates.join(", ");
    writeln!(f, "\nagainst replicas that apply {rates} rows/s, background {background} rows/s\n")
}

/// The same load without any rule.
fn compared(f: &mut fmt::Formatter<'_>, with: &Report, without: &Report) -> fmt::Result {
    let width = with.apps.iter().map(|(app, _)| app.chars().count()).max().unwrap_or(0).max(14);
    writeln!(f, "\n{:width$}  {:>14}  {:>14}", "", "without rules", "with them")?;
    for ((app, with), (_, without)) in with.apps.iter().zip(&without.apps) {
        let share = if without.admitted_per_s > 0.0 {
            format!("{:.1} % of it", with.admitted_per_s / without.admitted_per_s * 100.0)
        } else {
            String::new()
        };
        let (unit, without, with) = if without.rows_per_s > 0.0 {
            ("rows/s", without.rows_per_s, with.rows_per_s)
        } else {
            ("/s", without.admitted_per_s, with.admitted_per_s)
        };
        writeln!(
            f,
            "{app:width$}  {:>14}  {:>14}  {share}",
            shown(without, unit),
            shown(with, unit)
        )?;
    }
    let lag = |lag: &Distribution| shown(lag.p99, "s");
    let (before, after) = (lag(&without.lag_s), lag(&with.lag_s));
    writeln!(f, "{:width$}  {before:>14}  {after:>14}", "lag p99")?;
    let over = |report: &Report| format!("{:.1} %", report.over_threshold * 100.0);
    writeln!(f, "{:width$}  {:>14}  {:>14}", "over threshold", over(without), over(with))
}

fn shown(value: f64, unit: &str) -> String {
    if value < 10.0 { format!("{value:.3} {unit}") } else { format!("{value:.1} {unit}") }
}

impl Answer<'_> {
    /// One object: the report's, with `config` if it comes from there.
    pub(super) fn json(&self) -> Result<String, serde_json::Error> {
        let Some((ruled, without)) = self.ruled else { return serde_json::to_string(self.report) };
        let apps = ruled.met.iter().map(|met| {
            let simulated = ("simulated", Value::from(met.does.as_str()));
            Ok((met.name.clone(), with(serde_json::to_value(&met.explanation)?, [simulated])))
        });
        let config = json!({
            "file": ruled.config.display().to_string(),
            "cluster": ruled.cluster,
            "at": ruled.at.to_string(),
            "apps": apps.collect::<Result<Map<_, _>, serde_json::Error>>()?,
            "not_modelled": ruled.not_modelled,
        });
        let further = [("config", config), ("without_rules", serde_json::to_value(without)?)];
        serde_json::to_string(&with(serde_json::to_value(self.report)?, further))
    }
}

/// An object with further keys.
fn with<const N: usize>(object: Value, further: [(&str, Value); N]) -> Value {
    let mut map = match object {
        Value::Object(map) => map,
        other => Map::from_iter([("value".to_owned(), other)]),
    };
    map.extend(further.map(|(key, value)| (key.to_owned(), value)));
    Value::Object(map)
}
