//! Who is asking.
//!
//! Theory. A client names itself in several places; they are asked in a fixed order, and the first
//! that names an app *which this client may claim* wins: query attributes, comments of the
//! statement (tags, then known tools), the session (`SET @sluice_app`, then the tool last seen on
//! it), connection attributes, the MySQL user. The user is not a claim, the server has checked it.
//! A claim that is not allowed is counted, and the next source speaks.
//!
//! Tags from all sources merge in the same order, the first wins for each key; connection
//! attributes are the last. Keys that name the app are no tags: a rule on a tag would otherwise see
//! claims that were refused.
//!
//! Whatever is too long, empty or holds control characters is as good as absent.

mod app;
mod claims;
mod session_identity;
mod trace;
mod user_name;

use sql::Tool;

use self::app::is_app;
pub use self::app::{APP_LEN_MAX, APP_LEVELS_MAX};
pub use self::claims::IdentityPolicy;
pub(crate) use self::claims::{Claim, Claims};
pub use self::session_identity::SessionIdentity;
use self::trace::TRACEPARENT;
pub use self::trace::TraceId;
pub use self::user_name::{NamedIn, UnreadableUser, user_as_read};

/// Most tags of one statement, from query attributes and comments together.
const TAGS_MAX: usize = 64;
/// Longest key of a tag, and longest value.
const TAG_PART_LEN_MAX: usize = 255;

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// Levels joined by `:`, most specific first. Empty only for an anonymous user.
    pub app: &'a [u8],
    /// Who named it.
    pub source: Source,
    /// Claims that were ignored on the way.
    pub refused_claims: u32,
    /// The first of them.
    pub refused_claim: &'a [u8],
    /// The tool that this statement's comment names, if it may be claimed: see
    /// [`SessionIdentity::handle_tool_seen`].
    pub tool_seen: Option<Tool>,
    tags: Tags<'a>,
    session: &'a SessionIdentity,
    policy: &'a IdentityPolicy,
}

/// Who named the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A query attribute.
    QueryAttribute,
    /// A tag in a comment.
    Comment,
    /// The comment of a known tool.
    Tool,
    /// `SET @sluice_app`.
    SessionVariable,
    /// The tool last seen on the connection.
    StickyTool,
    /// `sluice_app`, or the basename of `program_name`.
    ConnectionAttribute,
    /// Nobody but the server: the MySQL user.
    User,
}

impl Source {
    /// The name in logs and answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QueryAttribute => "query_attribute",
            Self::Comment => "comment",
            Self::Tool => "tool",
            Self::SessionVariable => "session_variable",
            Self::StickyTool => "sticky_tool",
            Self::ConnectionAttribute => "connection_attribute",
            Self::User => "user",
        }
    }
}

impl<'a> Identity<'a> {
    /// The value of a tag.
    #[must_use]
    pub fn tag(&self, key: &[u8]) -> Option<&'a [u8]> {
        let attribute = || {
            let names_app = self.policy.app_key_rank(key).is_some();
            if names_app { None } else { self.session.attribute(key) }
        };
        self.tags.find(key).or_else(attribute)
    }

    /// The trace that the statement says it belongs to. What the connection says was true when it
    /// was opened, if ever.
    #[must_use]
    pub fn trace_id(&self) -> Option<TraceId> {
        self.tags.find(TRACEPARENT).and_then(TraceId::of_traceparent)
    }

    /// All tags: those of the statement, then connection attributes with other keys.
    pub fn tags(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let Self { tags, session, policy, .. } = *self;
        let attributes = session
            .attributes()
            .filter(move |(key, _)| tags.find(key).is_none() && policy.app_key_rank(key).is_none());
        tags.iter().chain(attributes)
    }
}

/// Finds out who asks with this statement.
///
/// `query_attributes`, `statement_tags` and `tool` are what the command says about itself, in the
/// client's order. Nothing is allocated once `scratch` is warm.
#[expect(
    clippy::too_many_arguments,
    reason = "one argument for each source of identity, and the buffer"
)]
pub fn resolve<'a, 'q, 't>(
    policy: &'a IdentityPolicy,
    session: &'a SessionIdentity,
    query_attributes: impl Iterator<Item = (&'q [u8], &'q [u8])>,
    statement_tags: impl Iterator<Item = (&'t [u8], &'t [u8])>,
    tool: Option<Tool>,
    scratch: &'a mut IdentityScratch,
) -> Identity<'a> {
    resolve_with(policy, session, query_attributes, statement_tags, tool, scratch)
}

/// [`resolve`] where the values of query attributes are made as they are read: integers are text
/// nowhere before.
#[expect(
    clippy::too_many_arguments,
    reason = "one argument for each source of identity, and the buffer"
)]
pub fn resolve_with<'a, 'q, 't, V: AsRef<[u8]>>(
    policy: &'a IdentityPolicy,
    session: &'a SessionIdentity,
    query_attributes: impl Iterator<Item = (&'q [u8], V)>,
    statement_tags: impl Iterator<Item = (&'t [u8], &'t [u8])>,
    tool: Option<Tool>,
    scratch: &'a mut IdentityScratch,
) -> Identity<'a> {
    let mut claims = Claims::of(policy, session, std::mem::take(&mut scratch.refused));
    scratch.clear();
    let mut source = scratch
        .read(policy, query_attributes)
        .filter(|()| claims.allow(&scratch.app))
        .map(|()| Source::QueryAttribute);
    // What has won already stays in the buffer, but tags are read all the same.
    let kept = if source.is_some() { KeepsApp::Yes } else { KeepsApp::No };
    let named = scratch.read_keeping(policy, statement_tags, kept);
    if source.is_none() && named.is_some() && claims.allow(&scratch.app) {
        source = Some(Source::Comment);
    }
    let tool_seen = tool.filter(|tool| match source {
        // Not a claim to this statement's app, so a refused one is not counted.
        Some(_) => claims.would_allow(tool.as_str().as_bytes()),
        None => claims.allow(tool.as_str().as_bytes()),
    });
    let (app, source) = match (source, tool_seen) {
        (Some(source), _) => (None, source),
        (None, Some(tool)) => (Some(tool.as_str().as_bytes()), Source::Tool),
        (None, None) => {
            let (app, source) = session_app(session, &mut claims);
            (Some(app), source)
        }
    };
    let refused_claims = claims.refused();
    scratch.refused = claims.into_first_refused();
    let scratch = &*scratch;
    Identity {
        app: app.unwrap_or(&scratch.app),
        source,
        refused_claims,
        refused_claim: &scratch.refused,
        tool_seen,
        tags: scratch.tags(),
        session,
        policy,
    }
}

/// Who asks with the app it was given, and nothing else: somebody outside of any session, of whom
/// no claim is checked. `None`: these bytes cannot name an app.
#[must_use]
pub fn named<'a>(
    policy: &'a IdentityPolicy,
    session: &'a SessionIdentity,
    app: &'a [u8],
) -> Option<Identity<'a>> {
    is_app(app).then_some(Identity {
        app,
        source: Source::QueryAttribute,
        refused_claims: 0,
        refused_claim: &[],
        tool_seen: None,
        tags: Tags { bytes: &[], spans: &[] },
        session,
        policy,
    })
}

/// Who asked, as it was written down: the app that was found then, with the tags that were kept. No
/// claim is checked.
pub(crate) fn recorded<'a>(
    policy: &'a IdentityPolicy,
    session: &'a SessionIdentity,
    (app, tool_seen): (&'a [u8], Option<Tool>),
    tags: &[(&[u8], &[u8])],
    scratch: &'a mut IdentityScratch,
) -> Identity<'a> {
    scratch.clear();
    for (key, value) in tags {
        scratch.push(key, value);
    }
    Identity {
        app,
        source: Source::User,
        refused_claims: 0,
        refused_claim: &[],
        tool_seen,
        tags: scratch.tags(),
        session,
        policy,
    }
}

/// What the session says of itself.
fn session_app<'a>(session: &'a SessionIdentity, claims: &mut Claims<'_>) -> (&'a [u8], Source) {
    let sticky = session.sticky().map(|tool| tool.as_str().as_bytes());
    let sources = [
        (session.set_app(), Source::SessionVariable),
        (sticky, Source::StickyTool),
        (session.attribute_app(), Source::ConnectionAttribute),
    ];
    for (app, source) in sources {
        if let Some(app) = app
            && claims.allow(app)
        {
            return (app, source);
        }
    }
    (session.user(), Source::User)
}

/// The buffers of [`resolve`], to be kept for the next statement.
#[derive(Debug, Default)]
pub struct IdentityScratch {
    app: Vec<u8>,
    bytes: Vec<u8>,
    spans: Vec<TagSpan>,
    /// The first claim that was ignored.
    refused: Vec<u8>,
}

/// Bytes and tags that an idle connection keeps: those of ordinary statements.
const SCRATCH_KEPT_LEN: usize = 512;
const SCRATCH_KEPT_TAGS: usize = 16;

/// A key in the buffer, and right behind it its value.
#[derive(Debug, Clone, Copy)]
struct TagSpan {
    start: usize,
    middle: usize,
    end: usize,
}

/// Whether the app that has been read must stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeepsApp {
    Yes,
    No,
}

impl IdentityScratch {
    /// Gives back what statements with long comments have grown. For connections that are idle.
    pub fn shrink(&mut self) {
        if self.bytes.capacity() > SCRATCH_KEPT_LEN || self.spans.capacity() > SCRATCH_KEPT_TAGS {
            *self = Self::default();
        }
    }

    fn clear(&mut self) {
        self.app.clear();
        self.bytes.clear();
        self.spans.clear();
    }

    fn read<'p, V: AsRef<[u8]>>(
        &mut self,
        policy: &IdentityPolicy,
        pairs: impl Iterator<Item = (&'p [u8], V)>,
    ) -> Option<()> {
        self.read_keeping(policy, pairs, KeepsApp::No)
    }

    /// Reads the tags of one source, and its app unless one is to be kept: the value of the key
    /// that comes first in the configured order. Whether there was one.
    fn read_keeping<'p, V: AsRef<[u8]>>(
        &mut self,
        policy: &IdentityPolicy,
        pairs: impl Iterator<Item = (&'p [u8], V)>,
        keeps: KeepsApp,
    ) -> Option<()> {
        let mut best = None;
        for (key, value) in pairs {
            let value = value.as_ref();
            match policy.app_key_rank(key) {
                Some(rank) => {
                    let better = best.is_none_or(|best| rank < best);
                    if keeps == KeepsApp::No && better && is_app(value) {
                        best = Some(rank);
                        self.app.clear();
                        self.app.extend_from_slice(value);
                    }
                }
                None => self.push(key, value),
            }
        }
        best.map(|_| ())
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        let fits = |part: &[u8]| !part.is_empty() && part.len() <= TAG_PART_LEN_MAX;
        if self.spans.len() >= TAGS_MAX
            || !fits(key)
            || !fits(value)
            || self.tags().find(key).is_some()
        {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.spans.push(TagSpan { start, middle, end: self.bytes.len() });
    }

    fn tags(&self) -> Tags<'_> {
        Tags { bytes: &self.bytes, spans: &self.spans }
    }
}

/// Tags of one statement.
#[derive(Debug, Clone, Copy)]
struct Tags<'a> {
    bytes: &'a [u8],
    spans: &'a [TagSpan],
}

impl<'a> Tags<'a> {
    fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let Self { bytes, spans } = self;
        spans.iter().filter_map(|span| {
            let key = bytes.get(span.start..span.middle)?;
            Some((key, bytes.get(span.middle..span.end)?))
        })
    }

    fn find(self, key: &[u8]) -> Option<&'a [u8]> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests;
