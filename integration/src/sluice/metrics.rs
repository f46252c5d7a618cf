//! The Prometheus text format, read.

use std::net::SocketAddr;

use super::http;
use crate::error::{HarnessError, Result};

/// One scrape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    samples: Vec<Sample>,
}

/// One line of a scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The metric's name, `_bucket`, `_sum` or `_count` included.
    pub name: String,
    /// Labels as written.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

impl Metrics {
    /// `/metrics` of whoever listens there.
    ///
    /// # Errors
    /// When it is not answered or not in the Prometheus text format.
    pub async fn of(admin: SocketAddr) -> Result<Self> {
        Self::parse(&http::request(admin, "GET", "/metrics").await?.body)
    }

    /// Reads a page.
    ///
    /// # Errors
    /// When a line is neither a comment nor a sample.
    pub fn parse(page: &str) -> Result<Self> {
        let lines = page.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
        let samples = lines.map(parse_sample).collect::<Result<_>>()?;
        Ok(Self { samples })
    }

    /// Every sample.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Samples of a metric that carry all of these labels.
    pub fn matching(&self, name: &str, labels: &[(&str, &str)]) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| {
            sample.name == name && labels.iter().all(|(k, v)| sample.label(k) == Some(v))
        })
    }

    /// The sum of the matching samples; 0 when there are none.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        // An empty sum of floats is -0.0, which prints badly.
        self.matching(name, labels).map(|sample| sample.value).fold(0.0, |a, b| a + b)
    }

    /// The one matching sample's value. `None` when there is none, or more than one.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut matching = self.matching(name, labels);
        match (matching.next(), matching.next()) {
            (Some(sample), None) => Some(sample.value),
            _ => None,
        }
    }

    /// The greatest matching value.
    #[must_use]
    pub fn max(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.matching(name, labels).map(|sample| sample.value).reduce(f64::max)
    }
}

impl Sample {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
}

fn parse_sample(line: &str) -> Result<Sample> {
    let malformed = || HarnessError::Malformed(format!("metrics line: {line}"));
    let name_end = line.find(['{', ' ']).ok_or_else(malformed)?;
    let (name, rest) = line.split_at_checked(name_end).ok_or_else(malformed)?;
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => parse_labels(rest).ok_or_else(malformed)?,
        None => (Vec::new(), rest),
    };
    let value = rest.split_whitespace().next().ok_or_else(malformed)?;
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        number => number.parse().map_err(|_| malformed())?,
    };
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// Reads `a="b",c="d"} rest`; gives the labels and the rest.
fn parse_labels(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (key, after) = rest.split_once("=\"")?;
        let (value, after) = parse_value(after)?;
        labels.push((key.to_owned(), value));
        rest = after;
    }
}

/// Reads up to the closing quote, undoing `\\`, `\"` and `\n`.
fn parse_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => value.push(match chars.next()? {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP a_total things\n# TYPE a_total counter\n\
        a_total{app=\"etl\",decision=\"admitted\"} 3\n\
        a_total{app=\"etl\",decision=\"rejected\"} 4\n\
        a_total{app=\"x\\\"}y\",decision=\"admitted\"} 5 1700000000\n\
        up 1\nh_bucket{le=\"+Inf\"} +Inf\n";

    #[test]
    fn samples_are_summed_over_the_labels_that_are_not_named() {
        let metrics = Metrics::parse(PAGE).unwrap();
        assert!((metrics.sum("a_total", &[("app", "etl")]) - 7.0).abs() < f64::EPSILON);
        assert!((metrics.sum("a_total", &[]) - 12.0).abs() < f64::EPSILON);
        assert!(metrics.sum("absent", &[]).abs() < f64::EPSILON);
    }

    #[test]
    fn a_value_is_given_only_when_it_is_the_only_one() {
        let metrics = Metrics::parse(PAGE).unwrap();
        assert_eq!(metrics.value("up", &[]), Some(1.0));
        assert_eq!(metrics.value("a_total", &[("app", "x\"}y")]), Some(5.0));
        assert_eq!(metrics.value("a_total", &[]), None);
        assert_eq!(metrics.max("a_total", &[]), Some(5.0));
        assert_eq!(metrics.value("h_bucket", &[("le", "+Inf")]), Some(f64::INFINITY));
    }

    #[test]
    fn what_is_no_sample_is_an_error() {
        assert!(Metrics::parse("a{b=\"c\" 1").is_err());
        assert!(Metrics::parse("<html>").is_err());
    }
}
