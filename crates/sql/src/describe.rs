//! One text in, one [`Statement`] out.

mod again;
mod blocks;
mod definition;
mod other_text;
mod settings;
mod spot;
mod transactions;
mod verb;
mod walk;

use crate::{
    calls::{Callee, Calls},
    class::{Class, ClassSet},
    comments::{Scratch, Tags},
    effects::Effects,
    exemption::{self, Exemption},
    lexer::Reading,
    mode::LexMode,
    seen::Seen,
    tags::Tool,
};

pub(crate) use again::Again;
use again::DependsOn;
use other_text::Readable;
pub(crate) use walk::calls_of_body;
use walk::walk;

/// Whether the text is all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// It is the whole text of the command.
    Yes,
    /// The command goes on behind it.
    Truncated,
}

/// What a text says about itself.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'t> {
    /// The strictest class of the statements in the text.
    pub class: Class,
    /// Every class that occurs in the text; the strictest of them is `class`.
    pub classes: ClassSet,
    /// How many statements the text holds; empty ones do not count.
    pub statement_count: u32,
    /// What it changes in the session if the server accepts it.
    pub effects: Effects<'t>,
    /// Why it is never held back, if so.
    pub exemption: Option<Exemption>,
    certain: bool,
    runs_other_text: bool,
    depends_on: DependsOn,
    text: &'t [u8],
    calls: Calls,
    scratch: &'t Scratch,
}

impl<'t> Statement<'t> {
    /// Whether `harmless` holds for every function that is called and not built in, and nothing
    /// else is called.
    pub(crate) fn calls_only(&self, harmless: impl Fn(Callee<'_>) -> bool) -> bool {
        self.calls.are_all(self.text, harmless)
    }

    /// Every function that is called and not built in, if each can be told and nothing else is
    /// called.
    pub(crate) fn callees(&self) -> Option<Vec<Callee<'t>>> {
        self.calls.list(self.text)
    }

    /// Whether more is called than functions that can be told: a procedure.
    pub(crate) fn calls_others(&self) -> bool {
        self.calls.others
    }

    pub(crate) fn text(&self) -> &'t [u8] {
        self.text
    }

    /// The tags of all plain comments, in the order of the text; the first of a key counts.
    #[must_use]
    pub fn tags(&self) -> Tags<'t> {
        self.scratch.tags()
    }

    /// The program that a comment gives away.
    #[must_use]
    pub fn tool(&self) -> Option<Tool> {
        self.scratch.tool()
    }

    /// The plain comments, delimiters included, each with a line end behind it. Equal bytes have
    /// equal tags and the same tool.
    #[must_use]
    pub fn comment_bytes(&self) -> &'t [u8] {
        self.scratch.raw()
    }

    /// Whether the text was read to its end, and in the one way in which the server may read it.
    /// What it says about a digest or about tables holds only then.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.certain
    }

    /// Whether it may run a text that a digest does not show: EXECUTE of a name, or EXECUTE IMMEDIATE
    /// of what is a literal or not even that, also within a compound statement. Such statements are
    /// not alike because their texts are.
    #[must_use]
    pub fn runs_other_text(&self) -> bool {
        self.runs_other_text
    }

    /// Changes whenever [`Statement::comment_bytes`] differ from those of the statement described
    /// before with the same scratch: whoever keeps it need not compare, nor read the tags again.
    #[must_use]
    pub fn comment_generation(&self) -> u64 {
        self.scratch.generation()
    }
}

/// Reads `text` as the server of `mode` would. `scratch` belongs to the connection.
///
/// Text that was cut is never waved through: unless what is there is covered by `write` already,
/// its class is `unknown`.
#[must_use]
pub fn describe<'t>(
    text: &'t [u8],
    mode: LexMode,
    whole: Whole,
    scratch: &'t mut Scratch,
) -> Statement<'t> {
    scratch.spans.clear();
    let assumed = if mode.is_known() { mode } else { mode.candidates(text).next().unwrap_or(mode) };
    let first = Reading::first(assumed);
    let mut seen = walk(text, assumed, first, &mut scratch.spans);
    if whole == Whole::Truncated {
        scratch.spans.forget_cut(text);
    }
    let mut exemption = exempt(text, assumed, first, &seen);
    let mut certain = true;
    if seen.unsure || !mode.is_known() {
        let mut found = Found { seen, exemption, certain };
        if seen.unsure {
            found.read_otherwise(text, assumed, scratch);
        }
        if !mode.is_known() {
            found.read_in_other_modes(text, mode, scratch);
        }
        Found { seen, exemption, certain } = found;
    }
    let depends_on = DependsOn::of(&seen, mode, whole);
    let readable = if seen.broken && whole == Whole::Yes { Readable::No } else { Readable::Yes };
    if whole == Whole::Truncated || seen.broken {
        seen.classes = seen.classes.with(unread_class(seen.classes));
        seen.effects = seen.effects.unread();
        seen.effects.execute = None;
        // What was not read may be any number of statements.
        seen.effects.plain.transaction_control_before_other = true;
        exemption = None;
        certain = false;
    } else if seen.effects.plain.unread {
        seen.effects = seen.effects.unread();
    }
    seen.effects.plain.no_statement &= certain && seen.count == 1;
    if seen.count != 1 {
        seen.effects.execute = None;
        seen.effects.plain.kill = None;
    }
    scratch.remember(text);
    let runs_other_text =
        seen.classes.contains(Class::Unknown) && other_text::is_run(text, mode, whole, readable);
    Statement {
        class: seen.classes.strictest().unwrap_or(Class::Unknown),
        classes: seen.classes,
        statement_count: seen.count,
        effects: seen.effects,
        exemption,
        certain,
        runs_other_text,
        depends_on,
        text,
        calls: seen.calls,
        scratch,
    }
}

/// The class that a text has at least, if its end could not be read.
fn unread_class(classes: ClassSet) -> Class {
    classes.strictest().filter(|class| class.is_covered_by_write()).unwrap_or(Class::Unknown)
}

fn exempt(text: &[u8], mode: LexMode, reading: Reading, seen: &Seen<'_>) -> Option<Exemption> {
    if seen.hints.any() && !seen.broken && !seen.classes.contains(Class::Unknown) {
        exemption::of(text, mode, reading, seen)
    } else {
        None
    }
}

/// What the readings of a text have found so far.
struct Found<'t> {
    seen: Seen<'t>,
    exemption: Option<Exemption>,
    certain: bool,
}

impl<'t> Found<'t> {
    /// Reads in all modes but the first.
    #[cold]
    fn read_in_other_modes(&mut self, text: &'t [u8], mode: LexMode, scratch: &mut Scratch) {
        for mode in mode.candidates(text).skip(1) {
            let unsure = self.read(text, mode, Reading::first(mode), scratch);
            if unsure {
                self.read_otherwise(text, mode, scratch);
            }
        }
    }

    /// Reads in the ways of other releases.
    #[cold]
    fn read_otherwise(&mut self, text: &'t [u8], mode: LexMode, scratch: &mut Scratch) {
        for reading in Reading::others(mode).into_iter().flatten() {
            self.read(text, mode, reading, scratch);
        }
    }

    /// Reads the text in another way; whether releases differ on it. If that shows other comments,
    /// none of them is an identity: which of them the server skips is not known.
    fn read(
        &mut self,
        text: &'t [u8],
        mode: LexMode,
        reading: Reading,
        scratch: &mut Scratch,
    ) -> bool {
        let mut spans = std::mem::take(&mut scratch.other_spans);
        spans.clear();
        let other = walk(text, mode, reading, &mut spans);
        // To a server that reads nothing there, the text is an error and does nothing.
        let counts = other.count > 0 || other.broken;
        if other.count > 0 && scratch.spans != spans {
            scratch.spans.clear();
        }
        scratch.other_spans = spans;
        if counts {
            self.certain = false;
            if exempt(text, mode, reading, &other) != self.exemption {
                self.exemption = None;
            }
            self.seen = if self.seen.count == 0 { other } else { merge(self.seen, &other) };
        }
        other.unsure
    }
}

/// Both readings may be the server's.
fn merge<'t>(one: Seen<'t>, two: &Seen<'t>) -> Seen<'t> {
    Seen {
        classes: one.classes.union(two.classes),
        count: one.count.max(two.count),
        effects: one.effects.merged(two.effects),
        hints: one.hints,
        calls: one.calls.merged(&two.calls),
        unsure: true,
        broken: one.broken || two.broken,
        ordinary: false,
    }
}

#[cfg(test)]
mod tests;
