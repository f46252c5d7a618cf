//! `sluice explain`: what would happen to one statement, and why?

mod running;

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use policy::{BudgetMet, ClusterPolicy, Config, Explanation, GuardSaid, Question, UnixTime};
use proxy::reload;
use sql::{LexMode, Server};

use super::door::tell;
use crate::cli::{Asked, Explain, Format, ServerKind};

/// What `--server mysql` means where the version matters.
const MYSQL_VERSION: u32 = 90_700;
/// What `--server mariadb` means where the version matters.
const MARIADB_VERSION: u32 = 101_100;

/// The longest text that is read from standard input: MySQL's own limit of a packet.
const STDIN_LEN_MAX: u64 = 1 << 30;

/// The exit status of a file with faults, or without the cluster asked for, or without a statement.
const NO_ANSWER: u8 = 2;

pub(crate) fn run(explain: &Explain) -> ExitCode {
    match answer(explain) {
        Ok(answer) => tell(Ok(format!("{answer}\n"))),
        Err(lines) => {
            let mut stderr = io::stderr().lock();
            for line in lines {
                drop(writeln!(stderr, "{line}"));
            }
            ExitCode::from(NO_ANSWER)
        }
    }
}

fn answer(explain: &Explain) -> Result<String, Vec<String>> {
    let loaded = reload::load(&explain.config).map_err(|error| error.lines(&explain.config))?;
    let cluster =
        cluster_of(&loaded.config, explain.cluster.as_deref()).map_err(|error| vec![error])?;
    let text = statement(&explain.sql, io::stdin().lock()).map_err(|error| vec![error])?;
    let running = match &explain.admin {
        Some(admin) => {
            let (admin, ca) = (Some(admin.clone()), explain.ca.clone());
            let asked = Asked { admin, config: None, ca };
            Some(running::behind(cluster, &asked).map_err(|error| vec![error])?)
        }
        None => None,
    };
    let policy = running.as_ref().map_or(&**cluster, |(policy, _)| policy);
    let explanation = explanation(policy, explain, &text);
    match explain.format {
        Format::Text => {
            let made = runtime_line(running.as_ref().map(|(_, count)| *count));
            Ok(format!("{}\n{made}", lines(policy, &explanation)))
        }
        Format::Json => {
            serde_json::to_string(&explanation).map_err(|error| vec![error.to_string()])
        }
    }
}

pub(super) fn cluster_of<'c>(
    config: &'c Config,
    name: Option<&str>,
) -> Result<&'c Arc<ClusterPolicy>, String> {
    let names = || {
        let names: Vec<&str> = config.clusters.iter().map(|cluster| &*cluster.name).collect();
        names.join(", ")
    };
    match (name, config.clusters.as_slice()) {
        (None, [only]) => Ok(only),
        (None, _) => Err(format!("the file has several clusters, name one: --cluster {}", names())),
        (Some(name), _) => config
            .cluster(name)
            .ok_or_else(|| format!("the file has no cluster {name}; there is {}", names())),
    }
}

/// The text that `--sql` means: `-` is no statement, and stands for what `input` holds.
fn statement(sql: &str, input: impl Read) -> Result<Cow<'_, [u8]>, String> {
    if sql != "-" {
        return Ok(Cow::Borrowed(sql.as_bytes()));
    }
    let mut text = Vec::new();
    let read = input.take(STDIN_LEN_MAX.saturating_add(1)).read_to_end(&mut text);
    let len = read.map_err(|error| format!("cannot read the statement: {error}"))?;
    if u64::try_from(len).is_ok_and(|len| len <= STDIN_LEN_MAX) {
        Ok(Cow::Owned(text))
    } else {
        Err(format!("the statement is longer than {STDIN_LEN_MAX} bytes"))
    }
}

fn explanation(cluster: &ClusterPolicy, explain: &Explain, sql: &[u8]) -> Explanation {
    let attributes: Vec<(&[u8], &[u8])> =
        explain.attribute.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = UnixTime(i64::try_from(now).unwrap_or(i64::MAX));
    let server = match explain.server {
        Some(ServerKind::Mysql) => Server::MySql { version: MYSQL_VERSION },
        Some(ServerKind::Mariadb) => Server::MariaDb { version: MARIADB_VERSION },
        None => Server::Unknown,
    };
    policy::explain(
        cluster,
        &Question {
            user: explain.user.as_bytes(),
            client: explain.client,
            schema: explain.schema.as_deref().unwrap_or_default().as_bytes(),
            attributes: &attributes,
            sql,
            mode: LexMode { server, ..LexMode::default() },
            now: explain.at.unwrap_or(now),
        },
    )
}

/// Nobody asks a server here.
fn class_line(class: &str, calls_functions: bool) -> String {
    let unless = if calls_functions {
        " (unless the server's list of routines shows that the functions write nothing)"
    } else {
        ""
    };
    format!("class            {class}{unless}")
}

/// Whether rules that were made at a running Sluice are in the answer, and how many.
fn runtime_line(count: Option<usize>) -> String {
    match count {
        Some(1) => "runtime rules    1 stands, before the file's".to_owned(),
        Some(count) => format!("runtime rules    {count} stand, before the file's"),
        None => "runtime rules    not asked for; with --admin http://HOST:PORT those that stand \
                 there count"
            .to_owned(),
    }
}

/// A name that a client chose, in one line.
fn printable(name: &str) -> String {
    name.escape_debug().collect()
}

fn lines(cluster: &ClusterPolicy, explanation: &Explanation) -> String {
    let Explanation { app, source, class, tags, rule, outcome, why, .. } = explanation;
    let mut lines = vec![
        format!("cluster          {}", cluster.name),
        format!("app              {app} (from {})", source.replace('_', " ")),
        class_line(class, explanation.calls_functions),
        format!("rule             {}", rule.as_deref().unwrap_or("none")),
    ];
    if let Some(does) = &explanation.does {
        lines.push(format!("what it does     {does}"));
    }
    if let Some(until) = &explanation.until {
        lines.push(format!("until            {until}"));
    }
    if let Some(reason) = &explanation.reason {
        lines.push(format!("its reason       {reason}"));
    }
    if let Some(speed) = &explanation.speed {
        lines.push(format!("a session of it  {speed}"));
    }
    for skipped in &explanation.not_in_force {
        lines.push(format!("passed over      {}: {}", skipped.rule, skipped.why));
    }
    if let Some(priority) = explanation.priority {
        lines.push(format!("priority         {priority}"));
    }
    let admission_point = if explanation.admission_point { "yes" } else { "no" };
    lines.push(format!("admission point  {admission_point}"));
    lines.push(format!("mode             {}", explanation.mode));
    for GuardSaid { guard, check, says, advice, .. } in &explanation.guards {
        lines.push(format!("guard            {guard} ({check}) {says}: {}", printable(advice)));
    }
    for BudgetMet { budget, allows, else_it } in &explanation.budgets {
        lines.push(format!("budget           {budget}: {allows}; without room it {else_it}"));
    }
    lines.push(format!("outcome          {outcome}: {why}"));
    lines.push(format!("digest           {} {}", explanation.digest, explanation.digest_text));
    for table in &explanation.tables {
        lines.push(format!("table            {table}"));
    }
    if !explanation.tables_known {
        lines.push("table            others that cannot be told".to_owned());
    }
    for (key, value) in tags {
        lines.push(format!("tag              {key}={value}"));
    }
    if explanation.refused_claims > 0 {
        let refused = explanation.refused_claims;
        let first = explanation.refused_claim.as_deref().unwrap_or_default();
        lines.push(format!("claims ignored   {refused}, by identity.claims: {}", printable(first)));
    }
    lines.join("\n")
}
