//! The command line, as whoever types it meets it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

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
    let etl = "rules[0] nightly-etl: ratio 0.9, gate lag, max_delay 5s; write\n";
    assert!(summary.contains(etl), "{summary}");
    assert!(summary.contains("rules[1] everything-else: ratio 0, gate none"), "{summary}");
    assert!(summary.contains("signal lag: threshold 5s, always open: there are no"), "{summary}");
}

/// What holds beside the rules is told as well: it may be why a statement waits.
#[test]
fn budgets_guards_and_what_runs_away_are_in_the_summary() {
    let more = "  - { name: slow, match: { app: slow }, gate: none, permanent: true, \
                runaway: { elapsed: 2s, rows_sent: 5, action: kill } }\n  \
                - { name: job, match: { app: job }, gate: none, permanent: true, max_rate: 10, \
                max_in_flight: 2 }\n  \
                - { name: never, match: { app: never }, gate: none, permanent: true, ratio: 1, \
                on_refused_check: reject }\nbudgets:\n  \
                - { name: reports, match: { app: report }, max_concurrency: 4, per: user }\n  \
                - { name: etl, match: { app: etl }, share: 0.25, burst: 2s, mode: warn }\nguards:\n  \
                - { name: where, where_required: deny, no_cross_join: warn }\n";
    let main = "  main: { listen: 127.0.0.1:0, primary: 127.0.0.1:3306";
    let good = GOOD.replace(main, &format!("{main}, probe: {{ user: sluice }}"));
    let output = sluice("check", &File::with(&format!("{good}{more}")), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary = stdout(&output);
    for line in [
        "max_delay 5s, runaway after 2s or above 5 rows: kill; write\n",
        "job: ratio 0, gate none, at most 10 rows/s, at most 2 at once, max_delay 5s; write\n",
        "never: ratio 1, gate none, on_refused_check reject; write\n",
        "  budget reports: 4 at once, per user\n",
        "  budget etl: 0.25 of the server, 2 s at once, warns only\n",
        "  guard where: where_required\n",
        "  guard where: no_cross_join, warns only\n",
    ] {
        assert!(summary.contains(line), "{line}{summary}");
    }
}

#[test]
fn every_fault_is_told_at_once_and_a_secret_or_a_certificate_that_is_missing_is_one() {
    let main = "  main: { listen: 127.0.0.1:0, primary: 127.0.0.1:3306";
    let probe = "probe: { user: sluice, password_env: SLUICE_TEST_UNSET }";
    let tls = "client_tls: { cert: /no/cert, key: /no/key, client_ca: /no/ca }";
    let file = GOOD.replace(main, &format!("{main}, {probe}, {tls}")).replace("0.9", "1.9");
    let file = File::with(&file);
    let output = sluice("check", &file, &[]);
    let (said, path) = (stderr(&output), file.0.display().to_string());
    let mut lines = said.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with(&format!("{path}:3: clusters.main.probe.password_env: ")), "{said}");
    for (key, name) in [("cert", "/no/cert"), ("key", "/no/key"), ("client_ca", "/no/ca")] {
        let fault = format!("{path}:3: clusters.main.client_tls.{key}: {name}: ");
        assert!(lines.next().unwrap().starts_with(&fault), "{said}");
    }
    assert!(lines.next().unwrap().starts_with(&format!("{path}:5: rules[0].ratio: ")), "{said}");
    let gone = File(path.clone().into());
    drop(file);
    let output = sluice("check", &gone, &[]);
    assert!(stderr(&output).contains("No such file or directory"), "{}", stderr(&output));
}

#[test]
fn warnings_are_lines_with_their_places_and_fail_a_strict_check() {
    // It is decided by the rule in front of it.
    let shadowed = format!("{GOOD}  - {{ name: late, match: {{ app: x }}, permanent: true }}\n");
    let file = File::with(&shadowed);
    let output = sluice("check", &file, &[]);
    assert_eq!(output.status.code(), Some(0));
    let path = file.0.display();
    let line = format!("{path}:7: warning: rules[2]: never decides: `everything-else` (rules[1], ");
    assert!(stderr(&output).contains(&line), "{}", stderr(&output));
    assert!(stderr(&output).ends_with("\n2 warnings\n"), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("The file is valid, with 2 warnings.\n"));
    let strict = sluice("check", &file, &["--strict"]);
    assert_eq!(strict.status.code(), Some(1));
    assert_eq!(stderr(&strict), stderr(&output));
    let good =
        File::with(&GOOD.replace("permanent: true, reason", "gate: none, permanent: true, reason"));
    assert_eq!(sluice("check", &good, &["--strict"]).status.code(), Some(0));
}

#[test]
fn a_password_that_is_not_there_is_a_fault_where_it_is_named() {
    let primary = "primary: 127.0.0.1:3306";
    let from = |key: &str| {
        File::with(&GOOD.replace(primary, &format!("{primary}, probe: {{ user: p, {key} }}")))
    };
    for (key, name, why) in [
        (
            "password_env: SLUICE_TEST_NO_SUCH",
            "password_env",
            "variable SLUICE_TEST_NO_SUCH is not set",
        ),
        ("password_file: /no/such/file", "password_file", "cannot read the file /no/such/file"),
    ] {
        let file = from(key);
        for command in ["check", "run"] {
            let output = sluice(command, &file, &[]);
            assert_eq!(output.status.code(), Some(1));
            let at = format!("{}:3: clusters.main.probe.{name}: ", file.0.display());
            let told = stderr(&output);
            assert!(told.contains(&at) && told.contains(why), "{told}");
        }
        // Whoever only asks about a statement does not have it.
        let output = sluice("explain", &file, &["--user", "etl", "--sql", "SELECT 1"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn an_address_that_is_taken_says_what_can_be_done() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let admin = format!("admin: {{ listen: \"{address}\" }}\n");
    let output = sluice("run", &File::with(&format!("{GOOD}{admin}")), &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains(&format!("admin: cannot listen on {address}")), "{told}");
    assert!(told.contains("--takeover"), "{told}");
}

#[test]
fn a_server_that_is_not_there_fails_a_check_that_connects() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gone = format!("127.0.0.1:{port}");
    for probe in ["", ", probe: { user: p }"] {
        let text = GOOD.replace("127.0.0.1:3306", &format!("{gone}{probe}"));
        let file = File::with(&format!("{text}state_dir: /dev/null/sluice\n"));
        let output = sluice("check", &file, &["--connect"]);
        assert_eq!(output.status.code(), Some(1));
        let told = stdout(&output);
        assert!(told.contains(&format!("clusters.main.primary: {gone}: not logged in")), "{told}");
        assert!(told.contains(&format!("fault: nothing listens at {gone}")), "{told}");
        let said = stderr(&output);
        assert!(said.contains("1 fault\n") && said.contains("1 warning\n"), "{said}");
        let unwritable = "warning: state_dir /dev/null/sluice: this user cannot write to /dev/null: \
                          it is no directory\n";
        assert!(said.contains(unwritable), "{said}");
        let writable = File::with(&format!("{text}state_dir: {}\n", env!("CARGO_TARGET_TMPDIR")));
        let said = stderr(&sluice("check", &writable, &["--connect"]));
        assert!(!said.contains("state_dir"), "{said}");
    }
}

#[test]
fn an_explanation_can_be_of_another_time() {
    let file = File::with(
        &GOOD.replace("permanent: true, reason", "expires_at: 2027-01-01T00:00:00Z, reason"),
    );
    let at = |time: &str| {
        let arguments = ["--user", "etl", "--sql", "DELETE FROM t", "--at", time];
        sluice("explain", &file, &arguments)
    };
    let before = stdout(&at("2026-12-31T23:59:59Z"));
    assert!(before.contains("rule             nightly-etl"), "{before}");
    assert!(before.contains("until            2027-01-01T00:00:00Z"), "{before}");
    assert!(before.contains("what it does     delays locking_read, write, "), "{before}");
    let after = stdout(&at("2027-01-01T01:00:00+01:00"));
    assert!(after.contains("rule             everything-else"), "{after}");
    let no_time = at("tomorrow");
    assert_eq!(no_time.status.code(), Some(2));
    assert!(stderr(&no_time).contains("RFC 3339"), "{}", stderr(&no_time));
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

#[test]
fn an_answer_that_cannot_be_written_fails_and_a_reader_that_left_does_not_matter() {
    let file = File::with(GOOD);
    let path = file.0.to_str().unwrap();
    let load = "etl:sessions=1,rows=1";
    let commands: [&[&str]; 6] = [
        &["--help"],
        &["--version"],
        &["check", "--help"],
        &["check", "--config", path],
        &["explain", "--config", path, "--user", "etl", "--sql", "SELECT 1"],
        &["simulate", "--config", path, "--app", load, "--write-scenario", "-"],
    ];
    for arguments in commands {
        let into = |out: Stdio| {
            let mut sluice = Command::new(env!("CARGO_BIN_EXE_sluice"));
            sluice.args(arguments).stdout(out).output().unwrap()
        };
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = into(full.into());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains("cannot write the answer: No space left"), "{arguments:?}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = into(writer.into());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("cannot write"), "{arguments:?}: {}", stderr(&output));
    }
}

/// A running Sluice, ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn what_cannot_work_is_logged_once_at_the_start_and_once_after_an_edit() {
    let admin = "admin: { listen: 127.0.0.1:0 }\n";
    let text = format!("{GOOD}{admin}").replace("app: etl", "app: \"etl.*\"");
    let file = File::with(&text);
    let mut sluice = Command::new(env!("CARGO_BIN_EXE_sluice"));
    sluice.arg("run").arg("--config").arg(&file.0).stderr(Stdio::piped());
    let mut running = Running(sluice.spawn().unwrap());
    let log = BufReader::new(running.0.stderr.take().unwrap());
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        log.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let warnings_until = |end: &str| {
        let mut found = Vec::new();
        loop {
            let line = lines.recv_timeout(Duration::from_secs(30)).expect(end);
            if line.contains(end) {
                return found;
            }
            if line.contains("cannot work as it stands") {
                found.push(line);
            }
        }
    };
    warnings_until("accepting clients");
    std::fs::write(&file.0, text.replace("etl.*", "^etl")).unwrap();
    let at_start = warnings_until("configuration applied");
    std::fs::write(&file.0, "version: 1\n").unwrap();
    let after_edit = warnings_until("the configuration has faults");
    for (warnings, value) in [(at_start, "etl.*"), (after_edit, "^etl")] {
        let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
        let told = format!("line 5: rules[0].match.app: `{value}` is taken as it stands");
        assert!(warning.contains(&told), "{warning}");
    }
}
