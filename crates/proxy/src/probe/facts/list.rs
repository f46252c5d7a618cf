//! The list of a server's routines, and what it adds up to.

use mysql_async::{FromRowError, Row};
use sql::{Routine, RoutineKind, Routines, Server};

use crate::board::ProbeError;
use crate::link::Link;

/// Most routines that are read; with more the list is none.
const ROUTINES_MAX: u64 = 20_000;
/// Most bytes of bodies that are read; with more the list is none.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most functions that are asked for one by one.
const SHOWN_MAX: usize = 2_000;

/// What the routines and the loadable functions of a server add up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    routines: (u64, u64, u64, u64),
    /// The last says whether they are listed at all.
    loadable: (u64, u64, u64),
}

/// What is asked of one kind of server.
struct Questions {
    sum: &'static str,
    loadable_sum: &'static str,
    list: &'static str,
    loadable: &'static str,
}

const MYSQL: Questions = Questions {
    sum: "SELECT COUNT(*), CAST(COALESCE(SUM(LENGTH(body)), 0) AS UNSIGNED), \
          BIT_XOR(CAST(CONV(LEFT(d, 16), 16, 10) AS UNSIGNED)), \
          BIT_XOR(CAST(CONV(RIGHT(d, 16), 16, 10) AS UNSIGNED)) \
          FROM (SELECT ROUTINE_DEFINITION AS body, SHA2(CONCAT_WS('|', ROUTINE_TYPE, \
          ROUTINE_SCHEMA, ROUTINE_NAME, SQL_MODE, CREATED, LAST_ALTERED, ROUTINE_BODY, \
          ROUTINE_DEFINITION), 256) AS d FROM information_schema.ROUTINES) AS r",
    loadable_sum: "SELECT COUNT(*), \
          BIT_XOR(CAST(CONV(LEFT(SHA2(UDF_NAME, 256), 16), 16, 10) AS UNSIGNED)), \
          @@GLOBAL.performance_schema \
          FROM performance_schema.user_defined_functions",
    list: "SELECT ROUTINE_TYPE, ROUTINE_SCHEMA, ROUTINE_NAME, SQL_MODE, \
          CASE WHEN ROUTINE_TYPE = 'FUNCTION' AND ROUTINE_BODY = 'SQL' \
          THEN ROUTINE_DEFINITION END FROM information_schema.ROUTINES \
          WHERE ROUTINE_TYPE <> 'PROCEDURE'",
    loadable: "SELECT UDF_NAME FROM performance_schema.user_defined_functions",
};

const MARIADB: Questions = Questions {
    sum: "SELECT COUNT(*), CAST(COALESCE(SUM(LENGTH(body)), 0) AS UNSIGNED), \
          BIT_XOR(CAST(CONV(LEFT(d, 16), 16, 10) AS UNSIGNED)), \
          BIT_XOR(CAST(CONV(RIGHT(d, 16), 16, 10) AS UNSIGNED)) \
          FROM (SELECT body, SHA2(CONCAT_WS('|', type, db, name, sql_mode, created, modified, \
          language, body), 256) AS d FROM mysql.proc) AS r",
    loadable_sum: "SELECT COUNT(*), \
          BIT_XOR(CAST(CONV(LEFT(SHA2(name, 256), 16), 16, 10) AS UNSIGNED)), 1 FROM mysql.func",
    list: "SELECT type, db, name, sql_mode, \
          CASE WHEN type = 'FUNCTION' AND language = 'SQL' THEN body END \
          FROM mysql.proc WHERE type <> 'PROCEDURE'",
    loadable: "SELECT name FROM mysql.func",
};

fn questions(server: Server) -> Questions {
    match server {
        Server::MariaDb { .. } => MARIADB,
        Server::MySql { .. } | Server::Unknown => MYSQL,
    }
}

/// Asks the server to add up what it has.
pub(super) async fn sum(link: &mut Link, server: Server) -> Result<Sum, ProbeError> {
    let Questions { sum, loadable_sum, .. } = questions(server);
    let one = |row: Option<Row>| row.ok_or_else(|| ProbeError::Unusable("no sum".into()));
    let routines = one(link.first(sum).await?)?;
    let loadable = one(link.first(loadable_sum).await?)?;
    let routines = mysql_async::from_row_opt(routines).map_err(unusable)?;
    let loadable = mysql_async::from_row_opt(loadable).map_err(unusable)?;
    // Without performance_schema the table is there, and empty.
    match loadable {
        (_, _, 0) => Err(ProbeError::Unusable("performance_schema is off".into())),
        (_, _, _) => Ok(Sum { routines, loadable }),
    }
}

/// A row of the list.
type Listed = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>, Option<Vec<u8>>);

/// Reads the list that adds up to `sum`.
pub(super) async fn read(
    link: &mut Link,
    server: Server,
    sum: &Sum,
) -> Result<Routines, ProbeError> {
    let (count, bytes, ..) = sum.routines;
    if count > ROUTINES_MAX || bytes > BYTES_MAX {
        return Ok(Routines::default());
    }
    let Questions { list, loadable, .. } = questions(server);
    let mut rows = Vec::new();
    let mut shown = 0_usize;
    for row in link.rows(list).await? {
        let mut row: Listed = mysql_async::from_row_opt(row).map_err(unusable)?;
        let (_, schema, name, _, body) = &mut row;
        if body.as_ref().is_some_and(|body| is_quoted(body)) {
            shown = shown.saturating_add(1);
            *body = if shown <= SHOWN_MAX { created(link, schema, name).await? } else { None };
        }
        rows.push(row);
    }
    let mut functions: Vec<Vec<u8>> = Vec::new();
    for row in link.rows(loadable).await? {
        let (name,) = mysql_async::from_row_opt(row).map_err(unusable)?;
        functions.push(name);
    }
    let routines = rows.iter().map(|(kind, schema, name, sql_mode, body)| Routine {
        kind: kind_of(kind),
        schema,
        name,
        body: body.as_deref(),
        sql_mode,
    });
    let loadable = functions.iter().map(|name| Routine {
        kind: RoutineKind::Loadable,
        schema: b"",
        name,
        body: None,
        sql_mode: b"",
    });
    Ok(Routines::read(server, routines.chain(loadable)))
}

fn kind_of(kind: &[u8]) -> RoutineKind {
    match kind {
        b"FUNCTION" => RoutineKind::Function,
        b"PROCEDURE" => RoutineKind::Procedure,
        _ => RoutineKind::Other,
    }
}

/// Whether a body has something that its list does not show as it was written.
fn is_quoted(body: &[u8]) -> bool {
    body.is_ascii() && body.iter().any(|byte| b"'\"`\\$".contains(byte))
}

/// What SHOW CREATE FUNCTION shows, if the account may see it.
async fn created(
    link: &mut Link,
    schema: &[u8],
    name: &[u8],
) -> Result<Option<Vec<u8>>, ProbeError> {
    let (Some(schema), Some(name)) = (quoted(schema), quoted(name)) else { return Ok(None) };
    match link.first(&format!("SHOW CREATE FUNCTION {schema}.{name}")).await {
        Ok(row) => Ok(row.and_then(|row| row.get_opt(2)?.ok()).flatten()),
        // It was dropped, or its right is missing: the sum at the end tells.
        Err(ProbeError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn quoted(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    Some(format!("`{}`", name.replace('`', "``")))
}

fn unusable(error: FromRowError) -> ProbeError {
    ProbeError::Unusable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_leave_its_quotes() {
        assert_eq!(quoted(b"a`b").as_deref(), Some("`a``b`"));
        assert_eq!(quoted(b"\xff"), None);
    }

    #[test]
    fn what_may_not_be_shown_as_written_is_asked_for() {
        assert!(is_quoted(b"RETURN 'it''s'") && is_quoted(b"RETURN `a`"));
        assert!(!is_quoted(b"RETURN 1"));
        assert!(!is_quoted("RETURN '\u{e9}'".as_bytes()), "nobody reads it");
    }
}
