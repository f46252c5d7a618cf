//! mysql_async: `query` is text, `exec` prepares at the server.

use clients::{Driver, Seen, Target};
use mysql_async::prelude::Queryable;
use mysql_async::{Compression, Conn, OptsBuilder, Row, SslOpts, Value};

struct MysqlAsync(Conn);

impl Driver for MysqlAsync {
    async fn connect(target: &Target) -> Result<Self, Seen> {
        let unverified = SslOpts::default()
            .with_danger_accept_invalid_certs(true)
            .with_danger_skip_domain_validation(true);
        let options = OptsBuilder::default()
            .ip_or_hostname(target.host.as_str())
            .tcp_port(target.port)
            .user(Some(target.user.as_str()))
            .pass(Some(target.password.as_str()))
            .db_name(Some(target.database.as_str()))
            .prefer_socket(false)
            .compression(target.compress.then(Compression::default))
            .ssl_opts(target.tls.then_some(unverified));
        Conn::new(options).await.map(Self).map_err(seen)
    }

    async fn run(&mut self, sql: &str) -> Result<(), Seen> {
        self.0.query_drop(sql).await.map_err(seen)
    }

    async fn first(&mut self, sql: &str) -> Result<Vec<Option<Vec<u8>>>, Seen> {
        let row: Option<Row> = self.0.query_first(sql).await.map_err(seen)?;
        let values = row.map(Row::unwrap).unwrap_or_default();
        Ok(values.into_iter().map(bytes).collect())
    }

    async fn execute(&mut self, sql: &str, id: i32, note: &str, data: &[u8]) -> Result<(), Seen> {
        self.0.exec_drop(sql, (id, note, data)).await.map_err(seen)
    }

    async fn notes(&mut self, sql: &str, id: i32) -> Result<Vec<String>, Seen> {
        self.0.exec(sql, (id,)).await.map_err(seen)
    }

    async fn several(&mut self, sql: &str) -> Result<Vec<i64>, Seen> {
        let mut results = self.0.query_iter(sql).await.map_err(seen)?;
        let mut all = Vec::new();
        while !results.is_empty() {
            all.extend(results.collect::<i64>().await.map_err(seen)?);
        }
        Ok(all)
    }

    async fn close(self) {
        // A connection that was lost cannot say goodbye.
        self.0.disconnect().await.ok();
    }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn seen(error: mysql_async::Error) -> Seen {
    match error {
        mysql_async::Error::Server(server) => Seen {
            kind: "mysql_async::Error::Server".into(),
            errno: server.code,
            sqlstate: server.state,
            message: server.message,
        },
        other => {
            let (kind, message) = match &other {
                mysql_async::Error::Io(error) => ("mysql_async::Error::Io", error.to_string()),
                mysql_async::Error::Driver(error) => {
                    ("mysql_async::Error::Driver", error.to_string())
                }
                error => ("mysql_async::Error", error.to_string()),
            };
            Seen { kind: kind.into(), errno: 0, sqlstate: String::new(), message }
        }
    }
}

fn main() -> std::process::ExitCode {
    clients::main::<MysqlAsync>()
}
