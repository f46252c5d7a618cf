//! What guard rails look at in a text: an UPDATE or DELETE without a WHERE, a join without a
//! condition, a list of IN.
//!
//! Theory. The walk knows clauses, not expressions: at each depth of brackets it keeps which query
//! block it is in, in which clause of that, and which joins still wait for their ON. A word counts
//! only at the depth of its own block, so that the WHERE of a subquery filters nothing but the
//! subquery. A text is judged where all of its readings agree; where they do not, where a compound
//! statement or a stored program begins, and where text comes from a variable, nothing is said but
//! that it was not judged ([`Unjudged`]).
//!
//! It is one pass, without allocation once as much nesting has been seen, but for the text in a
//! literal that PREPARE or EXECUTE IMMEDIATE names.

mod begin;
mod block;
mod clauses;
mod keyword;
mod walk;

use crate::{describe::Whole, lexer::Reading, mode::LexMode};
use block::Frames;
use walk::walk;

/// What guard rails look at in a text. Offsets are bytes from its beginning; of what stands in the
/// literal of a PREPARE or EXECUTE IMMEDIATE, that of the literal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    unfiltered: [[Option<Unfiltered>; 2]; 2],
    /// The first join without a condition in a query block without a WHERE: the word or the comma.
    pub cross_join: Option<u32>,
    /// The longest list of IN.
    pub in_list: Option<InList>,
    /// The first statement that defines or changes a schema. A temporary table is in none.
    pub ddl: Option<u32>,
    /// A temporary table that it makes.
    pub temporary: Option<Temporary>,
    /// Whether a query block has a FROM, other than FROM DUAL.
    pub has_from: bool,
    /// What could not be judged.
    pub unjudged: Unjudged,
}

/// What guard rails look at in a text to which none can object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanSurvey {
    has_from: bool,
}

impl From<CleanSurvey> for Survey {
    fn from(CleanSurvey { has_from }: CleanSurvey) -> Self {
        Self { has_from, ..Self::default() }
    }
}

/// An UPDATE or DELETE whose WHERE is not there, or says nothing of any column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfiltered {
    /// Where it begins.
    pub at: u32,
    /// Whether it is a DELETE; an UPDATE otherwise.
    pub deletes: bool,
    /// Whether it has a WHERE, of constants only.
    pub constant: bool,
}

/// A temporary table that a text makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporary {
    /// One, whose name without its schema, as it is written, begins there and has so many bytes.
    Named {
        /// Where.
        at: u32,
        /// How many.
        len: u32,
    },
    /// One of which the name cannot be told, or several.
    Unnamed,
}

/// A list of IN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InList {
    /// The IN.
    pub at: u32,
    /// Its elements.
    pub len: u32,
}

/// What could not be judged of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unjudged {
    /// Whether every UPDATE and DELETE has a WHERE.
    pub filters: bool,
    /// Whether every join has a condition.
    pub joins: bool,
    /// How long the lists of IN are.
    pub lists: bool,
    /// Whether it changes a schema.
    pub ddl: bool,
}

impl Unjudged {
    /// Nothing could.
    pub(crate) const ALL: Self = Self { filters: true, joins: true, lists: true, ddl: true };
}

/// What stands in for a WHERE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepts {
    /// A LIMIT does.
    pub limit: bool,
    /// A WHERE of constants only is one.
    pub constant: bool,
}

impl Survey {
    /// The first UPDATE or DELETE that a guard which accepts this objects to.
    #[must_use]
    pub fn unfiltered(&self, accepts: Accepts) -> Option<Unfiltered> {
        let [[bare, limited], [constant, constant_limited]] = self.unfiltered;
        let of = |found: Option<Unfiltered>, accepted: bool| found.filter(|_| !accepted);
        let found = [
            of(bare, false),
            of(limited, accepts.limit),
            of(constant, accepts.constant),
            of(constant_limited, accepts.limit || accepts.constant),
        ];
        found.into_iter().flatten().min_by_key(|found| found.at)
    }

    /// The same, if nothing was found that a guard could object to, whatever it accepts, and nothing
    /// was left unjudged.
    #[must_use]
    pub fn clean(&self) -> Option<CleanSurvey> {
        let Self { unfiltered, cross_join, in_list, ddl, temporary, has_from, unjudged } = self;
        let is_clean = unfiltered.iter().flatten().all(Option::is_none)
            && cross_join.is_none()
            && in_list.is_none()
            && ddl.is_none()
            && temporary.is_none()
            && *unjudged == Unjudged::default();
        is_clean.then_some(CleanSurvey { has_from: *has_from })
    }

    /// Nothing of the text could be judged.
    fn unread() -> Self {
        Self { has_from: true, unjudged: Unjudged::ALL, ..Self::default() }
    }

    fn note_unfiltered(&mut self, found: Unfiltered, limited: bool) {
        let [bare, constant] = &mut self.unfiltered;
        let [without, with] = if found.constant { constant } else { bare };
        let slot = if limited { with } else { without };
        slot.get_or_insert(found);
    }

    fn note_list(&mut self, list: InList) {
        if self.in_list.is_none_or(|longest| longest.len < list.len) {
            self.in_list = Some(list);
        }
    }

    fn note_temporary(&mut self, made: Temporary) {
        self.temporary = Some(if self.temporary.is_none() { made } else { Temporary::Unnamed });
    }

    /// Takes over what was found in the literal at `at`.
    fn note_inner(&mut self, inner: &Self, at: u32) {
        for (slot, limited) in
            inner.unfiltered.iter().flat_map(|both| both.iter().zip([false, true]))
        {
            if let Some(found) = slot {
                self.note_unfiltered(Unfiltered { at, ..*found }, limited);
            }
        }
        if inner.cross_join.is_some() {
            self.cross_join.get_or_insert(at);
        }
        if let Some(InList { len, .. }) = inner.in_list {
            self.note_list(InList { at, len });
        }
        if inner.ddl.is_some() {
            self.ddl.get_or_insert(at);
        }
        if inner.temporary.is_some() {
            self.note_temporary(Temporary::Unnamed);
        }
        self.note_unjudged(inner.unjudged);
        self.has_from |= inner.has_from;
    }

    fn note_unjudged(&mut self, other: Unjudged) {
        let Unjudged { filters, joins, lists, ddl } = &mut self.unjudged;
        *ddl |= other.ddl;
        *filters |= other.filters;
        *joins |= other.joins;
        *lists |= other.lists;
    }
}

/// Looks at a text as the server of `mode` reads it.
#[must_use]
pub fn survey(text: &[u8], mode: LexMode, whole: Whole) -> Survey {
    Surveyor::default().survey(text, mode, whole)
}

/// Looks at one text after the other, and keeps the memory that it needs for it.
#[derive(Debug, Default)]
pub struct Surveyor {
    frames: Frames,
}

impl Surveyor {
    /// Looks at a text as the server of `mode` reads it.
    #[must_use]
    pub fn survey(&mut self, text: &[u8], mode: LexMode, whole: Whole) -> Survey {
        let frames = &mut self.frames;
        let mut readings = Readings::default();
        for mode in mode.candidates(text) {
            if readings.add(walk(text, (mode, Reading::first(mode)), whole, frames)) {
                for reading in Reading::others(mode).into_iter().flatten() {
                    readings.add(walk(text, (mode, reading), whole, frames));
                }
            }
        }
        let Readings { agreed, differ, temporary } = readings;
        let unread =
            || Survey { temporary: temporary.then_some(Temporary::Unnamed), ..Survey::unread() };
        agreed.filter(|_| !differ).unwrap_or_else(unread)
    }

    /// Gives back memory that a deeply nested text has taken.
    pub fn shrink(&mut self) {
        self.frames.shrink();
    }
}

/// What the readings of a text have found so far.
#[derive(Default)]
struct Readings {
    agreed: Option<Survey>,
    differ: bool,
    /// One of them makes a temporary table.
    temporary: bool,
}

/// What one reading found.
struct Walked {
    survey: Survey,
    /// No server takes the text.
    broken: bool,
    /// Servers differ on how it is read.
    unsure: bool,
}

impl Readings {
    /// Whether servers differ on this text.
    fn add(&mut self, walked: Walked) -> bool {
        let Walked { survey, broken, unsure } = walked;
        // A text that the server does not take does nothing.
        if !broken {
            self.differ |= self.agreed.is_some_and(|agreed| agreed != survey);
            self.agreed = Some(survey);
            self.temporary |= survey.temporary.is_some();
        }
        unsure
    }
}

#[cfg(test)]
mod tests;
