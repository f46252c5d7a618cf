//! How busy the machine and one thread of a process have been, from `/proc`.

use std::fs;

use benches::Result;

/// How busy the machine's cores are, as parts of all of them.
#[derive(Clone, Copy)]
pub(super) struct Busy {
    /// By anybody.
    pub(super) all: f64,
    /// By processes of a low priority: not ours.
    pub(super) niced: f64,
    ticks: [f64; 8],
}

impl Busy {
    /// As the kernel has counted it so far (proc(5): `cpu` of `stat`).
    pub(super) fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().unwrap_or_default();
        let mut ticks = [0.0; 8];
        for (tick, word) in ticks.iter_mut().zip(line.split_whitespace().skip(1)) {
            *tick = word.parse()?;
        }
        Ok(Self { all: 0.0, niced: 0.0, ticks })
    }

    /// From then until now.
    pub(super) fn since(self, then: Self) -> Self {
        let mut ticks = self.ticks;
        for (tick, then) in ticks.iter_mut().zip(then.ticks) {
            *tick -= then;
        }
        let [_user, nice, _system, idle, iowait, ..] = ticks;
        let total = ticks.iter().sum::<f64>().max(1.0);
        Self { all: 1.0 - (idle + iowait) / total, niced: nice / total, ticks }
    }
}

/// The CPU time of a process' thread of this name so far, in seconds, to the nanosecond (proc(5):
/// the first field of `schedstat`).
pub(super) fn thread_cpu_s(pid: u32, name: &str) -> Result<f64> {
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = thread?.path();
        if fs::read_to_string(path.join("comm"))?.trim() == name {
            let stat = fs::read_to_string(path.join("schedstat"))?;
            let ns: f64 = stat.split_whitespace().next().unwrap_or("0").parse()?;
            return Ok(ns / 1e9);
        }
    }
    Err(format!("no thread `{name}`").into())
}
