//! Whether those who were refused were told the truth.
//!
//! The *truth* has two sides. Too short was what was told to a session that came back then and was admitted much
//! later. Its own admission cannot show what was told too long, for it was not there. So its *turn* is looked at, too:
//! a line moves on by one with each admission, whoever is admitted, and its turn has come when the line has moved on by
//! as many as had asked before it and were not admitted when it was refused, there or told to come back. A session that
//! comes back too soon has given its place away, and its turn alone tells both.
//!
//! A line is what is served first come first served: the sessions of one identity, or all of an app whose sessions have
//! an identity each.
//!
//! A refusal is judged if the run goes on for twice what was told, by what had come by then. Judging those alone that
//! were admitted before the end would leave out who was told too short, as the more the later it was refused.

use std::collections::{BTreeMap, BTreeSet};

use admission::{IdentityKey, MonoTime};

use super::World;

/// A Sluice, an app there, and an identity of it if that has several sessions.
pub(super) type LineKey = (usize, usize, Option<IdentityKey>);

/// Who asks and has not been admitted, by lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: BTreeMap<LineKey, Line>,
}

#[derive(Debug, Default)]
struct Line {
    /// Since when each session asks, here or told to come back.
    places: BTreeSet<(MonoTime, usize)>,
    admitted: usize,
    /// Refusals, by how many are admitted when their turns have come.
    turns: BTreeMap<usize, Vec<usize>>,
}

impl Lines {
    /// This session asks, and its place goes by `since`.
    pub(super) fn ask(&mut self, line: LineKey, since: MonoTime, session: usize) {
        self.lines.entry(line).or_default().places.insert((since, session));
    }

    /// It has given that place away.
    pub(super) fn leave(&mut self, line: LineKey, since: MonoTime, session: usize) {
        if let Some(line) = self.lines.get_mut(&line) {
            line.places.remove(&(since, session));
        }
    }

    /// It was refused, and keeps its place: the number of that refusal. How many are before it.
    pub(super) fn refused(
        &mut self,
        line: LineKey,
        (since, session): (MonoTime, usize),
        refusal: usize,
    ) -> usize {
        let Some(line) = self.lines.get_mut(&line) else { return 0 };
        let before = line.places.range(..(since, session)).count();
        let turn = line.admitted.saturating_add(before).saturating_add(1);
        line.turns.entry(turn).or_default().push(refusal);
        before
    }

    /// It is admitted: the refusals whose turns have come with that.
    pub(super) fn admitted(
        &mut self,
        line: LineKey,
        since: MonoTime,
        session: usize,
    ) -> Vec<usize> {
        let Some(line) = self.lines.get_mut(&line) else { return Vec::new() };
        line.places.remove(&(since, session));
        line.admitted = line.admitted.saturating_add(1);
        line.turns.remove(&line.admitted).unwrap_or_default()
    }
}

/// What came of what the sessions of an app were told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    judged: f64,
    right: f64,
}

impl Told {
    fn note(&mut self, right: bool) {
        self.judged += 1.0;
        self.right += if right { 1.0 } else { 0.0 };
    }

    /// `None` if nothing could be judged.
    pub(super) fn part(self) -> Option<f64> {
        (self.judged > 0.0).then(|| self.right / self.judged)
    }
}

impl World<'_> {
    /// The same by app.
    pub(super) fn told(&self) -> Vec<Told> {
        let mut told = vec![Told::default(); self.scenario.apps.len()];
        let from = MonoTime::ZERO.saturating_add(self.scenario.warmup);
        for refused in self.refused.iter().filter(|refused| refused.at >= from) {
            let app = self.sessions.get(refused.session).map(|session| session.app);
            let Some(of_app) = app.and_then(|app| told.get_mut(app)) else { continue };
            if let Some(right) = refused.told_right(self.end, self.scenario.check_interval) {
                of_app.note(right);
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> MonoTime {
        MonoTime::from_nanos(s.saturating_mul(1_000_000_000))
    }

    #[test]
    fn a_turn_has_come_when_the_line_has_moved_on_whoever_was_served() {
        let mut lines = Lines::default();
        let line = (0, 0, None);
        for session in 1..=3 {
            lines.ask(line, at(1), session);
        }
        lines.ask((0, 1, None), at(0), 9);
        lines.refused(line, (at(1), 3), 100);
        lines.refused(line, (at(1), 1), 101);
        lines.ask(line, at(2), 4);
        assert_eq!(lines.admitted((0, 1, None), at(0), 9), Vec::<usize>::new());
        assert_eq!(lines.admitted(line, at(2), 4), [101]);
        assert_eq!(lines.admitted(line, at(1), 2), Vec::<usize>::new());
        assert_eq!(lines.admitted(line, at(1), 1), [100]);
    }
}
