//! The GRANT that a server's refusal asks for, told from the server's own words.
//!
//! Which right is missing, and on what, stands in the error's text; for whom it is missing, nobody
//! but the server knows: it has chosen the account by the address that the connection comes from.

/// `ER_DBACCESS_DENIED_ERROR`
const ER_DBACCESS_DENIED: u16 = 1044;
/// `ER_TABLEACCESS_DENIED_ERROR`
const ER_TABLEACCESS_DENIED: u16 = 1142;
/// `ER_COLUMNACCESS_DENIED_ERROR`
const ER_COLUMNACCESS_DENIED: u16 = 1143;
/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`
const ER_SPECIFIC_ACCESS_DENIED: u16 = 1227;

/// Whether an error says that a right is missing.
pub(crate) fn is_denial(code: u16) -> bool {
    matches!(
        code,
        ER_DBACCESS_DENIED
            | ER_TABLEACCESS_DENIED
            | ER_COLUMNACCESS_DENIED
            | ER_SPECIFIC_ACCESS_DENIED
    )
}

/// An account as a statement names it: `CURRENT_USER()` in quotes.
pub(crate) fn quoted_account(current_user: &str) -> String {
    // No host has an `@`, users may.
    let (user, host) = current_user.rsplit_once('@').unwrap_or((current_user, "%"));
    let quoted = |name: &str| format!("'{}'", name.replace('\\', "\\\\").replace('\'', "''"));
    format!("{}@{}", quoted(user), quoted(host))
}

/// Whether a right or a table that a server names can be nothing else: what it says goes into a
/// statement that people run.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_$ .*".contains(c);
    !name.is_empty() && name.chars().all(plain)
}

/// A GRANT to an account of [`quoted_account`].
pub(crate) fn grant(rights: &str, on: &str, account: &str) -> String {
    format!("GRANT {rights} ON {on} TO {account};")
}

/// The statement that gives what the server said was missing for `sql`.
pub(super) fn remedy(code: u16, message: &str, sql: &str, account: &str) -> Option<String> {
    let (right, on) = missing(code, message, sql)?;
    (is_plain(&right) && is_plain(&on)).then(|| grant(&right, &on, account))
}

/// The right that is missing, and on what.
fn missing(code: u16, message: &str, sql: &str) -> Option<(String, String)> {
    match code {
        ER_SPECIFIC_ACCESS_DENIED => {
            let (_, rest) = message.split_once("(at least one of) the ")?;
            let (rights, _) = rest.split_once(" privilege(s)")?;
            // SUPER is more than anything here needs.
            let right = rights.split(", ").filter(|right| *right != "SUPER").last()?;
            Some((right.to_owned(), "*.*".to_owned()))
        }
        ER_TABLEACCESS_DENIED | ER_COLUMNACCESS_DENIED => {
            let (right, rest) = message.split_once(" command denied to user ")?;
            let (_, table) = rest.split_once(" for table ")?;
            let table = match table.split_once('.') {
                Some(_) => table.replace('`', ""),
                None => qualified(sql, table.trim_matches('\''))?,
            };
            Some((right.to_owned(), table))
        }
        ER_DBACCESS_DENIED => {
            let (_, schema) = message.split_once(" to database '")?;
            let right = if sql.starts_with("CREATE") { "CREATE" } else { "SELECT" };
            Some((right.to_owned(), format!("{}.*", schema.trim_end_matches('\''))))
        }
        _ => None,
    }
}

/// The table with the schema that the statement names in front of it.
fn qualified(sql: &str, table: &str) -> Option<String> {
    let plain = sql.replace('`', "");
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let names = plain.split(|c: char| !is_name(c) && c != '.');
    let mut named = names.filter_map(|name| name.split_once('.'));
    named
        .find(|(_, name)| name.eq_ignore_ascii_case(table))
        .map(|(schema, name)| format!("{schema}.{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_quoted_as_statements_want_it() {
        assert_eq!(quoted_account("sluice@%"), "'sluice'@'%'");
        assert_eq!(quoted_account("a@b@10.0.0.%"), "'a@b'@'10.0.0.%'");
        assert_eq!(quoted_account("it's@%"), "'it''s'@'%'");
        assert_eq!(quoted_account("@localhost"), "''@'localhost'");
    }

    #[test]
    fn the_statement_that_gives_the_missing_right_is_told_from_the_error() {
        let told = |code, message, sql| remedy(code, message, sql, "'p'@'%'").unwrap_or_default();
        let sql = "UPDATE `sluice`.`heartbeat` SET seq = 1 WHERE instance = 'a'";
        for message in [
            "UPDATE command denied to user 'p'@'10.0.0.1' for table 'heartbeat'",
            "UPDATE command denied to user 'p'@'10.0.0.1' for table `sluice`.`heartbeat`",
        ] {
            let expected = "GRANT UPDATE ON sluice.heartbeat TO 'p'@'%';";
            assert_eq!(told(ER_TABLEACCESS_DENIED, message, sql), expected);
        }
        let message = "Access denied; you need (at least one of) the SUPER, REPLICATION CLIENT \
                       privilege(s) for this operation";
        let expected = "GRANT REPLICATION CLIENT ON *.* TO 'p'@'%';";
        assert_eq!(told(ER_SPECIFIC_ACCESS_DENIED, message, "SHOW REPLICA STATUS"), expected);
        let message = "Access denied for user 'p'@'%' to database 'sluice'";
        let expected = "GRANT CREATE ON sluice.* TO 'p'@'%';";
        assert_eq!(told(ER_DBACCESS_DENIED, message, "CREATE SCHEMA `sluice`"), expected);
        let message = "Access denied; you need (at least one of) the SUPER privilege(s) for this";
        assert_eq!(told(ER_SPECIFIC_ACCESS_DENIED, message, "KILL 1"), "");
        let message =
            "ALL ON *.* TO 'x'@'%'; -- command denied to user 'p'@'%' for table 'heartbeat'";
        assert_eq!(told(ER_TABLEACCESS_DENIED, message, sql), "", "a server that says anything");
        assert_eq!(told(1064, "You have an error in your SQL syntax", "SELEC"), "");
        assert_eq!(told(ER_TABLEACCESS_DENIED, "no words that are known", sql), "");
    }
}
