//! sqlx: `raw_sql` is text, `query` prepares at the server.

use clients::{Driver, Seen, Target};
use sqlx::mysql::{
    MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlRow, MySqlSslMode,
};
use sqlx::{AssertSqlSafe, Connection, Executor, Row};

struct Sqlx(MySqlConnection);

impl Driver for Sqlx {
    async fn connect(target: &Target) -> Result<Self, Seen> {
        let options = MySqlConnectOptions::new()
            .host(&target.host)
            .port(target.port)
            .username(&target.user)
            .password(&target.password)
            .database(&target.database)
            .ssl_mode(if target.tls { MySqlSslMode::Required } else { MySqlSslMode::Disabled });
        MySqlConnection::connect_with(&options).await.map(Self).map_err(seen)
    }

    async fn run(&mut self, sql: &str) -> Result<(), Seen> {
        self.0.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map(drop).map_err(seen)
    }

    async fn first(&mut self, sql: &str) -> Result<Vec<Option<Vec<u8>>>, Seen> {
        let row = self.0.fetch_one(sqlx::raw_sql(AssertSqlSafe(sql))).await.map_err(seen)?;
        (0..row.len()).map(|column| bytes(&row, column)).collect::<Result<_, _>>().map_err(seen)
    }

    async fn execute(&mut self, sql: &str, id: i32, note: &str, data: &[u8]) -> Result<(), Seen> {
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id).bind(note).bind(data);
        query.execute(&mut self.0).await.map(drop).map_err(seen)
    }

    async fn notes(&mut self, sql: &str, id: i32) -> Result<Vec<String>, Seen> {
        let query = sqlx::query_scalar(AssertSqlSafe(sql)).bind(id);
        query.fetch_all(&mut self.0).await.map_err(seen)
    }

    async fn several(&mut self, sql: &str) -> Result<Vec<i64>, Seen> {
        let rows = self.0.fetch_all(sqlx::raw_sql(AssertSqlSafe(sql))).await.map_err(seen)?;
        rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(seen)
    }

    async fn close(self) {
        // A connection that was lost cannot say goodbye.
        self.0.close().await.ok();
    }
}

fn bytes(row: &MySqlRow, column: usize) -> Result<Option<Vec<u8>>, sqlx::Error> {
    row.try_get_unchecked(column)
}

fn seen(error: sqlx::Error) -> Seen {
    if let sqlx::Error::Database(error) = &error
        && let Some(error) = error.try_downcast_ref::<MySqlDatabaseError>()
    {
        return Seen {
            kind: "sqlx::Error::Database".into(),
            errno: error.number(),
            sqlstate: error.code().unwrap_or_default().into(),
            message: error.message().into(),
        };
    }
    let kind = match &error {
        sqlx::Error::Io(_) => "sqlx::Error::Io",
        sqlx::Error::Protocol(_) => "sqlx::Error::Protocol",
        _ => "sqlx::Error",
    };
    Seen { kind: kind.into(), errno: 0, sqlstate: String::new(), message: error.to_string() }
}

fn main() -> std::process::ExitCode {
    clients::main::<Sqlx>()
}
