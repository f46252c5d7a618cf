//! Makes a sequence that moved something as short as still does.

use crate::error::Result;
use crate::siege::oracle::Moved;
use crate::siege::sequence::{Entry, Sequence};
use crate::siege::target::Target;

/// The shortest that was found, and what it moves. None when playing it again on restored tables moves
/// nothing.
///
/// # Errors
/// When the target fails.
pub async fn minimised(
    target: &mut Target,
    sequence: &Sequence,
    tries: u32,
) -> Result<Option<(Sequence, Moved)>> {
    let mut search = Search { target, tries, disturbed: true };
    let Some(moved) = search.moves(sequence).await? else {
        return Ok(None);
    };
    let mut best = (sequence.clone(), moved);
    search.simplify_entry(&mut best).await?;
    // Any part left out of these may make the write one that is admitted.
    if best.0.entry.user != "tagged" {
        search.shorten_steps(&mut best).await?;
        search.shorten_texts(&mut best).await?;
    }
    Ok(Some(best))
}

struct Search<'a> {
    target: &'a mut Target,
    tries: u32,
    /// Whether the last try has moved something.
    disturbed: bool,
}

impl Search<'_> {
    async fn moves(&mut self, sequence: &Sequence) -> Result<Option<Moved>> {
        self.tries = self.tries.saturating_sub(1);
        if self.disturbed {
            self.target.restore().await?;
        }
        let (_, moved) = self.target.attack(sequence).await?;
        self.disturbed = moved != Moved::default();
        Ok(moved.is_alarm().then_some(moved))
    }

    /// Takes a shorter sequence when it still moves the same sort of thing.
    async fn try_it(&mut self, best: &mut (Sequence, Moved), shorter: Sequence) -> Result<bool> {
        if self.tries == 0 {
            return Ok(false);
        }
        match self.moves(&shorter).await? {
            Some(moved) if moved.is_like(&best.1) => {
                *best = (shorter, moved);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn shorten_steps(&mut self, best: &mut (Sequence, Moved)) -> Result<()> {
        let mut len = best.0.steps.len().div_ceil(2);
        while len > 0 {
            let mut at = 0;
            while at < best.0.steps.len() {
                let mut shorter = best.0.clone();
                let end = at.saturating_add(len).min(shorter.steps.len());
                shorter.steps.drain(at..end);
                let taken = !shorter.steps.is_empty() && self.try_it(best, shorter).await?;
                at = if taken { at } else { end };
            }
            len = half(len);
        }
        Ok(())
    }

    async fn shorten_texts(&mut self, best: &mut (Sequence, Moved)) -> Result<()> {
        for index in 0..best.0.steps.len() {
            let mut len = text(&best.0, index).map_or(0, |text| words(&text).len().div_ceil(2));
            while len > 0 && self.tries > 0 {
                self.without_words(best, index, len).await?;
                len = half(len);
            }
        }
        Ok(())
    }

    /// Leaves out each run of so many words of a text that is not needed.
    async fn without_words(
        &mut self,
        best: &mut (Sequence, Moved),
        index: usize,
        len: usize,
    ) -> Result<()> {
        let mut at = 0;
        while let Some(parts) = text(&best.0, index).map(|text| words(&text)) {
            if at >= parts.len() {
                break;
            }
            let end = at.saturating_add(len);
            let kept = parts.iter().enumerate().filter(|(n, _)| *n < at || *n >= end);
            let kept: Vec<u8> = kept.flat_map(|(_, part)| part.iter().copied()).collect();
            let taken = self.try_it(best, with_text(&best.0, index, kept)).await?;
            at = if taken { at } else { end };
        }
        Ok(())
    }

    async fn simplify_entry(&mut self, best: &mut (Sequence, Moved)) -> Result<()> {
        let plain = Entry::default();
        let was = best.0.entry.clone();
        let simpler = [
            Entry { ahead: Vec::new(), ..was.clone() },
            Entry { compress: None, ..was.clone() },
            Entry { leg: plain.leg, ..was.clone() },
            Entry { tls: false, ..was.clone() },
            Entry { without: 0, ..was.clone() },
            Entry { with: 0, ..was.clone() },
            Entry { collation: plain.collation, ..was.clone() },
            Entry { user: plain.user.clone(), ..was },
        ];
        for one in simpler {
            // Each is of the first entry but for one part: what has been found is kept beside it.
            let entry = merged(&best.0.entry, &one);
            if entry != best.0.entry {
                let shorter = Sequence { entry, ..best.0.clone() };
                self.try_it(best, shorter).await?;
            }
        }
        Ok(())
    }
}

fn half(len: usize) -> usize {
    if len == 1 { 0 } else { len.div_ceil(2) }
}

/// Each part that is the default in either.
fn merged(a: &Entry, b: &Entry) -> Entry {
    let plain = Entry::default();
    Entry {
        user: match (a.user.as_str(), &b.user) {
            ("tagged", _) => a.user.clone(),
            (_, user) if *user == plain.user => user.clone(),
            _ => a.user.clone(),
        },
        leg: if b.leg == plain.leg { b.leg } else { a.leg },
        tls: a.tls && b.tls,
        compress: a.compress.and(b.compress),
        without: a.without & b.without,
        with: a.with & b.with,
        collation: if b.collation == plain.collation { b.collation } else { a.collation },
        ahead: if b.ahead.is_empty() { Vec::new() } else { a.ahead.clone() },
    }
}

fn text(sequence: &Sequence, index: usize) -> Option<Vec<u8>> {
    let mut step = sequence.steps.get(index)?.clone();
    step.act.text_mut().map(|text| text.clone())
}

fn with_text(sequence: &Sequence, index: usize, text: Vec<u8>) -> Sequence {
    let mut sequence = sequence.clone();
    if let Some(old) = sequence.steps.get_mut(index).and_then(|step| step.act.text_mut()) {
        *old = text;
    }
    sequence
}

/// The text in pieces that go together: words, blanks, single signs.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let kind = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'@' | b'.' => 1,
        b' ' => 2,
        _ => 3,
    };
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let mut last = 0;
    for byte in text {
        let this = kind(*byte);
        match parts.last_mut() {
            Some(part) if this == last && this != 3 => part.push(*byte),
            _ => parts.push(vec![*byte]),
        }
        last = this;
    }
    parts
}
