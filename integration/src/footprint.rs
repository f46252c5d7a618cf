//! What a process holds: file descriptors and memory. For tests that nothing leaks.

use std::fs;
use std::time::Duration;

use crate::error::{HarnessError, Result};
use crate::sluice::SluiceProcess;

/// What a process holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Open file descriptors.
    pub descriptors: usize,
    /// Resident memory in KiB.
    pub rss_kib: u64,
}

impl Footprint {
    /// What Sluice holds now.
    ///
    /// # Errors
    /// When it does not run.
    pub fn of(sluice: &SluiceProcess) -> Result<Self> {
        let pid = sluice.pid().unwrap_or(0);
        let dir = format!("/proc/{pid}/fd");
        let descriptors = fs::read_dir(&dir).map_err(HarnessError::io(dir))?.count();
        let path = format!("/proc/{pid}/status");
        let status = fs::read_to_string(&path).map_err(HarnessError::io(path))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let rss_kib = line
            .and_then(|line| line.split_whitespace().next()?.parse().ok())
            .ok_or_else(|| HarnessError::Malformed("no VmRSS".into()))?;
        Ok(Self { descriptors, rss_kib })
    }

    /// Waits until Sluice holds no more descriptors than at this moment.
    ///
    /// # Errors
    /// When it still does after `limit`.
    pub async fn wait_for_descriptors(self, sluice: &SluiceProcess, limit: Duration) -> Result<()> {
        let started = std::time::Instant::now();
        loop {
            let now = Self::of(sluice)?;
            if now.descriptors <= self.descriptors {
                return Ok(());
            }
            if started.elapsed() > limit {
                let what = format!("{self:?} again, it is {now:?}");
                return Err(HarnessError::TimedOut { what, after: limit });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// How many file descriptors this process may have open.
///
/// # Errors
/// When the system does not say.
pub fn descriptors_max() -> Result<usize> {
    let limits =
        fs::read_to_string("/proc/self/limits").map_err(HarnessError::io("cannot read limits"))?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| HarnessError::Malformed("no limit of open files".into()))
}
