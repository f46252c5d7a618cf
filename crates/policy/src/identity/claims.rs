//! Who may call itself what.
//!
//! `identity.claims` is a list. The first entry whose user and address fit the connection decides;
//! if none fits, nothing may be claimed; without the list, everything may.
//!
//! An entry allows an app if the whole of it is one of its `apps`, or if every level is that names
//! something, and there is at least one: levels that are UUID-like or numeric may be made up by
//! anybody. So who may claim `etl` may claim `7:etl`, but not `etl:online-ddl`. A prefix without
//! `:` is held against levels only.

use super::session_identity::SessionIdentity;
use crate::cidr::Cidr;
use crate::fnv::FnvMap;
use crate::label::named_levels;
use crate::patterns::Patterns;

/// Whose claims count, and which keys name the app.
#[derive(Debug, Clone, Default)]
pub struct IdentityPolicy {
    keys: Vec<Box<[u8]>>,
    /// `None`: everything may be claimed.
    claims: Option<Vec<Claim>>,
    /// Entries that name a user, by user; ascending.
    by_user: FnvMap<Box<[u8]>, Vec<usize>>,
    /// Entries with `*` or a prefix as user; ascending.
    by_pattern: Vec<usize>,
}

/// One entry of `identity.claims`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) users: Patterns,
    /// Empty: from anywhere.
    pub(crate) from: Vec<Cidr>,
    pub(crate) apps: Patterns,
}

impl IdentityPolicy {
    pub(crate) fn new(keys: Vec<Box<[u8]>>, claims: Option<Vec<Claim>>) -> Self {
        let mut policy = Self { keys, ..Self::default() };
        for (index, claim) in claims.iter().flatten().enumerate() {
            for user in &claim.users.exact {
                policy.by_user.entry(user.clone()).or_default().push(index);
            }
            if claim.users.present || !claim.users.prefixes.is_empty() {
                policy.by_pattern.push(index);
            }
        }
        policy.claims = claims;
        policy
    }

    /// The entries of `identity.claims`; `None`: everything may be claimed.
    pub(crate) fn claims(&self) -> Option<&[Claim]> {
        self.claims.as_deref()
    }

    /// The place of `key` among the keys that name the app.
    pub(crate) fn app_key_rank(&self, key: &[u8]) -> Option<usize> {
        self.keys.iter().position(|known| **known == *key)
    }

    /// Whether two policies say the same.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        // The others are made from the claims.
        let Self { keys, claims, by_user: _, by_pattern: _ } = self;
        *keys == other.keys && *claims == other.claims
    }

    /// The entry that decides for this connection.
    fn entry(&self, claims: &'_ [Claim], session: &SessionIdentity) -> Option<usize> {
        let user = session.user();
        let client = session.client_bits();
        let fits =
            |index: &&usize| claims.get(**index).is_some_and(|claim| claim.fits(user, client));
        let named = self.by_user.get(user).and_then(|list| list.iter().find(fits));
        let general = self.by_pattern.iter().find(fits);
        match (named, general) {
            (Some(named), Some(general)) => Some(*named.min(general)),
            (one, other) => one.or(other).copied(),
        }
    }
}

impl Claim {
    fn fits(&self, user: &[u8], client: Option<u128>) -> bool {
        // `*` is everybody, the anonymous user too.
        let user_fits = self.users.present || self.users.matches(user);
        let from = &self.from;
        user_fits
            && (from.is_empty()
                || client.is_some_and(|client| from.iter().any(|net| net.contains(client))))
    }

    fn allows(&self, app: &[u8]) -> bool {
        if self.apps.present || self.apps.exact.iter().any(|allowed| **allowed == *app) {
            return true;
        }
        let whole = |prefix: &[u8]| prefix.contains(&b':') && app.starts_with(prefix);
        if self.apps.prefixes.iter().any(|prefix| whole(prefix)) {
            return true;
        }
        named_levels(app).next().is_some()
            && named_levels(app).all(|level| self.apps.matches(level))
    }
}

/// The claims of one connection while one statement is looked at.
#[derive(Debug)]
pub(crate) struct Claims<'p> {
    policy: &'p IdentityPolicy,
    session: &'p SessionIdentity,
    /// Looked up at the first claim.
    entry: Option<Option<&'p Claim>>,
    refused: u32,
    /// The first of those.
    first_refused: Vec<u8>,
}

impl<'p> Claims<'p> {
    /// `buffer` is for the name of a claim that is not allowed.
    pub(crate) fn of(
        policy: &'p IdentityPolicy,
        session: &'p SessionIdentity,
        mut buffer: Vec<u8>,
    ) -> Self {
        buffer.clear();
        Self { policy, session, entry: None, refused: 0, first_refused: buffer }
    }

    /// Whether the connection may call itself that; counted if not.
    pub(crate) fn allow(&mut self, app: &[u8]) -> bool {
        let allowed = self.would_allow(app);
        if !allowed {
            if self.refused == 0 {
                self.first_refused.extend_from_slice(app);
            }
            self.refused = self.refused.saturating_add(1);
        }
        allowed
    }

    /// Whether the connection may call itself that.
    pub(crate) fn would_allow(&mut self, app: &[u8]) -> bool {
        let Some(claims) = &self.policy.claims else { return true };
        let Self { policy, session, .. } = *self;
        let entry = self.entry.get_or_insert_with(|| {
            policy.entry(claims, session).and_then(|index| claims.get(index))
        });
        entry.is_some_and(|claim| claim.allows(app))
    }

    /// How many claims were not allowed.
    pub(crate) fn refused(&self) -> u32 {
        self.refused
    }

    /// The first of those.
    pub(crate) fn into_first_refused(self) -> Vec<u8> {
        self.first_refused
    }
}
