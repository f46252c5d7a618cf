//! A report for people.

use std::fmt;

use super::{Distribution, Report};

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
            "{:width$}  {:>10}  {:>10}  {:>10}  {:>9}  {:>9}  {:>9}",
            "app", "admitted/s", "rows/s", "rejected/s", "delay p50", "p99", "max"
        )?;
        for (app, figures) in &self.apps {
            let Distribution { p50, p99, max, .. } = figures.delay_s;
            writeln!(
                f,
                "{app:width$}  {:>10.1}  {:>10.1}  {:>10.1}  {p50:>7.3} s  {p99:>7.3} s  {max:>7.3} s",
                figures.admitted_per_s, figures.rows_per_s, figures.rejected_per_s
            )?;
        }
        writeln!(f)?;
        for line in self.plot.lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
