//! The texts that the sessions of a thread send again and again, and what was found out about them.
//!
//! A text is compared from its first byte to its last, but for its values. What depends on those is
//! not kept, and neither is what depends on anything but the text and the mode in which the server
//! reads it: not who asks, and no verdict. So what one session has sent serves all others, and who
//! sends texts that nobody sends again costs them time, never a verdict.
//!
//! Texts have a set by what they begin with, and in it one of its places. Which one is given away
//! when all are taken: the next that was not found since the last time around (the second chance of
//! Corbató, "A paging experiment with the Multics system", 1968). So texts that come once only do
//! not displace those that come again.

use std::cell::RefCell;

use sql::{CleanSurvey, LexMode, Mould, Scratch, Statement, Survey, TextHead};

/// Sets of places: with eight in each 1,024 texts, which take a megabyte at the very most.
const SETS: usize = 128;

/// Places in a set: texts that begin alike up to their first value have the same.
const WAYS: usize = 8;

/// Of the texts that were not here one in so many is kept: keeping one costs about as much as
/// reading it, and most of those that come once do not.
const KEPT_OF: u32 = 4;

/// What sessions have sent of late. One for each thread: looking one up takes no lock.
#[derive(Debug, Default)]
pub struct KnownTexts(RefCell<Table>);

#[derive(Debug, Default)]
struct Table {
    /// `SETS` times `WAYS`, or none before anything was kept.
    places: Vec<Known>,
    /// What their texts begin with, side by side.
    heads: Vec<TextHead>,
    /// Of each set: which place is looked at next for one to give away.
    hands: Vec<usize>,
    /// Texts that were not here.
    misses: u32,
    /// Memory for the next one.
    spare: Mould,
}

/// A text, and what was found out about it.
#[derive(Debug, Default)]
struct Known {
    /// Nothing fits it where there is no text.
    mould: Mould,
    /// It was found since a place was last looked for in its set.
    again: bool,
    found_out: FoundOut,
    /// Which one came behind it the last time.
    next: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct FoundOut {
    /// The digest, and the generation of the memo in which somebody has been told of it.
    told: Option<(u64, u64)>,
    /// The digest, if it was read for those who judge by it.
    read: Option<u64>,
    /// What guards look at, of a text in which nothing is that any could object to.
    clean: Option<CleanSurvey>,
}

/// Where a session is among them. What is said of the text under way is said of the one found last:
/// so nobody else of the thread may look for one between [`Recent::find`] and [`Recent::pass`].
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// The place of the one that came last.
    last: usize,
    /// The text under way is that one.
    found: bool,
}

impl Recent {
    /// The text under way is not looked for, or will not be asked about any more.
    pub(crate) fn pass(&mut self) {
        self.found = false;
    }

    /// What the text under way says about itself, if it came of late with other values, and that
    /// tells. Whether it was found is known from now on.
    #[inline]
    pub(crate) fn find<'t>(
        &mut self,
        known: &KnownTexts,
        (text, mode): (&'t [u8], LexMode),
        scratch: &'t mut Scratch,
    ) -> Option<Statement<'t>> {
        let mut table = known.0.borrow_mut();
        let at = table.find(self.last, text, mode);
        self.found = at.is_some();
        self.last = at?;
        let known = table.places.get_mut(self.last)?;
        known.again = true;
        known.mould.describe(text, scratch)
    }

    /// The text under way was read, and says this of itself. Kept if it was not here.
    pub(crate) fn note(
        &mut self,
        known: &KnownTexts,
        (text, mode): (&[u8], LexMode),
        statement: &Statement<'_>,
    ) {
        if self.found {
            return;
        }
        if let Some(at) = known.0.borrow_mut().keep(self.last, (text, mode), statement) {
            *self = Self { last: at, found: true };
        }
    }

    /// The digest of the text under way, if it was found and somebody has been told of it in this
    /// generation of the memo.
    pub(super) fn digest(&self, known: &KnownTexts, generation: u64) -> Option<u64> {
        let (digest, told) = self.found_out(known)?.told?;
        (told == generation).then_some(digest)
    }

    /// The text under way has this digest, of which somebody has been told in this generation.
    pub(super) fn note_digest(&self, known: &KnownTexts, digest: u64, generation: u64) {
        self.note_found_out(known, |known| known.found_out.told = Some((digest, generation)));
    }

    /// The digest of the text under way, if it was found and has been read.
    pub(super) fn read(&self, known: &KnownTexts) -> Option<u64> {
        self.found_out(known)?.read
    }

    /// The text under way was read, and has this digest.
    pub(super) fn note_read(&self, known: &KnownTexts, digest: u64) {
        self.note_found_out(known, |known| known.found_out.read = Some(digest));
    }

    /// What guards look at in the text under way, if it was found and none could object to that.
    pub(super) fn survey(&self, known: &KnownTexts) -> Option<Survey> {
        self.found_out(known)?.clean.map(Survey::from)
    }

    /// This is what guards look at in the text under way.
    pub(super) fn note_survey(&self, known: &KnownTexts, survey: &Survey) {
        self.note_found_out(known, |known| known.found_out.clean = known.mould.clean(survey));
    }

    fn found_out(&self, known: &KnownTexts) -> Option<FoundOut> {
        if !self.found {
            return None;
        }
        known.0.borrow().places.get(self.last).map(|known| known.found_out)
    }

    fn note_found_out(&self, known: &KnownTexts, note: impl FnOnce(&mut Known)) {
        if self.found
            && let Some(known) = known.0.borrow_mut().places.get_mut(self.last)
        {
            note(known);
        }
    }
}

impl Table {
    /// Where the text is that this one fits. It mostly is the one that came behind the last one
    /// before.
    #[inline]
    fn find(&mut self, last: usize, text: &[u8], mode: LexMode) -> Option<usize> {
        let next = self.places.get(last)?.next;
        match self.places.get(next) {
            Some(known) if known.mould.fits(text, mode) => Some(next),
            Some(_) | None => self.find_elsewhere(last, text, mode),
        }
    }

    fn find_elsewhere(&mut self, last: usize, text: &[u8], mode: LexMode) -> Option<usize> {
        let head = TextHead::of(text, mode)?;
        let first = first_of(head);
        let heads = self.heads.get(first..)?.get(..WAYS)?;
        let places = self.places.get(first..)?.get(..WAYS)?;
        let mut both = heads.iter().zip(places);
        let way = both.position(|(is, known)| *is == head && known.mould.fits(text, mode))?;
        Some(self.comes_behind(last, first.saturating_add(way)))
    }

    fn comes_behind(&mut self, last: usize, at: usize) -> usize {
        if let Some(last) = self.places.get_mut(last) {
            last.next = at;
        }
        at
    }

    /// Keeps a text that was not here, now and then, and says where.
    fn keep(
        &mut self,
        last: usize,
        (text, mode): (&[u8], LexMode),
        statement: &Statement<'_>,
    ) -> Option<usize> {
        self.misses = self.misses.wrapping_add(1);
        if !self.misses.is_multiple_of(KEPT_OF) || !self.spare.cast(text, mode) {
            return None;
        }
        self.spare.note(statement);
        if self.places.is_empty() {
            self.places.resize_with(SETS.saturating_mul(WAYS), Known::default);
            self.heads.resize_with(self.places.len(), TextHead::default);
            self.hands.resize(SETS, 0);
        }
        let head = self.spare.head();
        let at = self.place(first_of(head))?;
        let known = self.places.get_mut(at)?;
        std::mem::swap(&mut known.mould, &mut self.spare);
        (known.again, known.found_out, known.next) = (false, FoundOut::default(), at);
        *self.heads.get_mut(at)? = head;
        Some(self.comes_behind(last, at))
    }

    /// The place to give away in the set that begins there. `None`: all in it came again, and have
    /// another chance.
    fn place(&mut self, first: usize) -> Option<usize> {
        let hand = self.hands.get_mut(first.checked_div(WAYS)?)?;
        for _ in 0..WAYS {
            let at = first.saturating_add(*hand);
            *hand = hand.saturating_add(1) % WAYS;
            if !std::mem::take(&mut self.places.get_mut(at)?.again) {
                return Some(at);
            }
        }
        None
    }
}

/// Where the set of texts begins that begin so.
fn first_of(head: TextHead) -> usize {
    head.place(SETS).saturating_mul(WAYS)
}

#[cfg(test)]
mod tests;
