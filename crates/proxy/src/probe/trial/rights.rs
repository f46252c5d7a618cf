//! What the probe's account may do, by trying.

use mysql_async::Row;
use policy::{OnClientGone, RunawayAction, TableName};
use sql::Server;

use super::account::Account;
use super::{Visit, Weight};
use crate::board::ProbeError;
use crate::link::denial::{grant, is_denial};
use crate::probe::answer::text;
use crate::probe::heartbeat::is_missing;

/// What becomes of a statement that needs one right.
pub(super) enum Tried {
    Allowed,
    /// With the right that the server names.
    Denied(String),
    /// There is no such table, and the right to use it.
    Missing,
}

/// What a table of ours lacks.
#[derive(Default)]
pub(super) struct Lacking {
    /// Rights on it, in the order in which they are given.
    pub(super) rights: Vec<&'static str>,
    /// It is not there.
    pub(super) is_missing: bool,
}

/// What else could be the matter with a heartbeat's statement.
const HEARTBEAT: &str = "the heartbeat's table is not as Sluice makes it; name another one in \
    `probe.heartbeat_table`, or drop it";

impl Visit<'_> {
    /// Tries a statement for each right on a table of ours, and where that is not there, or cannot
    /// be seen, the right to make it. `table` is quoted, with its schema.
    pub(super) async fn try_table(
        &mut self,
        otherwise: &'static str,
        (schema, table): (&str, &str),
        statements: &[(&'static str, String)],
    ) -> Result<Lacking, ProbeError> {
        let mut lacking = Lacking::default();
        for (right, statement) in statements {
            match self.try_statement(otherwise, statement).await? {
                Some(Tried::Denied(_)) => lacking.rights.push(right),
                Some(Tried::Missing) => lacking.is_missing = true,
                Some(Tried::Allowed) | None => {}
            }
        }
        // Whoever may do nothing with a table is not told whether it is there.
        if lacking.is_missing || lacking.rights.len() == statements.len() {
            let template = format!("`{schema}`.`sluice_check_{:032x}`", rand::random::<u128>());
            let create = format!("CREATE TABLE {table} LIKE {template}");
            match self.try_statement(otherwise, &create).await? {
                // Reading the other table is what is not allowed, so creating this one is.
                Some(Tried::Denied(right)) if right == "SELECT" => {}
                Some(Tried::Denied(_)) => lacking.rights.insert(0, "CREATE"),
                Some(Tried::Allowed | Tried::Missing) | None => {}
            }
        }
        Ok(lacking)
    }

    /// Raising the heartbeat, and making its table where there is none.
    pub(super) async fn try_heartbeat_writes(
        &mut self,
        account: &Account,
    ) -> Result<(), ProbeError> {
        let TableName { schema, table } = self.probe.heartbeat_table.clone();
        let name = format!("`{schema}`.`{table}`");
        let statements = [
            ("SELECT", format!("SELECT seq FROM {name} WHERE instance = ''")),
            ("INSERT", format!("EXPLAIN INSERT INTO {name} (instance, seq) VALUES ('', 0)")),
            (
                "UPDATE",
                format!(
                    "EXPLAIN UPDATE {name} SET seq = 1, written_at = CURRENT_TIMESTAMP(6) \
                     WHERE instance = '' AND seq < 1"
                ),
            ),
        ];
        let table_of = (schema.as_str(), name.as_str());
        let Lacking { rights: lacking, is_missing } =
            self.try_table(HEARTBEAT, table_of, &statements).await?;
        let delete = format!("EXPLAIN DELETE FROM {name} WHERE written_at < CURRENT_TIMESTAMP(6)");
        let cleans =
            !matches!(self.try_statement(HEARTBEAT, &delete).await?, Some(Tried::Denied(_)));
        let on = if lacking.contains(&"CREATE") || is_missing {
            format!("{schema}.*")
        } else {
            format!("{schema}.{table}")
        };
        if !cleans && lacking.is_empty() {
            let message = "rows of former processes stay in the heartbeat's table; with DELETE \
                           they would be removed";
            let statement = grant("DELETE", &on, &account.name);
            self.visited.add(Weight::Note, message.to_owned(), Some(statement));
        } else if !lacking.is_empty() {
            let rights = lacking.join(", ");
            let message = format!("heartbeats cannot be written, so there is no lag: {rights}");
            let all = if cleans { rights } else { format!("{rights}, DELETE") };
            let statement = grant(&all, &on, &account.name);
            self.visited.add(Weight::Fault, message, Some(statement));
        }
        Ok(())
    }

    /// Reading the heartbeat on a replica. No table is no fault: it may be on its way.
    pub(super) async fn try_heartbeat_reads(
        &mut self,
        account: &Account,
    ) -> Result<(), ProbeError> {
        let TableName { schema, table } = &self.probe.heartbeat_table;
        let read = format!("SELECT seq FROM `{schema}`.`{table}` WHERE instance = ''");
        match self.link.rows(&read).await {
            Err(error) if is_missing(&error) => Ok(()),
            Err(ProbeError::Refused { code, .. }) if is_denial(code) => {
                // A right on the table alone cannot be given before there is one.
                let statement = grant("SELECT", &format!("{schema}.*"), &account.name);
                let message = "heartbeats cannot be read, so its lag is not known: SELECT";
                self.visited.add(Weight::Fault, message.to_owned(), Some(statement));
                Ok(())
            }
            answer => self.unless_refused("reading heartbeats", answer).map(|_| ()),
        }
    }

    /// Tries a statement of our own on a table of ours.
    pub(super) async fn try_statement(
        &mut self,
        what: &str,
        statement: &str,
    ) -> Result<Option<Tried>, ProbeError> {
        match self.link.rows(statement).await {
            Ok(_) => Ok(Some(Tried::Allowed)),
            Err(error) if is_missing(&error) => Ok(Some(Tried::Missing)),
            Err(ProbeError::Refused { code, message }) if is_denial(code) => {
                let right = message.split(" command denied").next().unwrap_or_default();
                Ok(Some(Tried::Denied(right.to_owned())))
            }
            // The table may have come meanwhile, and a server that is read only says so itself.
            Err(ProbeError::Refused { code: ER_TABLE_EXISTS | ER_READ_ONLY, .. }) => Ok(None),
            refused => self.unless_refused(what, refused).map(|_| None),
        }
    }

    /// Ending statements of others, if a rule wants that. It cannot be tried.
    pub(super) async fn try_kill(&mut self, account: &Account) -> Result<(), ProbeError> {
        let runaway = |rule: &policy::Rule| {
            rule.runaway.is_some_and(|runaway| runaway.action == RunawayAction::Kill)
        };
        let kills =
            |rule: &policy::Rule| rule.on_client_gone == OnClientGone::Kill || runaway(rule);
        let Some(rule) = self.policy.rules.iter().find(|rule| kills(rule)) else { return Ok(()) };
        let key = if runaway(rule) { "runaway: { action: kill }" } else { "on_client_gone: kill" };
        let right = kill_right(account.server);
        let rights = self.global_rights(account).await?;
        if !rights.has_any(&[right, "SUPER", "ALL PRIVILEGES", "ALL"]) {
            let message = format!(
                "the rule `{}` says `{key}`, but others' statements cannot be killed",
                rule.name
            );
            let statement = grant(right, "*.*", &account.name);
            self.visited.add(Weight::Fault, message, Some(statement));
        }
        Ok(())
    }

    /// The list of routines, which no file needs.
    pub(super) async fn try_routines(&mut self, account: &Account) -> Result<(), ProbeError> {
        let tables: &[&str] = match account.server {
            Server::MariaDb { .. } => &["mysql.proc", "mysql.func"],
            Server::MySql { .. } | Server::Unknown => {
                &["performance_schema.user_defined_functions"]
            }
        };
        let mut statements = Vec::new();
        for table in tables {
            let refused = match self.link.rows(&format!("SELECT 1 FROM {table} LIMIT 1")).await {
                Ok(_) => continue,
                Err(error) if error.is_silence() => return Err(error),
                Err(error) => error.code(),
            };
            if refused.is_some_and(is_denial) {
                let on = match table.split_once('.') {
                    Some(("performance_schema", _)) => "performance_schema.*",
                    Some(_) | None => table,
                };
                statements.push(grant("SELECT", on, &account.name));
            }
        }
        if let Server::MySql { version: 80_020.. } = account.server {
            let rights = self.global_rights(account).await?;
            if !rights.has_any(&["SHOW_ROUTINE", "SELECT", "ALL PRIVILEGES"]) {
                statements.push(grant("SHOW_ROUTINE", "*.*", &account.name));
            }
        }
        for statement in statements {
            let message = "whatever calls a stored function is of class `call`, also what only \
                           reads, unless";
            self.visited.add(Weight::Note, message.to_owned(), Some(statement));
        }
        Ok(())
    }

    /// The rights on everything, those of active roles among them.
    async fn global_rights(&mut self, account: &Account) -> Result<Rights, ProbeError> {
        let role = self.link.first("SELECT CURRENT_ROLE()").await;
        // Servers that know no roles do not know the function.
        let role = match role {
            Err(error) if error.is_silence() => return Err(error),
            Err(_) | Ok(None) => None,
            Ok(Some(row)) => row.as_ref(0).and_then(text).filter(|role| role != "NONE"),
        };
        let mut questions = vec!["SHOW GRANTS".to_owned()];
        match (account.server, role) {
            (Server::MariaDb { .. }, Some(_)) => {
                questions.push("SHOW GRANTS FOR CURRENT_ROLE".to_owned());
            }
            (Server::MySql { .. }, Some(roles)) => {
                questions.push(format!("SHOW GRANTS FOR CURRENT_USER() USING {roles}"));
            }
            (Server::Unknown, Some(_))
            | (Server::MariaDb { .. } | Server::MySql { .. } | Server::Unknown, None) => {}
        }
        let mut rights = Rights::default();
        for question in questions {
            let rows = self.link.rows(&question).await;
            rights.read(&self.unless_refused("its own grants", rows)?.unwrap_or_default());
        }
        Ok(rights)
    }
}

/// `ER_TABLE_EXISTS_ERROR`
const ER_TABLE_EXISTS: u16 = 1050;
/// `ER_OPTION_PREVENTS_STATEMENT`
const ER_READ_ONLY: u16 = 1290;

/// What KILL of others' statements needs.
fn kill_right(server: Server) -> &'static str {
    match server {
        Server::MariaDb { version: 100_502.. } => "CONNECTION ADMIN",
        Server::MySql { version: 80_000.. } => "CONNECTION_ADMIN",
        Server::MariaDb { .. } | Server::MySql { .. } | Server::Unknown => "SUPER",
    }
}

/// Rights on `*.*`, as SHOW GRANTS lists them.
#[derive(Debug, Default)]
struct Rights(Vec<String>);

impl Rights {
    fn read(&mut self, rows: &[Row]) {
        for line in rows.iter().filter_map(|row| row.as_ref(0).and_then(text)) {
            self.read_line(&line);
        }
    }

    fn read_line(&mut self, line: &str) {
        let listed = line.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON *.* TO "));
        for right in listed.iter().flat_map(|(rights, _)| rights.split(',')) {
            self.0.push(right.trim().to_ascii_uppercase());
        }
    }

    fn has_any(&self, wanted: &[&str]) -> bool {
        self.0.iter().any(|right| wanted.contains(&right.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_on_everything_are_read_from_grants() {
        let mut rights = Rights::default();
        for line in [
            "GRANT PROCESS, REPLICATION CLIENT ON *.* TO `sluice`@`%`",
            "GRANT CONNECTION_ADMIN,SHOW_ROUTINE ON *.* TO `sluice`@`%`",
            "GRANT SELECT, SUPER ON `sluice`.* TO `sluice`@`%`",
            "GRANT `r`@`%` TO `sluice`@`%`",
        ] {
            rights.read_line(line);
        }
        assert!(rights.has_any(&["CONNECTION_ADMIN"]) && rights.has_any(&["SHOW_ROUTINE"]));
        assert!(!rights.has_any(&["SUPER", "SELECT"]));
    }
}
