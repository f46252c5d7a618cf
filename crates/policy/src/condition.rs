//! Whom a rule matches.
//!
//! Conditions are ANDed, the values of one are ORed. The app is matched by its levels: a value
//! without `:` matches an app that has it as one of its levels, a value with `:` matches the whole
//! app. The same holds for prefixes.

use sql::{Class, ClassSet};

use crate::cidr::Cidr;
use crate::facts::Facts;
use crate::identity::SessionIdentity;
use crate::patterns::{Folded, Patterns};
use crate::shape::{Caution, ShapeNeeds, TablePatterns};

/// Whom a rule matches. Empty: everybody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    pub(crate) app: Option<Patterns>,
    pub(crate) user: Option<Patterns>,
    /// In lower case.
    pub(crate) schema: Option<Patterns>,
    /// By key, each key once.
    pub(crate) tags: Vec<(Box<[u8]>, Patterns)>,
    /// By key, each key once.
    pub(crate) attributes: Vec<(Box<[u8]>, Patterns)>,
    pub(crate) client: Option<Vec<Cidr>>,
    pub(crate) statements: Option<ClassSet>,
    /// Hashes of digest texts, ascending.
    pub(crate) digests: Option<Vec<u64>>,
    pub(crate) tables: Option<TablePatterns>,
}

impl Condition {
    /// The apps that it names as they are, not by a prefix.
    pub fn apps(&self) -> impl Iterator<Item = &[u8]> {
        self.app.iter().flat_map(|app| app.exact.iter().map(|app| &**app))
    }

    /// Whether all of it holds of a statement of this class, for a rule that is as cautious as it
    /// must be.
    pub(crate) fn matches(&self, facts: &Facts<'_>, class: Class, caution: Caution) -> bool {
        self.allows_class(class)
            && self.is_from(facts)
            && self.digests.as_ref().is_none_or(|digests| {
                facts.shape.digest.is_some_and(|digest| digests.binary_search(&digest).is_ok())
            })
            && self.tables.as_ref().is_none_or(|tables| {
                let tables_known = facts.knows_tables();
                facts.shape.tables.knowing_all(tables_known).matches(tables, caution)
            })
    }

    /// Whether what it says of who asks holds.
    pub(crate) fn is_from(&self, facts: &Facts<'_>) -> bool {
        let identity = facts.identity;
        self.app.as_ref().is_none_or(|app| app.matches_app(identity.app))
            && self
                .tags
                .iter()
                .all(|(key, values)| identity.tag(key).is_some_and(|value| values.matches(value)))
            && self.may_be_from(facts.session)
    }

    /// Whether what it says of app and user holds.
    pub(crate) fn names(&self, app: &[u8], user: &[u8]) -> bool {
        self.app.as_ref().is_none_or(|named| named.matches_app(app))
            && self.user.as_ref().is_none_or(|named| named.matches(user))
    }

    /// Whether what it says of the session holds, whatever its statement says of who asks.
    pub(crate) fn may_be_from(&self, session: &SessionIdentity) -> bool {
        self.user.as_ref().is_none_or(|user| user.matches(session.user()))
            && self
                .schema
                .as_ref()
                .is_none_or(|schema| schema.matches(Folded::of(session.schema()).name()))
            && self.attributes.iter().all(|(key, values)| {
                session.attribute(key).is_some_and(|value| values.matches(value))
            })
            && self.client.as_ref().is_none_or(|networks| {
                session
                    .client_bits()
                    .is_some_and(|address| networks.iter().any(|network| network.contains(address)))
            })
    }

    /// What it looks at in the text itself.
    pub(crate) fn needs(&self) -> ShapeNeeds {
        ShapeNeeds { digest: self.digests.is_some(), tables: self.tables.is_some() }
    }

    /// Whether statements of this class can match.
    pub(crate) fn allows_class(&self, class: Class) -> bool {
        self.statements.is_none_or(|classes| classes.contains(class))
    }
}
