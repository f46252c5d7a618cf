//! The command line, as whoever types it meets it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const GOOD: &str = "\
version: 1
clusters:
  main: { listen: 127.0.0.1:0, primary: 127.0.0.1:3306 }
rules:
  - { name: nightly-etl, match: { app: etl }, ratio: 0.9, permanent: true, reason: mornings }
  - { name: everything-else, gate: none, permanent: true }
";

/// A file that is gone with the test.
struct File(PathBuf);

impl File {
    fn with(text: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sluice-cli-{}-{count}.yaml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

fn sluice(command: &str, file: &File, arguments: &[&str]) -> Output {
    let mut sluice = Command::new(env!("CARGO_BIN_EXE_sluice"));
    sluice.arg(command).arg("--config").arg(&file.0).args(arguments);
    sluice.output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_good_file_is_summed_up() {
    let output = sluice("check", &File::with(GOOD), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary = stdout(&output);
    assert!(summary.contains("2 rules"), "{summary}");
    assert!(summary.contains("1. nightly-etl: ratio 0.9, gate lag, max_delay 5s"), "{summary}");
    assert!(summary.contains("2. everything-else: ratio 0, gate none"), "{summary}");
}

#[test]
fn every_fault_of_a_file_is_a_line_with_its_place() {
    let file = File::with(&GOOD.replace("0.9", "9").replace("gate: none", "gate: [nothing]"));
    let output = sluice("check", &file, &[]);
    assert_eq!(output.status.code(), Some(1));
    let faults = stderr(&output);
    let path = file.0.display();
    assert!(faults.contains(&format!("{path}:5: rules[0].ratio: ")), "{faults}");
    assert!(faults.contains(&format!("{path}:6: rules[1].gate")), "{faults}");
    assert!(faults.ends_with("2 faults\n"), "{faults}");
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_statement_is_explained_in_json() {
    let arguments = [
        "--user",
        "app",
        "--attribute",
        "program_name=/usr/bin/etl",
        "--schema",
        "shop",
        "--client",
        "10.0.0.7",
        "--format",
        "json",
        "--sql",
        "UPDATE t SET a = 1 /* controller='reports' */",
    ];
    let output = sluice("explain", &File::with(GOOD), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |key: &str| answer.get(key).and_then(|value| value.as_str());
    assert_eq!(text("app"), Some("etl"), "{answer}");
    assert_eq!(text("class"), Some("write"));
    assert_eq!(text("rule"), Some("nightly-etl"));
    assert_eq!(text("outcome"), Some("ask"));
    assert_eq!(answer.get("admission_point"), Some(&true.into()));
    assert_eq!(answer.get("tags").and_then(|tags| tags.get("controller")), Some(&"reports".into()));
}

#[test]
fn a_statement_is_explained_in_words() {
    let arguments = ["--user", "etl", "--sql", "SELECT 1"];
    let output = sluice("explain", &File::with(GOOD), &arguments);
    let answer = stdout(&output);
    assert!(answer.contains("app              etl (from user)"), "{answer}");
    assert!(answer.contains("class            read"), "{answer}");
    assert!(answer.contains("outcome          pass: "), "{answer}");
    let arguments = ["--user", "etl", "--schema", "shop", "--sql", "DELETE FROM t WHERE a = 5"];
    let output = sluice("explain", &File::with(GOOD), &arguments);
    let answer = stdout(&output);
    assert!(answer.contains("DELETE FROM t WHERE a = ?\n"), "{answer}");
    assert!(answer.contains("table            shop.t\n"), "{answer}");
}

#[test]
fn a_statement_that_begins_with_a_dash_is_no_option() {
    let file = File::with(GOOD);
    for sql in ["-- app='etl'\nDELETE FROM t", "--app\nDELETE FROM t", "-1", "--help"] {
        let output = sluice("explain", &file, &["--user", "etl", "--sql", sql]);
        assert_eq!(output.status.code(), Some(0), "{sql}: {}", stderr(&output));
        assert!(stdout(&output).contains("rule             nightly-etl"), "{}", stdout(&output));
    }
    let short = sluice("explain", &file, &["--user", "etl", "-s", "-- x\nDELETE FROM t"]);
    assert!(stdout(&short).contains("class            write"), "{}", stderr(&short));
}

#[test]
fn a_statement_comes_from_standard_input_in_any_bytes() {
    let file = File::with(GOOD);
    let mut sluice = Command::new(env!("CARGO_BIN_EXE_sluice"));
    sluice.arg("explain").arg("--config").arg(&file.0).args(["--user", "etl", "--sql", "-"]);
    sluice.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = sluice.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"-- a\nDELETE FROM t WHERE a = '\xff'\n").unwrap();
    let answer = stdout(&child.wait_with_output().unwrap());
    assert!(answer.contains("class            write"), "{answer}");
    assert!(answer.contains("outcome          ask: "), "{answer}");
}

#[test]
fn nothing_is_explained_by_a_file_with_faults_or_without_the_cluster() {
    let arguments = ["--user", "etl", "--sql", "SELECT 1"];
    let output = sluice("explain", &File::with("version: 1"), &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("clusters"), "{}", stderr(&output));
    let arguments = ["--user", "etl", "--sql", "SELECT 1", "--cluster", "other"];
    let output = sluice("explain", &File::with(GOOD), &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there is main"), "{}", stderr(&output));
}

#[test]
fn a_file_with_faults_does_not_run() {
    let output = sluice("run", &File::with(&GOOD.replace("0.9", "9")), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(":5: rules[0].ratio: "), "{}", stderr(&output));
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in ["run", "check", "explain", "status"] {
        let output = Command::new(env!("CARGO_BIN_EXE_sluice")).args([command, "--help"]).output();
        let help = stdout(&output.unwrap());
        assert!(
            help.contains("Examples:") && help.contains(&format!("sluice {command} ")),
            "{help}"
        );
        assert!(help.contains("Exit status"), "{help}");
    }
}
