//! The texts that a session sends again and again, and what was found out about them.
//!
//! A session mostly goes through a few texts in the same order, with other values. Holding the next
//! one against what came behind the last one before costs less than reading it, and less than looking
//! its digest up in the memo of all sessions. A text is compared from its first byte to its last, but
//! for its values; what depends on those is not kept, and neither is what depends on anything but the
//! text and the mode in which the server reads it: not who asks, and no verdict.

use sql::{CleanSurvey, LexMode, Mould, Statement, Survey, TextHead};

/// Texts that are kept: what a transaction consists of, or a page.
const TEXTS_MAX: usize = 8;

/// Bytes of them all together: an idle connection keeps them.
const TEXTS_LEN_MAX: usize = 1_024;

/// Of the texts that were not here one in so many is kept: whoever sends few keeps none.
const KEPT_OF: u32 = 4;

/// The same when there is no room left: what has a place mostly keeps it.
const REPLACED_OF: u32 = 32;

/// What a session has sent of late.
#[derive(Debug, Default)]
pub(crate) struct RecentTexts {
    texts: Vec<Recent>,
    /// The one that came last.
    last: usize,
    /// The text under way is that one.
    found: bool,
    /// Texts that were not here.
    misses: u32,
    /// Memory for the next one.
    spare: Mould,
}

#[derive(Debug)]
struct Recent {
    mould: Mould,
    /// The digest, and the generation of the memo in which somebody has been told of it.
    told: Option<(u64, u64)>,
    /// The digest, if it was read for those who judge by it.
    read: Option<u64>,
    /// What guards look at, of a text in which nothing is that any could object to.
    clean: Option<CleanSurvey>,
    /// Which one came behind it the last time.
    next: usize,
}

impl RecentTexts {
    /// The text under way is not looked for.
    pub(super) fn pass(&mut self) {
        self.found = false;
    }

    /// What the text under way fits, if it came of late with other values.
    #[inline]
    pub(crate) fn find(&mut self, text: &[u8], mode: LexMode) -> Option<&Mould> {
        let next = self.texts.get(self.last)?.next;
        let at = match self.texts.get(next) {
            Some(recent) if recent.mould.fits(text, mode) => Some(next),
            Some(_) | None => self.find_elsewhere(text, mode),
        };
        self.found = at.is_some();
        self.last = at?;
        self.texts.get(self.last).map(|recent| &recent.mould)
    }

    /// The same when it is not the one that came behind the last one before.
    fn find_elsewhere(&mut self, text: &[u8], mode: LexMode) -> Option<usize> {
        let head = TextHead::of(text, mode)?;
        let fits = |mould: &Mould| mould.head() == head && mould.fits(text, mode);
        let at = self.texts.iter().position(|recent| fits(&recent.mould))?;
        if let Some(last) = self.texts.get_mut(self.last) {
            last.next = at;
        }
        Some(at)
    }

    /// The digest of the text under way, if it was found and somebody has been told of it in this
    /// generation of the memo.
    pub(super) fn digest(&self, generation: u64) -> Option<u64> {
        let (digest, told) = self.found()?.told?;
        (told == generation).then_some(digest)
    }

    /// The text under way has this digest, of which somebody has been told in this generation.
    pub(super) fn note_digest(&mut self, digest: u64, generation: u64) {
        if let Some(found) = self.found_mut() {
            found.told = Some((digest, generation));
        }
    }

    /// The digest of the text under way, if it was found and has been read.
    pub(super) fn read(&self) -> Option<u64> {
        self.found()?.read
    }

    /// The text under way was read, and has this digest.
    pub(super) fn note_read(&mut self, digest: u64) {
        if let Some(found) = self.found_mut() {
            found.read = Some(digest);
        }
    }

    /// What guards look at in the text under way, if it was found and none could object to that.
    pub(super) fn survey(&self) -> Option<Survey> {
        self.found()?.clean.map(Survey::from)
    }

    /// This is what guards look at in the text under way.
    pub(super) fn note_survey(&mut self, survey: &Survey) {
        if let Some(found) = self.found_mut() {
            found.clean = found.mould.clean(survey);
        }
    }

    /// The text under way was not here, and says this of itself.
    pub(crate) fn note(&mut self, text: &[u8], mode: LexMode, statement: &Statement<'_>) {
        if self.found {
            return;
        }
        self.misses = self.misses.wrapping_add(1);
        let has_room = self.texts.len() < TEXTS_MAX && self.size() < TEXTS_LEN_MAX;
        let of = if has_room { KEPT_OF } else { REPLACED_OF };
        if self.misses.is_multiple_of(of) && self.spare.cast(text, mode) {
            self.spare.note(statement);
            self.keep();
        }
    }

    /// Keeps what is in the spare one, if it has room.
    fn keep(&mut self) {
        let size = self.size().saturating_add(self.spare.size());
        if self.texts.len() < TEXTS_MAX && size <= TEXTS_LEN_MAX {
            self.texts.reserve_exact(1);
            let mould = std::mem::take(&mut self.spare);
            let next = self.texts.len();
            self.texts.push(Recent { mould, told: None, read: None, clean: None, next });
            return self.found_at(next);
        }
        let next = self.last.saturating_add(1).checked_rem(self.texts.len()).unwrap_or_default();
        if let Some(place) = self.texts.get_mut(next)
            && size.saturating_sub(place.mould.size()) <= TEXTS_LEN_MAX
        {
            std::mem::swap(&mut place.mould, &mut self.spare);
            (place.told, place.read, place.clean) = (None, None, None);
            self.found_at(next);
        }
    }

    fn found_at(&mut self, at: usize) {
        if let Some(last) = self.texts.get_mut(self.last) {
            last.next = at;
        }
        self.last = at;
        self.found = true;
    }

    fn found(&self) -> Option<&Recent> {
        self.texts.get(self.last).filter(|_| self.found)
    }

    fn found_mut(&mut self) -> Option<&mut Recent> {
        self.texts.get_mut(self.last).filter(|_| self.found)
    }

    fn size(&self) -> usize {
        self.texts.iter().map(|recent| recent.mould.size()).fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use sql::{Charset, Scratch, Server, Setting, Whole, describe, survey};

    use super::*;

    const MODE: LexMode = LexMode {
        no_backslash_escapes: Setting::Off,
        ansi_quotes: Setting::Off,
        charset: Charset::Plain,
        server: Server::MySql { version: 90_704 },
    };

    fn text(number: usize, value: usize) -> Vec<u8> {
        format!("SELECT c FROM t{number} WHERE id = {value}").into_bytes()
    }

    /// A text comes; its digest, if it was here.
    fn comes(recent: &mut RecentTexts, text: &[u8]) -> Option<u64> {
        recent.pass();
        recent.find(text, MODE);
        let digest = recent.digest(1);
        recent.note(text, MODE, &describe(text, MODE, Whole::Yes, &mut Scratch::default()));
        digest
    }

    /// So many texts, each kept with its number for a digest.
    fn kept(count: usize) -> RecentTexts {
        let mut recent = RecentTexts::default();
        for number in 0..count {
            for value in 0..usize::try_from(KEPT_OF).unwrap() {
                comes(&mut recent, &text(number, value));
            }
            recent.note_digest(u64::try_from(number).unwrap(), 1);
        }
        recent
    }

    #[test]
    fn texts_that_come_in_turn_are_found_where_they_came_the_last_time() {
        let mut recent = kept(TEXTS_MAX);
        for turn in 0..3 {
            for number in 0..TEXTS_MAX {
                let expected = recent.texts.get(recent.last).unwrap().next;
                let found = comes(&mut recent, &text(number, turn * 100 + number));
                assert_eq!(found, u64::try_from(number).ok(), "turn {turn}");
                assert!(turn < 2 || recent.last == expected, "nothing else was looked at");
            }
        }
    }

    #[test]
    fn texts_that_come_in_any_order_are_found_all_the_same() {
        let mut recent = kept(TEXTS_MAX);
        for number in [3, 3, 0, 7, 1, 0, 7, 7, 2, 5, 3] {
            assert_eq!(comes(&mut recent, &text(number, 9)), u64::try_from(number).ok());
        }
        assert_eq!(comes(&mut recent, &text(TEXTS_MAX, 9)), None, "it never came");
        assert!(recent.find(&text(3, 9), MODE).is_some());
        assert_eq!(recent.digest(2), None, "nobody was told in that generation");
        let other = LexMode { ansi_quotes: Setting::On, ..MODE };
        assert!(recent.find(&text(3, 9), other).is_none(), "the mode has changed");
        assert_eq!(recent.digest(1), None);
    }

    #[test]
    fn of_more_texts_than_are_kept_none_is_found_for_another() {
        let mut recent = kept(TEXTS_MAX);
        for number in TEXTS_MAX..3 * TEXTS_MAX {
            for value in 0..usize::try_from(REPLACED_OF).unwrap() {
                if comes(&mut recent, &text(number, value)).is_none() {
                    recent.note_digest(u64::try_from(number).unwrap(), 1);
                }
            }
            assert_eq!(recent.texts.len(), TEXTS_MAX);
            for known in 0..=number {
                recent.find(&text(known, 2), MODE);
                let found = recent.digest(1);
                assert!(found.is_none() || found == u64::try_from(known).ok(), "{found:?}");
            }
        }
    }

    #[test]
    fn what_was_found_out_about_a_text_goes_with_it() {
        let mut recent = kept(1);
        let survey = survey(&text(0, 1), MODE, Whole::Yes);
        assert_eq!(recent.survey(), None);
        recent.note_survey(&survey);
        assert_eq!(recent.survey(), Some(survey));
        for value in 0..usize::try_from(KEPT_OF).unwrap() {
            assert!(recent.find(b"DELETE FROM t", MODE).is_none());
            assert_eq!((recent.survey(), recent.digest(1)), (None, None), "{value}");
        }
        recent.find(&text(0, 77), MODE);
        assert_eq!((recent.survey(), recent.digest(1)), (Some(survey), Some(0)));
        recent.pass();
        assert_eq!((recent.survey(), recent.digest(1)), (None, None), "nobody looked for it");
        // Its place is another's.
        let mut recent = kept(TEXTS_MAX);
        for number in 0..TEXTS_MAX {
            recent.find(&text(number, 0), MODE);
            recent.note_survey(&survey);
        }
        for value in 0..usize::try_from(REPLACED_OF).unwrap() * TEXTS_MAX * 2 {
            let update = format!("UPDATE u{} SET a = 1", value % 3);
            comes(&mut recent, update.as_bytes());
            assert_eq!((recent.survey(), recent.digest(1)), (None, None), "{value}");
        }
    }

    #[test]
    fn what_guards_could_object_to_is_looked_at_each_time() {
        let mut recent = RecentTexts::default();
        for text in ["DELETE FROM t", "SELECT a FROM t WHERE b IN (1)", "SELECT 1 FROM t, u"] {
            for _ in 0..2 * KEPT_OF {
                comes(&mut recent, text.as_bytes());
            }
            assert!(recent.find(text.as_bytes(), MODE).is_some(), "{text}");
            recent.note_survey(&survey(text.as_bytes(), MODE, Whole::Yes));
            assert_eq!(recent.survey(), None, "{text}");
        }
    }

    #[test]
    fn long_texts_are_kept_as_few_as_have_room() {
        let mut recent = RecentTexts::default();
        for number in 0..1_000_u64 {
            let long = format!("SELECT {} FROM t{number}", "a, ".repeat(130 + 7));
            comes(&mut recent, long.as_bytes());
            assert!(recent.size() <= TEXTS_LEN_MAX, "{}", recent.size());
        }
        assert_eq!(recent.texts.len(), 2);
    }
}
