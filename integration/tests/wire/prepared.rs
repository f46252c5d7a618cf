//! Prepared statements of the binary protocol (and of SQL) at their admission point, the execution.
//!
//! A refused execution leaves traces in a server that never saw it, unless they are repaired: long data that
//! was sent ahead of it, parameter types that a client sends once, and MariaDB's id −1.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::time::Duration;

use integration::raw::{
    COM_STMT_PREPARE, Execute, Login, MAX_PAYLOAD, Param, Prepared, RawConn, Response, Shape,
    Types, capability, framed,
};
use integration::scenario::{
    Pending, Refused, Shared, Switch, connect, wait_for_depth, wait_for_signal,
};
use integration::server::{Flavour, Server};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

#[tokio::test]
async fn an_execution_waits_as_text_does_and_runs_once() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_waits").await;
        let mut etl = gated.login("etl").await;
        gated.shut().await;
        let insert = prepare(&mut etl, "INSERT INTO p_waits VALUES (?, ?)").await;
        let read = prepare(&mut etl, "SELECT COUNT(*) FROM p_waits WHERE id > ?").await;
        let rows = etl.execute(&read, &[Param::int(0)]).await.unwrap();
        assert_eq!(rows.rows.len(), 1, "a read does not wait: {rows:?}");
        let params = [Param::int(1), Param::text("one")];
        let execute = Execute { id: insert.id, params: &params, ..Execute::default() };
        let payload = execute.payload(etl.capabilities());
        let waiting = Pending::command(etl, payload);
        wait_for_depth(&gated.sluice, "delayed", 1).await.unwrap();
        assert!(gated.rows().await.is_empty());
        gated.open().await;
        let mut answered = waiting.answered(SOON).await.unwrap();
        assert_eq!(answered.response.affected_rows(), Some(1));
        assert_eq!(gated.rows().await, ["1:one"]);
        let again = answered.conn.execute(&insert, &[Param::int(2), Param::text("two")]).await;
        assert_eq!(again.unwrap().affected_rows(), Some(1));
    }
}

#[tokio::test]
async fn an_execution_is_refused_as_text_is_and_the_statement_stays_usable() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_refused").await;
        let mut ddl = gated.login("ddl").await;
        gated.shut().await;
        // COM_STMT_PREPARE is never an admission point.
        let insert = prepare(&mut ddl, "INSERT INTO p_refused VALUES (?, ?)").await;
        let params = [Param::int(1), Param::text("one")];
        for _ in 0..3 {
            let refused = refusal(&ddl.execute(&insert, &params).await.unwrap());
            assert_eq!((refused.errno, refused.sqlstate.as_str()), (1205, "HY000"));
            assert_eq!(refused.sequence, 1);
            assert_eq!(refused.reason(), Some("gate_closed"), "{refused:?}");
        }
        assert!(gated.rows().await.is_empty());
        gated.open().await;
        accepted(ddl.execute(&insert, &params).await.unwrap());
        assert_eq!(gated.rows().await, ["1:one"]);
    }
}

#[tokio::test]
async fn a_retry_without_types_stores_what_a_first_refused_execution_would_have() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_types").await;
        let mut ddl = gated.login("ddl").await;
        let insert = prepare(&mut ddl, "INSERT INTO p_types VALUES (?, CONCAT(?, ?))").await;
        let params = [Param::int(5), Param::text("abc"), Param::double(1.5)];
        gated.shut().await;
        refusal(&ddl.execute(&insert, &params).await.unwrap());
        // The client library believes that its types are known now, and a second refusal changes nothing.
        refusal(&remembered(&mut ddl, &insert, &params).await);
        gated.open().await;
        accepted(remembered(&mut ddl, &insert, &params).await);
        let params = [Param::int(6), Param::text("def"), Param::double(2.5)];
        accepted(remembered(&mut ddl, &insert, &params).await);
        assert_eq!(gated.rows().await, ["5:abc1.5", "6:def2.5"]);
    }
}

#[tokio::test]
async fn a_retry_without_types_is_not_read_with_the_types_of_an_earlier_execution() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_stale").await;
        let mut ddl = gated.login("ddl").await;
        let insert = prepare(&mut ddl, "INSERT INTO p_stale VALUES (?, ?)").await;
        accepted(ddl.execute(&insert, &[Param::int(1), Param::int(11)]).await.unwrap());
        gated.shut().await;
        let params = [Param::int(2), Param::text("abcdefgh")];
        refusal(&ddl.execute(&insert, &params).await.unwrap());
        gated.open().await;
        accepted(remembered(&mut ddl, &insert, &params).await);
        // Types that are sent again hold again.
        accepted(ddl.execute(&insert, &[Param::int(3), Param::null()]).await.unwrap());
        accepted(ddl.execute(&insert, &[Param::int(4), Param::int(44)]).await.unwrap());
        accepted(remembered(&mut ddl, &insert, &[Param::int(5), Param::int(55)]).await);
        assert_eq!(gated.rows().await, ["1:11", "2:abcdefgh", "3:NULL", "4:44", "5:55"]);
    }
}

#[tokio::test]
async fn types_of_a_refused_execution_are_kept_for_each_statement_apart() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_apart").await;
        let mut ddl = gated.login("ddl").await;
        let one = prepare(&mut ddl, "INSERT INTO p_apart VALUES (?, ?)").await;
        let two = prepare(&mut ddl, "INSERT INTO p_apart VALUES (?, ?)").await;
        gated.shut().await;
        let text = [Param::int(1), Param::text("text")];
        let number = [Param::int(2), Param::double(2.5)];
        refusal(&ddl.execute(&one, &text).await.unwrap());
        refusal(&ddl.execute(&two, &number).await.unwrap());
        gated.open().await;
        accepted(remembered(&mut ddl, &one, &text).await);
        accepted(remembered(&mut ddl, &two, &number).await);
        assert_eq!(gated.rows().await, ["1:text", "2:2.5"]);
    }
}

#[tokio::test]
async fn long_data_of_a_refused_execution_is_not_appended_to_by_the_retry() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_long").await;
        let mut ddl = gated.login("ddl").await;
        let insert = prepare(&mut ddl, "INSERT INTO p_long VALUES (?, ?)").await;
        let params = [Param::int(1), Param::long_data()];
        gated.shut().await;
        ddl.send_long_data(insert.id, 1, b"OLD").await.unwrap();
        let refused = refusal(&ddl.execute(&insert, &params).await.unwrap());
        assert_eq!(refused.sequence, 1);
        ddl.send_long_data(insert.id, 1, b"OLDER").await.unwrap();
        refusal(&remembered(&mut ddl, &insert, &params).await);
        gated.open().await;
        ddl.send_long_data(insert.id, 1, b"N").await.unwrap();
        ddl.send_long_data(insert.id, 1, b"EW").await.unwrap();
        accepted(remembered(&mut ddl, &insert, &params).await);
        assert_eq!(gated.rows().await, ["1:NEW"]);
    }
}

#[tokio::test]
async fn long_data_of_a_delayed_execution_arrives_once() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_late").await;
        let mut etl = gated.login("etl").await;
        let insert = prepare(&mut etl, "INSERT INTO p_late VALUES (?, ?)").await;
        gated.shut().await;
        etl.send_long_data(insert.id, 1, b"long").await.unwrap();
        let params = [Param::int(1), Param::long_data()];
        let execute = Execute { id: insert.id, params: &params, ..Execute::default() };
        let payload = execute.payload(etl.capabilities());
        let waiting = Pending::command(etl, payload);
        wait_for_depth(&gated.sluice, "delayed", 1).await.unwrap();
        gated.open().await;
        accepted(waiting.answered(SOON).await.unwrap().response);
        assert_eq!(gated.rows().await, ["1:long"]);
    }
}

#[tokio::test]
async fn a_long_retry_without_types_is_stored_whole_or_not_at_all() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_huge").await;
        // In one packet; and in two, where there is no room for the types in the first.
        for (id, len, error) in [(1, 3 << 20, None), (2, MAX_PAYLOAD + 10, Some(1210))] {
            let mut ddl = gated.login("ddl").await;
            let sql = "INSERT INTO p_huge VALUES (?, CONCAT(LENGTH(?), RIGHT(?, 3)))";
            let insert = prepare(&mut ddl, sql).await;
            let long = "x".repeat(len) + "end";
            let params = [Param::int(id), Param::text(&long), Param::text("123")];
            gated.shut().await;
            refusal(&ddl.execute(&insert, &params).await.unwrap());
            gated.open().await;
            let execute = Execute {
                id: insert.id,
                types: Types::Remembered,
                params: &params,
                ..Execute::default()
            };
            let response = ddl.execute_as(&execute).await.unwrap();
            assert_eq!(response.err().map(|(errno, _)| errno), error);
            accepted(ddl.query("SELECT 1").await.unwrap());
        }
        let rows = gated.rows().await;
        let expected = [format!("1:{}123", (3 << 20) + 3), format!("2:{}123", MAX_PAYLOAD + 13)];
        assert!(expected.starts_with(&rows) && !rows.is_empty(), "{rows:?}");
    }
}

#[tokio::test]
async fn query_attributes_of_a_refused_execution_do_not_shift_the_retrys_values() {
    let gated = Gated::start(MYSQL.get().await.unwrap(), "p_attributes").await;
    let login = Login::new("ddl").with(capability::QUERY_ATTRIBUTES);
    let mut ddl = RawConn::open(gated.sluice.listen_addr(), &login).await.unwrap();
    let insert = prepare(&mut ddl, "INSERT INTO p_attributes VALUES (?, ?)").await;
    gated.shut().await;
    let params = [Param::int(1), Param::text("value")];
    let attributes = [("trace", "0af7651916cd43dd8448eb211c80319c")];
    let execute =
        Execute { id: insert.id, params: &params, attributes: &attributes, ..Execute::default() };
    refusal(&ddl.execute_as(&execute).await.unwrap());
    gated.open().await;
    let retry = Execute { types: Types::Remembered, ..execute };
    accepted(ddl.execute_as(&retry).await.unwrap());
    assert_eq!(gated.rows().await, ["1:value"]);
}

#[tokio::test]
async fn mariadbs_id_of_the_last_prepared_statement_is_refused_and_retried_like_any_other() {
    let gated = Gated::start(MARIADB.get().await.unwrap(), "p_last").await;
    let mut ddl = gated.login("ddl").await;
    gated.shut().await;
    let params = [Param::int(1), Param::text("direct")];
    let insert = "INSERT INTO p_last VALUES (?, ?)";
    let (prepared, refused) = prepare_and_execute(&mut ddl, insert, &params).await;
    let prepared = Prepared::parse(prepared).unwrap();
    assert_eq!(refusal(&refused).reason(), Some("gate_closed"));
    gated.open().await;
    accepted(remembered(&mut ddl, &last(), &params).await);
    accepted(remembered(&mut ddl, &prepared, &[Param::int(2), Param::text("by id")]).await);
    assert_eq!(gated.rows().await, ["1:direct", "2:by id"]);
}

#[tokio::test]
async fn long_data_for_mariadbs_last_prepared_statement_is_dropped_with_its_refusal() {
    let gated = Gated::start(MARIADB.get().await.unwrap(), "p_last_long").await;
    let mut ddl = gated.login("ddl").await;
    gated.shut().await;
    let prepared = prepare(&mut ddl, "INSERT INTO p_last_long VALUES (?, ?)").await;
    let params = [Param::int(1), Param::long_data()];
    ddl.send_long_data(prepared.id, 1, b"OLD").await.unwrap();
    refusal(&ddl.execute(&last(), &params).await.unwrap());
    gated.open().await;
    ddl.send_long_data(prepared.id, 1, b"NEW").await.unwrap();
    accepted(remembered(&mut ddl, &last(), &params).await);
    assert_eq!(gated.rows().await, ["1:NEW"]);
}

#[tokio::test]
async fn a_failed_prepare_does_not_let_mariadbs_last_statement_run() {
    let gated = Gated::start(MARIADB.get().await.unwrap(), "p_failed").await;
    for addr in [gated.server.addr(), gated.sluice.listen_addr()] {
        let mut web = RawConn::open(addr, &Login::new("web")).await.unwrap();
        prepare(&mut web, "INSERT INTO p_failed VALUES (1, 'wrong')").await;
        let (prepared, executed) = prepare_and_execute(&mut web, "INSERT INTO nowhere", &[]).await;
        assert!(prepared.err().is_some());
        assert!(executed.err().is_some(), "{addr}: {executed:?}");
        accepted(web.query("SELECT 1").await.unwrap());
    }
    assert!(gated.rows().await.is_empty());
}

#[tokio::test]
async fn prepare_and_execute_in_sql_have_the_class_of_what_they_prepare() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_sql").await;
        let mut ddl = gated.login("ddl").await;
        gated.shut().await;
        for sql in [
            "PREPARE w FROM 'INSERT INTO p_sql VALUES (?, ''x'')'",
            "PREPARE r FROM 'SELECT COUNT(*) FROM p_sql'",
            "SET @text = 'SELECT 1'",
            "PREPARE v FROM @text",
            "SET @id = 1",
            "EXECUTE r",
        ] {
            accepted(ddl.query(sql).await.unwrap());
        }
        // What is in a variable is not known, and what is not known is gated as a write.
        for sql in ["EXECUTE w USING @id", "execute W using @id", "EXECUTE v"] {
            let response = ddl.query(sql).await.unwrap();
            assert_eq!(refusal(&response).reason(), Some("gate_closed"), "{sql}");
        }
        assert!(gated.rows().await.is_empty());
        gated.open().await;
        accepted(ddl.query("EXECUTE w USING @id").await.unwrap());
        assert_eq!(gated.rows().await, ["1:x"]);
        gated.shut().await;
        accepted(ddl.query("DEALLOCATE PREPARE r").await.unwrap());
        // Now it is the name of nothing: unknown, so it is asked for before the server can say so.
        refusal(&ddl.query("EXECUTE r").await.unwrap());
        gated.open().await;
        assert_eq!(ddl.query("EXECUTE r").await.unwrap().err().map(|e| e.0), Some(1243));
    }
}

#[tokio::test]
async fn a_reset_connection_forgets_statements_and_the_types_kept_for_them() {
    for servers in both().await {
        let gated = Gated::start(servers, "p_reset").await;
        let mut ddl = gated.login("ddl").await;
        let insert = prepare(&mut ddl, "INSERT INTO p_reset VALUES (?, ?)").await;
        gated.shut().await;
        let text = [Param::int(1), Param::text("text")];
        refusal(&ddl.execute(&insert, &text).await.unwrap());
        gated.open().await;
        let reset = [integration::raw::COM_RESET_CONNECTION];
        accepted(ddl.command(&reset, Shape::Single).await.unwrap());
        let gone = ddl.execute(&insert, &text).await.unwrap();
        assert_eq!(gone.err().map(|(errno, _)| errno), Some(1243));
        let again = prepare(&mut ddl, "INSERT INTO p_reset VALUES (?, ?)").await;
        let direct = remembered(&mut ddl, &again, &[Param::int(2), Param::int(3)]).await;
        // As the server says it to a client that never sent types.
        assert!(direct.err().is_some(), "{direct:?}");
        assert!(gated.rows().await.is_empty());
    }
}

/// Sluice with a switch that `etl` waits for and `ddl` is refused by at once, and a table.
struct Gated<'a> {
    server: &'a Server,
    sluice: SluiceProcess,
    switch: Switch<'a>,
    table: &'static str,
}

impl<'a> Gated<'a> {
    async fn start(servers: &'a Topology, table: &'static str) -> Self {
        let server = &servers.primary;
        let create = format!("CREATE TABLE {table} (id INT PRIMARY KEY, value VARCHAR(100))");
        server.run_sql(&[&create]).await.unwrap();
        let switch = Switch::new(server, table).await.unwrap();
        let rules = format!(
            "- {{ name: delayed, match: {{ app: etl }}, gate: [{table}], max_delay: 60s, permanent: true }}\n\
             - {{ name: refused, match: {{ app: ddl }}, gate: [{table}], on_refused_check: reject, permanent: true }}\n\
             - {{ name: everything, gate: none, permanent: true }}"
        );
        let config = Config::new(servers).unwrap().signals(&switch.signal()).rules(&rules);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        wait_for_signal(&sluice, table, 1.0).await.unwrap();
        Self { server, sluice, switch, table }
    }

    async fn login(&self, user: &str) -> RawConn {
        let mut conn = connect(&self.sluice, user).await.unwrap();
        conn.set_read_limit(SOON);
        conn
    }

    async fn shut(&self) {
        self.switch.shut(&self.sluice).await.unwrap();
    }

    async fn open(&self) {
        self.switch.open(&self.sluice).await.unwrap();
    }

    async fn rows(&self) -> Vec<String> {
        let sql = format!(
            "SELECT CONCAT(id, ':', COALESCE(value, 'NULL')) FROM {} ORDER BY id",
            self.table
        );
        self.server.query(&sql).await.unwrap()
    }
}

async fn both() -> [&'static Topology; 2] {
    [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()]
}

async fn prepare(conn: &mut RawConn, sql: &str) -> Prepared {
    conn.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// An execution that carries no types, as client libraries send every one but the first.
async fn remembered(conn: &mut RawConn, statement: &Prepared, params: &[Param]) -> Response {
    let execute =
        Execute { id: statement.id, types: Types::Remembered, params, ..Execute::default() };
    conn.execute_as(&execute).await.unwrap()
}

/// COM_STMT_PREPARE and, without waiting for its answer, an execution of "the last one".
async fn prepare_and_execute(
    conn: &mut RawConn,
    sql: &str,
    params: &[Param],
) -> (Response, Response) {
    let prepare = [&[COM_STMT_PREPARE], sql.as_bytes()].concat();
    let execute = Execute { id: LAST_PREPARED, params, ..Execute::default() };
    let execute = execute.payload(conn.capabilities());
    let both = [framed(0, &prepare), framed(0, &execute)].concat();
    conn.send_bytes(&both).await.unwrap();
    let prepared = conn.read_response(Shape::Prepare).await.unwrap();
    (prepared, conn.read_response(Shape::Query).await.unwrap())
}

fn last() -> Prepared {
    Prepared { id: LAST_PREPARED, columns: 0, params: 0, response: Response::default() }
}

fn accepted(response: Response) {
    assert_eq!(response.err(), None);
}

fn refusal(response: &Response) -> Refused {
    let refused = Refused::of(response).unwrap_or_else(|| panic!("not refused: {response:?}"));
    assert_eq!(refused.part("executed"), Some("no"), "{refused:?}");
    refused
}

/// MariaDB's name for the statement that this connection has prepared last.
const LAST_PREPARED: u32 = u32::MAX;

const SOON: Duration = Duration::from_secs(10);
