//! Initialised data directories, made once per version and statement list, and copied per server.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{HarnessError, Result};
use crate::server::command::{as_whoever_runs_this, path_option};
use crate::server::{Flavour, binaries};

/// The template of a flavour; made when it is not there.
///
/// # Cancellation
/// Dropping the future lets a template that is being made be finished in the background.
pub(super) async fn for_flavour(flavour: Flavour) -> Result<PathBuf> {
    blocking(move || made(flavour)).await
}

/// Copies a template for one server, which then has an identity of its own.
///
/// # Cancellation
/// Dropping the future leaves a half copy to the owner of the folder, who removes it.
pub(super) async fn copy(template: &Path, to: &Path) -> Result<()> {
    let (template, to) = (template.to_owned(), to.to_owned());
    blocking(move || {
        run(
            Command::new("cp").arg("-a").arg("--").arg(&template).arg(&to),
            "copy of the template",
        )?;
        // MySQL makes a new server_uuid when this file is missing. MariaDB has none.
        match fs::remove_file(to.join("auto.cnf")) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(HarnessError::Io { what: "cannot remove auto.cnf".into(), source: e })
            }
            _ => Ok(()),
        }
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| HarnessError::Malformed(format!("a copying task failed: {e}")))?
}

fn made(flavour: Flavour) -> Result<PathBuf> {
    let folder = binaries::cache_dir()?.join("templates");
    fs::create_dir_all(&folder).map_err(HarnessError::io("cannot make the cache folder"))?;
    let template = folder.join(key(flavour)?);
    if template.is_dir() {
        return Ok(template);
    }
    // One maker at a time, in whichever process.
    let lock = File::create(folder.join("lock")).map_err(HarnessError::io("cannot lock"))?;
    lock.lock().map_err(HarnessError::io("cannot lock the templates"))?;
    if !template.is_dir() {
        make(flavour, &template)?;
    }
    Ok(template)
}

/// Version, place and statements: when one changes, so does the template.
fn key(flavour: Flavour) -> Result<String> {
    let (program, name) = match flavour {
        Flavour::MySql => (binaries::mysqld()?, "mysql"),
        Flavour::MariaDb => (binaries::mariadbd()?, "mariadb"),
    };
    let changed = fs::metadata(&program)
        .and_then(|m| m.modified())
        .map_err(HarnessError::io("cannot look at the server's program"))?;
    let mut hasher = DefaultHasher::new();
    (program, changed, statements(flavour), TEMPLATE_VERSION).hash(&mut hasher);
    Ok(format!("{name}-{:016x}", hasher.finish()))
}

fn make(flavour: Flavour, template: &Path) -> Result<()> {
    let half_made = template.with_extension("making");
    let sql = template.with_extension("sql");
    if half_made.exists() {
        fs::remove_dir_all(&half_made)
            .map_err(HarnessError::io("cannot remove a half template"))?;
    }
    fs::write(&sql, statements(flavour)).map_err(HarnessError::io("cannot write the accounts"))?;
    match flavour {
        Flavour::MySql => run(&mut mysql_initialise(&half_made, &sql)?, "mysqld --initialize")?,
        Flavour::MariaDb => run(&mut mariadb_initialise(&half_made, &sql)?, "mariadb-install-db")?,
    }
    fs::remove_file(&sql).map_err(HarnessError::io("cannot remove the accounts' file"))?;
    fs::rename(&half_made, template).map_err(HarnessError::io("cannot keep the template"))
}

fn mysql_initialise(datadir: &Path, sql: &Path) -> Result<Command> {
    let mut command = Command::new(binaries::mysqld()?);
    command.arg("--no-defaults");
    as_whoever_runs_this(&mut command);
    command
        .arg("--initialize-insecure")
        .arg("--secure-file-priv=")
        .arg(path_option("--init-file=", sql))
        .arg(path_option("--datadir=", datadir))
        .arg("--innodb-redo-log-capacity=32M")
        .arg("--innodb-buffer-pool-size=64M");
    Ok(command)
}

fn mariadb_initialise(datadir: &Path, sql: &Path) -> Result<Command> {
    let mut command = Command::new(binaries::mariadb_install_db()?);
    command.arg("--no-defaults");
    as_whoever_runs_this(&mut command);
    command
        .args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"])
        .arg("--innodb-log-file-size=16M")
        .arg(path_option("--extra-file=", sql))
        .arg(path_option("--datadir=", datadir));
    Ok(command)
}

fn run(command: &mut Command, what: &str) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(HarnessError::io(format!("cannot run {what}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(HarnessError::NotStarted {
        what: what.into(),
        log_tail: String::from_utf8_lossy(&said).into_owned(),
    })
}

/// To be raised when the way a template is made changes.
const TEMPLATE_VERSION: u32 = 1;

/// Accounts and schemas, one statement a line as the servers' bootstrap wants it. Every password is
/// the account's name but the probe's, whose is `sluice-probe`.
fn statements(flavour: Flavour) -> String {
    let mut all = Vec::new();
    if flavour == Flavour::MariaDb {
        // Its bootstrap runs without grant tables until it is told to read them.
        all.push("FLUSH PRIVILEGES".to_owned());
    }
    all.push("CREATE DATABASE test".into());
    all.push("CREATE DATABASE sluice".into());
    for user in ["admin", "repl", "app", "etl", "ddl", "web"] {
        all.push(format!("CREATE USER '{user}'@'%' IDENTIFIED BY '{user}'"));
    }
    all.push("CREATE USER 'sluice'@'%' IDENTIFIED BY 'sluice-probe'".into());
    all.push("GRANT ALL ON *.* TO 'admin'@'%' WITH GRANT OPTION".into());
    all.push("GRANT REPLICATION SLAVE ON *.* TO 'repl'@'%'".into());
    for user in ["app", "etl", "ddl", "web"] {
        all.push(format!("GRANT ALL ON test.* TO '{user}'@'%'"));
    }
    // What online schema change tools ask for.
    all.push("GRANT REPLICATION SLAVE, REPLICATION CLIENT, PROCESS ON *.* TO 'ddl'@'%'".into());
    // Exactly what the probe needs, so that a test notices when it needs more.
    all.push("GRANT CREATE, INSERT, UPDATE, DELETE, SELECT ON sluice.* TO 'sluice'@'%'".into());
    all.push("GRANT SELECT ON performance_schema.* TO 'sluice'@'%'".into());
    all.push(match flavour {
        Flavour::MySql => "GRANT REPLICATION CLIENT, PROCESS ON *.* TO 'sluice'@'%'".into(),
        Flavour::MariaDb => {
            "GRANT BINLOG MONITOR, SLAVE MONITOR, PROCESS ON *.* TO 'sluice'@'%'".into()
        }
    });
    let mut text = all.join(";\n");
    text.push_str(";\n");
    text
}
