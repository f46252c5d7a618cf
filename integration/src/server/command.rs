//! The servers' command lines: small, quick, on the loopback only.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::server::{Access, Flavour, PerformanceSchema, ServerOptions, binaries};

/// The command that runs a server on `dir/data`.
pub(super) fn server(options: &ServerOptions, dir: &Path, port: u16) -> Result<Command> {
    let mut command = match options.flavour {
        Flavour::MySql => mysql()?,
        Flavour::MariaDb => mariadb()?,
    };
    command
        .arg(path_option("--datadir=", &dir.join("data")))
        .arg(path_option("--socket=", &dir.join("s.sock")))
        .arg(path_option("--pid-file=", &dir.join("server.pid")))
        .arg(path_option("--log-error=", &dir.join("error.log")))
        .arg(path_option("--tmpdir=", dir))
        .arg(format!("--port={port}"))
        .arg(format!("--server-id={}", options.server_id))
        .args(COMMON.iter().filter(|common| !is_overridden(common, &options.extra_args)))
        .arg(match options.performance_schema {
            PerformanceSchema::Off => "--performance-schema=OFF",
            PerformanceSchema::On => "--performance-schema=ON",
        })
        .arg(match options.access {
            Access::ReadWrite => "--read-only=OFF",
            Access::ReadOnly => "--read-only=ON",
        })
        .args(&options.extra_args);
    Ok(command)
}

/// MySQL does not take everything back that a flag has set.
fn is_overridden(flag: &str, by: &[String]) -> bool {
    by.iter().any(|extra| extra.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
}

/// A server refuses to run as root unless it is told to.
pub(super) fn as_whoever_runs_this(command: &mut Command) {
    let uid = std::fs::metadata("/proc/self").map(|m| m.uid());
    if uid.is_ok_and(|uid| uid == 0) {
        command.arg("--user=root");
    }
}

/// `--option=path`, also for a path that is not UTF-8.
pub(super) fn path_option(option: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(option);
    argument.push(path);
    argument
}

/// Durability is for machines that may lose power; a replica that shall be slow is made slow on purpose.
const COMMON: [&str; 12] = [
    "--bind-address=127.0.0.1",
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--skip-name-resolve",
    "--local-infile=ON",
    "--secure-file-priv=",
    "--max-connections=800",
    "--max-allowed-packet=64M",
    "--innodb-buffer-pool-size=32M",
    "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0",
    "--table-open-cache=400",
];

fn mysql() -> Result<Command> {
    let mut command = Command::new(binaries::mysqld()?);
    command.arg("--no-defaults");
    as_whoever_runs_this(&mut command);
    command.args([
        "--gtid-mode=ON",
        "--enforce-gtid-consistency=ON",
        "--mysqlx=OFF",
        "--innodb-redo-log-capacity=32M",
        "--skip-replica-start",
        "--relay-log=relay",
        "--log-error-verbosity=2",
        "--table-definition-cache=400",
    ]);
    Ok(command)
}

fn mariadb() -> Result<Command> {
    let mut command = Command::new(binaries::mariadbd()?);
    command.arg("--no-defaults");
    as_whoever_runs_this(&mut command);
    command.args([
        "--gtid-strict-mode=ON",
        "--log-slave-updates=ON",
        "--innodb-log-file-size=16M",
        "--skip-slave-start",
        "--relay-log=relay",
        "--character-set-server=utf8mb4",
    ]);
    Ok(command)
}
