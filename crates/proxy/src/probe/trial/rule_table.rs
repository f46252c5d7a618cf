//! What the table of runtime rules needs, by trying.

use super::account::Account;
use super::rights::Tried;
use super::{Visit, Weight};
use crate::board::ProbeError;
use crate::link::denial::grant;
use crate::probe::rules::TABLE;

/// What else could be the matter with a statement of ours.
const RULES: &str = "the table of runtime rules is not as Sluice makes it; drop it";

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
        let mut lacking = Vec::new();
        let mut is_missing = false;
        for (right, statement) in &statements {
            match self.try_statement(RULES, statement).await? {
                Some(Tried::Denied(_)) => lacking.push(*right),
                Some(Tried::Missing) => is_missing = true,
                Some(Tried::Allowed) | None => {}
            }
        }
        if is_missing || lacking.len() == statements.len() {
            let template = format!("`{schema}`.`sluice_check_{:032x}`", rand::random::<u128>());
            let create = format!("CREATE TABLE {name} LIKE {template}");
            match self.try_statement(RULES, &create).await? {
                // Reading the other table is what is not allowed, so creating this one is.
                Some(Tried::Denied(right)) if right == "SELECT" => {}
                Some(Tried::Denied(_)) => lacking.insert(0, "CREATE"),
                Some(Tried::Allowed | Tried::Missing) | None => {}
            }
        }
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
}
