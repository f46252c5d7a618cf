//! Holds the table of `docs/ARCHITECTURE.md`: who may use whom, and what is absent where.
//!
//! Read from the manifests and sources as they stand, so that an arrow which points up, a clock below the
//! shell or a file of two ideas stops the build and not the reader. Development dependencies are free:
//! they do not ship.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A row of the table: level, crate, the crates of ours it may use, and the crates of others that it may
/// use, where they are limited.
struct Row(&'static str, &'static str, &'static [&'static str], Others);

enum Others {
    /// Pure crates: each of these has its reason in the table or in `docs/decisions/`.
    Only(&'static [&'static str]),
    /// Shells.
    Any,
}

const TABLE: [Row; 13] = [
    Row("0", "wire", &[], Others::Only(&["flate2", "mysql_common", "zstd"])),
    Row("0", "sql", &[], Others::Only(&["memchr", "sqlparser"])),
    Row("0", "admission", &[], Others::Only(&["rand"])),
    Row("0", "insights", &[], Others::Only(&["serde"])),
    Row("1", "policy", &["sql", "admission"], Others::Only(&["jiff", "serde", "serde_yaml"])),
    Row("2", "simulate", &["sql", "policy", "admission"], Others::Only(&["rand", "serde"])),
    Row("2", "session", &["wire", "sql", "policy", "admission"], Others::Only(&["zeroize"])),
    Row("3", "proxy", &["wire", "sql", "insights", "policy", "admission", "session"], Others::Any),
    Row("3", "fleet", &["policy", "admission", "proxy"], Others::Any),
    Row("3", "history", &["insights", "policy", "admission", "proxy"], Others::Any),
    Row(
        "3",
        "admin",
        &["insights", "policy", "admission", "proxy", "fleet", "history"],
        Others::Any,
    ),
    Row(
        "4",
        "sluice",
        &[
            "wire",
            "sql",
            "policy",
            "admission",
            "simulate",
            "session",
            "proxy",
            "fleet",
            "history",
            "admin",
            "integration",
        ],
        Others::Any,
    ),
    Row("dev", "testkit", &["wire", "admission", "session"], Others::Only(&["rand"])),
];

/// The crates below the shell: no clock, environment, socket, global or chance of their own.
const PURE: [&str; 7] = ["wire", "sql", "admission", "insights", "policy", "simulate", "session"];

const ABSENT_BELOW_PROXY: [&str; 14] = [
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "std::env",
    "env::var",
    "std::net::Tcp",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "tokio::",
    "static mut",
    "thread_local!",
    "rand::rng(",
];

const NAMES_THAT_SAY_NOTHING: [&str; 4] = ["common", "core", "util", "types"];

/// One idea per file. `docs/STYLE.md` says about 400; here it stops.
const FILE_LINES_MAX: usize = 500;
const MAIN_LINES_MAX: usize = 60;

/// Files that may be longer, each with its reason.
const LONGER_FILES: [(&str, &str); 0] = [];

#[test]
fn every_crate_has_a_row_and_a_name_that_says_something() {
    let rows: BTreeSet<String> = TABLE.iter().map(|row| row.1.to_owned()).collect();
    let crates = names_in(&root().join("crates"));
    assert_eq!(crates, rows, "crates/ and the table differ");
    for name in NAMES_THAT_SAY_NOTHING {
        assert!(!crates.contains(name), "a crate called `{name}` collects what has no place");
    }
}

#[test]
fn arrows_between_our_crates_point_down_only() {
    let ours: BTreeSet<String> = names_in(&root().join("crates"))
        .into_iter()
        .chain(["integration", "benches"].map(String::from))
        .collect();
    for Row(_, name, may_use, _) in &TABLE {
        for used in dependencies(&crate_dir(name)).intersection(&ours) {
            assert!(may_use.contains(&used.as_str()), "`{name}` may not use `{used}`");
        }
    }
}

#[test]
fn a_pure_crate_depends_on_nothing_without_a_reason() {
    let ours = names_in(&root().join("crates"));
    for Row(_, name, _, others) in &TABLE {
        let Others::Only(others) = others else { continue };
        for used in dependencies(&crate_dir(name)).difference(&ours) {
            assert!(others.contains(&used.as_str()), "`{name}` may not depend on `{used}`");
        }
    }
}

#[test]
fn the_documented_table_is_this_one() {
    let page = read(&root().join("docs/ARCHITECTURE.md"));
    for Row(level, name, may_use, _) in &TABLE {
        let head = format!("| {level} | `{name}` |");
        let Some(line) = page.lines().find(|line| line.starts_with(&head)) else {
            panic!("docs/ARCHITECTURE.md has no row `{head}`");
        };
        let cell = line.split('|').nth(4).unwrap_or_default();
        let said: BTreeSet<&str> = cell.split('`').skip(1).step_by(2).collect();
        let held: BTreeSet<&str> = may_use.iter().copied().collect();
        assert_eq!(said, held, "docs/ARCHITECTURE.md, what `{name}` may use");
    }
}

#[test]
fn below_the_shell_there_is_no_clock_environment_socket_or_global() {
    for name in PURE {
        for file in rust_files(&crate_dir(name).join("src")) {
            for (number, line) in read(&file).lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                for absent in ABSENT_BELOW_PROXY {
                    let at = format!("{}:{}", file.display(), number.saturating_add(1));
                    assert!(!code.contains(absent), "{at}: `{absent}` in `{name}`");
                }
            }
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_in_every_package() {
    let workspace = read(&root().join("Cargo.toml"));
    assert!(workspace.contains("unsafe_code = \"forbid\""), "the workspace does not forbid it");
    for package in packages() {
        let manifest = read(&package.join("Cargo.toml"));
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} does not take the workspace's lints",
            package.display()
        );
    }
}

#[test]
fn every_file_is_short_enough_to_be_one_idea() {
    for package in packages() {
        for file in rust_files(&package) {
            let path = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            let excused = LONGER_FILES.iter().any(|(longer, _)| *longer == path);
            let lines = read(&file).lines().count();
            assert!(lines <= FILE_LINES_MAX || excused, "{path} has {lines} lines");
            assert!(lines > FILE_LINES_MAX || !excused, "{path} needs no excuse any more");
            assert!(!path.ends_with("/mod.rs"), "{path}: `foo.rs` beside `foo/`");
        }
    }
    let main = read(&crate_dir("sluice").join("src/main.rs")).lines().count();
    assert!(main <= MAIN_LINES_MAX, "main.rs has {main} lines");
}

#[test]
fn a_manifest_is_read_in_all_its_forms() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = { path = \"b\" }\n\
                    # c = \"1\"\nd = { version = \"1\", features = [\n    \"e\",\n] }\n[dependencies.f]\nversion = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\ng = \"1\"\n[dev-dependencies]\nh = \"1\"\n[build-dependencies]\ni = \"1\"\n";
    let found: Vec<String> = dependencies_of(manifest).into_iter().collect();
    assert_eq!(found, ["a", "b", "d", "f", "g", "i"]);
}

fn dependencies(package: &Path) -> BTreeSet<String> {
    dependencies_of(&read(&package.join("Cargo.toml")))
}

/// The names of what ships: `dependencies` and `build-dependencies`, also those of one target.
fn dependencies_of(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (table, name) = match section.split_once("dependencies.") {
                Some((before, name)) => (format!("{before}dependencies"), Some(name)),
                None => (section.to_owned(), None),
            };
            let ships = table.ends_with("dependencies") && !table.ends_with("dev-dependencies");
            inside = ships && name.is_none();
            names.extend(name.filter(|_| ships).map(str::to_owned));
        } else if inside && line.starts_with(|c: char| c.is_ascii_alphabetic()) {
            names.extend(line.split(['.', ' ', '=']).next().map(str::to_owned));
        }
    }
    names
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn crate_dir(name: &str) -> PathBuf {
    root().join("crates").join(name)
}

fn packages() -> Vec<PathBuf> {
    let crates = names_in(&root().join("crates")).into_iter().map(|name| crate_dir(&name));
    crates.chain(["integration", "benches"].map(|name| root().join(name))).collect()
}

fn names_in(dir: &Path) -> BTreeSet<String> {
    entries(dir).iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let (dirs, files): (Vec<_>, Vec<_>) = entries(dir).into_iter().partition(|path| path.is_dir());
    let here = files.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs"));
    let below = dirs.iter().filter(|dir| !dir.ends_with("target")).flat_map(|dir| rust_files(dir));
    here.chain(below).collect()
}

#[expect(clippy::panic, reason = "a tree that cannot be read fails the test, with the path")]
fn entries(dir: &Path) -> Vec<PathBuf> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(error) => panic!("{}: {error}", dir.display()),
    }
}

#[expect(clippy::panic, reason = "a file that cannot be read fails the test, with the path")]
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
