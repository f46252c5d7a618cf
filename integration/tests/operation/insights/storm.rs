//! Many sessions at once, in both protocols and in every way to run a statement, while the file is
//! another every moment: what Sluice counts is what the server has counted, and each digest once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use integration::raw::{
    COM_INIT_DB, COM_RESET_CONNECTION, Cursor, Execute, Login, Param, Prepared, RawConn, Response,
    Shape, capability,
};
use integration::scenario::Chance;
use integration::server::{Flavour, PerformanceSchema};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};
use tokio::task::JoinSet;

use super::mixed::{by_server, by_sluice};
use super::{ask, counted};

#[tokio::test]
async fn mysql_counts_a_storm_as_sluice_does() {
    counts_agree(Flavour::MySql).await;
}

#[tokio::test]
async fn mariadb_counts_a_storm_as_sluice_does() {
    counts_agree(Flavour::MariaDb).await;
}

const SESSIONS: u64 = 32;
const SECONDS: u64 = 4;
const USER: &str = "app";

/// Files that take turns: with and without those that look at digests, tables and texts.
const FILES: [(&str, &str); 3] = [
    ("- { name: rest, gate: none, permanent: true }", ""),
    (
        "- { name: tables, match: { table: nowhere }, gate: none, permanent: true }\n\
         - { name: digest, match: { digest: 'SELECT nothing' }, deny: true, permanent: true }\n\
         - { name: rest, gate: none, permanent: true }",
        "guards: [{ name: where, mode: warn, where_required: warn, max_in_list: 2 }]\n\
         budgets: [{ name: each, per: digest, max_concurrency: 1000 }]",
    ),
    (
        "- { name: rest, gate: none, permanent: true }",
        "insights: { tags: [trace], sample_text: true }",
    ),
];

async fn counts_agree(flavour: Flavour) {
    let mut options = TopologyOptions::new(flavour, 0);
    options.performance_schema = PerformanceSchema::On;
    let servers = Topology::start(options).await.unwrap();
    servers.primary.run_sql(SCHEMA).await.unwrap();
    let config = Config::new(&servers).unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let sessions = storm(&sluice, SESSIONS, until, &[]);
    let mut files = FILES.iter().cycle();
    while Instant::now() < until {
        let (rules, top) = files.next().unwrap();
        let mut next = config.clone().rules(rules);
        next.top = (*top).to_owned();
        sluice.write_config(&next.render()).unwrap();
        tokio::time::sleep(Duration::from_millis(900)).await;
    }
    // Open until the server has been asked: it adds up a session that ends while it tells, and then neither has it all.
    let ended = sessions.join_all().await;
    let extra = ended.iter().fold(Extra::default(), |sum, (extra, _)| sum.with(*extra));

    let mut theirs = by_server(&servers.primary, USER).await;
    theirs.0 -= extra.statements;
    theirs.3 += extra.rows;
    theirs.4 += extra.affected;
    drop(ended);
    assert_eq!(by_sluice(&sluice, USER).await, theirs, "{extra:?}");
    assert!(theirs.0 > 1_000, "{theirs:?}");
    each_once(&sluice, theirs.0).await;
}

/// So many sessions until then, each of which sends these texts too, time and again; with what it has counted each
/// gives its connection.
pub(super) fn storm(
    sluice: &SluiceProcess,
    sessions: u64,
    until: Instant,
    besides: &'static [&'static str],
) -> JoinSet<(Extra, RawConn)> {
    let addr = sluice.listen_addr();
    let one = |number| async move {
        let mut session = Session::begin(addr, number).await;
        while Instant::now() < until {
            session.one().await;
            for text in besides {
                session.conn.query(*text).await.unwrap();
            }
        }
        counted(&mut session.conn).await;
        (session.extra, session.conn)
    };
    (0..sessions).map(one).collect()
}

/// No digest of an app and a schema has two rows, none is lost, and the rows make the total.
async fn each_once(sluice: &SluiceProcess, count: u64) {
    let answer = ask(sluice, "by=digest&sort=count&window=10m&limit=1000&user=app").await;
    let rows = answer["rows"].as_array().unwrap();
    let of = |row: &serde_json::Value| {
        (row["digest"].to_string(), row["app"].to_string(), row["schema"].to_string())
    };
    let digests: BTreeSet<_> = rows.iter().map(of).collect();
    assert_eq!(digests.len(), rows.len(), "{answer}");
    let sum: u64 = rows.iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(sum, count);
    for row in rows {
        assert_ne!(row["digest_text"].as_str().unwrap_or_default(), "", "{row}");
        assert_ne!(row["digest"], "unknown", "{row}");
        assert_ne!(row["digest"], "other", "{row}");
    }
}

/// What the server counts otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extra {
    /// Statements that are parts of one to Sluice.
    statements: u64,
    /// Rows that the server counts for statements inside of others.
    rows: u64,
    /// Rows of COM_STMT_BULK_EXECUTE, which MariaDB tells its client of, and does not count.
    affected: u64,
}

impl Extra {
    fn with(self, other: Self) -> Self {
        Self {
            statements: self.statements + other.statements,
            rows: self.rows + other.rows,
            affected: self.affected + other.affected,
        }
    }
}

struct Session {
    conn: RawConn,
    number: u64,
    chance: Chance,
    extra: Extra,
    prepared: Vec<Prepared>,
}

/// What is prepared once a session. The last one is executed with a cursor only: MySQL 9.7 does not end
/// the answer of an execution without one behind that.
const PREPARED: [&str; 5] = [
    "SELECT id, c FROM t WHERE id > ? ORDER BY id LIMIT 3",
    "INSERT INTO own (id, c) VALUES (?, ?)",
    "UPDATE own SET c = ? WHERE id = ?",
    "DELETE FROM own WHERE id = ? OR c = ?",
    "SELECT id, c FROM t WHERE id >= ? ORDER BY id LIMIT 4",
];

impl Session {
    async fn begin(addr: std::net::SocketAddr, number: u64) -> Self {
        let conn = RawConn::open(addr, &login(number)).await.unwrap();
        let chance = Chance::new(number + 1);
        let mut session = Self { conn, number, chance, extra: Extra::default(), prepared: vec![] };
        session.prepare().await;
        session
    }

    async fn prepare(&mut self) {
        self.prepared.clear();
        for text in PREPARED {
            self.prepared.push(self.conn.prepare(text).await.unwrap());
        }
    }

    async fn query(&mut self, text: &str) -> Response {
        self.conn.query(text).await.unwrap()
    }

    /// A key that no other session has.
    fn key(&mut self) -> u64 {
        self.number * 100_000 + self.chance.below(20)
    }

    async fn one(&mut self) {
        let (key, n) = (self.key(), self.chance.below(90));
        match self.chance.below(13) {
            0 => drop(self.query(&format!("SELECT c FROM t WHERE id = {n}")).await),
            1 => drop(
                self.query(&format!("SELECT c FROM t WHERE id IN ({n}, 2, 3) /* trace={n} */"))
                    .await,
            ),
            2 => drop(self.query(&format!("INSERT INTO own (id, c) VALUES ({key}, 'x')")).await),
            3 => drop(
                self.query(&format!("INSERT IGNORE INTO own VALUES ({key}, '{n}'), ({key}, 'y')"))
                    .await,
            ),
            4 => drop(self.query(&format!("UPDATE own SET c = '{n}' WHERE id = {key}")).await),
            5 => {
                let column = n % 7;
                self.query(&format!("SELECT no_such_{column} FROM t")).await;
            }
            6 => self.execute(key).await,
            7 => self.bulk(key).await,
            8 => self.several().await,
            9 => self.procedure().await,
            10 => self.cursor().await,
            11 => self.become_another().await,
            _ => self.by_name(n).await,
        }
    }

    async fn execute(&mut self, key: u64) {
        let key = Param::int(i64::try_from(key).unwrap());
        let of = [
            vec![Param::int(1)],
            vec![key.clone(), Param::text("p")],
            vec![Param::text("q"), key.clone()],
            vec![key, Param::text("none")],
        ];
        let at = self.chance.index(of.len());
        self.conn.execute(&self.prepared[at], &of[at]).await.unwrap();
    }

    /// Rows in one go, of which one may be there already.
    async fn bulk(&mut self, key: u64) {
        if self.conn.mariadb_capabilities() & capability::MARIADB_BULK == 0 {
            return self.execute(key).await;
        }
        let rows: Vec<_> = (key..key + 3)
            .map(|key| vec![Param::int(i64::try_from(key).unwrap()), Param::text("bulk")])
            .collect();
        let stored = self.conn.bulk_execute(self.prepared[1].id, &rows).await.unwrap();
        self.extra.affected += stored.affected_rows().unwrap_or(0);
    }

    async fn several(&mut self) {
        let texts = [
            ("SELECT id FROM t WHERE id < 4; SELECT 1; SELECT 2", 3),
            ("SELECT 1; SELECT nothing FROM t; SELECT 2", 2),
            ("BEGIN; SELECT id FROM t; ROLLBACK", 3),
        ];
        let (text, run) = texts[self.chance.index(texts.len())];
        self.query(text).await;
        self.extra.statements += run - 1;
    }

    async fn procedure(&mut self) {
        self.query("CALL p()").await.accepted().unwrap();
        self.extra.rows += 3 + 1;
    }

    async fn cursor(&mut self) {
        let id = self.prepared[4].id;
        let params = [Param::int(1)];
        let cursor = Cursor::ReadOnly;
        let execute = Execute { id, cursor, params: &params, ..Execute::default() };
        self.conn.execute_as(&execute).await.unwrap().accepted().unwrap();
        for _ in 0..self.chance.below(3) {
            self.conn.fetch(id, 2).await.unwrap();
        }
        self.conn.reset_statement(id).await.unwrap().accepted().unwrap();
    }

    /// Another schema, in each way in which one becomes the default.
    async fn become_another(&mut self) {
        let schema = ["i_one", "i_two"][self.chance.index(2)];
        match self.chance.below(4) {
            0 => drop(self.query(&format!("USE {schema}")).await.accepted().unwrap()),
            1 => {
                let init = [&[COM_INIT_DB], schema.as_bytes()].concat();
                self.conn.command(&init, Shape::Single).await.unwrap().accepted().unwrap();
            }
            2 => {
                let login = Login { schema: schema.into(), ..login(self.number) };
                self.conn.change_user(&login).await.unwrap();
                self.prepare().await;
            }
            _ => {
                let reset = self.conn.command(&[COM_RESET_CONNECTION], Shape::Single).await;
                reset.unwrap().accepted().unwrap();
                self.prepare().await;
            }
        }
    }

    async fn by_name(&mut self, n: u64) {
        let table = ["t", "own"][self.chance.index(2)];
        self.query(&format!("PREPARE s FROM 'SELECT COUNT(*) FROM {table} WHERE id > ?'")).await;
        self.query(&format!("SET @n = {n}")).await;
        self.query("EXECUTE s USING @n").await.accepted().unwrap();
        self.query("DEALLOCATE PREPARE s").await.accepted().unwrap();
    }
}

fn login(number: u64) -> Login {
    let schema = ["i_one", "i_two"][usize::try_from(number % 2).unwrap()];
    let login = Login { schema: schema.into(), ..Login::new(USER) };
    login
        .with_mariadb(capability::MARIADB_BULK)
        .attribute("sluice_app", ["web", "etl"][usize::try_from(number % 3 % 2).unwrap()])
}

pub(super) const SCHEMA: &[&str] = &[
    "CREATE DATABASE i_one",
    "CREATE DATABASE i_two",
    "GRANT ALL ON i_one.* TO 'app'@'%'",
    "GRANT ALL ON i_two.* TO 'app'@'%'",
    "CREATE TABLE i_one.t (id INT PRIMARY KEY, c VARCHAR(20))",
    "INSERT INTO i_one.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')",
    "CREATE TABLE i_two.t LIKE i_one.t",
    "INSERT INTO i_two.t SELECT * FROM i_one.t",
    "CREATE TABLE i_one.own (id INT PRIMARY KEY, c VARCHAR(20))",
    "CREATE TABLE i_two.own LIKE i_one.own",
    "CREATE PROCEDURE i_one.p() BEGIN SELECT id FROM t WHERE id < 4; SELECT 1; END",
    "CREATE PROCEDURE i_two.p() BEGIN SELECT id FROM t WHERE id < 4; SELECT 1; END",
];
