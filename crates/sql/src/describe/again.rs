//! What a text says that comes again, with other values.
//!
//! Of what a text says about itself almost nothing depends on values: numbers, literals and
//! comments. What does is left out here: what SET gives to what, the number of a KILL, the text of a
//! PREPARE, how functions for locks are called, where names stand of functions that are called.
//! [`crate::Mould`] finds out which texts differ in nothing else.

use super::{Statement, Whole};
use crate::{
    calls::Calls,
    class::{Class, ClassSet},
    comments::Scratch,
    effects::{Effects, PlainEffects},
    exemption::Exemption,
    mode::LexMode,
    seen::Seen,
};

/// What a text says whatever its values are, or, if it says so of itself, as long as it has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    class: Class,
    classes: ClassSet,
    statement_count: u32,
    plain: PlainEffects,
    exemption: Option<Exemption>,
    runs_other_text: bool,
    /// Whether it says so with any values.
    pub(crate) with_any_values: bool,
}

/// On what depends what a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DependsOn {
    /// On its words, its names and what separates them.
    Words,
    /// On its values too.
    Values,
    /// On where in it something stands, or on what is not in it.
    Places,
}

impl DependsOn {
    /// What depends on what was found in `text`.
    pub(super) fn of(seen: &Seen<'_>, mode: LexMode, whole: Whole) -> Self {
        let Effects { plain, set_app, use_schema, prepare, execute, deallocate } = seen.effects;
        let names = use_schema.is_some() || execute.is_some() || deallocate.is_some();
        let unread = seen.unsure || seen.broken || !mode.is_known() || whole == Whole::Truncated;
        if unread
            || names
            || set_app.is_some()
            || prepare.is_some()
            || seen.calls != Calls::default()
        {
            return Self::Places;
        }
        let is_plain = seen.ordinary && !seen.hints.any() && plain == PlainEffects::default();
        if is_plain && seen.count == 1 { Self::Words } else { Self::Values }
    }
}

impl Statement<'_> {
    /// What texts say that differ in values alone.
    pub(crate) fn again(&self) -> Option<Again> {
        let with_any_values = match self.depends_on {
            DependsOn::Words => true,
            DependsOn::Values => false,
            DependsOn::Places => return None,
        };
        let Self { class, classes, statement_count, effects, exemption, runs_other_text, .. } =
            *self;
        let plain = effects.plain;
        Some(Again {
            class,
            classes,
            statement_count,
            plain,
            exemption,
            runs_other_text,
            with_any_values,
        })
    }
}

impl Again {
    /// What `text` says, whose comments stand in `scratch`.
    pub(crate) fn statement<'t>(self, text: &'t [u8], scratch: &'t Scratch) -> Statement<'t> {
        let Self {
            class,
            classes,
            statement_count,
            plain,
            exemption,
            runs_other_text,
            with_any_values,
        } = self;
        Statement {
            class,
            classes,
            statement_count,
            effects: Effects { plain, ..Effects::default() },
            exemption,
            certain: true,
            runs_other_text,
            depends_on: if with_any_values { DependsOn::Words } else { DependsOn::Values },
            text,
            calls: Calls::default(),
            scratch,
        }
    }
}

#[cfg(test)]
mod tests;
