//! The demo as plain lines.

use std::time::Duration;

use integration::sluice::SluiceProcess;

use super::println_line;
use super::report::Report;

/// They say something this often.
const EVERY: Duration = Duration::from_secs(2);

/// Cells of the bar that shows the lag; the threshold stands in the middle.
const BAR_CELLS: usize = 40;

/// Where the demo shows itself.
pub(super) struct Lines {
    last: Option<Duration>,
    config: String,
    console: String,
    metrics: String,
    client: String,
}

impl Lines {
    pub(super) fn new(sluice: &SluiceProcess) -> Self {
        let listen = sluice.listen_addr();
        Self {
            last: None,
            config: sluice.config_path().display().to_string(),
            console: format!("http://{}/", sluice.admin_addr()),
            metrics: format!("http://{}/metrics", sluice.admin_addr()),
            client: format!("mysql -h {} -P {} -u app -papp test", listen.ip(), listen.port()),
        }
    }

    /// Shows one reading, now and then.
    pub(super) fn show(
        &mut self,
        report: &Report,
        elapsed: Duration,
        total: Duration,
        lagging: bool,
    ) {
        if self.last.is_none_or(|last| elapsed >= last + EVERY) {
            self.last = Some(elapsed);
            self.lines(report, elapsed, total, lagging);
        }
    }

    fn lines(&self, report: &Report, elapsed: Duration, total: Duration, lagging: bool) {
        println_line(&format!(
            "Sluice demo, {:.0} of {:.0} s",
            elapsed.as_secs_f64(),
            total.as_secs_f64()
        ));
        let gate = if report.gate_open { "open" } else { "SHUT" };
        let lag = report.lag.map_or("no data".into(), |lag| format!("{lag:.2} s"));
        println_line(&format!(
            "lag {lag:>8} of {:.1} s  gate {gate}  [{}]{}",
            report.threshold,
            bar(report.lag.unwrap_or_default(), report.threshold),
            if lagging { "  replica 1 has been told to stop applying" } else { "" },
        ));
        println_line(&format!(
            "{:<34}{:>10}{:>9}{:>9}{:>12}{:>9}{:>10}",
            "app", "admitted", "delayed", "refused", "mean delay", "waiting", "oldest"
        ));
        for app in &report.apps {
            println_line(&format!(
                "{:<34}{:>10.0}{:>9.0}{:>9.0}{:>10.0}ms{:>9.0}{:>9.1}s  {}",
                app.label,
                app.admitted,
                app.delayed,
                app.refused,
                app.mean_delay * 1000.0,
                app.waiting,
                app.oldest,
                app.what,
            ));
        }
    }

    /// Where everything is.
    pub(super) fn hints(&self) {
        println_line("");
        println_line(&format!("console   {}   (who is held, and why, in a browser)", self.console));
        println_line(&format!("metrics   {}", self.metrics));
        println_line(&format!(
            "rules     {}   (edit and save: it applies within a second)",
            self.config
        ));
        println_line(&format!("client    {}", self.client));
    }

    /// The last words.
    pub(super) fn farewell(&self, report: &Report) {
        let refused: f64 = report.apps.iter().map(|app| app.refused).sum();
        let delayed: f64 = report.apps.iter().map(|app| app.delayed).sum();
        println_line(&format!(
            "Done: {delayed:.0} statements were delayed, {refused:.0} refused after their wait; \
             who, why and how long is in the metrics and in Sluice's log."
        ));
        println_line("Next: README.md tells how to put it in front of a server of yours.");
    }
}

/// The lag as a bar, its threshold in the middle.
fn bar(lag: f64, threshold: f64) -> String {
    let middle = BAR_CELLS / 2;
    (0..BAR_CELLS)
        .map(|cell| {
            let cell_lag = threshold * f64::from(u32::try_from(cell).unwrap_or(u32::MAX))
                / f64::from(u32::try_from(middle).unwrap_or(1));
            match (lag > cell_lag, cell == middle) {
                (true, _) => '#',
                (false, true) => '|',
                (false, false) => '.',
            }
        })
        .collect()
}
