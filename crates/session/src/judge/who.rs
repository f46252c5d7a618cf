//! Who asks.

use policy::identity::{SessionIdentity, Source, TraceId};
use sql::Tool;

use super::memo::{Kept, Remembered};
use super::replace;

/// Who the session is, and who its last statement said it was.
#[derive(Debug, Default)]
pub(crate) struct Who {
    pub(super) identity: SessionIdentity,
    /// Counts whatever changes who the session is or which rules hold: what was remembered in
    /// another generation is void.
    generation: u64,
    pub(super) said: LastStatement,
}

/// What a statement says about who it comes from.
#[derive(Debug, Default)]
pub(super) struct LastStatement {
    /// The app of the statement under way, or of the last one.
    app: Vec<u8>,
    /// How often that has changed.
    app_changes: u64,
    /// Who named that app.
    source: Option<Source>,
    /// The tool that it names and may name.
    tool: Option<Tool>,
    /// The trace that it says it belongs to, if it asks or is denied.
    trace: Option<TraceId>,
    /// What stands for its tags that insights keep.
    pub(super) tags: u64,
    /// Claims that were ignored and have not been counted.
    claims_refused: u32,
    /// The last of those that were.
    refused: Vec<u8>,
}

impl LastStatement {
    pub(super) fn note(
        &mut self,
        app: &[u8],
        source: Option<Source>,
        tool: Option<Tool>,
        trace: Option<TraceId>,
    ) {
        if self.app != app {
            replace(&mut self.app, app);
            self.app_changes = self.app_changes.wrapping_add(1);
        }
        self.source = source;
        self.tool = tool;
        self.trace = trace;
    }

    /// As it was said when this was remembered. Names lie apart from the session, where looking costs
    /// more than comparing: while none has changed since, they are not looked at.
    pub(super) fn note_again(&mut self, last: &mut Remembered, kept: &Kept) {
        if last.app_changes == self.app_changes {
            (self.source, self.tool, self.trace) = (kept.source, kept.tool, kept.trace);
        } else {
            self.note(last.app(), kept.source, kept.tool, kept.trace);
            last.app_changes = self.app_changes;
        }
        self.tags = kept.tags;
    }

    /// How often its app has changed.
    pub(super) fn app_changes(&self) -> u64 {
        self.app_changes
    }

    /// So many claims were ignored, and the first of them was this one.
    pub(super) fn note_refused(&mut self, claims: u32, first: &[u8]) {
        if claims > 0 {
            self.claims_refused = self.claims_refused.saturating_add(claims);
            replace(&mut self.refused, first);
        }
    }
}

impl Who {
    pub(crate) fn identity(&self) -> &SessionIdentity {
        &self.identity
    }

    /// The tool that the statement under way names and may name.
    pub(super) fn tool(&self) -> Option<Tool> {
        self.said.tool
    }

    /// The trace that the statement under way says it belongs to.
    pub(crate) fn trace(&self) -> Option<TraceId> {
        self.said.trace
    }

    /// What stands for the tags of the statement under way that insights keep.
    pub(crate) fn tags(&self) -> u64 {
        self.said.tags
    }

    pub(crate) fn app(&self) -> &[u8] {
        &self.said.app
    }

    /// Who named that app; none before the first statement.
    pub(crate) fn source(&self) -> Option<Source> {
        self.said.source
    }

    /// Changes whenever the user, the schema or what the session has said of itself do.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Changes whenever the user, the schema or the app do, and is never again what it was.
    pub(crate) fn naming(&self) -> u64 {
        self.generation.wrapping_add(self.said.app_changes)
    }

    /// What was remembered is void.
    pub(crate) fn renew(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Somebody is about to log in, or has.
    pub(crate) fn become_user(&mut self, identity: SessionIdentity) {
        self.identity = identity;
        self.renew();
    }

    /// COM_RESET_CONNECTION: what was learned after the login is forgotten.
    pub(crate) fn forget(&mut self) {
        self.identity.forget();
        self.renew();
    }

    /// The default schema is this one.
    pub(crate) fn use_schema(&mut self, schema: &[u8]) {
        if self.identity.schema() != schema || self.identity.doubts_schema() {
            self.identity.handle_schema(schema);
            self.renew();
        }
    }

    /// The default schema may be another one than is known.
    pub(crate) fn doubt_schema(&mut self) {
        self.identity.doubt_schema();
        self.renew();
    }

    /// `SET @sluice_app`.
    pub(crate) fn set_app(&mut self, app: Option<&[u8]>) {
        self.identity.handle_set_app(app);
        self.renew();
    }

    /// A tool that names itself in some statements only is who sends the others too.
    pub(super) fn stick_to_tool(&mut self) {
        if let Some(tool) = self.said.tool
            && tool.keeps_connection()
            && self.identity.handle_tool_seen(tool)
        {
            self.renew();
        }
    }

    /// Whether claims of the statement under way were ignored.
    pub(super) fn has_refused_claims(&self) -> bool {
        self.said.claims_refused > 0
    }

    /// What the last claim that was ignored wanted to be.
    pub(crate) fn refused_claim(&self) -> &[u8] {
        &self.said.refused
    }

    /// The claims that were ignored since this was last called.
    pub(crate) fn take_refused_claims(&mut self) -> u32 {
        std::mem::take(&mut self.said.claims_refused)
    }
}
