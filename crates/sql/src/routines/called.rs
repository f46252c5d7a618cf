//! The functions that a text calls, kept longer than the text.

use super::{NAME_MAX, Routines};
use crate::{calls::Callee, class::Class, describe::Statement};

/// The functions that a text calls, without the text: a few, with names that a server may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called(Box<[Function]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    schema: Option<Box<[u8]>>,
    name: Box<[u8]>,
}

impl Called {
    /// Whether `routines` knows all of them to write nothing. `schema` is the default schema of
    /// the time at which the text was prepared: there the servers look up a name without one,
    /// whenever it is executed.
    #[must_use]
    pub fn are_harmless(&self, routines: &Routines, schema: &[u8]) -> bool {
        self.0.iter().all(|Function { schema: own, name }| {
            routines.is_harmless(Callee { schema: own.as_deref(), name }, schema)
        })
    }

    /// What it takes, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let names = self.0.iter().map(|Function { schema, name }| {
            schema.as_ref().map_or(0, |schema| schema.len()).saturating_add(name.len())
        });
        let names = names.fold(0, usize::saturating_add);
        size_of::<Function>().saturating_mul(self.0.len()).saturating_add(names)
    }
}

impl Statement<'_> {
    /// What is called, if it is nothing but functions that some list of routines may know to write
    /// nothing: for [`Called::are_harmless`] in place of [`Statement::classes_with`].
    #[must_use]
    pub fn called(&self) -> Option<Called> {
        if !self.classes.contains(Class::Call) {
            return None;
        }
        let own = |part: &[u8]| (part.len() <= NAME_MAX).then(|| part.into());
        let keep = |Callee { schema, name }: Callee<'_>| {
            let schema = match schema {
                Some(schema) => Some(own(schema)?),
                None => None,
            };
            Some(Function { schema, name: own(name)? })
        };
        self.callees()?.into_iter().map(keep).collect::<Option<_>>().map(Called)
    }
}
