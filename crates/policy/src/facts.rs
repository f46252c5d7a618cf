//! What rules look at.

use sql::{Class, ClassSet, Exemption};

use crate::identity::{Identity, SessionIdentity};
use crate::shape::Shape;
use crate::time::UnixTime;

/// One statement, and who sends it.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f> {
    /// Who asks.
    pub identity: &'f Identity<'f>,
    /// On which connection.
    pub session: &'f SessionIdentity,
    /// The classes of all statements of the text. None at all: it could not be read.
    pub classes: ClassSet,
    /// Why nothing may hold the text back although its class is one that can be.
    pub exemption: Option<Exemption>,
    /// What the text is about; read as far as [`crate::Rules::shape_needs`] says.
    pub shape: Shape<'f>,
    /// The wall clock.
    pub now: UnixTime,
}

impl Facts<'_> {
    /// The class that the text counts as: its strictest one.
    #[must_use]
    pub fn class(&self) -> Class {
        self.classes.strictest().unwrap_or(Class::Unknown)
    }

    /// Whether the text names all tables that it is about: what is called may be about any.
    #[must_use]
    pub fn knows_tables(&self) -> bool {
        self.shape.knows_tables() && !self.classes.contains(Class::Call)
    }

    /// Whether a rule that looks at statements of these classes only may look at this one.
    pub(crate) fn may_be_of(&self, named: ClassSet) -> bool {
        named.intersects(self.classes)
            || named.contains(self.class())
            || (self.classes.is_denied_as_ddl() && named.contains(Class::Ddl))
    }
}
