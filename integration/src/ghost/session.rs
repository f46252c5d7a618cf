//! One connection of go-sql-driver, as gh-ost opens it.

use std::net::SocketAddr;
use std::time::Duration;

use crate::error::Result;
use crate::raw::{Login, RawConn, Response};

/// A connection that says first what it wants of its session, and nothing of who it is but what the
/// driver says.
#[derive(Debug)]
pub(super) struct Session {
    conn: RawConn,
}

impl Session {
    pub(super) async fn open(addr: SocketAddr, user: &str) -> Result<Self> {
        let mut conn = RawConn::open(addr, &login(user)).await?;
        // `--mysql-timeout` is 0: it waits for as long as it takes.
        conn.set_read_limit(NO_TIMEOUT);
        let mut session = Self { conn };
        session.run("SET autocommit=true, transaction_isolation='REPEATABLE-READ'").await?;
        Ok(session)
    }

    /// Runs a statement that gives no rows, or whose rows nobody wants.
    pub(super) async fn run(&mut self, sql: &str) -> Result<()> {
        self.query(sql).await.map(drop)
    }

    /// The first value of the first row. NULL, and no row at all, are `None`.
    pub(super) async fn text(&mut self, sql: &str) -> Result<Option<String>> {
        Ok(self.query(sql).await?.first_text())
    }

    pub(super) async fn query(&mut self, sql: &str) -> Result<Response> {
        self.conn.query(sql).await?.accepted()
    }

    /// COM_PING.
    pub(super) async fn ping(&mut self) -> Result<()> {
        self.conn.command(&[crate::raw::COM_PING], crate::raw::Shape::Single).await?.accepted()?;
        Ok(())
    }

    /// For the commands that are no statements.
    pub(super) fn into_raw(self) -> RawConn {
        self.conn
    }
}

/// What go-sql-driver says of itself.
fn login(user: &str) -> Login {
    Login::new(user)
        .attribute("_client_name", "Go-MySQL-Driver")
        .attribute("_os", "linux")
        .attribute("_platform", "amd64")
        .attribute("_pid", "4711")
}

const NO_TIMEOUT: Duration = Duration::from_secs(3600);
