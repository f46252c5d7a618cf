//! The texts that a session sends again and again, with the digests they have.
//!
//! A session mostly goes through a few texts in the same order. Holding the next one against what it
//! most probably is costs less than looking it up in the memo of all sessions.

use sql::{LexMode, Mould};

/// Texts that are kept: what a short transaction consists of.
const TEXTS_MAX: usize = 4;

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
    digest: u64,
    /// The generation of the memo in which somebody has been told of the digest.
    generation: u64,
}

impl RecentTexts {
    /// The digest of a text, if it came of late with other values, and somebody has been told of it
    /// in this generation of the memo.
    #[inline]
    pub(super) fn find(&mut self, text: (&[u8], LexMode), generation: u64) -> Option<u64> {
        let fits =
            |recent: &Recent| recent.generation == generation && recent.mould.fits(text.0, text.1);
        let (earlier, from_last) = self.texts.split_at_checked(self.last)?;
        let found = from_last.iter().position(fits).map(|at| at.saturating_add(self.last));
        self.last = found.or_else(|| earlier.iter().position(fits))?;
        self.texts.get(self.last).map(|recent| recent.digest)
    }

    /// A text was not here, and has this digest, of which somebody has been told in this generation.
    pub(super) fn note(&mut self, text: (&[u8], LexMode), digest: u64, generation: u64) {
        self.misses = self.misses.wrapping_add(1);
        let void = self.texts.iter().position(|recent| recent.generation != generation);
        let has_room = self.texts.len() < TEXTS_MAX || void.is_some();
        let of = if has_room { KEPT_OF } else { REPLACED_OF };
        if !self.misses.is_multiple_of(of) || !self.spare.cast(text.0, text.1) {
            return;
        }
        if self.texts.len() < TEXTS_MAX && void.is_none() {
            self.texts.reserve_exact(1);
            let mould = std::mem::take(&mut self.spare);
            return self.texts.push(Recent { mould, digest, generation });
        }
        let next = self.last.saturating_add(1).checked_rem(TEXTS_MAX).unwrap_or_default();
        if let Some(place) = self.texts.get_mut(void.unwrap_or(next)) {
            std::mem::swap(&mut place.mould, &mut self.spare);
            (place.digest, place.generation) = (digest, generation);
        }
    }
}
