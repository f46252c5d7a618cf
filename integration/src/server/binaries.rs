//! Where the servers' programs are.

use std::path::{Path, PathBuf};

use crate::error::{HarnessError, Result};

/// Downloads and templates live here: `$SLUICE_CACHE`, else `$HOME/.cache/sluice`.
///
/// # Errors
/// When neither is set.
pub fn cache_dir() -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os("SLUICE_CACHE") {
        return Ok(PathBuf::from(dir));
    }
    let home = std::env::var_os("HOME").ok_or_else(|| HarnessError::Missing {
        what: "a cache folder".into(),
        remedy: "set HOME or SLUICE_CACHE",
    })?;
    Ok(PathBuf::from(home).join(".cache/sluice"))
}

/// `SLUICE_MYSQLD`, else what `scripts/install-servers` unpacked.
pub(super) fn mysqld() -> Result<PathBuf> {
    let path = match std::env::var_os("SLUICE_MYSQLD") {
        Some(path) => PathBuf::from(path),
        None => cache_dir()?.join("mysql-9/run/mysqld"),
    };
    present(path, "run scripts/install-servers mysql")
}

/// MySQL's command-line client, unpacked beside the server.
///
/// # Errors
/// When it is not there.
pub fn mysql() -> Result<PathBuf> {
    present(cache_dir()?.join("mysql-9/run/mysql"), "run scripts/install-servers mysql")
}

/// MariaDB's command-line client.
///
/// # Errors
/// When it is not there.
pub fn mariadb() -> Result<PathBuf> {
    in_path("mariadb", "run scripts/install-servers mariadb")
}

/// A tool that works on a database: MySQL's own are unpacked beside the server, the others are the host's.
pub(crate) fn tool(name: &str) -> Result<PathBuf> {
    match name {
        "mysqldump" => {
            present(cache_dir()?.join("mysql-9/run/mysqldump"), "run scripts/install-servers mysql")
        }
        "mysql" => mysql(),
        name => in_path(name, "run scripts/install-tools"),
    }
}

/// `SLUICE_MARIADBD`, else the host's.
pub(super) fn mariadbd() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("SLUICE_MARIADBD") {
        return present(PathBuf::from(path), "SLUICE_MARIADBD names it");
    }
    in_path("mariadbd", "run scripts/install-servers mariadb")
}

/// The script that makes MariaDB's first data directory.
pub(super) fn mariadb_install_db() -> Result<PathBuf> {
    in_path("mariadb-install-db", "run scripts/install-servers mariadb")
}

fn in_path(program: &str, remedy: &'static str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/local/sbin", "/usr/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(system)
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| HarnessError::Missing { what: program.into(), remedy })
}

fn present(path: PathBuf, remedy: &'static str) -> Result<PathBuf> {
    if Path::is_file(&path) {
        return Ok(path);
    }
    Err(HarnessError::Missing { what: path.display().to_string(), remedy })
}
