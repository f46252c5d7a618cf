//! The end of a command: what its response has changed on the server's side, and in who asks.

use std::sync::Arc;

use sql::Kill;
use wire::response_tracker::{Prepared as PrepareOk, ResponseEnd, ResponseTracker};

use crate::command::{Running, Then};
use crate::consequences::Consequences;
use crate::judge::who::Who;
use crate::negotiated::Negotiated;
use crate::server::ServerSide;

/// The response to a command has ended. Returns a KILL that the server has accepted.
pub(crate) fn end(
    running: Running,
    end: &ResponseEnd,
    tracker: &ResponseTracker,
    (negotiated, server): (&Negotiated, &mut ServerSide),
    who: &mut Who,
) -> Option<Kill> {
    let Running { statement, ran, consequences, then } = running;
    if statement.is_some() {
        server.transaction.handle_end(end, ran, &consequences.plain);
    } else if let Some(flags) = end.status {
        server.transaction.handle_flags(flags);
    }
    if end.status.is_some() {
        let flags = server.transaction.flags();
        server.mode.no_backslash_escapes = flags.no_backslash_escapes();
        if negotiated.server_capabilities.is_mariadb_server() {
            server.mode.ansi_quotes = flags.ansi_quotes();
        }
    }
    follow_session_changes(tracker, server, who);
    if end.error.is_some() {
        handle_failed(&consequences, &then, server);
        return None;
    }
    let killed = handle_accepted(then, end.prepared, negotiated, server, who);
    handle_consequences(consequences, server, who).or(killed)
}

/// What the server said about its session (CLIENT_SESSION_TRACK).
fn follow_session_changes(tracker: &ResponseTracker, server: &mut ServerSide, who: &mut Who) {
    if let Some(schema) = tracker.schema() {
        who.use_schema(schema);
    }
    if let Some(charset) = tracker.charset_client() {
        server.mode.charset = sql::Charset::from_name(charset);
    }
}

fn handle_failed(consequences: &Consequences, then: &Then, server: &mut ServerSide) {
    if let Then::Prepare(_) = then {
        server.prepared.handle_prepare_failed();
    }
    if let Some((name, _)) = consequences.rare.as_ref().and_then(|rare| rare.prepare.as_ref()) {
        server.prepared.remove_name(name);
    }
}

fn handle_accepted(
    then: Then,
    prepared: Option<PrepareOk>,
    negotiated: &Negotiated,
    server: &mut ServerSide,
    who: &mut Who,
) -> Option<Kill> {
    match then {
        Then::Nothing => {}
        Then::Kill(id) => {
            return Some(Kill { connection_id: u64::from(id), query_only: false });
        }
        Then::Prepare(description) => {
            if let Some(ok) = prepared {
                server.prepared.insert(ok, Arc::new(*description));
            }
        }
        Then::ResetStatement(id) => {
            if let Some(statement) = server.prepared.get_mut(id) {
                statement.long_data = false;
            }
        }
        Then::ResetConnection => {
            server.start(negotiated.charset, server.transaction.flags());
            who.forget();
        }
        Then::Schema(schema) => who.use_schema(&schema),
    }
    None
}

fn handle_consequences(
    consequences: Consequences,
    server: &mut ServerSide,
    who: &mut Who,
) -> Option<Kill> {
    let Consequences { plain, rare } = consequences;
    if let Some(charset) = plain.set_charset {
        server.mode.charset = charset;
    }
    if let Some(ansi_quotes) = plain.sets_ansi_quotes {
        server.mode.ansi_quotes = ansi_quotes;
    }
    if let Some(rare) = rare {
        if let Some(app) = rare.app {
            who.set_app(app.as_deref());
        }
        if let Some(schema) = rare.schema {
            who.use_schema(&schema);
        }
        if let Some((name, description)) = rare.prepare {
            server.prepared.insert_name(&name, description);
        }
        if let Some(name) = rare.deallocate {
            server.prepared.remove_name(&name);
        }
    }
    plain.kill
}
