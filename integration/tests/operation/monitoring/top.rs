//! `sluice top` on a real Sluice: as text, and on a pseudo terminal that `script` makes.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn};
use integration::scenario::{Pending, connect_as, wait_for_depth, wait_until};
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

const TOKEN: &str = "a-token-of-tests-only-0123456789abcdef";

/// Longer than anything takes here.
const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn on_a_terminal_keys_hold_an_app_when_that_was_said_and_confirmed() {
    let servers = servers().await;
    let tokens = "tokens: [{ name: ann, token_env: T_ANN }]";
    let config = Config::new(servers).unwrap().rules(HELD).admin_keys(tokens);
    // The rule is made at every Sluice of these servers: others' apps have other names.
    let sluice = SluiceProcess::start_with(&config, &[("T_ANN", TOKEN)]).await.unwrap();
    let mut pages = connect_as(&sluice, "pages").await.unwrap();
    pages.query("SELECT 1").await.unwrap().accepted().unwrap();
    let shown = sluice.config_path().with_file_name("screen");
    let mut screen = Screen::start(&sluice, &shown);
    screen.shows("Identities: 1").await;
    screen.press("h");
    screen.shows("Hold pages on cluster main").await;
    screen.press("n");
    screen.shows("nothing was changed").await;
    assert!(!rules(&sluice).await.contains("runtime:"), "nobody has said yes");
    screen.press("hy");
    let by_ann = "\"author\":\"ann\"";
    wait_until("ann's rule", LIMIT, || async { Ok(rules(&sluice).await.contains(by_ann)) })
        .await
        .unwrap();
    assert!(rules(&sluice).await.contains("runtime:pages"));
    screen.shows("runtime:pages").await;
    screen.press("3u");
    screen.shows("Lift runtime:pages").await;
    screen.press("y");
    wait_until("no rule of ann's", LIMIT, || async { Ok(!rules(&sluice).await.contains(by_ann)) })
        .await
        .unwrap();
    screen.press("q");
    assert_eq!(screen.gives_back(), Some(0));

    for (signal, status) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        let mut screen = Screen::start(&sluice, &shown.with_extension(signal));
        screen.shows("Identities: 1").await;
        screen.signal(signal);
        assert_eq!(screen.gives_back(), Some(status), "{signal}");
    }
}

#[tokio::test]
async fn the_demo_on_a_terminal_is_top_and_q_ends_it_with_its_servers() {
    let folder = std::env::temp_dir().join(format!("sluice-it-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let shown = folder.join("screen");
    let mut screen = Screen::run("demo --seconds 60", &shown);
    screen.shows("console http://127.0.0.1:").await;
    screen.shows("Identities: ").await;
    screen.shows("nightly-etl").await;
    screen.press("q");
    // It says what has happened and where to go on when the terminal is given back.
    screen.shows("Next: README.md").await;
    assert!(screen.child.wait().unwrap().success());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A command on a pseudo terminal of its own.
struct Screen {
    child: Child,
    shown: std::path::PathBuf,
}

impl Screen {
    fn start(sluice: &SluiceProcess, shown: &std::path::Path) -> Self {
        let admin = sluice.admin_addr();
        Self::run(&format!("top --seconds 60 --admin http://{admin}"), shown)
    }

    fn run(arguments: &str, shown: &std::path::Path) -> Self {
        let command = format!("{} {arguments}", binary().unwrap().display());
        let child = Command::new("script")
            .args(["--quiet", "--flush", "--return", "--command"])
            .arg(format!("stty rows 50 cols 160; exec {command}"))
            .arg(shown)
            .env("SLUICE_ADMIN_TOKEN", TOKEN)
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, shown: shown.to_owned() }
    }

    fn press(&mut self, keys: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).unwrap();
    }

    /// Sends a signal to what runs in it.
    fn signal(&self, name: &str) {
        let script = self.child.id();
        let children = format!("/proc/{script}/task/{script}/children");
        let pid = std::fs::read_to_string(children).unwrap();
        let kill = Command::new("kill").args([&format!("-{name}"), pid.trim()]).status();
        assert!(kill.unwrap().success());
    }

    /// How it ends, which it is about to, with the terminal as it was.
    fn gives_back(&mut self) -> Option<i32> {
        let ended = self.child.wait().unwrap();
        let left = std::fs::read_to_string(&self.shown).unwrap();
        for sequence in ["\u{1b}[?1049l", "\u{1b}[?25h"] {
            assert!(left.contains(sequence), "{sequence:?} is not in {left:?}");
        }
        ended.code()
    }

    /// Cells that have not changed are not written again: what is waited for has to be new.
    async fn shows(&self, text: &str) {
        let is_there = || async {
            let shown = std::fs::read(&self.shown).unwrap_or_default();
            Ok(words(&String::from_utf8_lossy(&shown)).contains(&words(text)))
        };
        let what = format!("{text:?} on the screen");
        if let Err(error) = wait_until(&what, LIMIT, is_there).await {
            panic!("{error}: {:?}", std::fs::read_to_string(&self.shown));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // `script` ends when its input does, and hangs up on what runs in it.
        drop(self.child.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What is written, without the sequences that say where and how, and without blanks: those that are
/// there already are moved over.
fn words(written: &str) -> String {
    let mut text = String::new();
    let mut rest = written;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |end| end + 1);
        rest = after.get(end..).unwrap_or_default();
    }
    text.push_str(rest);
    text.retain(|c| !c.is_whitespace());
    text
}

async fn rules(sluice: &SluiceProcess) -> String {
    sluice.http_get("/api/v1/rules").await.unwrap().body
}
