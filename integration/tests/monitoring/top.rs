//! `sluice top` on a real Sluice.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn};
use integration::scenario::{Pending, connect_as, wait_for_depth};
use integration::sluice::{Config, SluiceProcess, binary};

use super::servers;

const HELD: &str = "\
- { name: held, match: { app: \"job*\" }, hold: true, max_delay: 30s, permanent: true }
- { name: everything-else, gate: none, permanent: true }";

#[tokio::test]
async fn plain_text_is_printed_for_as_long_as_is_asked_and_shows_who_is_held_and_why() {
    let servers = servers().await;
    let config = Config::new(servers).unwrap().rules(HELD);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE test.m_top (n INT)"]).await.unwrap();
    let login = Login::new("app").attribute("sluice_app", "job \u{202e}\u{9b}2J");
    let conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let _held = Pending::query(conn, "INSERT INTO test.m_top VALUES (1)");
    wait_for_depth(&sluice, "held", 1).await.unwrap();
    let mut web = connect_as(&sluice, "web").await.unwrap();

    let began = Instant::now();
    let admin = format!("http://{}", sluice.admin_addr());
    let arguments = ["top", "--plain", "--seconds", "2", "--admin", &admin];
    let top = Command::new(binary().unwrap())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while began.elapsed() < Duration::from_millis(1_500) {
        web.query("INSERT INTO test.m_top VALUES (2)").await.unwrap().accepted().unwrap();
    }
    let ended = tokio::task::spawn_blocking(|| top.wait_with_output()).await.unwrap().unwrap();
    assert!(ended.status.success() && began.elapsed() >= Duration::from_secs(2));
    let text = String::from_utf8(ended.stdout).unwrap();
    let looks: Vec<&str> = text.split("\n  Sluice ").collect();
    assert_eq!(looks.len(), 3, "one at once, and one each second:\n{text}");
    let last = looks[2];
    for part in ["lag: ", " of 1 s, open", "pace: ", "! queue: 1 wait", "primary", "replica"] {
        assert!(last.contains(part), "{part:?} is not in\n{text}");
    }
    let line = |of: &str| last.lines().find(|line| line.contains(of)).unwrap().to_owned();
    let held = line("job \\u{202e}");
    assert!(held.starts_with("! ") && held.ends_with(" hold"), "{held}");
    let cells = line("web ");
    let rates: Vec<&str> = cells.split_whitespace().collect();
    let passed: f64 = rates[4].parse().unwrap();
    assert!(passed > 0.0 && rates[1] == "everything-else", "{cells}");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n') && !text.contains('\u{202e}'));
}

#[tokio::test]
async fn where_nobody_answers_it_says_so_and_fails() {
    let output = Command::new(binary().unwrap())
        .args(["top", "--plain", "--seconds", "2", "--admin", "http://127.0.0.1:1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("nothing listens at"));
}
