//! Point selects by sysbench, and what it says about them.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::Result;

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// COM_QUERY.
    Text,
    /// COM_STMT_EXECUTE.
    Prepared,
}

impl Protocol {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Text, Self::Prepared];

    /// For tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Prepared => "prepared",
        }
    }

    const fn ps_mode(self) -> &'static str {
        match self {
            Self::Text => "disable",
            Self::Prepared => "auto",
        }
    }
}

/// Point selects for some seconds.
#[derive(Debug, Clone, Copy)]
pub struct Load<'p> {
    /// How statements are sent.
    pub protocol: Protocol,
    /// At once.
    pub connections: u32,
    /// How long.
    pub seconds: u32,
    /// In TLS, with the certificates of this folder: `cacert.pem`, `client-cert.pem`, `client-key.pem`.
    pub tls: Option<&'p Path>,
}

/// What one run gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Statements that were answered.
    pub statements: f64,
    /// Statements a second.
    pub per_s: f64,
    /// Median latency in µs, by sysbench's histogram.
    pub p50_us: f64,
    /// 99th percentile in µs.
    pub p99_us: f64,
}

/// Makes the tables.
///
/// # Errors
/// What sysbench says when it fails.
pub fn prepare(addr: SocketAddr) -> Result<()> {
    sysbench(addr, None, &["prepare".to_owned()]).map(drop)
}

/// Runs point selects.
///
/// # Errors
/// What sysbench says when it fails.
pub fn run(addr: SocketAddr, load: &Load<'_>) -> Result<Run> {
    let output = sysbench(
        addr,
        load.tls,
        &[
            format!("--threads={}", load.connections),
            format!("--time={}", load.seconds),
            format!("--db-ps-mode={}", load.protocol.ps_mode()),
            "--histogram=on".to_owned(),
            "run".to_owned(),
        ],
    )?;
    parse(&output)
}

fn sysbench(addr: SocketAddr, tls: Option<&Path>, more: &[String]) -> Result<String> {
    let mut command = Command::new("sysbench");
    command
        .arg("oltp_point_select")
        .args([format!("--mysql-host={}", addr.ip()), format!("--mysql-port={}", addr.port())])
        .args(["--mysql-user=app", "--mysql-password=app", "--mysql-db=test"])
        .args(["--tables=4", "--table-size=10000"]);
    if let Some(dir) = tls {
        // Its client library reads all of the system's authorities for each connection otherwise.
        let ca = dir.join("cacert.pem");
        command.arg("--mysql-ssl=on").current_dir(dir).env("SSL_CERT_FILE", ca);
    }
    let Output { status, stdout, stderr } = command
        .args(more)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run sysbench: {error}"))?;
    let said = String::from_utf8_lossy(&stdout).into_owned();
    if status.success() {
        return Ok(said);
    }
    Err(format!("sysbench failed: {said}{}", String::from_utf8_lossy(&stderr)).into())
}

fn parse(output: &str) -> Result<Run> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("queries:"));
    let line = line.ok_or("sysbench says no number of queries")?;
    let mut numbers = line.split(['(', ' ']).filter_map(|word| word.parse::<f64>().ok());
    let statements = numbers.next().ok_or("no number of queries")?;
    let per_s = numbers.next().ok_or("no queries per second")?;
    let histogram = histogram(output);
    Ok(Run {
        statements,
        per_s,
        p50_us: percentile(&histogram, 0.50),
        p99_us: percentile(&histogram, 0.99),
    })
}

/// Pairs of latency in ms and count, by latency.
fn histogram(output: &str) -> Vec<(f64, f64)> {
    let pair = |line: &str| {
        let (latency, bar) = line.split_once('|')?;
        let count = bar.rsplit(' ').next()?;
        Some((latency.trim().parse().ok()?, count.trim().parse().ok()?))
    };
    output.lines().filter_map(pair).collect()
}

fn percentile(histogram: &[(f64, f64)], share: f64) -> f64 {
    let all: f64 = histogram.iter().map(|(_, count)| count).sum();
    let mut below = 0.0;
    for (latency_ms, count) in histogram {
        below += count;
        if below >= all * share {
            return latency_ms * 1_000.0;
        }
    }
    f64::NAN
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n       \
        0.051 |*****                                    10\n       0.060 |****************************************** 85\n       1.500 |**                                       5\n\
        \nSQL statistics:\n    queries performed:\n        total:                           100\n    \
        transactions:                        100    (50.25 per sec.)\n    queries:                             100    (50.25 per sec.)\n";

    #[test]
    fn a_run_is_read_from_what_sysbench_prints() {
        let run = parse(OUTPUT).unwrap();
        assert_eq!((run.statements, run.per_s), (100.0, 50.25));
        assert_eq!((run.p50_us, run.p99_us), (60.0, 1_500.0));
    }
}
