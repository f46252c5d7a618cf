//! `sluice status`, as whoever types it meets it: at a door of Sluice's, at other doors, and where
//! there is none.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use admin::{Access, AdminState};
use proxy::clock::Clock;
use proxy::cluster::Cluster;
use proxy::telemetry::{Reload, Telemetry, TelemetryConfig};

const FILE: &str = "\
version: 1
clusters:
  main: { listen: 127.0.0.1:3307, primary: 127.0.0.1:3306 }
rules:
  - { name: nightly-etl, match: { app: etl }, ratio: 0.9, permanent: true, reason: mornings }
  - { name: job, max_in_flight: 2, runaway: { elapsed: 2s }, permanent: true }
";

/// A door of Sluice's with nothing behind it, for as long as the test process lives.
fn sluice_door() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let config = policy::load(FILE).unwrap();
            let cluster = Cluster::new(config.clusters.first().unwrap().clone(), Clock::start(), 1);
            let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
            telemetry.reload(Reload::Applied, 1.0);
            let draining = Arc::new(AtomicBool::new(false));
            let access = Arc::new(Access::new(&config.admin));
            let clusters: Arc<[Arc<Cluster>]> = [cluster].into();
            let rules = fleet::RuntimeRules::new(&clusters, &telemetry);
            let history = history::History::default();
            let state = AdminState { clusters, telemetry, access, rules, history, draining };
            admin::serve(listener, state).await.unwrap();
        });
    });
    address
}

/// Somebody who answers each connection with what `answers` makes of what was asked.
fn other_door(answers: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut asked = [0_u8; 4_096];
            let len = connection.read(&mut asked).unwrap();
            let asked = String::from_utf8_lossy(asked.get(..len).unwrap()).into_owned();
            connection.write_all(answers(&asked).as_bytes()).unwrap();
        }
    });
    address
}

fn status(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluice")).arg("status").args(arguments).output().unwrap()
}

/// What `sluice status` complains about at this address.
fn complaint(address: SocketAddr) -> String {
    let output = status(&["--admin", &format!("http://{address}")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_running_sluice_is_shown_in_words_and_in_json() {
    let address = sluice_door();
    let output = status(&["--admin", &address.to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n  Ready.\n") && text.contains("\ncluster main\n"), "{text}");
    assert!(text.contains("\n! lag     –      5 s"), "{text}");
    assert!(text.contains("nightly-etl  ratio 0.9, gate lag, up to 5.00 s"), "{text}");
    let job = "  ratio 0, gate lag, at most 2 at once, up to 5.00 s, runaway after 2s: log  ";
    assert!(text.contains(job), "{text}");
    assert!(!text.contains('\x1b'), "no terminal, no colour: {text}");

    let output = status(&["--admin", &address.to_string(), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json.pointer("/clusters/0/rules/0/rule"), Some(&"nightly-etl".into()), "{json}");
}

#[test]
fn an_answer_that_cannot_be_written_fails() {
    let address = sluice_door().to_string();
    for arguments in [&["status"][..], &["rules"], &["history"], &["why", "etl"], &["quarantine"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut sluice = Command::new(env!("CARGO_BIN_EXE_sluice"));
        sluice.args(arguments).args(["--admin", &address]).stdout(full);
        let output = sluice.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("cannot write the answer: No space left"), "{arguments:?}: {said}");
    }
}

#[test]
fn the_address_is_in_the_file_whatever_else_is_wrong_with_it() {
    let address = sluice_door();
    let dir = std::env::temp_dir().join(format!("sluice-status-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let ask = |name: &str, text: String| {
        let file = dir.join(name);
        std::fs::write(&file, text).unwrap();
        status(&["--config", file.to_str().unwrap()])
    };
    let good = ask("good.yaml", format!("admin: {{ listen: {address} }}\n{FILE}"));
    assert_eq!(good.status.code(), Some(0), "{}", String::from_utf8_lossy(&good.stderr));
    let faulty = ask("faulty.yaml", format!("admin: {{ listen: {address} }}\nrulez: 1\n"));
    assert_eq!(faulty.status.code(), Some(0), "{}", String::from_utf8_lossy(&faulty.stderr));
    let wrong = ask("wrong.yaml", "version: 1\nadmin: { listen: here }\n".to_owned());
    assert_eq!(wrong.status.code(), Some(2));
    let complaint = String::from_utf8(wrong.stderr).unwrap();
    assert!(complaint.contains("wrong.yaml:2: admin.listen: "), "{complaint}");
    assert!(complaint.contains("--admin http://HOST:PORT"), "{complaint}");
    let missing = status(&["--config", "/nonexistent.yaml"]);
    assert!(String::from_utf8(missing.stderr).unwrap().contains("cannot read it"));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn where_nothing_listens_it_says_so_and_where_the_address_is() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let said = complaint(address);
    assert!(said.starts_with(&format!("nothing listens at http://{address}.")), "{said}");
    assert!(said.contains("admin.listen"), "{said}");
}

#[test]
fn an_address_that_is_none_is_a_wrong_command_line() {
    let output = status(&["--admin", "http://127.0.0.1:9307/x"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn another_program_is_no_sluice() {
    let mysql = other_door(|_| "J\0\0\0\x0a9.7.0\0".to_owned());
    assert!(complaint(mysql).contains("does not speak HTTP"));
    let web = other_door(|_| "HTTP/1.0 404 Not Found\r\n\r\nnothing".to_owned());
    assert!(complaint(web).contains("is not Sluice"));
    let json = other_door(|_| "HTTP/1.0 200 OK\r\n\r\n{\"clusters\":[]}".to_owned());
    assert!(complaint(json).contains("is not Sluice"));
    let silent = other_door(|_| String::new());
    assert!(complaint(silent).contains("closed the connection without an answer"));
    let busy = other_door(|_| "HTTP/1.0 503 Service Unavailable\r\n\r\n".to_owned());
    assert!(complaint(busy).contains("HTTP status 503"));
}

/// The number alone said nothing of `admin.hosts`, nor that HTTPS is spoken.
#[test]
fn what_a_sluice_refuses_is_told_in_its_words() {
    let refusal =
        r#"{"error":"misdirected","message":"`db1.example` is no name","remedy":"name it"}"#;
    let answer = format!("HTTP/1.1 421 Misdirected Request\r\n\r\n{refusal}");
    let said = complaint(other_door(move |_| answer.clone()));
    assert_eq!(said, "refused: `db1.example` is no name; name it\n");
}

#[test]
fn a_sluice_that_is_too_old_is_told_from_another_program() {
    let old = other_door(|asked| {
        if asked.starts_with("GET /metrics ") {
            "HTTP/1.0 200 OK\r\n\r\nsluice_build_info{version=\"0.0.9\"} 1\n".to_owned()
        } else {
            "HTTP/1.0 404 Not Found\r\n\r\n".to_owned()
        }
    });
    let said = complaint(old);
    assert!(said.contains("is version 0.0.9, which has no /api/v1/status"), "{said}");
}
