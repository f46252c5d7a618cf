//! What rules refer to.

use jiff::tz::TimeZoneDatabase;

use crate::identity::IdentityPolicy;

/// What rules refer to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) clusters: &'c [String],
    pub(super) identity: &'c IdentityPolicy,
    pub(super) zones: &'c TimeZoneDatabase,
}
