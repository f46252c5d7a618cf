//! Windows beyond the process: what a run keeps of its own, and what becomes of those of others.
//!
//! A run keeps each window when it is over, and what it has begun when it ends ([`Insights::over`],
//! [`Insights::unfinished`]). Whoever comes after it takes them in ([`Past::take_in`],
//! [`Insights::restore`]) as windows beside its own; what is taken in is never kept again.
//!
//! Nothing counts twice. Minutes are for an hour, and ten minutes for a day, and ten minutes are made
//! of minutes: those of a run that was killed before its ten minutes were over are made of its minutes
//! here. If it goes on meanwhile, as behind a takeover, what it keeps later comes in addition.
//!
//! [`Insights::over`]: crate::Insights::over
//! [`Insights::unfinished`]: crate::Insights::unfinished
//! [`Insights::restore`]: crate::Insights::restore

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::catalogue::{Kind, Learned};
use crate::sketch::{Key, Sketch};
use crate::stats::Stats;
use crate::windows::{Length, Sealed, Time};

/// A window as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Whose it is: a number that no other process has.
    pub run: i64,
    /// How long it is.
    pub length: Length,
    /// When it began.
    pub begun: Time,
    /// What its statements have cost.
    pub rows: Vec<KeptRow>,
}

/// What statements of one kind have cost in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRow(pub(crate) Key, pub(crate) Stats);

/// What each app did in the seconds of a minute, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMinute {
    /// Whose it is: as in [`Kept`].
    pub run: i64,
    /// When it began.
    pub begun: Time,
    /// By app.
    pub apps: Vec<KeptSeconds>,
}

/// An app, and the seconds of each level (module `levels`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSeconds(u64, Vec<(u8, u8)>);

impl KeptSeconds {
    /// By the level's place.
    pub(crate) fn of(app: u64, levels: &[u8]) -> Self {
        let numbered = (0..=u8::MAX).zip(levels.iter().copied());
        Self(app, numbered.filter(|(_, seconds)| *seconds > 0).collect())
    }

    pub(crate) fn app(&self) -> u64 {
        self.0
    }

    pub(crate) fn add_to(&self, levels: &mut [u8]) {
        for (level, seconds) in &self.1 {
            if let Some(sum) = levels.get_mut(usize::from(*level)) {
                *sum = sum.saturating_add(*seconds);
            }
        }
    }
}

/// What a hash of kept rows stands for. What is no UTF-8 is replaced, as where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptName {
    /// An app, a schema, a user.
    Name(String),
    /// Tags, as [`Learned::Tags`] has them.
    Tags(String),
    /// A digest, without a sample: values are data, and are kept in memory only.
    Digest {
        /// Its text.
        text: String,
        /// Its tables, as [`Learned::Digest`] has them.
        tables: String,
        /// Whether these are all.
        all_tables: bool,
        /// The classes of its text.
        classes: Vec<String>,
        /// Why nothing may hold it back.
        exemption: Option<String>,
    },
}

impl KeptName {
    /// What is learned by it.
    pub(crate) fn learned(self, hash: u64) -> Learned {
        let bytes = |text: String| text.into_bytes().into_boxed_slice();
        match self {
            Self::Name(name) => Learned::Name { hash, name: bytes(name) },
            Self::Tags(pairs) => Learned::Tags { hash, pairs: bytes(pairs) },
            Self::Digest { text, tables, all_tables, classes, exemption } => Learned::Digest {
                hash,
                text: bytes(text),
                tables: bytes(tables),
                all_tables,
                kind: Kind {
                    classes: classes.into_iter().map(Into::into).collect(),
                    exemption: exemption.map(Into::into),
                },
                sample: None,
            },
        }
    }
}

/// Up to where a run has kept its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    pub(crate) minute: Time,
    pub(crate) ten: Time,
    pub(crate) at_once: Time,
}

impl Mark {
    /// What began before this time is not kept.
    #[must_use]
    pub fn at(now: Time) -> Self {
        Self { minute: now, ten: now, at_once: now }
    }
}

/// What has been taken in of other runs.
#[derive(Debug, Default)]
pub struct Past {
    /// Run and beginning of each window.
    minutes: HashSet<(i64, Time)>,
    tens: HashSet<(i64, Time)>,
    /// Ten minutes that were made of minutes.
    made: HashSet<(i64, Time)>,
    /// Minutes of which it is known how many statements were there at once.
    at_once: HashSet<(i64, Time)>,
}

/// Windows of other runs.
#[derive(Debug)]
pub struct Restored {
    pub(crate) minutes: Vec<Sealed>,
    pub(crate) tens: Vec<Sealed>,
    pub(crate) at_once: Vec<KeptMinute>,
}

impl Past {
    /// What is new of this, all that there is, for a [`crate::Insights`] with so many places.
    pub fn take_in(
        &mut self,
        (kept, mut at_once): (&[Kept], Vec<KeptMinute>),
        places: usize,
    ) -> Restored {
        at_once.retain(|minute| self.at_once.insert((minute.run, minute.begun)));
        let of = |window: &Kept| (window.run, window.begun);
        let tens = kept.iter().filter(|window| window.length == Length::TenMinutes);
        let (mut sums, whole) = (Sums::new(places), tens.map(of).collect::<HashSet<_>>());
        for window in kept {
            match window.length {
                Length::TenMinutes => {
                    if !self.made.contains(&of(window)) && self.tens.insert(of(window)) {
                        sums.add(Length::TenMinutes, window.begun, &window.rows);
                    }
                }
                Length::Minute => {
                    if !self.minutes.insert(of(window)) {
                        continue;
                    }
                    sums.add(Length::Minute, window.begun, &window.rows);
                    let ten = (window.run, Length::TenMinutes.begin(window.begun));
                    if self.made.contains(&ten) || !whole.contains(&ten) {
                        self.made.insert(ten);
                        sums.add(Length::TenMinutes, ten.1, &window.rows);
                    }
                }
            }
        }
        Restored { at_once, ..sums.sealed() }
    }
}

/// Windows of several runs that began at the same time are one.
struct Sums {
    places: usize,
    sketches: BTreeMap<(Length, Time), Sketch>,
}

impl Sums {
    fn new(places: usize) -> Self {
        Self { places, sketches: BTreeMap::new() }
    }

    fn add(&mut self, length: Length, begun: Time, rows: &[KeptRow]) {
        let new = || Sketch::new(length.places(self.places), 0);
        let sketch = self.sketches.entry((length, begun)).or_insert_with(new);
        rows.iter().for_each(|KeptRow(key, stats)| sketch.merge(*key, stats));
    }

    fn sealed(self) -> Restored {
        let mut restored = Restored { minutes: Vec::new(), tens: Vec::new(), at_once: Vec::new() };
        for ((length, begun), sketch) in self.sketches {
            let sealed = Sealed::of_others(begun, &sketch);
            match length {
                Length::Minute => restored.minutes.push(sealed),
                Length::TenMinutes => restored.tens.push(sealed),
            }
        }
        restored
    }
}

#[cfg(test)]
mod tests;
