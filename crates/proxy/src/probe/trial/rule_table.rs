//! What the tables of Sluice's own need that no file asks for, by trying.

use super::account::Account;
use super::rights::Lacking;
use super::{Visit, Weight};
use crate::board::ProbeError;
use crate::link::denial::grant;
use crate::probe::learned::TABLE as LEARNED;
use crate::probe::rules::TABLE;

/// What else could be the matter with a statement of ours.
const RULES: &str = "the table of runtime rules is not as Sluice makes it; drop it";

/// The same of what is found out.
const LEARNED_TABLE: &str =
    "the table of what Sluice has found out is not as Sluice makes it; drop it";

impl Visit<'_> {
    /// Reading and writing the table of runtime rules, and making it where there is none. No file
    /// needs it: without it, rules made at runtime stay where they are made.
    pub(super) async fn try_rule_table(&mut self, account: &Account) -> Result<(), ProbeError> {
        let schema = self.probe.heartbeat_table.schema.clone();
        let name = format!("`{schema}`.`{TABLE}`");
        let statements = [
            ("SELECT", format!("SELECT version FROM {name} WHERE cluster = ''")),
            (
                "INSERT",
                format!(
                    "EXPLAIN INSERT INTO {name} \
                     (cluster, name, version, deleted, expires_at, author, body) \
                     VALUES ('', '', 0, 0, UTC_TIMESTAMP(6), '', '')"
                ),
            ),
            ("UPDATE", format!("EXPLAIN UPDATE {name} SET version = 0 WHERE cluster = ''")),
            ("DELETE", format!("EXPLAIN DELETE FROM {name} WHERE cluster = ''")),
        ];
        let Lacking { rights: lacking, is_missing: _ } =
            self.try_table(RULES, (&schema, &name), &statements).await?;
        if !lacking.is_empty() {
            let rights = lacking.join(", ");
            let message = format!(
                "rules made at runtime stay at the Sluice that they are made at: {rights} on \
                 {schema}.{TABLE}"
            );
            // A right on a table alone cannot be given before there is one.
            let statement = grant(&rights, &format!("{schema}.*"), &account.name);
            self.visited.add(Weight::Note, message, Some(statement));
        }
        Ok(())
    }

    /// The same of the table of what was found out about the pace: without it, a process that starts
    /// begins with a guess.
    pub(super) async fn try_learned_table(&mut self, account: &Account) -> Result<(), ProbeError> {
        let schema = self.probe.heartbeat_table.schema.clone();
        let name = format!("`{schema}`.`{LEARNED}`");
        let statements = [
            ("SELECT", format!("SELECT learned, written_at FROM {name} WHERE cluster = ''")),
            (
                "INSERT",
                format!("EXPLAIN INSERT INTO {name} (cluster, host, learned) VALUES ('', '', '')"),
            ),
            // REPLACE needs both.
            ("DELETE", format!("EXPLAIN DELETE FROM {name} WHERE cluster = ''")),
        ];
        let Lacking { rights: lacking, is_missing: _ } =
            self.try_table(LEARNED_TABLE, (&schema, &name), &statements).await?;
        if !lacking.is_empty() {
            let rights = lacking.join(", ");
            let message = format!(
                "what is found out about the pace is not kept, so that a process that starts \
                 begins with a guess: {rights} on {schema}.{LEARNED}"
            );
            let statement = grant(&rights, &format!("{schema}.*"), &account.name);
            self.visited.add(Weight::Note, message, Some(statement));
        }
        Ok(())
    }
}
