//! The end of a command: what its response has changed on the server's side, and in who asks.

use std::sync::Arc;

use sql::{Charset, Kill};
use wire::capability::CLIENT_SESSION_TRACK;
use wire::response_tracker::{Prepared as PrepareOk, ResponseEnd, ResponseTracker};

use crate::command::{Running, Then};
use crate::consequences::Consequences;
use crate::facts::ServerFacts;
use crate::judge::who::Who;
use crate::negotiated::Negotiated;
use crate::server::transaction::Admitted;
use crate::server::{SchemaKnown, ServerSide};

/// `ER_PARSE_ERROR` of the manual.
const ER_PARSE_ERROR: u16 = 1064;

/// The response to a command has ended, and what the command was to do is taken from it. Returns a
/// KILL that the server has accepted.
pub(crate) fn end(
    running: &mut Running,
    end: &ResponseEnd,
    tracker: &ResponseTracker,
    (negotiated, server, facts): (&Negotiated, &mut ServerSide, &ServerFacts),
    who: &mut Who,
) -> Option<Kill> {
    let Running { statement, admits, consequences, then, .. } = running;
    if end.error == Some(ER_PARSE_ERROR) && consequences.plain.no_statement {
        *consequences = Consequences::default();
        *admits = Admitted::No;
    }
    if statement.is_some() {
        server.transaction.handle_end(end, *admits, &consequences.plain);
    } else if let Some(flags) = end.status {
        server.transaction.handle_flags(flags);
    }
    if let Some(schema) = tracker.schema() {
        who.use_schema(schema);
        server.schema = server.schema.max(SchemaKnown::Told);
    }
    if end.error.is_some() {
        handle_failed(consequences, then, (server, facts), who);
        if consequences.uses_schema() && end.results_ahead > 0 {
            who.doubt_schema();
        }
        return None;
    }
    let by_flags = consequences.plain.sql_mode_by_flags;
    if consequences.plain.forgets_schema {
        let tells = negotiated.capabilities.has(CLIENT_SESSION_TRACK);
        let told = tells && !tracker.session_changes_cut();
        server.schema = server.schema.min(if told { SchemaKnown::Told } else { SchemaKnown::No });
    }
    let told = tracker.schema();
    let kill =
        if consequences.any { handle_consequences(consequences, told, server, who) } else { None };
    let killed = match then {
        Then::Nothing => None,
        Then::Prepare(_)
        | Then::PrepareName(..)
        | Then::ResetStatement(_)
        | Then::ResetConnection
        | Then::Schema(_)
        | Then::Kill(_) => {
            let then = std::mem::take(then);
            handle_accepted(then, (end.prepared, told), (negotiated, server, facts), who)
        }
    };
    follow_charset(tracker, server);
    if let Some(flags) = end.status {
        if by_flags {
            server.believe_flags(flags);
        }
        server.follow_flags(flags);
    }
    kill.or(killed)
}

/// What the server said about its `character_set_client` (CLIENT_SESSION_TRACK). A client may have
/// switched that off within the text, so that it says nothing of a later change: where the text
/// has another last word, neither is believed.
fn follow_charset(tracker: &ResponseTracker, server: &mut ServerSide) {
    let Some(said) = tracker.charset_client().map(Charset::from_name) else { return };
    if server.mode.charset != said {
        server.mode.charset = Charset::Unknown;
    }
}

fn handle_failed(
    consequences: &Consequences,
    then: &Then,
    (server, facts): (&mut ServerSide, &ServerFacts),
    who: &mut Who,
) {
    match then {
        Then::Prepare(_) => server.prepared.handle_prepare_failed(),
        Then::PrepareName(name, _) => server.prepared.remove_name(name),
        // It may have happened all the same.
        Then::ResetConnection => {
            server.start(Charset::Unknown, None, facts);
            who.forget();
        }
        Then::Nothing | Then::ResetStatement(_) | Then::Schema(_) | Then::Kill(_) => {}
    }
    let Consequences { plain, .. } = consequences;
    server.mode = server.mode.after_error(plain);
    // A USE may have run before the error.
    if consequences.uses_schema() || plain.forgets_schema {
        server.schema = SchemaKnown::No;
    }
    if plain.forgets_prepared {
        server.prepared.forget_names();
    }
}

fn handle_accepted(
    then: Then,
    (prepared, told): (Option<PrepareOk>, Option<&[u8]>),
    (negotiated, server, facts): (&Negotiated, &mut ServerSide, &ServerFacts),
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
        Then::PrepareName(name, description) => {
            server.prepared.insert_name(&name, description);
        }
        Then::ResetStatement(id) => {
            if let Some(statement) = server.prepared.get_mut(id) {
                statement.long_data = None;
                statement.ended_cursor = None;
            }
        }
        Then::ResetConnection => {
            let charset = server.charset_after_reset(negotiated.charset, facts);
            server.start(charset, Some(server.transaction.flags()), facts);
            who.forget();
        }
        Then::Schema(schema) => {
            // Nothing but this names a schema in it, so what the server tells is its last word.
            let schema = told.unwrap_or(&schema);
            let charset = if told.is_some() { Charset::Plain } else { server.mode.charset };
            server.schema = use_schema(schema, told, charset, who);
        }
    }
    None
}

/// A schema was named, and the server has told that it is the default one, or nothing: it knows the
/// name in utf8, and in lower case where it has them so. A client may have switched off that it tells
/// within the text, ahead of another USE.
fn use_schema(named: &[u8], told: Option<&[u8]>, charset: Charset, who: &mut Who) -> SchemaKnown {
    who.use_schema(told.unwrap_or(named));
    let certain = match told {
        Some(told) => told.eq_ignore_ascii_case(named),
        None => charset.keeps_name(named),
    };
    if certain {
        return SchemaKnown::Certain;
    }
    who.doubt_schema();
    SchemaKnown::No
}

fn handle_consequences(
    consequences: &mut Consequences,
    told: Option<&[u8]>,
    server: &mut ServerSide,
    who: &mut Who,
) -> Option<Kill> {
    let Consequences { plain, rare, any: _ } = consequences;
    let charset = if plain.set_charset.is_none() { server.mode.charset } else { Charset::Unknown };
    server.mode = server.mode.after_ok(plain);
    if plain.forgets_prepared {
        server.prepared.forget_names();
    }
    if plain.takes.tables {
        server.cut_over = rare.as_mut().and_then(|rare| rare.cut_over.take()).map(Box::new);
    }
    if let Some(rare) = rare.take() {
        if let Some(app) = rare.app {
            who.set_app(app.as_deref());
        }
        if let Some(schema) = rare.schema {
            let known = use_schema(&schema, told, charset, who);
            server.schema = if plain.forgets_schema { SchemaKnown::No } else { known };
        }
        if let Some(name) = rare.deallocate {
            server.prepared.remove_name(&name);
        }
    }
    plain.kill
}
