//! What a run shows, and what Sluice says of itself meanwhile.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use benches::Result;
use benches::watch::Said;
use benches::way::Way;
use integration::lag_meter::LagSeries;

/// One way, measured.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) way: Way,
    /// Of all blocks, one after the other.
    pub(crate) lag: LagSeries,
    /// The same of what Sluice said.
    pub(crate) said: Vec<Said>,
    /// How long all blocks were.
    pub(crate) time: Duration,
    applied: u64,
    committed: u64,
}

/// One block of a way.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) lag: LagSeries,
    /// Rows that the replica applied.
    pub(crate) applied: u64,
    /// Rows that the primary committed.
    pub(crate) committed: u64,
    pub(crate) time: Duration,
    pub(crate) said: Vec<Said>,
}

impl Measured {
    pub(crate) fn new(way: Way) -> Self {
        Self {
            way,
            lag: LagSeries::default(),
            said: Vec::new(),
            time: Duration::ZERO,
            applied: 0,
            committed: 0,
        }
    }

    pub(crate) fn add(&mut self, block: Block) {
        let Block { lag, applied, committed, time, said } = block;
        let first = lag.samples.first().map_or(Duration::ZERO, |(at, _)| *at);
        let shifted = |at: Duration| at.saturating_sub(first) + self.time;
        self.lag.samples.extend(lag.samples.iter().map(|(at, lag)| (shifted(*at), *lag)));
        let before = self.time;
        self.said.extend(said.into_iter().map(|said| Said { at: said.at + before, ..said }));
        self.applied += applied;
        self.committed += committed;
        self.time += time;
    }

    /// Rows a second that the replica applied.
    pub(crate) fn applied_per_s(&self) -> f64 {
        self.per_s(self.applied)
    }

    /// Rows a second that the primary committed.
    pub(crate) fn committed_per_s(&self) -> f64 {
        self.per_s(self.committed)
    }

    fn per_s(&self, rows: u64) -> f64 {
        u32::try_from(rows).map_or(f64::NAN, f64::from) / self.time.as_secs_f64()
    }

    /// Both series, for whoever wants to see more than the table says.
    pub(crate) fn write_series(&self, path: &Path) -> Result<()> {
        let mut text = format!("kind,{}\n", Said::CSV_HEADER);
        for (at, lag) in &self.lag.samples {
            writeln!(text, "true,{:.3},{:.3},,,", at.as_secs_f64(), lag.as_secs_f64())?;
        }
        for said in &self.said {
            writeln!(text, "sluice,{}", said.csv())?;
        }
        Ok(std::fs::write(path, text)?)
    }
}
