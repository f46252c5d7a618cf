//! What is expected of a scenario's figures.

use std::fmt;

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

/// Reads what is expected of these apps.
pub(super) fn compile(
    expect: Expect,
    apps: &[String],
    faults: &mut Vec<String>,
) -> Vec<Expectation> {
    let mut list = Vec::new();
    let names = figure_names(apps);
    flatten("", expect, &mut |path, value| match value {
        Expected::Nested(parts) if path == "ratio" => list.extend(shares(parts, apps, faults)),
        Expected::Range(ends) => match (ends.as_slice(), names.contains(&path)) {
            (&[low, high], true) if low <= high => {
                list.push(Expectation::Figure { name: path, low, high });
            }
            (_, true) => faults.push(format!("expect.{path}: a range is [low, high]")),
            (_, false) => {
                faults
                    .push(format!("expect.{path}: no such figure; there are {}", names.join(", ")));
            }
        },
        Expected::Number(_) | Expected::Nested(_) => {
            faults.push(format!("expect.{path}: a range [low, high] is expected"));
        }
    });
    list
}

fn flatten(above: &str, expect: Expect, each: &mut impl FnMut(String, Expected)) {
    for (key, value) in expect.0 {
        let path = if above.is_empty() { key } else { format!("{above}.{key}") };
        match value {
            Expected::Nested(nested) if path != "ratio" && !nested.0.is_empty() => {
                flatten(&path, nested, each);
            }
            value @ (Expected::Nested(_) | Expected::Range(_) | Expected::Number(_)) => {
                each(path, value);
            }
        }
    }
}

fn shares(expect: Expect, apps: &[String], faults: &mut Vec<String>) -> Option<Expectation> {
    let mut within = WITHIN_DEFAULT;
    let mut parts = Vec::new();
    for (key, value) in expect.0 {
        match value {
            Expected::Number(number) if key == "within" && number >= 0.0 => within = number,
            Expected::Number(part) if part > 0.0 && apps.contains(&key) => parts.push((key, part)),
            Expected::Number(_) | Expected::Range(_) | Expected::Nested(_) => {
                faults.push(format!("expect.ratio.{key}: apps with their parts, and within"));
            }
        }
    }
    if parts.len() < 2 {
        faults.push("expect.ratio: at least two apps are compared".to_owned());
        return None;
    }
    Some(Expectation::Shares { parts, within })
}
