//! What is known of texts and of their like.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use tokio::time::Instant;

use super::{FRESH, Foreseen, Subject};

/// Most that is kept, of some 50 bytes each: the oldest leaves first.
const KEPT_MAX: usize = 20_000;

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

/// What the server has said, and when.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// So many rows, or why that is not known.
    said: Result<u64, Foreseen>,
    at: Instant,
}

impl Entry {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < FRESH
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
    /// was said; that nothing was to be known of its like lately; or what was lately said of itself.
    pub(super) fn find(&self, server: &Arc<str>, subject: &Subject, now: Instant) -> Option<Known> {
        if self.server.as_ref() != Some(server) {
            return None;
        }
        let of_like = self.entries.get(&subject.of_like)?;
        let is_fresh = of_like.is_fresh(now);
        match of_like.said {
            Ok(rows) if rows <= subject.most => {
                Some(Known { foreseen: Foreseen::Cached(rows), is_stale: !is_fresh })
            }
            Ok(_) => {
                let of_text = self.entries.get(&subject.of_text)?;
                let rows = of_text.said.ok().filter(|_| of_text.is_fresh(now))?;
                Some(Known { foreseen: Foreseen::Cached(rows), is_stale: false })
            }
            Err(foreseen) => is_fresh.then_some(Known { foreseen, is_stale: false }),
        }
    }

    /// What the server has said of this text since then.
    pub(super) fn said(&self, of_text: Key, since: Instant) -> Option<Foreseen> {
        let entry = self.entries.get(&of_text).filter(|entry| entry.at >= since)?;
        Some(entry.said.map_or_else(|foreseen| foreseen, Foreseen::Asked))
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
        self.put(subject.of_text, Entry { said, at });
        let before = self.entries.get(&subject.of_like).filter(|entry| entry.is_fresh(at));
        let of_like = match (before.map(|entry| entry.said), said) {
            // The largest of late: those with other values are asked about by themselves then.
            (Some(Ok(before)), Ok(rows)) => Ok(rows.max(before)),
            (Some(Ok(before)), Err(_)) => Ok(before),
            (Some(Err(_)) | None, said) => said,
        };
        // How old it is goes by the first of them, so that a large one is not the largest for ever.
        let at = before.filter(|entry| entry.said.is_ok()).map_or(at, |entry| entry.at);
        self.put(subject.of_like, Entry { said: of_like, at });
        while self.order.len() > KEPT_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.entries.remove(&oldest);
            }
        }
    }

    fn put(&mut self, key: Key, entry: Entry) {
        if self.entries.insert(key, entry).is_none() {
            self.order.push_back(key);
        }
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
        let find = |cache: &Cache, id, now| {
            cache.find(&server, &subject(id, 100), now).map(|known| known.foreseen)
        };
        assert_eq!(find(&cache, 1, now), None);
        cache.note(&server, &subject(5, 100), Ok(5), now);
        assert_eq!(find(&cache, 1, now), Some(Foreseen::Cached(5)));
        cache.note(&server, &subject(900, 100), Ok(900), now);
        assert_eq!(find(&cache, 900, now), Some(Foreseen::Cached(900)));
        assert_eq!(find(&cache, 901, now), None, "another value is asked about");
        assert_eq!(find(&cache, 5, now), Some(Foreseen::Cached(5)));
        cache.note(&server, &subject(6, 100), Ok(6), now);
        assert_eq!(find(&cache, 901, now), None, "the largest of late counts");
        let later = now + FRESH;
        assert_eq!(find(&cache, 5, later), None);
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
        cache.note(&server, &subject(1, 100), Err(Foreseen::Denied), now);
        let find = |at| cache.find(&server, &subject(2, 100), at).map(|known| known.foreseen);
        assert_eq!(find(now), Some(Foreseen::Denied));
        assert_eq!(find(now + FRESH), None);
        let asked = cache.said(subject(1, 100).of_text, now);
        assert_eq!(asked, Some(Foreseen::Denied));
        assert_eq!(cache.said(subject(1, 100).of_text, now + Duration::from_millis(1)), None);
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
