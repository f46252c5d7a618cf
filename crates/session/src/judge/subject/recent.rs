//! The texts that a session sends again and again, with the digests they have.
//!
//! A session mostly goes through a few texts in the same order. Holding the next one against what
//! came behind the last one before costs less than looking it up in the memo of all sessions.

use sql::{LexMode, Mould};

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
pub(super) struct RecentTexts {
    texts: Vec<Recent>,
    /// The one that came last.
    last: usize,
    /// Texts that were not here.
    misses: u32,
    /// Memory for the next one.
    spare: Mould,
}

#[derive(Debug)]
struct Recent {
    mould: Mould,
    /// Of the text, in bytes.
    len: usize,
    digest: KnownDigest,
    /// The generation of the memo in which somebody has been told of the digest.
    generation: u64,
    /// Which one came behind it the last time.
    next: usize,
}

/// The digest of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownDigest {
    pub(super) digest: u64,
    /// It was read; else it is what the memo of all sessions says.
    pub(super) is_read: bool,
}

impl Recent {
    #[inline]
    fn fits(&self, (text, mode): (&[u8], LexMode), generation: u64) -> bool {
        self.generation == generation && self.mould.fits(text, mode)
    }
}

impl RecentTexts {
    /// The digest of a text, if it came of late with other values, and somebody has been told of it
    /// in this generation of the memo.
    #[inline]
    pub(super) fn find(&mut self, text: (&[u8], LexMode), generation: u64) -> Option<KnownDigest> {
        let next = self.texts.get(self.last)?.next;
        if let Some(found) = self.texts.get(next).filter(|next| next.fits(text, generation)) {
            self.last = next;
            return Some(found.digest);
        }
        self.find_elsewhere(text, generation, next)
    }

    /// The same when it is not the one that came behind the last one before.
    fn find_elsewhere(
        &mut self,
        text: (&[u8], LexMode),
        generation: u64,
        looked_at: usize,
    ) -> Option<KnownDigest> {
        let mut others = (0..).zip(&self.texts).filter(|(at, _)| *at != looked_at);
        let (at, found) = others.find(|(_, recent)| recent.fits(text, generation))?;
        let digest = found.digest;
        if let Some(last) = self.texts.get_mut(self.last) {
            last.next = at;
        }
        self.last = at;
        Some(digest)
    }

    /// The text that was found last has been read, and has the digest that it was found with.
    pub(super) fn note_read(&mut self) {
        if let Some(last) = self.texts.get_mut(self.last) {
            last.digest.is_read = true;
        }
    }

    /// A text was not here, and has this digest, of which somebody has been told in this generation.
    pub(super) fn note(&mut self, text: (&[u8], LexMode), digest: KnownDigest, generation: u64) {
        self.misses = self.misses.wrapping_add(1);
        let len = text.0.len();
        let kept_len = self.texts.iter().map(|recent| recent.len).fold(0, usize::saturating_add);
        let void = self.texts.iter().position(|recent| recent.generation != generation);
        let grows = self.texts.len() < TEXTS_MAX
            && void.is_none()
            && kept_len.saturating_add(len) <= TEXTS_LEN_MAX;
        let of = if grows || void.is_some() { KEPT_OF } else { REPLACED_OF };
        if !self.misses.is_multiple_of(of) || !self.spare.cast(text.0, text.1) {
            return;
        }
        if grows {
            self.texts.reserve_exact(1);
            let mould = std::mem::take(&mut self.spare);
            let next = self.texts.len();
            return self.texts.push(Recent { mould, len, digest, generation, next });
        }
        let next = self.last.saturating_add(1).checked_rem(self.texts.len()).unwrap_or_default();
        if let Some(place) = self.texts.get_mut(void.unwrap_or(next))
            && kept_len.saturating_sub(place.len).saturating_add(len) <= TEXTS_LEN_MAX
        {
            std::mem::swap(&mut place.mould, &mut self.spare);
            (place.len, place.digest, place.generation) = (len, digest, generation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: usize, value: usize) -> Vec<u8> {
        format!("SELECT c FROM t{number} WHERE id = {value}").into_bytes()
    }

    fn known(number: usize) -> KnownDigest {
        KnownDigest { digest: u64::try_from(number).unwrap(), is_read: false }
    }

    /// So many texts, each kept with its number for a digest.
    fn kept(count: usize) -> RecentTexts {
        let mut recent = RecentTexts::default();
        for number in 0..count {
            for _ in 0..KEPT_OF {
                recent.note((&text(number, 1), LexMode::default()), known(number), 1);
            }
        }
        recent
    }

    #[test]
    fn texts_that_come_in_turn_are_found_where_they_came_the_last_time() {
        let mut recent = kept(TEXTS_MAX);
        for turn in 0..3 {
            for number in 0..TEXTS_MAX {
                let came = text(number, turn * 100 + number);
                let expected = recent.texts.get(recent.last).unwrap().next;
                let found = recent.find((&came, LexMode::default()), 1);
                assert_eq!(found, Some(known(number)), "turn {turn}");
                assert!(turn < 2 || recent.last == expected, "nothing else was looked at");
            }
        }
    }

    #[test]
    fn texts_that_come_in_any_order_are_found_all_the_same() {
        let mut recent = kept(TEXTS_MAX);
        for number in [3, 3, 0, 7, 1, 0, 7, 7, 2, 5, 3] {
            let found = recent.find((&text(number, 9), LexMode::default()), 1);
            assert_eq!(found, Some(known(number)));
        }
        let other = text(TEXTS_MAX, 9);
        assert_eq!(recent.find((&other, LexMode::default()), 1), None, "it never came");
        assert_eq!(recent.find((&text(3, 9), LexMode::default()), 2), None, "nobody was told");
    }

    #[test]
    fn of_more_texts_than_are_kept_none_is_found_for_another() {
        let mut recent = kept(TEXTS_MAX);
        for number in TEXTS_MAX..3 * TEXTS_MAX {
            for _ in 0..REPLACED_OF {
                recent.note((&text(number, 1), LexMode::default()), known(number), 1);
            }
            assert_eq!(recent.texts.len(), TEXTS_MAX);
            for other in 0..=number {
                let found = recent.find((&text(other, 2), LexMode::default()), 1);
                assert!(found.is_none_or(|found| found == known(other)), "{found:?}");
            }
        }
    }

    #[test]
    fn long_texts_are_kept_as_few_as_have_room() {
        let mut recent = RecentTexts::default();
        for number in 0..1_000 {
            let long = format!("SELECT {} FROM t{number}", "a, ".repeat(130 + 7));
            recent.note((long.as_bytes(), LexMode::default()), known(number), 1);
            let len: usize = recent.texts.iter().map(|recent| recent.len).sum();
            assert!(len <= TEXTS_LEN_MAX, "{len}");
        }
        assert_eq!(recent.texts.len(), 2);
    }

    #[test]
    fn a_text_is_known_as_read_once_it_has_been_read_with_other_values_too() {
        let mut recent = kept(2);
        let found = recent.find((&text(1, 7), LexMode::default()), 1);
        assert_eq!(found, Some(known(1)), "the memo has said so");
        recent.note_read();
        let found = recent.find((&text(1, 8), LexMode::default()), 1);
        assert_eq!(found, Some(KnownDigest { is_read: true, ..known(1) }));
        assert_eq!(recent.find((&text(0, 8), LexMode::default()), 1), Some(known(0)));
    }
}
