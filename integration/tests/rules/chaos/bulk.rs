//! MariaDB's COM_STMT_BULK_EXECUTE: many rows in one execution, with a row in its middle that is there
//! already, with RETURNING, in a transaction, and running away among its rows.

use integration::error::Result;
use integration::raw::{Param, RawConn, capability};

use super::doing::Doing;

impl Doing {
    /// Rows in one go; nothing of it where the server has no such command.
    pub(super) async fn bulk(&mut self, conn: &mut RawConn, is_late: bool) -> Result<()> {
        if conn.mariadb_capabilities() & capability::MARIADB_BULK == 0 {
            return self.calm(conn).await;
        }
        match self.chance.below(4) {
            0 => self.bulk_that_runs_away(conn, is_late).await?,
            1 => self.bulk_that_fails(conn).await?,
            2 => self.bulk_that_returns(conn).await?,
            _ => self.bulk_in_transaction(conn).await?,
        }
        self.calm(conn).await
    }

    async fn bulk_that_runs_away(&mut self, conn: &mut RawConn, is_late: bool) -> Result<()> {
        let statement = conn.prepare("INSERT INTO test.loaded VALUES (SLEEP(?))").await?;
        let rows = if is_late { 3 } else { 2_000 };
        let ran = conn.bulk_execute(statement.id, &vec![vec![Param::double(0.05)]; rows]).await?;
        self.ran_away(&ran, is_late);
        conn.close_statement(statement.id).await
    }

    /// None of its rows is there behind it.
    async fn bulk_that_fails(&mut self, conn: &mut RawConn) -> Result<()> {
        let text = "INSERT /* app=calm */ INTO test.committed (id, who) VALUES (?, 5)";
        let statement = conn.prepare(text).await?;
        let there = [-1, -2, 1_000_000_000, -3].map(|id| vec![Param::int(id)]);
        let ran = conn.bulk_execute(statement.id, &there).await?;
        let is_there_already = ran.err().is_some_and(|(errno, _)| errno == ER_DUP_ENTRY);
        self.answered_or(&ran, is_there_already);
        Ok(())
    }

    async fn bulk_that_returns(&mut self, conn: &mut RawConn) -> Result<()> {
        let text = "INSERT /* app=calm */ INTO test.committed (who) VALUES (?) RETURNING id";
        let statement = conn.prepare(text).await?;
        let rows = vec![vec![Param::int(6)]; self.some_rows()];
        let ran = conn.bulk_execute(statement.id, &rows).await?;
        if self.unharmed(&ran) {
            assert_eq!(ran.rows.len(), rows.len(), "{ran:?}");
            self.note_committed(rows.len());
        }
        Ok(())
    }

    async fn bulk_in_transaction(&mut self, conn: &mut RawConn) -> Result<()> {
        let text = "INSERT /* app=calm */ INTO test.committed (who) VALUES (?)";
        let statement = conn.prepare(text).await?;
        let rows = vec![vec![Param::int(7)]; self.some_rows()];
        let ends = ["COMMIT /* app=calm */", "ROLLBACK /* app=calm */"];
        let end = self.chance.index(ends.len());
        let begun = conn.query("BEGIN /* app=calm */").await?;
        let ran = conn.bulk_execute(statement.id, &rows).await?;
        let ended = conn.query(ends.get(end).copied().unwrap_or_default()).await?;
        let is_done = self.unharmed(&begun) && self.unharmed(&ran) && self.unharmed(&ended);
        if is_done && end == 0 {
            self.note_committed(rows.len());
        }
        Ok(())
    }

    fn some_rows(&mut self) -> usize {
        1 + self.chance.index(300)
    }

    fn note_committed(&mut self, rows: usize) {
        self.committed += u64::try_from(rows).unwrap();
    }
}

const ER_DUP_ENTRY: u16 = 1062;
