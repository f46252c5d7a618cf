//! The stored functions of a server whose bodies write nothing.
//!
//! A text that calls functions is held like a CALL, unless the server's own list shows that all of
//! them are harmless. A body is harmless if it holds nothing but reads, control flow, assignments
//! to what it declares itself and to user variables, and calls to functions that are built in or
//! harmless themselves. Whatever is not understood makes a function one that writes.

mod body;
mod called;
mod changes;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    calls::{Callee, Calls},
    class::{Class, ClassSet},
    describe::Statement,
    mode::Server,
};

pub use called::Called;

/// Most functions that are looked at; with more on the server, none is harmless.
const ROUTINES_MAX: usize = 20_000;
/// Most bytes of bodies and names that are read; with more, none is harmless.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Functions that call functions are looked at this deep; what lies deeper is not harmless.
const DEPTH_MAX: u32 = 32;

/// What kind of routine it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineKind {
    /// A stored function.
    Function,
    /// A stored procedure.
    Procedure,
    /// A loadable function, which comes before a stored one of its name.
    Loadable,
    /// Anything else; MariaDB's packages, whose functions are called by qualified names.
    Other,
}

/// A row of `information_schema.routines`.
#[derive(Clone, Copy, Debug)]
pub struct Routine<'r> {
    /// `routine_type`.
    pub kind: RoutineKind,
    /// `routine_schema`; empty for a loadable function.
    pub schema: &'r [u8],
    /// `routine_name`.
    pub name: &'r [u8],
    /// What SHOW CREATE FUNCTION shows, in UTF-8, if it may be seen and `routine_body` is `SQL`.
    /// `routine_definition` will do for functions without literals and quoted names; with them it
    /// is not what was written, and the function counts as one that writes.
    pub body: Option<&'r [u8]>,
    /// `sql_mode`, in which the body is read.
    pub sql_mode: &'r [u8],
}

/// The functions that are harmless: none, to begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routines {
    /// By schema, as it is written: names in lower case.
    harmless: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    /// Names of loadable functions, in lower case.
    loadable: BTreeSet<Vec<u8>>,
    /// A qualified name may be one of a package.
    packages: bool,
}

impl Routines {
    /// Finds the harmless functions among the routines of `server`. All of them must be given: a
    /// function of a package hides one of another schema.
    pub fn read<'r>(server: Server, rows: impl IntoIterator<Item = Routine<'r>>) -> Self {
        let mut routines = Self::default();
        let mut candidates: Vec<Candidate<'r>> = Vec::new();
        let (mut count, mut bytes) = (0_usize, 0_usize);
        for row in rows {
            count = count.saturating_add(1);
            let sizes = [row.schema.len(), row.name.len(), row.body.map_or(0, <[u8]>::len)];
            bytes = sizes.into_iter().fold(bytes, usize::saturating_add);
            if count > ROUTINES_MAX || bytes > BYTES_MAX {
                return Self::default();
            }
            match row.kind {
                RoutineKind::Function => {
                    candidates.extend(Candidate::of(server, row));
                }
                RoutineKind::Procedure => {}
                RoutineKind::Loadable => {
                    routines.loadable.insert(row.name.to_ascii_lowercase());
                }
                RoutineKind::Other => routines.packages = true,
            }
        }
        routines.settle(&candidates);
        routines
    }

    /// How many functions are harmless.
    #[must_use]
    pub fn len(&self) -> usize {
        self.harmless.values().map(BTreeSet::len).sum()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the candidates that call only what is harmless already, again and again.
    fn settle(&mut self, candidates: &[Candidate<'_>]) {
        for _ in 0..DEPTH_MAX {
            let before = self.len();
            for one in candidates {
                let callee = |callee: Callee<'_>| self.is_harmless(callee, one.schema);
                if one.calls.are_all(one.body, callee) {
                    let names = self.harmless.entry(one.schema.to_vec()).or_default();
                    names.insert(one.name.clone());
                }
            }
            if self.len() == before {
                return;
            }
        }
    }

    fn is_harmless(&self, callee: Callee<'_>, default_schema: &[u8]) -> bool {
        let mut buffer = [0_u8; NAME_MAX];
        let Some(name) = buffer.get_mut(..callee.name.len()) else { return false };
        name.copy_from_slice(callee.name);
        name.make_ascii_lowercase();
        match callee.schema {
            Some(schema) => !self.packages && self.has(schema, name),
            None => !self.loadable.contains(&*name) && self.has(default_schema, name),
        }
    }

    fn has(&self, schema: &[u8], name: &[u8]) -> bool {
        self.harmless.get(schema).is_some_and(|names| names.contains(name))
    }
}

impl Statement<'_> {
    /// The classes as [`Statement::classes`] has them, without [`Class::Call`] if all that is
    /// called are functions that `routines` knows to write nothing. `schema` is the session's
    /// default schema, in which a name without one is looked up.
    #[must_use]
    pub fn classes_with(&self, routines: &Routines, schema: &[u8]) -> ClassSet {
        let harmless = self.classes.contains(Class::Call)
            && self.calls_only(|callee| routines.is_harmless(callee, schema));
        if harmless { self.classes.without(Class::Call) } else { self.classes }
    }
}

/// Longest name of a routine, in bytes.
const NAME_MAX: usize = 64;

/// A function whose body writes nothing by itself.
struct Candidate<'r> {
    schema: &'r [u8],
    /// In lower case.
    name: Vec<u8>,
    body: &'r [u8],
    calls: Calls,
}

impl<'r> Candidate<'r> {
    /// The servers compare names of routines without regard to case and accents: only ASCII is
    /// certain to be folded as they do it.
    fn of(server: Server, row: Routine<'r>) -> Option<Self> {
        let body = row.body?;
        let plain = row.name.is_ascii() && !row.name.is_empty() && row.name.len() <= NAME_MAX;
        let calls = plain.then(|| body::calls(server, row.sql_mode, body)).flatten()?;
        Some(Self { schema: row.schema, name: row.name.to_ascii_lowercase(), body, calls })
    }
}

#[cfg(test)]
mod tests;
