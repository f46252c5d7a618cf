//! Whether the probe's account sees the sessions of others.

use policy::RunawayAction;
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
                let statement = grant(right, on, &account.name);
                let message = format!("{}, unless", self.without_sessions(right));
                self.visited.add(Weight::Note, message, Some(statement));
            }
        }
        Ok(())
    }

    /// What goes without seeing the sessions of others, of what this file asks for.
    fn without_sessions(&self, right: &str) -> String {
        let mut goes = vec![
            "who writes past Sluice (`bypass`), and whose lock heartbeats wait for, is not known \
             for all",
        ];
        let kills = |rule: &policy::Rule| {
            rule.runaway.is_some_and(|runaway| runaway.action == RunawayAction::Kill)
        };
        if right == "PROCESS" && self.policy.rules.iter().any(kills) {
            goes.push("`runaway` leaves DDL, CALL and what cannot be read alone");
        }
        let places = |budget: &policy::Budget| budget.terms.max_concurrency.is_some();
        if right == "PROCESS" && self.policy.budgets.iter().any(places) {
            goes.push(
                "a budget's place is free half a minute after its connection has ended, whatever \
                 still runs",
            );
        }
        goes.join("; ")
    }
}
