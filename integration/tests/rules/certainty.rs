//! What Sluice does not know for certain of a session holds more, never less: ways past it that were
//! found by reading it as an attacker does, each played through the real binary against real servers.
//!
//! The servers are the judges: of what a rule denies, no row may be there afterwards, and the client
//! must have Sluice's own error. The other side is held as well: what changes nothing passes the
//! same rules.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::fmt::Write as _;

use integration::raw::{COM_RESET_CONNECTION, Login, RawConn, Response, Shape};
use integration::scenario::{Refused, Shared};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use tokio::sync::OnceCell;

mod admitted;
mod beginning;
mod locks;
mod login;
mod memory;
mod passing;
mod programs;
mod reading;

/// A server and the Sluice that denies in front of it, for all tests of this file.
struct World {
    servers: &'static Topology,
    sluice: SluiceProcess,
}

static MYSQL: Shared = Shared::in_tls(Flavour::MySql);
static MARIADB: Shared = Shared::in_tls(Flavour::MariaDb);
static MYSQL_WORLD: OnceCell<World> = OnceCell::const_new();
static MARIADB_WORLD: OnceCell<World> = OnceCell::const_new();

async fn mysql() -> &'static World {
    MYSQL_WORLD.get_or_init(|| World::start(&MYSQL)).await
}

async fn mariadb() -> &'static World {
    MARIADB_WORLD.get_or_init(|| World::start(&MARIADB)).await
}

async fn both() -> [&'static World; 2] {
    [mysql().await, mariadb().await]
}

impl World {
    async fn start(shared: &'static Shared) -> Self {
        let servers = shared.get().await.unwrap();
        let mut statements = vec!["SET GLOBAL log_bin_trust_function_creators = 1".to_owned()];
        for user in USERS {
            statements.push(format!("CREATE USER {user}@'%' IDENTIFIED BY '{user}'"));
            statements.push(format!("GRANT ALL ON test.* TO {user}@'%'"));
            statements.push(format!("GRANT ALL ON sys.* TO {user}@'%'"));
        }
        statements.extend(SCHEMA.map(str::to_owned));
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        servers.primary.run_sql(&statements).await.unwrap();
        for user in USERS {
            // The server then knows the password, and takes it on legs in the clear.
            RawConn::open(servers.primary.addr(), &Login::new(user)).await.unwrap();
        }
        Self { servers, sluice: front(servers).await }
    }

    /// A table of one row, which nobody but this test uses.
    async fn table(&self, name: &str) {
        let create = format!("CREATE TABLE test.{name} (id INT AUTO_INCREMENT PRIMARY KEY, n INT)");
        let insert = format!("INSERT INTO test.{name} (n) VALUES (0)");
        self.servers.primary.run_sql(&[&create, &insert]).await.unwrap();
    }

    /// Puts the table as it was made; whether it was not.
    async fn has_changed(&self, table: &str) -> bool {
        let rows: Vec<i64> =
            self.servers.primary.query(&format!("SELECT n FROM test.{table}")).await.unwrap();
        let changed = rows != [0];
        if changed {
            let truncate = format!("TRUNCATE test.{table}");
            let insert = format!("INSERT INTO test.{table} (n) VALUES (0)");
            self.servers.primary.run_sql(&[&truncate, &insert]).await.unwrap();
        }
        changed
    }

    async fn login(&self, user: &str) -> RawConn {
        RawConn::open(self.sluice.listen_addr(), &Login::new(user)).await.unwrap()
    }

    /// Plays each attack on a connection of its own and wants none to have got past: the last text
    /// is refused by Sluice, and the table is as it was.
    async fn none_gets_past(&self, user: &str, table: &str, attacks: &[&[&[u8]]]) {
        let mut past = String::new();
        for attack in attacks {
            let last = self.play(user, attack).await;
            let refused = last.as_ref().is_some_and(is_refused);
            let changed = self.has_changed(table).await;
            if changed || !refused {
                let texts: Vec<String> =
                    attack.iter().map(|text| text.escape_ascii().to_string()).collect();
                let answer = last.and_then(|last| last.err());
                writeln!(past, "changed {changed}: {texts:?} → {answer:?}").unwrap();
            }
        }
        assert!(past.is_empty(), "on {:?}:\n{past}", self.servers.primary.flavour());
    }

    /// Plays an attack on a connection of its own; what its last text was answered.
    async fn play(&self, user: &str, attack: &[&[u8]]) -> Option<Response> {
        let mut conn = self.login(user).await;
        let mut last = None;
        for text in attack {
            last = Some(send(&mut conn, text).await);
        }
        // When it is closed, all of it has been run.
        conn.quit().await.unwrap();
        last
    }

    /// Whether an attack does what it is to do.
    async fn changes(&self, user: &str, table: &str, attack: &[&[u8]]) -> bool {
        self.play(user, attack).await;
        self.has_changed(table).await
    }

    /// Each text is answered, and by no error.
    async fn all_pass(&self, user: &str, texts: &[&[u8]]) {
        let mut conn = self.login(user).await;
        for text in texts {
            let answer = conn.query(text).await.unwrap();
            assert!(answer.err().is_none(), "{} → {:?}", text.escape_ascii(), answer.err());
        }
    }
}

async fn front(servers: &Topology) -> SluiceProcess {
    let config = Config::new(servers)
        .unwrap()
        .rules(RULES)
        .signals("shut: { query: \"SELECT 100\", threshold: 50 }")
        .cluster("backend_tls: { mode: disabled }");
    SluiceProcess::start(&config).await.unwrap()
}

/// Sends a text, or [`RESET`].
async fn send(conn: &mut RawConn, text: &[u8]) -> Response {
    match text {
        [] => Response::default(),
        RESET => conn.command(text, Shape::Single).await.unwrap(),
        _ => conn.query(text).await.unwrap(),
    }
}

/// Stands for COM_RESET_CONNECTION among texts: its byte.
const RESET: &[u8] = &[COM_RESET_CONNECTION];

/// Whether Sluice, and not the server, has answered with an error.
fn is_refused(response: &Response) -> bool {
    Refused::of(response).is_some_and(|refused| refused.reason().is_some())
}

/// Each one's password is its name.
const USERS: [&str; 10] = [
    "held", "sealed", "ddlfree", "tagged", "turned", "paused", "waits", "gated", "ddlgated", "free",
];

const RULES: &str = "\
- { name: held, match: { user: held }, deny: true, statements: [locking_read, write, load, call, ddl, unknown], permanent: true }
- { name: sealed, match: { user: sealed }, deny: true, statements: [read, locking_read, write, load, call, ddl, unknown], permanent: true }
- { name: ddlfree, match: { user: ddlfree }, deny: true, statements: [write], permanent: true }
- { name: tagged-ok, match: { user: tagged, app: ok }, gate: none, permanent: true }
- { name: tagged, match: { user: tagged }, deny: true, statements: [locking_read, write, load, call, ddl, unknown], permanent: true }
- { name: turned-ok, match: { user: turned, app: ok }, gate: none, permanent: true }
- { name: turned, match: { user: turned }, gate: [shut], max_delay: 0s, permanent: true }
- { name: paused, match: { user: paused }, hold: true, max_delay: 100ms, permanent: true }
- { name: waits, match: { user: waits }, hold: true, max_delay: 600ms, permanent: true }
- { name: gated, match: { user: gated }, gate: [shut], max_delay: 100ms, permanent: true }
- { name: ddlgated, match: { user: ddlgated }, gate: [shut], statements: [ddl], max_delay: 100ms, permanent: true }
- { name: everything-else, gate: none, permanent: true }";

const SCHEMA: [&str; 6] = [
    "CREATE TABLE test.called (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
    "INSERT INTO test.called (n) VALUES (0)",
    "CREATE FUNCTION test.f() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO test.called (n) VALUES (9); RETURN 1; END",
    "CREATE FUNCTION test.fs() RETURNS VARCHAR(40) MODIFIES SQL DATA BEGIN UPDATE test.called SET n = n + 1; RETURN 'SELECT 1'; END",
    "CREATE FUNCTION test.mode() RETURNS INT READS SQL DATA BEGIN SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'; RETURN 1; END",
    "CREATE PROCEDURE test.reads() READS SQL DATA SELECT 1 AS one",
];
