//! Whether the probe's account sees the sessions of others.

use sql::Server;

use super::account::Account;
use super::{Visit, Weight};
use crate::board::ProbeError;
use crate::link::denial::{grant, is_denial};

impl Visit<'_> {
    /// What names those who go around Sluice, and whose lock heartbeats wait for. No file needs it.
    pub(super) async fn try_other_sessions(&mut self, account: &Account) -> Result<(), ProbeError> {
        let mut tables = vec![("information_schema.INNODB_TRX", "PROCESS", "*.*")];
        match account.server {
            Server::MySql { .. } => {
                tables.push(("performance_schema.metadata_locks", "SELECT", "performance_schema.*"))
            }
            Server::MariaDb { .. } | Server::Unknown => {}
        }
        for (table, right, on) in tables {
            let denied = match self.link.rows(&format!("SELECT 1 FROM {table} LIMIT 1")).await {
                Ok(_) => false,
                Err(error) if error.is_silence() => return Err(error),
                Err(error) => error.code().is_some_and(is_denial),
            };
            if denied {
                let message = "who writes past Sluice (`bypass`), and whose lock heartbeats wait \
                               for, is not known for all, unless";
                let statement = grant(right, on, &account.name);
                self.visited.add(Weight::Note, message.to_owned(), Some(statement));
            }
        }
        Ok(())
    }
}
