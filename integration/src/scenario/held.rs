//! A statement that is at the server for as long as a test wants it there.

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use crate::error::Result;
use crate::server::Server;

/// A lock on the table [`Held::TABLE`], which belongs to nothing else: whoever reads that is at the server
/// until the lock is given back, however fast or slow the machine is.
#[derive(Debug)]
pub struct Held(Conn);

impl Held {
    /// What [`Held::take`] locks.
    pub const TABLE: &'static str = "test.held";

    /// Takes the lock; the table is made when it is not there.
    ///
    /// # Errors
    /// When the server does not do it.
    pub async fn take(server: &Server) -> Result<Self> {
        let mut conn = server.admin().await?;
        conn.query_drop(format!("CREATE TABLE IF NOT EXISTS {} (n INT)", Self::TABLE)).await?;
        conn.query_drop(format!("LOCK TABLES {} WRITE", Self::TABLE)).await?;
        Ok(Self(conn))
    }

    /// A statement that waits for it, with this as a literal of its own.
    #[must_use]
    pub fn statement(literal: &str) -> String {
        format!("SELECT n, '{literal}' FROM {}", Self::TABLE)
    }

    /// Gives it back: whoever waits for it goes on.
    ///
    /// # Errors
    /// When the server does not do it.
    pub async fn release(mut self) -> Result<()> {
        self.0.query_drop("UNLOCK TABLES").await?;
        Ok(self.0.disconnect().await?)
    }
}
