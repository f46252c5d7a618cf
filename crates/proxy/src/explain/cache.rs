//! What is known of texts and of their like.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{FRESH, Foreseen, Subject};

/// Most that is kept, of some 50 bytes each: the oldest leaves first.
const KEPT_MAX: usize = 20_000;

/// What was not answered, for a lock, a right that is missing or a fault, is asked about again behind
/// this, and twice as long each time that it is not answered again, up to the second.
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(8);

/// A text or a digest in a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(u64);

impl Key {
    pub(super) fn of(schema: &str, bytes: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (schema, bytes).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// What the server has said.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// So many rows, and when it said so.
    rows: Option<(u64, Instant)>,
    /// What came in place of an answer since.
    unknown: Option<Unknown>,
}

#[derive(Clone, Copy, Debug)]
struct Unknown {
    why: Foreseen,
    at: Instant,
    /// Nobody asks before.
    again: Instant,
    delay: Duration,
}

impl Entry {
    fn fresh(&self, now: Instant) -> Option<(u64, Instant)> {
        self.rows.filter(|(_, at)| now.saturating_duration_since(*at) < FRESH)
    }

    /// Whether it may be asked about. Where nothing was answered last, by one alone until that is.
    fn may_ask(&mut self, now: Instant) -> bool {
        let Some(unknown) = &mut self.unknown else { return true };
        let may = now >= unknown.again;
        if may {
            unknown.again = now + unknown.delay;
        }
        may
    }

    fn note_unknown(&mut self, why: Foreseen, at: Instant) {
        if why != Foreseen::TimedOut {
            self.rows = self.fresh(at);
        }
        let delay = match (why, self.unknown) {
            (Foreseen::NotExplained, _) => FRESH,
            (_, Some(before)) => (2 * before.delay).min(AGAIN_MAX),
            (_, None) => AGAIN_MIN,
        };
        self.unknown = Some(Unknown { why, at, again: at + delay, delay });
    }
}

/// What is known of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) foreseen: Foreseen,
    /// It is to be asked about again.
    pub(super) is_stale: bool,
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Whose words they are.
    server: Option<Arc<str>>,
    entries: HashMap<Key, Entry>,
    /// In the order in which they came.
    order: VecDeque<Key>,
}

impl Cache {
    /// What is known of a statement: that its like is expected to read little, however long ago that
    /// was said; what was lately said of itself; or that nothing was to be known of its like lately.
    pub(super) fn find(
        &mut self,
        server: &Arc<str>,
        subject: &Subject,
        now: Instant,
    ) -> Option<Known> {
        if self.server.as_ref() != Some(server) {
            return None;
        }
        let own = self.entries.get(&subject.of_text).copied().unwrap_or_default();
        let of_like = self.entries.get_mut(&subject.of_like)?;
        if let Some((rows, _)) = of_like.rows.filter(|(rows, _)| *rows <= subject.most) {
            let is_stale = of_like.fresh(now).is_none() && of_like.may_ask(now);
            return Some(Known { foreseen: Foreseen::Cached(rows), is_stale });
        }
        let of_own = |(rows, _)| Known { foreseen: Foreseen::Cached(rows), is_stale: false };
        if let Some(fresh) = own.fresh(now).filter(|_| of_like.rows.is_some()) {
            return Some(of_own(fresh));
        }
        let why = of_like.unknown?.why;
        let unknown = Known { foreseen: why, is_stale: false };
        (!of_like.may_ask(now)).then(|| own.rows.map_or(unknown, of_own))
    }

    /// What the server has said of this text since then, or before, if it says nothing now.
    pub(super) fn said(&self, of_text: Key, since: Instant) -> Option<Foreseen> {
        let entry = self.entries.get(&of_text)?;
        if let Some(unknown) = entry.unknown.filter(|unknown| unknown.at >= since) {
            return Some(self.last_said(of_text).unwrap_or(unknown.why));
        }
        let (rows, _) = entry.rows.filter(|(_, at)| *at >= since)?;
        Some(Foreseen::Asked(rows))
    }

    /// How many rows the server has said of this text, however long ago.
    pub(super) fn last_said(&self, of_text: Key) -> Option<Foreseen> {
        let (rows, _) = self.entries.get(&of_text)?.rows?;
        Some(Foreseen::Cached(rows))
    }

    /// Whether another one has found since then that nothing is to be known of its like: that is said
    /// of this text as well then.
    pub(super) fn shares_unknown(
        &mut self,
        subject: &Subject,
        since: Instant,
        at: Instant,
    ) -> bool {
        let of_like = self.entries.get(&subject.of_like).and_then(|entry| entry.unknown);
        let Some(unknown) = of_like.filter(|unknown| unknown.at >= since) else { return false };
        self.entry(subject.of_text).note_unknown(unknown.why, at);
        true
    }

    pub(super) fn note(
        &mut self,
        server: &Arc<str>,
        subject: &Subject,
        said: Result<u64, Foreseen>,
        at: Instant,
    ) {
        if self.server.as_ref() != Some(server) {
            *self = Self { server: Some(Arc::clone(server)), ..Self::default() };
        }
        let own = self.entry(subject.of_text);
        match said {
            Ok(rows) => *own = Entry { rows: Some((rows, at)), unknown: None },
            Err(why) => own.note_unknown(why, at),
        }
        let of_like = self.entry(subject.of_like);
        match said {
            // The largest of late: those with other values are asked about by themselves then. How old
            // it is goes by the first of them, so that a large one is not the largest for ever.
            Ok(rows) => {
                let (before, at) = of_like.fresh(at).unwrap_or((rows, at));
                *of_like = Entry { rows: Some((rows.max(before), at)), unknown: None };
            }
            // It may be its own values that the server refuses.
            Err(Foreseen::Failed) if of_like.rows.is_some() => {}
            Err(why) => of_like.note_unknown(why, at),
        }
        while self.order.len() > KEPT_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.entries.remove(&oldest);
            }
        }
    }

    fn entry(&mut self, key: Key) -> &mut Entry {
        self.entries.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            Entry::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sql::Server;

    use super::*;

    fn subject(id: u32, most: u64) -> Subject {
        let text = format!("SELECT * FROM t WHERE id < {id}");
        Subject::of(text.as_bytes(), Some(b"test"), Server::Unknown, most).unwrap()
    }

    #[test]
    fn names_with_their_schemas_need_no_default_schema() {
        let of = |text: &str| Subject::of(text.as_bytes(), None, Server::Unknown, 9);
        for text in
            ["SELECT * FROM a.t", "UPDATE `a`.`t` SET b = 1", "INSERT INTO a.t SELECT 1 FROM b.u"]
        {
            assert!(of(text).is_ok(), "{text}");
        }
        for text in [
            "SELECT * FROM t",
            "SELECT * FROM a.t, u",
            "WITH c AS (SELECT 1 FROM a.t) SELECT * FROM c",
            "SELECT * FROM a.t WHERE b IN (SELECT c FROM u)",
        ] {
            assert_eq!(of(text).err(), Some(Foreseen::NotExplained), "{text}");
        }
    }

    #[test]
    fn a_statement_passes_by_its_like_and_is_refused_by_its_own_word() {
        let (mut cache, server) = (Cache::default(), Arc::from("db:3306"));
        let now = Instant::now();
        let find = |cache: &mut Cache, id, now| {
            cache.find(&server, &subject(id, 100), now).map(|known| known.foreseen)
        };
        assert_eq!(find(&mut cache, 1, now), None);
        cache.note(&server, &subject(5, 100), Ok(5), now);
        assert_eq!(find(&mut cache, 1, now), Some(Foreseen::Cached(5)));
        cache.note(&server, &subject(900, 100), Ok(900), now);
        assert_eq!(find(&mut cache, 900, now), Some(Foreseen::Cached(900)));
        assert_eq!(find(&mut cache, 901, now), None, "another value is asked about");
        assert_eq!(find(&mut cache, 5, now), Some(Foreseen::Cached(5)));
        cache.note(&server, &subject(6, 100), Ok(6), now);
        assert_eq!(find(&mut cache, 901, now), None, "the largest of late counts");
        let later = now + FRESH;
        assert_eq!(find(&mut cache, 5, later), None);
        cache.note(&server, &subject(6, 100), Ok(6), later);
        let known = cache.find(&server, &subject(7, 100), later + FRESH).unwrap();
        assert_eq!(known, Known { foreseen: Foreseen::Cached(6), is_stale: true });
        let other = Arc::from("db2:3306");
        assert_eq!(cache.find(&other, &subject(7, 100), later), None, "another server");
    }

    #[test]
    fn what_was_not_to_be_known_is_not_asked_again_at_once() {
        let (mut cache, server) = (Cache::default(), Arc::from("db:3306"));
        let now = Instant::now();
        let mut at = now;
        for (why, delay) in [
            (Foreseen::Denied, AGAIN_MIN),
            (Foreseen::TimedOut, 2 * AGAIN_MIN),
            (Foreseen::Failed, 4 * AGAIN_MIN),
            (Foreseen::Failed, AGAIN_MAX),
            (Foreseen::Failed, AGAIN_MAX),
            (Foreseen::NotExplained, FRESH),
        ] {
            cache.note(&server, &subject(1, 100), Err(why), at);
            let mut find =
                |at| cache.find(&server, &subject(2, 100), at).map(|known| known.foreseen);
            assert_eq!(find(at + delay - Duration::from_millis(1)), Some(why));
            at += delay;
            assert_eq!(find(at), None, "{why:?}");
            assert_eq!(find(at), Some(why), "one asks");
        }
        let of_text = subject(1, 100).of_text;
        assert_eq!(cache.said(of_text, now), Some(Foreseen::NotExplained));
        assert_eq!(cache.said(of_text, at), None);
        assert!(!cache.shares_unknown(&subject(3, 100), at, at));
        assert_eq!(cache.said(subject(3, 100).of_text, now), None);
        assert!(cache.shares_unknown(&subject(3, 100), now, at));
        assert_eq!(cache.said(subject(3, 100).of_text, at), Some(Foreseen::NotExplained));
    }

    /// A lock that one EXPLAIN met had the guard let pass all of its digest for a minute.
    #[test]
    fn no_answer_does_not_displace_one() {
        let (mut cache, server) = (Cache::default(), Arc::from("db:3306"));
        let now = Instant::now();
        for (id, rows) in [(1, 1), (900, 900)] {
            cache.note(&server, &subject(id, 100), Ok(rows), now);
        }
        let later = now + FRESH;
        let find = |cache: &mut Cache, id, most, at| {
            cache
                .find(&server, &subject(id, most), at)
                .map(|known| (known.foreseen, known.is_stale))
        };
        assert_eq!(find(&mut cache, 900, 100, later), None);
        cache.note(&server, &subject(900, 100), Err(Foreseen::TimedOut), later);
        let told = Some((Foreseen::Cached(900), false));
        assert_eq!(find(&mut cache, 900, 100, later), told, "it is not asked at once");
        assert_eq!(find(&mut cache, 901, 100, later), Some((Foreseen::TimedOut, false)));
        assert_eq!(cache.said(subject(900, 100).of_text, later), told.map(|(told, _)| told));
        // Its like reads little by another guard's limit.
        let little = |is_stale| Some((Foreseen::Cached(900), is_stale));
        assert_eq!(find(&mut cache, 902, 1000, later), little(false));
        let again = later + AGAIN_MIN;
        assert_eq!(find(&mut cache, 902, 1000, again), little(true));
        assert_eq!(find(&mut cache, 902, 1000, again), little(false));
        // A text that cannot run says nothing of its like.
        cache.note(&server, &subject(900, 100), Ok(900), again);
        cache.note(&server, &subject(903, 100), Err(Foreseen::Failed), again);
        assert_eq!(find(&mut cache, 904, 100, again), None, "it is asked");
        assert_eq!(find(&mut cache, 900, 100, again), told);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let (mut cache, server) = (Cache::default(), Arc::from("db:3306"));
        for id in 0..30_000_u64 {
            let own = Subject { of_text: Key(id), of_like: Key(id + 1_000_000), ..subject(1, 1) };
            cache.note(&server, &own, Ok(1), Instant::now());
        }
        assert_eq!((cache.entries.len(), cache.order.len()), (KEPT_MAX, KEPT_MAX));
    }
}
