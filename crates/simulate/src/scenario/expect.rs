//! What is expected of a scenario's figures.

use std::fmt;

use super::faults::Faults;
use super::raw::{Expect, Expected};
use crate::report::{Report, figure_names};

/// How far shares may be from their proportion when `within` does not say.
const WITHIN_DEFAULT: f64 = 0.1;

/// One thing expected.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation {
    /// A figure lies between these, ends included.
    Figure {
        /// Its name: `capacity_used`, `lag_s.p99`, `apps.etl.rows_per_s`.
        name: String,
        /// The least.
        low: f64,
        /// The most.
        high: f64,
    },
    /// The rows per second of these apps are in proportion.
    Shares {
        /// Each app and its part.
        parts: Vec<(String, f64)>,
        /// By how much of its due any of them may be off.
        within: f64,
    },
}

impl Expectation {
    /// Whether it is about this figure.
    fn is_of(&self, figure: &str) -> bool {
        match self {
            Self::Figure { name, .. } => name == figure,
            Self::Shares { .. } => false,
        }
    }

    /// Whether it is about what apps receive of their fair share.
    pub(crate) fn is_about_fairness(&self) -> bool {
        match self {
            Self::Figure { name, .. } => {
                name.ends_with(".received_of_share") || name.ends_with(".below_share")
            }
            Self::Shares { .. } => false,
        }
    }

    /// What is wrong with the report, if it is not as expected.
    #[must_use]
    pub fn missed(&self, report: &Report) -> Option<String> {
        match self {
            Self::Figure { name, low, high } => {
                let value = report.figure(name);
                let met = value.is_some_and(|value| *low <= value && value <= *high);
                let value = value.map_or("nothing".to_owned(), |value| value.to_string());
                (!met).then(|| format!("{self}, and it is {value}"))
            }
            Self::Shares { parts, within } => {
                let rows: Vec<f64> = parts
                    .iter()
                    .map(|(app, _)| report.figure(&format!("apps.{app}.rows_per_s")).unwrap_or(0.0))
                    .collect();
                let all: f64 = rows.iter().sum();
                let whole: f64 = parts.iter().map(|(_, part)| part).sum();
                let off = parts.iter().zip(&rows).any(|((_, part), rows)| {
                    let due = all * part / whole;
                    due <= 0.0 || ((rows - due) / due).abs() > *within
                });
                let is: Vec<String> = rows.iter().map(ToString::to_string).collect();
                off.then(|| format!("{self}, and it is {}", is.join(" : ")))
            }
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figure { name, low, high } => write!(f, "{name} is expected in [{low}, {high}]"),
            Self::Shares { parts, within } => {
                let apps: Vec<&str> = parts.iter().map(|(app, _)| app.as_str()).collect();
                let due: Vec<String> = parts.iter().map(|(_, part)| part.to_string()).collect();
                let percent = within * 100.0;
                let (apps, due) = (apps.join(" : "), due.join(" : "));
                write!(f, "rows of {apps} are expected as {due} within {percent} %")
            }
        }
    }
}

/// Reads what is expected of these apps, at a server whose statements take turns or do not.
pub(super) fn compile(
    expect: Option<Expect>,
    (apps, takes_turns): (&[String], bool),
    faults: &mut Faults,
) -> Vec<Expectation> {
    let mut list: Vec<Expectation> = Vec::new();
    let names = figure_names(apps);
    let known = faults.has_read("apps");
    flatten("", expect.unwrap_or_default(), &mut |path, value| match value {
        Expected::Nested(parts) if path == "ratio" => {
            list.extend(shares(parts, (apps, known), faults));
        }
        Expected::Range(low, high) if names.contains(&path) => {
            let at = format!("expect.{path}");
            if list.iter().any(|other| other.is_of(&path)) {
                faults.add(&at, "is there twice");
            }
            let can_be = range(&path, (low, high), takes_turns);
            can_be.unwrap_or_else(|why| faults.add(&at, why));
            list.push(Expectation::Figure { name: path, low, high });
        }
        Expected::Range(..) if known => {
            faults.add(&format!("expect.{path}"), no_figure(&path, apps))
        }
        Expected::Range(..) => {}
        Expected::Number(_) | Expected::Nested(_) => {
            faults.add(&format!("expect.{path}"), "must be a range [low, high]");
        }
    });
    list
}

/// Whether a figure can lie between these.
fn range(path: &str, (low, high): (f64, f64), takes_turns: bool) -> Result<(), &'static str> {
    let is_part = ["capacity_used", "over_threshold", ".told_right", ".below_share"]
        .iter()
        .any(|part| path.ends_with(part));
    let is_ordered = low <= high;
    if !is_ordered {
        return Err("must be a range [low, high]");
    }
    if high < 0.0 {
        return Err("no figure is below 0");
    }
    if is_part && low > 1.0 {
        return Err("it is a part, and never above 1");
    }
    if path.contains(".latency_s.") && !takes_turns {
        return Err("there is latency_s only with primary.service");
    }
    Ok(())
}

/// A path is no figure: which there are that are like it.
fn no_figure(path: &str, apps: &[String]) -> String {
    let own = apps.iter().find(|app| path.starts_with(&format!("apps.{app}.")));
    let shown = own.or(apps.first()).map(std::slice::from_ref).unwrap_or_default();
    let figures = figure_names(shown).join(", ");
    let others = if apps.len() > shown.len() { ", and those of the other apps" } else { "" };
    format!("there is no such figure; there are {figures}{others}")
}

fn flatten(above: &str, expect: Expect, each: &mut impl FnMut(String, Expected)) {
    for (key, value) in expect.0 {
        let path = if above.is_empty() { key } else { format!("{above}.{key}") };
        match value {
            Expected::Nested(nested) if path != "ratio" && !nested.0.is_empty() => {
                flatten(&path, nested, each);
            }
            value @ (Expected::Nested(_) | Expected::Range(..) | Expected::Number(_)) => {
                each(path, value);
            }
        }
    }
}

fn shares(
    expect: Expect,
    (apps, known): (&[String], bool),
    faults: &mut Faults,
) -> Option<Expectation> {
    let mut within = WITHIN_DEFAULT;
    let mut parts = Vec::new();
    for (key, value) in expect.0 {
        let path = format!("expect.ratio.{key}");
        match value {
            Expected::Number(number) if key == "within" => {
                within = faults.number(number, (0.0, 1.0), &path);
            }
            Expected::Number(part) if apps.contains(&key) => {
                parts.push((key, faults.number(part, PART, &path)));
            }
            Expected::Number(_) if !known => {}
            Expected::Number(_) => faults.add(&path, format!("there is no app {key:?}")),
            Expected::Range(..) | Expected::Nested(_) => {
                faults.add(&path, "must be a number: apps with their parts, and within");
            }
        }
    }
    if parts.len() < 2 {
        faults.hold(!known, "expect.ratio", "at least two apps are compared");
        return None;
    }
    Some(Expectation::Shares { parts, within })
}

/// The least and the greatest part of an app.
const PART: (f64, f64) = (1e-6, 1e9);
