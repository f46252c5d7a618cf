//! The servers' own test statements, each sent by the account whose writes are denied after it was run
//! directly: by then its tables and routines are there, so that it would do something.

use std::time::{Duration, Instant};

use crate::error::Result;
use crate::raw::response::SERVER_STATUS_IN_TRANS;
use crate::raw::{Login, RawConn};
use crate::siege::oracle::{Held, Moved};
use crate::siege::sequence::Leg;
use crate::siege::target::Target;

/// What came of some files.
#[derive(Debug, Clone, Default)]
pub struct SuiteReport {
    /// Files read.
    pub files: u64,
    /// Statements sent by the denied account.
    pub statements: u64,
    /// Of them, those that Sluice refused.
    pub refused: u64,
    /// Transactions of the classes that no rule holds.
    pub documented: u64,
    /// Statements that moved something.
    pub past: Vec<(String, Moved)>,
}

/// Runs the statements of one file until `until`.
///
/// # Errors
/// When the target fails.
pub async fn run(
    target: &mut Target,
    text: &[u8],
    until: Instant,
    report: &mut SuiteReport,
) -> Result<()> {
    target.restore().await?;
    let mut direct = Conn::new("scratch");
    let mut denied = Conn::new("besieged");
    report.files = report.files.saturating_add(1);
    for statement in statements(text) {
        if Instant::now() >= until {
            break;
        }
        if is_left_out(&statement) {
            continue;
        }
        direct.send(target, &statement).await?;
        if direct.conn.is_none() {
            // It may go on for a while: what it does must not be taken for what comes next.
            denied.conn = None;
            target.wait_until_alone().await?;
            continue;
        }
        target.settle().await?;
        let refused = denied.send(target, &statement).await?;
        if denied.conn.is_none() {
            direct.conn = None;
            target.wait_until_alone().await?;
        }
        let mut moved = target.moved(Held::All).await?;
        forget_documented(&statement, &mut moved);
        report.statements = report.statements.saturating_add(1);
        report.refused = report.refused.saturating_add(u64::from(refused));
        let documented = u64::try_from(moved.documented.len()).unwrap_or(0);
        report.documented = report.documented.saturating_add(documented);
        if moved.is_alarm() {
            report.past.push((String::from_utf8_lossy(&statement).into_owned(), moved));
        }
    }
    Ok(())
}

/// One of the two connections; opened when it is needed, and again when it is lost.
struct Conn {
    account: &'static str,
    conn: Option<RawConn>,
}

impl Conn {
    fn new(account: &'static str) -> Self {
        Self { account, conn: None }
    }

    /// Sends a statement and ends what it leaves open. Whether Sluice refused it.
    async fn send(&mut self, target: &mut Target, statement: &[u8]) -> Result<bool> {
        if self.conn.is_none() {
            self.conn = self.open(target).await.ok();
        }
        let Some(conn) = &mut self.conn else {
            // The statement before may have changed the account.
            target.accounts().await?;
            return Ok(false);
        };
        match conn.query(statement).await {
            Err(_) => {
                self.conn = None;
                Ok(false)
            }
            Ok(response) => {
                let status = response.status().unwrap_or(0);
                if status & SERVER_STATUS_IN_TRANS != 0 && conn.query("COMMIT").await.is_err() {
                    self.conn = None;
                }
                Ok(response.err().is_some_and(|(_, message)| message.contains("[sluice ")))
            }
        }
    }

    async fn open(&self, target: &Target) -> Result<RawConn> {
        let addr = match self.account {
            "scratch" => target.server().addr(),
            _ => target.addr(Leg::Plain),
        };
        let mut conn = RawConn::open(addr, &Login::new(self.account)).await?;
        conn.set_read_limit(PATIENCE);
        if self.account == "scratch" {
            conn.query("SET sql_log_bin = 0").await?.accepted()?;
        }
        Ok(conn)
    }
}

/// What would undo the harness (its silence, its accounts), or only takes time.
fn is_left_out(statement: &[u8]) -> bool {
    let text = statement.to_ascii_uppercase();
    LEFT_OUT.iter().any(|word| text.windows(word.len()).any(|part| part == word.as_bytes()))
}

/// Leaves out what the counters say of statements that may pass: EXPLAIN counts like what it explains;
/// tables of `information_schema` are filled as they are read; and `performance_schema` is written by
/// whoever may, for no rule holds that.
fn forget_documented(statement: &[u8], moved: &mut Moved) {
    let text = statement.to_ascii_uppercase();
    let has = |word: &str| text.windows(word.len()).any(|part| part == word.as_bytes());
    if has("EXPLAIN") || has("DESC") || has("PERFORMANCE_SCHEMA") {
        moved.ran.clear();
    }
    // So are temporary tables of the server's own, when they grow.
    let word = first_word(after_brackets(&text));
    let reads = [&b"SELECT"[..], b"WITH", b"TABLE", b"VALUES", b"SHOW"].contains(&word);
    if has("INFORMATION_SCHEMA") || reads {
        moved.rows.clear();
    }
}

fn after_brackets(text: &[u8]) -> &[u8] {
    let from = text.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != b'(');
    text.get(from.unwrap_or(text.len())..).unwrap_or_default()
}

/// The statements of a file of mysqltest, its own commands left out.
#[must_use]
pub fn statements(text: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut delimiter = b";".to_vec();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.trim_ascii_start();
        if rest.starts_with(b"#") || rest.starts_with(b"--") {
            let (line, after) = split_line(rest);
            rest = after;
            let command = line.strip_prefix(b"--").unwrap_or_default().trim_ascii();
            if let Some(new) = delimiter_command(command) {
                delimiter = new;
            }
            continue;
        }
        if rest.starts_with(b"{") || rest.starts_with(b"}") {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        let end = statement_end(rest, &delimiter);
        let (statement, after) = rest.split_at(end);
        rest = after.get(delimiter.len()..).unwrap_or_default();
        if let Some(new) = delimiter_command(statement) {
            delimiter = new;
        } else if let Some(sql) = sql_of(statement) {
            all.push(sql.to_vec());
        }
    }
    all
}

fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    text.split_at(end)
}

fn delimiter_command(text: &[u8]) -> Option<Vec<u8>> {
    let (word, rest) = text.split_at_checked(b"delimiter".len())?;
    let new = rest.trim_ascii();
    let known =
        word.eq_ignore_ascii_case(b"delimiter") && !new.is_empty() && rest.starts_with(b" ");
    known.then(|| new.to_vec())
}

/// Where a statement ends: at a delimiter outside quotes, or at a block of mysqltest.
fn statement_end(text: &[u8], delimiter: &[u8]) -> usize {
    let is_block =
        ["if", "while"].iter().any(|word| first_word(text).eq_ignore_ascii_case(word.as_bytes()));
    let mut quote = None;
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        if escaped {
            escaped = false;
            continue;
        }
        match (quote, byte) {
            (Some(_), b'\\') => escaped = true,
            (Some(open), close) if open == *close => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"' | b'`') => quote = Some(*byte),
            (None, b'{') if is_block => return at,
            (None, _) if text.get(at..).is_some_and(|rest| rest.starts_with(delimiter)) => {
                return at;
            }
            (None, _) => {}
        }
    }
    text.len()
}

fn first_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

fn sql_of(statement: &[u8]) -> Option<&[u8]> {
    let statement = statement.trim_ascii();
    let word = first_word(statement);
    let name = String::from_utf8_lossy(word).to_ascii_lowercase();
    let has_variables = statement.contains(&b'$');
    match name.as_str() {
        "" if !matches!(statement.first(), Some(b'(' | b'/')) => None,
        "eval" | "send" | "query" | "query_vertical" | "query_horizontal" | "send_eval" => {
            let sql = statement.get(word.len()..).unwrap_or_default().trim_ascii();
            (!has_variables && !sql.is_empty()).then_some(sql)
        }
        name if COMMANDS.contains(&name) => None,
        _ if statement.starts_with(b"disable_") || statement.starts_with(b"enable_") => None,
        _ => (statement.len() <= LEN_MAX).then_some(statement),
    }
}

const LEFT_OUT: [&str; 14] = [
    "LOG_BIN",
    "SHUTDOWN",
    "RESTART",
    "SLEEP",
    "BENCHMARK",
    "PASSWORD",
    "KILL",
    "IDENTIFIED",
    "BESIEGED",
    "GET_LOCK",
    "READ_ONLY",
    "WAIT",
    "DROP USER",
    "GTID_NEXT",
];

/// Commands of mysqltest that may stand without dashes.
const COMMANDS: [&str; 62] = [
    "let",
    "echo",
    "connect",
    "connection",
    "disconnect",
    "if",
    "while",
    "source",
    "error",
    "reap",
    "sleep",
    "real_sleep",
    "inc",
    "dec",
    "exec",
    "exec_in_background",
    "execw",
    "die",
    "exit",
    "skip",
    "result_format",
    "vertical_results",
    "horizontal_results",
    "sorted_result",
    "replace_result",
    "replace_column",
    "replace_regex",
    "replace_numeric_round",
    "sync_with_master",
    "sync_slave_with_master",
    "save_master_pos",
    "wait_for_slave_to_stop",
    "ping",
    "shutdown_server",
    "remove_file",
    "remove_files_wildcard",
    "write_file",
    "append_file",
    "cat_file",
    "file_exists",
    "copy_file",
    "copy_files_wildcard",
    "move_file",
    "chmod",
    "mkdir",
    "rmdir",
    "force",
    "list_files",
    "diff_files",
    "perl",
    "output",
    "character_set",
    "change_user",
    "require",
    "system",
    "lowercase_result",
    "start_timer",
    "end_timer",
    "assert",
    "expr",
    "dirty_close",
    "reset_connection",
];
/// Longer ones fill tables.
const LEN_MAX: usize = 20_000;
const PATIENCE: Duration = Duration::from_millis(1_500);

#[cfg(test)]
mod tests;
