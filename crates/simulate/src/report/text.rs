//! A report for people.

use std::fmt;

use super::{AppFigures, Distribution, Report};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, seed, pacing, threshold_s, .. } = self;
        writeln!(f, "{name}: pacing {pacing}, threshold {threshold_s} s, seed {seed}\n")?;
        writeln!(f, "capacity used   {:>7.2} %", self.capacity_used * 100.0)?;
        writeln!(f, "over threshold  {:>7.2} %", self.over_threshold * 100.0)?;
        let Distribution { p50, p95, p99, max } = self.lag_s;
        writeln!(
            f,
            "lag             p50 {p50:.3} s  p95 {p95:.3} s  p99 {p99:.3} s  max {max:.3} s\n"
        )?;
        let width = self.apps.iter().map(|(app, _)| app.chars().count()).max().unwrap_or(0).max(3);
        writeln!(
            f,
            "{:width$}  {:>10}  {:>10}  {:>8}  {:>10}  {:>9}  {:>9}  {:>9}",
            "app", "admitted/s", "rows/s", "waited/s", "rejected/s", "delay p50", "p99", "max"
        )?;
        for (app, figures) in &self.apps {
            let AppFigures { admitted_per_s, rows_per_s, waited_per_s, rejected_per_s, .. } =
                figures;
            let Distribution { p50, p99, max, .. } = figures.delay_s;
            write!(f, "{app:width$}  {admitted_per_s:>10.1}  {rows_per_s:>10.1}  ")?;
            write!(f, "{waited_per_s:>8.1}  {rejected_per_s:>10.1}  ")?;
            writeln!(f, "{p50:>7.3} s  {p99:>7.3} s  {max:>7.3} s")?;
        }
        for (app, figures) in &self.apps {
            asides(f, app, figures)?;
        }
        writeln!(f)?;
        for line in self.plot.lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// What only some apps have.
fn asides(f: &mut fmt::Formatter<'_>, app: &str, figures: &AppFigures) -> fmt::Result {
    if !figures.rejected_for.is_empty() {
        let reasons = figures.rejected_for.iter();
        let reasons: Vec<String> =
            reasons.map(|(reason, per_s)| format!("{reason} {per_s:.2}/s")).collect();
        writeln!(f, "{app}: refused for {}", reasons.join(", "))?;
    }
    if let Some(Distribution { p50, p99, max, .. }) = figures.latency_s {
        writeln!(f, "{app}: at the server p50 {p50:.4} s  p99 {p99:.4} s  max {max:.4} s")?;
    }
    if figures.observed_per_s > 0.0 {
        let held = figures.observed_per_s;
        writeln!(f, "{app}: its rule only observes; it would have held {held:.2}/s")?;
    }
    Ok(())
}
