//! What a process has cost so far, from `/proc`.

use std::fs;
use std::process::Command;

use crate::Result;

/// Ticks a second of `/proc/PID/stat`: the kernel's `USER_HZ`, 100 on every Linux we run on.
const TICKS_PER_S: f64 = 100.0;

/// CPU time of all threads of a process, dead ones too, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuTime {
    /// In its own code.
    pub user_s: f64,
    /// In the kernel on its behalf.
    pub system_s: f64,
}

impl CpuTime {
    /// Both.
    #[must_use]
    pub fn total_s(self) -> f64 {
        self.user_s + self.system_s
    }
}

/// CPU time of a process so far (proc(5): fields 14 and 15 of `stat`).
///
/// # Errors
/// When there is no such process.
pub fn cpu_time(pid: u32) -> Result<CpuTime> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses, with whatever is in it.
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let mut ticks = after_name.split_whitespace().skip(11);
    let mut next = || -> Result<f64> {
        Ok(ticks.next().ok_or("a short /proc/PID/stat")?.parse::<f64>()? / TICKS_PER_S)
    };
    Ok(CpuTime { user_s: next()?, system_s: next()? })
}

/// Resident memory of a process in KiB (proc(5): `VmRSS`).
///
/// # Errors
/// When there is no such process.
pub fn resident_kib(pid: u32) -> Result<f64> {
    status_kib(pid, "VmRSS:")
}

/// The most that was resident since [`forget_peak`], in KiB (proc(5): `VmHWM`).
///
/// # Errors
/// When there is no such process.
pub fn peak_kib(pid: u32) -> Result<f64> {
    status_kib(pid, "VmHWM:")
}

/// From here on counts the peak anew (proc(5): `clear_refs`).
///
/// # Errors
/// When the process is another user's, or is none.
pub fn forget_peak(pid: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

/// Lets every other thread of the machine go before those of this process with this name, by so many
/// steps (renice(1)).
///
/// # Errors
/// When there is none, or `renice` does not do it.
pub fn be_nice(thread: &str, steps: u32) -> Result<()> {
    let mut found = false;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?;
        // A thread that has ended meanwhile has no name.
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.trim_end() != thread {
            continue;
        }
        let mut renice = Command::new("renice");
        renice.args(["-n", &steps.to_string(), "-p"]).arg(task.file_name());
        if !renice.output()?.status.success() {
            return Err(format!("renice has failed for the thread {thread}").into());
        }
        found = true;
    }
    if found { Ok(()) } else { Err(format!("there is no thread {thread}").into()) }
}

fn status_kib(pid: u32, field: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.split_whitespace().next()).ok_or("no such field")?;
    Ok(kib.parse()?)
}

#[cfg(test)]
mod tests {
    use super::{cpu_time, resident_kib};

    #[test]
    fn this_process_has_used_memory_and_a_readable_time() {
        assert!(resident_kib(std::process::id()).unwrap() > 100.0);
        assert!(cpu_time(std::process::id()).unwrap().total_s() >= 0.0);
    }
}
