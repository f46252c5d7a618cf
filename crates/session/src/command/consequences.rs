//! What a statement changes in its session when the server accepts it, kept until the answer is in.

use std::sync::Arc;

use sql::{AppSetting, Effects, Kill, PlainEffects};
use wire::response_tracker::{Prepared as PrepareOk, ResponseEnd};

use super::{Running, Then};
use crate::prepared::Description;
use crate::session::Session;

/// The effects of a statement without its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consequences {
    /// What is copied without allocating.
    pub(crate) plain: PlainEffects,
    /// What few statements have.
    pub(crate) rare: Option<Box<Rare>>,
}

/// Effects that carry text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    /// `SET @sluice_app`: the new value, or none.
    pub(crate) app: Option<Option<Vec<u8>>>,
    /// `USE`.
    pub(crate) schema: Option<Vec<u8>>,
    /// `PREPARE name FROM …`.
    pub(crate) prepare: Option<(Vec<u8>, Arc<Description>)>,
    /// `DEALLOCATE PREPARE name`.
    pub(crate) deallocate: Option<Vec<u8>>,
}

impl Consequences {
    /// Keeps the effects; `prepare` is what SQL `PREPARE` prepares.
    pub(crate) fn of(effects: &Effects<'_>, prepare: Option<(Vec<u8>, Arc<Description>)>) -> Self {
        let has_text = effects.set_app.is_some()
            || effects.use_schema.is_some()
            || effects.deallocate.is_some()
            || prepare.is_some();
        let rare = has_text.then(|| {
            Box::new(Rare {
                app: effects.set_app.map(app_of),
                schema: effects.use_schema.map(<[u8]>::to_vec),
                prepare,
                deallocate: effects.deallocate.map(<[u8]>::to_vec),
            })
        });
        Self { plain: effects.plain, rare }
    }
}

fn app_of(setting: AppSetting<'_>) -> Option<Vec<u8>> {
    match setting {
        AppSetting::Named(text) => {
            let mut app = Vec::new();
            text.unescape_into(&mut app);
            Some(app)
        }
        // What cannot be read names nobody: the next source of identity speaks.
        AppSetting::Cleared | AppSetting::Unreadable => None,
    }
}

impl Session {
    /// The answer of a command is over. Returns a KILL that the server has accepted.
    pub(crate) fn handle_end(
        &mut self,
        running: Running,
        end: Option<&ResponseEnd>,
    ) -> Option<Kill> {
        let end = end?;
        let Running { statement, ran, consequences, then } = running;
        if statement.is_some() {
            self.transaction.handle_end(end, ran, &consequences.plain);
        } else if let Some(flags) = end.status {
            self.transaction.handle_flags(flags);
        }
        if end.status.is_some() {
            let flags = self.transaction.flags();
            self.mode.no_backslash_escapes = flags.no_backslash_escapes().into();
            if self.server_capabilities.is_mariadb_server() {
                self.mode.ansi_quotes = flags.ansi_quotes().into();
            }
        }
        self.follow_session_changes();
        if end.error.is_some() {
            self.handle_failed(&consequences, &then);
            return None;
        }
        let killed = self.handle_accepted(then, end.prepared);
        self.handle_consequences(consequences).or(killed)
    }

    /// What the server said about its session (CLIENT_SESSION_TRACK).
    fn follow_session_changes(&mut self) {
        if let Some(schema) = self.tracker.schema()
            && self.identity.schema() != schema
        {
            self.identity.handle_schema(schema);
            self.generation = self.generation.wrapping_add(1);
        }
        if let Some(charset) = self.tracker.charset_client() {
            self.mode.charset = sql::Charset::from_name(charset);
        }
    }

    fn handle_failed(&mut self, consequences: &Consequences, then: &Then) {
        if let Then::Prepare(_) = then {
            self.prepared.handle_prepare_failed();
        }
        self.mode = self.mode.after_error(&consequences.plain);
        if consequences.plain.forgets_prepared {
            self.prepared.forget_names();
        }
        if let Some((name, _)) = consequences.rare.as_ref().and_then(|rare| rare.prepare.as_ref()) {
            self.prepared.remove_name(name);
        }
    }

    fn handle_accepted(&mut self, then: Then, prepared: Option<PrepareOk>) -> Option<Kill> {
        match then {
            Then::Nothing => {}
            Then::Kill(id) => {
                return Some(Kill { connection_id: u64::from(id), query_only: false });
            }
            Then::Prepare(description) => {
                if let Some(ok) = prepared {
                    self.prepared.insert(ok.statement_id, Arc::new(*description), ok.num_params);
                }
            }
            Then::ResetStatement(id) => {
                if let Some(statement) = self.prepared.get_mut(id) {
                    statement.long_data = false;
                }
            }
            Then::ResetConnection => {
                let flags = self.transaction.flags();
                self.transaction.start(flags);
                self.identity.forget();
                self.reset_mode();
                self.forget_statements();
            }
            Then::Schema(schema) => {
                self.identity.handle_schema(&schema);
                self.generation = self.generation.wrapping_add(1);
            }
        }
        None
    }

    fn handle_consequences(&mut self, consequences: Consequences) -> Option<Kill> {
        let Consequences { plain, rare } = consequences;
        // The flags of the answer have told of backslashes already.
        let no_backslash_escapes = self.mode.no_backslash_escapes;
        self.mode = sql::LexMode { no_backslash_escapes, ..self.mode.after_ok(&plain) };
        if plain.forgets_prepared {
            self.prepared.forget_names();
        }
        if let Some(rare) = rare {
            if let Some(app) = rare.app {
                self.identity.handle_set_app(app.as_deref());
            }
            if let Some(schema) = rare.schema {
                self.identity.handle_schema(&schema);
            }
            if let Some((name, description)) = rare.prepare {
                self.prepared.insert_name(&name, description);
            }
            if let Some(name) = rare.deallocate {
                self.prepared.remove_name(&name);
            }
            self.generation = self.generation.wrapping_add(1);
        }
        plain.kill
    }

    /// COM_RESET_CONNECTION and COM_CHANGE_USER drop every prepared statement.
    pub(crate) fn forget_statements(&mut self) {
        self.prepared.clear();
        self.generation = self.generation.wrapping_add(1);
    }
}
