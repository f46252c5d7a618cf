//! How a session begins: as the server's own settings say, which no client has to set.

use integration::raw::{COM_RESET_CONNECTION, Login, RawConn, Shape};
use integration::server::{Flavour, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};

use super::is_refused;

#[tokio::test]
async fn a_session_that_begins_with_names_in_double_quotes_hides_nothing() {
    let hidden = br#"SELECT 1 AS "\"; UPDATE test.begun SET n = 4; -- ""#;
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        hides_nothing(flavour, "--sql-mode=ANSI_QUOTES", hidden).await;
    }
}

#[tokio::test]
async fn a_session_that_begins_without_escapes_hides_nothing() {
    let hidden = br"SELECT '\'; UPDATE test.begun SET n = 4; -- '";
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        hides_nothing(flavour, "--sql-mode=NO_BACKSLASH_ESCAPES", hidden).await;
    }
}

async fn hides_nothing(flavour: Flavour, setting: &str, hidden: &[u8]) {
    let mut options = ServerOptions::new(flavour);
    options.extra_args = vec![setting.to_owned()];
    let server = Server::start(options).await.unwrap();
    let table = "CREATE TABLE test.begun (n INT)";
    server.run_sql(&[table, "INSERT INTO test.begun VALUES (0)"]).await.unwrap();
    let config = Config::in_front_of(server.addr(), Vec::new()).unwrap().rules(DENIED);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    for (addr, denied) in [(sluice.listen_addr(), true), (server.addr(), false)] {
        let mut conn = RawConn::open(addr, &Login::new("web")).await.unwrap();
        let first = conn.query(hidden).await.unwrap();
        assert_eq!(is_refused(&first), denied, "{flavour:?} {setting}: {:?}", first.err());
        conn.command(&[COM_RESET_CONNECTION], Shape::Single).await.unwrap();
        let second = conn.query(hidden).await.unwrap();
        assert_eq!(is_refused(&second), denied, "{flavour:?} {setting}: {:?}", second.err());
        conn.quit().await.unwrap();
        let now: Option<i64> = server.query_first("SELECT n FROM test.begun").await.unwrap();
        assert_eq!(now, Some(if denied { 0 } else { 4 }), "{flavour:?} {setting}");
    }
}

const DENIED: &str = "- { name: denied, match: { user: web }, deny: true, permanent: true }";
