//! What one reading of a text found, and which names make it exempt.

use crate::{calls::Calls, class::ClassSet, effects::Effects};

/// What one reading of a text found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'t> {
    pub(crate) classes: ClassSet,
    pub(crate) count: u32,
    pub(crate) effects: Effects<'t>,
    pub(crate) hints: Hints,
    pub(crate) calls: Calls,
    pub(crate) unsure: bool,
    pub(crate) broken: bool,
    /// A statement of the text begins with one of the verbs that only names and words of the text
    /// matter to.
    pub(crate) ordinary: bool,
}

/// Words that make an exemption possible.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints {
    pub(crate) system_schema: bool,
    pub(crate) changelog: bool,
    pub(crate) lock_function: bool,
    pub(crate) rename: bool,
}

impl Hints {
    pub(crate) fn any(self) -> bool {
        self.system_schema || self.changelog || self.lock_function || self.rename
    }
}

/// The schemas that a statement may read without being held back.
pub(crate) fn is_system_schema(name: &[u8]) -> bool {
    name == b"sys" || is_metadata_schema(name)
}

/// The schemas that hold no data of anybody's. Where the file system tells cases apart, so do the
/// servers: `SYS` is another schema, and with MariaDB so is `PERFORMANCE_SCHEMA`. Anybody may
/// have made those.
pub(crate) fn is_metadata_schema(name: &[u8]) -> bool {
    name == b"performance_schema" || name.eq_ignore_ascii_case(b"information_schema")
}
