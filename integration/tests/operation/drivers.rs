//! Real drivers, direct and through Sluice: the same program must say the same of every step, but where
//! Sluice held it back or refused it, and there its error is the one that docs/DRIVERS.md promises.
//!
//! Each is tried in the clear and in TLS, and compressed where it can. The leg behind Sluice is compressed only when
//! its client's is, so what the server says of its own leg tells of both.
//!
//! The programs are in `integration/clients`; `scripts/install-clients` brings what they need.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use integration::client;
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};
use tokio::sync::Semaphore;

use table::{DRIVERS, Driver, Mode};

mod table;

#[tokio::test]
async fn every_driver_sees_mysql_through_sluice_as_it_sees_it_directly() {
    let options = TopologyOptions::new(Flavour::MySql, 0);
    compare_all(&Topology::start(options).await.unwrap()).await;
}

#[tokio::test]
async fn every_driver_sees_mariadb_through_sluice_as_it_sees_it_directly() {
    let mut options = TopologyOptions::new(Flavour::MariaDb, 0);
    options.extra_args = certificate_options();
    compare_all(&Topology::start(options).await.unwrap()).await;
}

#[test]
fn at_least_twelve_drivers_are_here() {
    let missing: Vec<String> = DRIVERS.iter().filter_map(why_not).collect();
    let here = DRIVERS.len().saturating_sub(missing.len());
    assert!(here >= DRIVERS_MIN, "only {here} of {}: {missing:#?}", DRIVERS.len());
}

#[test]
fn the_table_in_the_documentation_says_what_is_tested() {
    let page = read(&repository().join("docs/DRIVERS.md"));
    for driver in DRIVERS {
        let row = format!("| `{}` |", driver.name);
        let row = page.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("docs/DRIVERS.md has no row for {}", driver.name));
        let errors = driver.but.iter().map(|(_, error)| *error).chain([driver.error]);
        for word in errors.flat_map(|error| error.split(' ')) {
            let word = word.strip_prefix("errno=").unwrap_or(word);
            let word = word.strip_prefix("sqlstate=").unwrap_or(word);
            assert!(row.contains(word), "docs/DRIVERS.md does not say {word}: {row}");
        }
    }
}

#[test]
fn the_documentation_says_which_drivers_compress() {
    let page = read(&repository().join("docs/DRIVERS.md"));
    let (_, section) = page.split_once("\n## Compression\n").unwrap();
    for driver in DRIVERS {
        let row = section.lines().find(|line| line.starts_with(&format!("| `{}` |", driver.name)));
        let told: Vec<&str> = ["zlib", "zstd"]
            .into_iter()
            .filter(|algorithm| row.is_some_and(|row| row.contains(algorithm)))
            .collect();
        assert_eq!(told, driver.compression, "{}: {row:?}", driver.name);
    }
}

#[test]
fn every_program_is_in_the_table() {
    let output = Command::new(program("run")).arg("--list").output().unwrap();
    let mut programs: Vec<String> = lines(&output.stdout);
    let mut tested: Vec<String> = DRIVERS.iter().map(|driver| driver.name.to_owned()).collect();
    programs.sort();
    tested.sort();
    assert_eq!(programs, tested);
}

/// Everything of one server: each driver in all of its modes, direct and through Sluice.
async fn compare_all(servers: &Topology) {
    let config =
        Config::new(servers).unwrap().rules(RULES).cluster("backend_compression: as_client");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    // The account's password is known to the server's cache then, as it is to that of a server in use.
    client::connect(servers.primary.addr(), "app").await.unwrap().disconnect().await.unwrap();
    let mut terminal = std::io::stderr();
    let mut running = Vec::new();
    for driver in DRIVERS {
        if let Some(reason) = why_not(driver) {
            // Not by `eprintln`: what a passing test says is not shown.
            writeln!(terminal, "SKIPPED driver {reason}").unwrap();
            continue;
        }
        let pair = Pair::new(driver, servers, &sluice);
        pair.make_databases(servers).await;
        running.push(tokio::spawn(pair.run()));
    }
    let mut faults = Vec::new();
    for pair in running {
        faults.extend(pair.await.unwrap());
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// One driver, one server, both ways.
struct Pair {
    driver: &'static Driver,
    server: &'static str,
    modes: Vec<Mode>,
    direct: SocketAddr,
    sluice: SocketAddr,
}

impl Pair {
    fn new(driver: &'static Driver, servers: &Topology, sluice: &SluiceProcess) -> Self {
        let flavour = servers.primary.flavour();
        let server = match flavour {
            Flavour::MySql => "mysql",
            Flavour::MariaDb => "mariadb",
        };
        let (direct, sluice) = (servers.primary.addr(), sluice.listen_addr());
        Self { driver, server, modes: driver.modes(flavour), direct, sluice }
    }

    /// Drivers run side by side: each has a database of its own.
    async fn make_databases(&self, servers: &Topology) {
        for mode in &self.modes {
            let database = self.database(mode);
            let create = format!("CREATE DATABASE {database}");
            let grant = format!("GRANT ALL ON {database}.* TO 'app'@'%'");
            servers.primary.run_sql(&[&create, &grant]).await.unwrap();
        }
    }

    fn database(&self, mode: &Mode) -> String {
        let Mode { tls, compression } = mode;
        format!("driver_{}_tls_{tls}_{compression}", self.driver.name.replace('-', "_"))
    }

    /// What differs that must not.
    async fn run(self) -> Vec<String> {
        let mut faults = Vec::new();
        for mode in &self.modes {
            let _turn = AT_ONCE.acquire().await.unwrap();
            let direct = self.steps(self.direct, mode, "direct").await;
            let through = self.steps(self.sluice, mode, "sluice").await;
            let mut found = differences(self.driver, &direct, &through);
            found.extend(not_connected_as_told(mode, &through));
            let (name, server) = (self.driver.name, self.server);
            let told = found.into_iter().map(|f| format!("{name}, {server}, {mode:?}: {f}"));
            faults.extend(told);
        }
        faults
    }

    /// What the program says.
    async fn steps(&self, addr: SocketAddr, mode: &Mode, route: &str) -> Vec<String> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", TIME_LIMIT_S]).arg(program("run")).arg(self.driver.name);
        command.arg(addr.ip().to_string()).arg(addr.port().to_string());
        command.args(["app", "app", &self.database(mode), mode.tls, self.server, route]);
        command.env("DRIVER_COMPRESSION", mode.compression);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let mut said = lines(&output.stdout);
        if !output.status.success() {
            said.push(format!("{}, and on its standard error:", output.status));
            said.extend(lines(&output.stderr).into_iter().rev().take(ERROR_LINES).rev());
        }
        said
    }
}

/// What the program saw of its connection is what it was told to make.
fn not_connected_as_told(mode: &Mode, said: &[String]) -> Option<String> {
    let Mode { tls, compression } = mode;
    let compressed = if *compression == "no" { "no" } else { "yes" };
    let expected = format!("step connect ok tls={tls} compressed={compressed}");
    (!said.contains(&expected)).then(|| format!("not {expected:?}: {:?}", said.first()))
}

/// Compares what a driver said line by line.
fn differences(driver: &Driver, direct: &[String], through: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    for line in direct.iter().chain(through) {
        if !line.starts_with("step ") || line.split(' ').nth(2) != Some("ok") {
            faults.push(line.clone());
        }
    }
    let [here, there] = [direct, through].map(|said| said.iter().map(|line| step_of(line)));
    if !here.clone().eq(there.clone()) || STEPS.iter().any(|step| !here.clone().any(|s| s == *step))
    {
        let [here, there] = [here, there].map(|steps| steps.collect::<Vec<_>>().join(" "));
        faults.push(format!("steps direct: {here}; through Sluice: {there}"));
    }
    for (direct, through) in direct.iter().zip(through) {
        let step = step_of(through);
        let expected = driver.expected(step);
        if step.starts_with("refused") {
            if !through.starts_with(&format!("step {step} ok {expected} ")) {
                faults.push(format!("not {expected:?}: {through}"));
            }
        } else if step != "held" && direct != through && !is_lost_alike(direct, through) {
            faults.push(format!("{direct} (direct), but {through} (through Sluice)"));
        }
    }
    faults
}

/// The numbers by which C's libraries tell of a lost connection, of which they give one or another as the kernel
/// tells them first. A server cuts a killed TLS connection off, which is an error of TLS (2026); Sluice ends it as
/// TLS wants it.
fn is_lost_alike(direct: &str, through: &str) -> bool {
    let alike =
        |line: &str| line.replace("2006", "lost").replace("2013", "lost").replace("2026", "lost");
    step_of(direct) == "reconnect" && alike(direct) == alike(through)
}

fn step_of(line: &str) -> &str {
    line.split(' ').nth(1).unwrap_or_default()
}

/// Why a driver cannot run here, with its name.
fn why_not(driver: &Driver) -> Option<String> {
    static STATUS: OnceLock<Vec<String>> = OnceLock::new();
    let status = STATUS.get_or_init(|| {
        let script = repository().join("scripts/install-clients");
        lines(&Command::new(script).arg("--status").output().unwrap().stdout)
    });
    let group = format!("{} ", driver.group);
    match status.iter().find_map(|line| line.strip_prefix(&group)).unwrap() {
        "ready" => None,
        "missing" => Some(format!("{}: run scripts/install-clients", driver.name)),
        skipped => Some(format!("{}: {skipped}", driver.name)),
    }
}

/// A certificate for MariaDB 10.11, which makes none for itself.
fn certificate_options() -> Vec<String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [key, certificate] = ["drivers-key.pem", "drivers-certificate.pem"].map(|f| dir.join(f));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30"])
        .args(["-subj", "/CN=sluice-it", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    vec![format!("--ssl-key={}", key.display()), format!("--ssl-cert={}", certificate.display())]
}

fn program(name: &str) -> PathBuf {
    repository().join("integration/clients").join(name)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}

/// Two at a time, of both tests: each is a program of its own with a few threads.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// What every driver must have done at least.
const STEPS: [&str; 13] = [
    "connect",
    "text",
    "prepared",
    "commit",
    "rollback",
    "blob",
    "multi",
    "error",
    "held",
    "refused",
    "refused-prepared",
    "refused-in-transaction",
    "reconnect",
];

const DRIVERS_MIN: usize = 12;
const TIME_LIMIT_S: &str = "180";
const ERROR_LINES: usize = 30;

const RULES: &str = "\
- { name: held, match: { app: driver-held }, ratio: 1, max_delay: 1s, on_timeout: admit, permanent: true }
- { name: refused, match: { app: driver-refused }, ratio: 1, on_refused_check: reject, permanent: true }
- name: refused-40001
  match: { app: driver-refused-40001 }
  ratio: 1
  on_refused_check: reject
  error: retryable_40001
  permanent: true
- { name: everything-else, gate: none, permanent: true }";
