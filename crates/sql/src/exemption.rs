//! Statements that no rule holds back, although their class could be.

use crate::{
    class::{Class, ClassSet},
    lexer::Reading,
    mode::LexMode,
    named_locks::sole_call,
    seen::{Seen, is_metadata_schema, is_system_schema},
    tables::{Completeness, TableRef, find_tables},
};

/// Why a text is no admission point although its class is.
///
/// Only what is certain exempts: if one table of the text may be another, there is no exemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exemption {
    /// Every table that the text names is in `performance_schema`, `information_schema` or `sys`,
    /// and nothing is written but to `performance_schema`, of which nothing reaches a replica.
    SystemSchema,
    /// Every table that it names, and it writes, is a changelog of gh-ost, `_*_ghc`. It exempts a
    /// connection that is gh-ost, nobody else.
    GhostChangelog,
    /// One SELECT or DO of GET_LOCK() or of another function of its family, and of nothing else.
    AdvisoryLock,
    /// RENAME TABLE, alone or beside other statements that no rule can hold.
    RenameTable,
}

impl Exemption {
    /// Every exemption.
    pub const ALL: [Self; 4] =
        [Self::SystemSchema, Self::GhostChangelog, Self::AdvisoryLock, Self::RenameTable];

    /// Its name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SystemSchema => "system_schema",
            Self::GhostChangelog => "ghost_changelog",
            Self::AdvisoryLock => "advisory_lock",
            Self::RenameTable => "rename_table",
        }
    }

    /// The exemption of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|exemption| exemption.as_str() == name)
    }
}

/// The exemption of `text`, which was read as `seen`.
pub(crate) fn of(
    text: &[u8],
    mode: LexMode,
    reading: Reading,
    seen: &Seen<'_>,
) -> Option<Exemption> {
    let gateable: ClassSet =
        Class::ALL.into_iter().filter(|c| c.is_gateable() && seen.classes.contains(*c)).collect();
    if gateable.is_empty() {
        return seen.hints.rename.then_some(Exemption::RenameTable);
    }
    let only = |class: Class| gateable == ClassSet::default().with(class);
    // Whatever is called may write anywhere.
    if seen.classes.contains(Class::Call) {
        return None;
    }
    let (mut any, mut system, mut metadata, mut changelog) = (false, true, true, true);
    let completeness = find_tables(text, mode, reading, |table: TableRef<'_>| {
        any = true;
        system &= table.schema.is_some_and(is_system_schema);
        metadata &= table.schema.is_some_and(is_metadata_schema);
        changelog &= is_changelog(table.name);
    });
    if completeness != Completeness::Complete {
        return None;
    }
    if !any {
        let lock = seen.hints.lock_function && only(Class::Read) && seen.count == 1;
        let sole = lock && sole_call(text, mode, reading).is_some();
        return sole.then_some(Exemption::AdvisoryLock);
    }
    // `sys.sys_config` is a table like any other, and replicated.
    if metadata || (system && only(Class::Read)) {
        return Some(Exemption::SystemSchema);
    }
    (changelog && only(Class::Write)).then_some(Exemption::GhostChangelog)
}

/// `_*_ghc`, with something between the underscores.
fn is_changelog(name: &[u8]) -> bool {
    name.strip_prefix(b"_")
        .and_then(|name| name.strip_suffix(b"_ghc"))
        .is_some_and(|n| !n.is_empty())
}

#[cfg(test)]
mod tests;
