//! The statements of the corpus are statements: the servers that it names take each of them, so its
//! verdicts are about what can be run.

use integration::raw::{Login, RawConn};
use integration::server::{Flavour, Server};

use super::{MARIADB, MYSQL};

/// `ER_PARSE_ERROR`, and `ER_SYNTAX_ERROR`.
const SYNTAX_ERRORS: [u16; 2] = [1064, 1149];
/// `ER_UNSUPPORTED_PS`.
const UNSUPPORTED: u16 = 1295;

#[tokio::test]
async fn real_servers_take_every_statement_of_the_corpus() {
    let corpus = include_str!("../../../corpus/guards.txt");
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let server = &servers.primary;
        made(server).await;
        let login = Login { schema: "guards".into(), ..Login::new("admin") };
        let mut conn = RawConn::open(server.addr(), &login).await.unwrap();
        conn.query("SET @v = 'SELECT 1'").await.unwrap().accepted().unwrap();
        let mut taken = 0;
        let mut mode = "";
        let mut wrong = String::new();
        for line in corpus.lines() {
            let Some((on, rest)) = line.split_once('\t') else { continue };
            let (_, text) = rest.split_once('\t').unwrap();
            let (flavour, wanted) = on.split_once(' ').unwrap_or((on, ""));
            if !is_of(flavour, server) {
                continue;
            }
            if wanted != mode {
                let modes = wanted.strip_prefix("multi").unwrap_or(wanted);
                conn.query(format!("SET sql_mode = '{modes}'")).await.unwrap().accepted().unwrap();
                mode = wanted;
            }
            let text = text.replace("\\n", "\n");
            if let Some(why) = refusal(&mut conn, &text, wanted == "multi").await {
                wrong += &format!("{:?} {on}: {text}: {why}\n", server.flavour());
            }
            taken += 1;
        }
        assert!(wrong.is_empty(), "\n{wrong}");
        assert!(taken >= 400, "{taken}");
    }
}

/// Why the server does not take a text: it is prepared, and run where it cannot be.
async fn refusal(conn: &mut RawConn, text: &str, is_multi: bool) -> Option<String> {
    let prepared = [b"\x16", text.as_bytes()].concat();
    let response = conn.command(&prepared, integration::raw::Shape::Prepare).await.unwrap();
    let mut error = response.err();
    if is_multi || error.as_ref().is_some_and(|(errno, _)| *errno == UNSUPPORTED) {
        error = conn.query(text).await.unwrap().err();
        conn.query("ROLLBACK").await.unwrap();
    } else if error.is_none() {
        conn.query("DO 0").await.unwrap();
    }
    error
        .filter(|(errno, _)| SYNTAX_ERRORS.contains(errno))
        .map(|(errno, why)| format!("{errno} {why}"))
}

fn is_of(flavour: &str, server: &Server) -> bool {
    match server.flavour() {
        Flavour::MySql => flavour != "mariadb",
        Flavour::MariaDb => flavour != "mysql",
    }
}

/// The tables that the corpus names, without rows.
async fn made(server: &Server) {
    let mut statements = vec![
        "DROP DATABASE IF EXISTS guards".to_owned(),
        "CREATE DATABASE guards".to_owned(),
        "USE guards".to_owned(),
        "CREATE TABLE d (id INT PRIMARY KEY, doc JSON)".to_owned(),
        "CREATE TABLE f (x TEXT, FULLTEXT (x))".to_owned(),
        "CREATE TABLE `where` (id INT, x INT, `where` INT)".to_owned(),
        "CREATE TABLE p (id INT, x INT) PARTITION BY RANGE (id) \
         (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (50))"
            .to_owned(),
    ];
    for table in ["a", "b", "c", "t"] {
        statements.push(format!("CREATE TABLE {table} (id INT PRIMARY KEY, x INT, y INT, n INT)"));
    }
    if server.flavour() == Flavour::MariaDb {
        statements.push("CREATE TABLE v_t (id INT) WITH SYSTEM VERSIONING".to_owned());
        statements.push("CREATE TABLE e (x INT, f DATE, u DATE, PERIOD FOR per (f, u))".to_owned());
    }
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    server.run_sql(&statements).await.unwrap();
}
