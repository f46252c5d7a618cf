//! What is counted, and what it is called.

use std::collections::HashSet;

use crate::catalogue::{Catalogue, Learned};
use crate::hash::Seeded;
use crate::kept::{Kept, KeptMinute, KeptName, KeptRow, Mark, Restored};
use crate::record::Record;
use crate::seconds::Seconds;
use crate::sketch::{Digest, NOBODY};
use crate::stats::Stats;
use crate::tag_sets::TagSets;
use crate::view::{Look, Pieces, Sums, View};
use crate::windows::{Time, Windows};

/// What the statements of one cluster have cost.
#[derive(Debug)]
pub struct Insights {
    windows: Windows,
    catalogue: Catalogue,
    seconds: Seconds,
    tags: TagSets,
    seed: u64,
    now: Time,
    /// When texts were last forgotten.
    tidied: Time,
}

/// Texts are forgotten no more often: then all that are in use have to be told again.
const TIDY_INTERVAL_S: u64 = 60;

impl Insights {
    /// Nothing has come. A minute has so many places (`max_digests`); `seed` keeps clients from
    /// choosing digests that slow it down.
    #[must_use]
    pub fn new(places: usize, seed: u64, now: Time) -> Self {
        Self {
            windows: Windows::new(places, seed, now),
            catalogue: Catalogue::new(seed),
            seconds: Seconds::new(seed),
            tags: TagSets::new(seed),
            seed,
            now,
            tidied: Time(0),
        }
    }

    /// Windows that begin from now on have so many places.
    pub fn set_places(&mut self, places: usize) {
        self.windows.set_places(places);
    }

    /// It is this time now. A clock that is put back stands still meanwhile.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.windows.advance(self.now);
    }

    /// Adds a statement that was over at about the time of now.
    pub fn observe(&mut self, record: &Record) {
        self.seconds.observe(record, self.now);
        match self.tags.admit(record.tags, self.now) {
            same if same == record.tags => self.windows.observe(record, self.now),
            tags => self.windows.observe(&Record { tags, ..*record }, self.now),
        }
    }

    /// Adds statements of which nobody knows whose they were: totals stay exact.
    pub fn observe_lost(&mut self, stats: &Stats) {
        self.windows.observe_rest(NOBODY, stats);
    }

    /// Keeps what a hash stands for.
    pub fn learn(&mut self, learned: Learned) {
        // What is not told apart needs no name: a flood of values would take the room of texts.
        if let Learned::Tags { hash, .. } = &learned
            && self.tags.admit(*hash, self.now) != *hash
        {
            return;
        }
        self.catalogue.learn(learned);
    }

    /// Forgets texts and names that no window refers to, when there is little room left. True: some
    /// are gone, and whoever sends their hashes has to say again what they stand for.
    pub fn tidy(&mut self) -> bool {
        let is_soon = self.now.before(TIDY_INTERVAL_S) < self.tidied;
        if is_soon || !self.catalogue.is_nearly_full() {
            return false;
        }
        self.tidied = self.now;
        let mut used = HashSet::with_hasher(Seeded(self.seed));
        for key in self.windows.keys() {
            used.extend([key.app, key.schema, key.user, key.tags]);
            if let Digest::Of(digest) = key.digest {
                used.insert(digest);
            }
        }
        used.extend(self.seconds.apps());
        self.catalogue.retain(&used);
        true
    }

    /// What is over of this run's windows, and has begun behind the mark, which moves on.
    #[must_use]
    pub fn over(&self, run: i64, mark: &mut Mark) -> Vec<Kept> {
        self.windows.to_keep(run, mark)
    }

    /// What has begun and is not over: for a run that ends.
    #[must_use]
    pub fn unfinished(&self, run: i64) -> Vec<Kept> {
        self.windows.unfinished(run)
    }

    /// What apps did in the seconds of the minutes behind the mark of which nothing more comes, and the
    /// mark moves on.
    pub fn at_once_over(&self, run: i64, mark: &mut Mark) -> Vec<KeptMinute> {
        self.seconds.over(run, self.now, &mut mark.at_once)
    }

    /// The same of all minutes behind the mark: for a run that ends.
    #[must_use]
    pub fn at_once_unfinished(&self, run: i64, mark: &Mark) -> Vec<KeptMinute> {
        self.seconds.unfinished(run, mark.at_once)
    }

    /// What the hashes in kept windows stand for, but for those that were told before. Apps have their
    /// names by their windows.
    pub fn names(&self, of: &[Kept], told: &mut HashSet<u64>) -> Vec<(u64, KeptName)> {
        let mut names = Vec::new();
        let mut name = |hash: u64, kept: fn(&Catalogue, u64) -> Option<KeptName>| {
            if hash != 0
                && !told.contains(&hash)
                && let Some(name) = kept(&self.catalogue, hash)
            {
                told.insert(hash);
                names.push((hash, name));
            }
        };
        for KeptRow(key, _) in of.iter().flat_map(|window| &window.rows) {
            if let Digest::Of(digest) = key.digest {
                name(digest, Catalogue::kept_digest);
            }
            for hash in [key.app, key.schema, key.user] {
                name(hash, Catalogue::kept_name);
            }
            name(key.tags, Catalogue::kept_tags);
        }
        names
    }

    /// Takes in what other runs have kept, and what they called it.
    pub fn restore(&mut self, mut restored: Restored, names: Vec<(u64, KeptName)>) {
        self.seconds.restore(std::mem::take(&mut restored.at_once), self.now);
        self.windows.restore(restored);
        names.into_iter().for_each(|(hash, name)| self.catalogue.learn(name.learned(hash)));
    }

    /// How many places a minute has.
    #[must_use]
    pub fn places(&self) -> usize {
        self.windows.places()
    }

    /// The windows that are asked for.
    #[must_use]
    pub fn pieces(&self, look: &Look) -> Pieces {
        Pieces::of(&self.windows, look, self.now)
    }

    /// Names what was made of windows.
    #[must_use]
    pub fn name(&self, sums: &Sums, look: &Look) -> View {
        let mut view = View::of(sums, &self.catalogue, look);
        let apps = self.seconds.between(view.from, view.to).into_iter();
        let named = apps.filter_map(|(app, by_second)| {
            let name = self.catalogue.name(app)?;
            Some((String::from_utf8_lossy(name).into_owned(), by_second))
        });
        view.by_second = named.collect();
        view.by_second.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        view
    }

    /// What a window shows.
    #[must_use]
    pub fn look(&self, look: &Look) -> View {
        self.name(&self.pieces(look).add_up(), look)
    }
}

#[cfg(test)]
mod tests;
