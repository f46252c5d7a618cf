//! Whether the tables of applications can be asked about, if a guard wants that.

use policy::Estimate;

use super::account::Account;
use super::{Visit, Weight};
use crate::board::ProbeError;
use crate::link::denial::grant;

impl Visit<'_> {
    /// EXPLAIN needs the rights of what it explains, and an account is shown the tables of which it
    /// has some. Which statements will come nobody knows, so that is all that can be tried.
    pub(super) async fn try_explains(&mut self, account: &Account) -> Result<(), ProbeError> {
        let mut guards = self.policy.guards.iter();
        let asks =
            |guard: &&policy::Guard| guard.checks().any(|(check, _)| check == Estimate::CHECK);
        let Some(guard) = guards.find(asks) else { return Ok(()) };
        let own = &self.probe.heartbeat_table.schema;
        let look = format!(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND \
             TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema', \
             '{own}') LIMIT 1"
        );
        let shown = self.link.rows(&look).await;
        let shown = self.unless_refused("the list of tables", shown)?;
        if shown.is_some_and(|tables| tables.is_empty()) {
            let message = format!(
                "the guard `{}` says `{}`, but the account sees no table of an application, so \
                 nothing is judged: EXPLAIN needs SELECT, and of an UPDATE or DELETE that right too",
                guard.name,
                Estimate::CHECK
            );
            let statement = grant("SELECT", "*.*", &account.name);
            self.visited.add(Weight::Fault, message, Some(statement));
        }
        Ok(())
    }
}
