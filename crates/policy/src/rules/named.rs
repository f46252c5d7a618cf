//! Things by the value that a rule names, in maps that share what is the same in both.

use crate::fnv;
use crate::patterns::Patterns;

use super::trie::Trie;

/// What a runtime rule says of an app or a user: one value at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named<'r> {
    /// Nothing.
    Anybody,
    /// `*`.
    Somebody,
    Prefix(&'r [u8]),
    Exactly(&'r [u8]),
}

impl<'r> Named<'r> {
    /// Of a condition that has no more than one value.
    pub(super) fn of(condition: Option<&'r Patterns>) -> Self {
        let Some(Patterns { exact, prefixes, present }) = condition else { return Self::Anybody };
        match (exact.first(), prefixes.first(), present) {
            (Some(value), _, _) => Self::Exactly(value),
            (None, Some(prefix), _) => Self::Prefix(prefix),
            (None, None, _) => Self::Somebody,
        }
    }

    /// How closely it says who: closer comes first.
    pub(super) fn closeness(self) -> u8 {
        match self {
            Self::Anybody => 0,
            Self::Somebody => 1,
            Self::Prefix(_) => 2,
            Self::Exactly(_) => 3,
        }
    }
}

/// Something for each value that is named.
#[derive(Debug, Clone)]
pub(super) struct ByNamed<V> {
    anybody: Option<V>,
    somebody: Option<V>,
    prefixes: ByBytes<V>,
    exactly: ByBytes<V>,
    /// The lengths of the prefixes, ascending, each with how many have it: as many as a name has
    /// bytes, at most.
    lens: Vec<(usize, usize)>,
}

impl<V> Default for ByNamed<V> {
    fn default() -> Self {
        Self {
            anybody: None,
            somebody: None,
            prefixes: ByBytes::default(),
            exactly: ByBytes::default(),
            lens: Vec::new(),
        }
    }
}

impl<V: Clone> ByNamed<V> {
    pub(super) fn is_empty(&self) -> bool {
        self.anybody.is_none()
            && self.somebody.is_none()
            && self.prefixes.is_empty()
            && self.exactly.is_empty()
    }

    pub(super) fn get(&self, named: Named<'_>) -> Option<&V> {
        match named {
            Named::Anybody => self.anybody.as_ref(),
            Named::Somebody => self.somebody.as_ref(),
            Named::Prefix(prefix) => self.prefixes.get(prefix),
            Named::Exactly(value) => self.exactly.get(value),
        }
    }

    /// Puts it there, or takes out what is there.
    pub(super) fn set(&mut self, named: Named<'_>, value: Option<V>) {
        match named {
            Named::Anybody => self.anybody = value,
            Named::Somebody => self.somebody = value,
            Named::Prefix(prefix) => {
                let was_there = self.prefixes.get(prefix).is_some();
                self.count(prefix.len(), was_there, value.is_some());
                self.prefixes.set(prefix, value);
            }
            Named::Exactly(name) => self.exactly.set(name, value),
        }
    }

    fn count(&mut self, len: usize, was_there: bool, is_there: bool) {
        let at = self.lens.partition_point(|(known, _)| *known < len);
        if self.lens.get(at).is_none_or(|(known, _)| *known != len) {
            self.lens.insert(at, (len, 0));
        }
        if let Some((_, count)) = self.lens.get_mut(at) {
            *count = count.saturating_add(usize::from(is_there));
            *count = count.saturating_sub(usize::from(was_there));
        }
        self.lens.retain(|(_, count)| *count > 0);
    }

    /// What is there for those who say nothing of it.
    pub(super) fn of_anybody(&self) -> Option<&V> {
        self.anybody.as_ref()
    }

    /// What is there for a value: by its name, by its prefixes, by its being there. An empty one is
    /// an absent one.
    pub(super) fn of<'m, 'v>(
        &'m self,
        value: &'v [u8],
    ) -> impl Iterator<Item = &'m V> + use<'m, 'v, V> {
        let value = (!value.is_empty()).then_some(value);
        let exactly = value.and_then(|value| self.exactly.get(value));
        let prefixes = value.into_iter().flat_map(|value| {
            let lens = self.lens.iter().take_while(|(len, _)| *len <= value.len());
            lens.filter_map(|(len, _)| self.prefixes.get(value.get(..*len)?))
        });
        exactly.into_iter().chain(prefixes).chain(value.and(self.somebody.as_ref()))
    }
}

/// Something for each name.
#[derive(Debug, Clone)]
pub(super) struct ByBytes<V> {
    /// By hash; those whose hashes are the same are looked through.
    buckets: Trie<Vec<(Box<[u8]>, V)>>,
}

impl<V> Default for ByBytes<V> {
    fn default() -> Self {
        Self { buckets: Trie::default() }
    }
}

impl<V: Clone> ByBytes<V> {
    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&V> {
        if self.buckets.is_empty() {
            return None;
        }
        let bucket = self.buckets.get(fnv::plain(name))?;
        bucket.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Puts it there, or takes out what is there.
    pub(super) fn set(&mut self, name: &[u8], value: Option<V>) {
        let hash = fnv::plain(name);
        let mut bucket = self.buckets.get(hash).cloned().unwrap_or_default();
        bucket.retain(|(known, _)| **known != *name);
        bucket.extend(value.map(|value| (name.into(), value)));
        self.buckets = if bucket.is_empty() {
            self.buckets.without(hash)
        } else {
            self.buckets.with(hash, bucket)
        };
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.buckets.from(0).flat_map(|(_, bucket)| bucket.iter().map(|(_, value)| value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<V> ByBytes<V> {
        pub(in crate::rules) fn made_beside(&self, before: &Self) -> usize {
            self.buckets.made_beside(&before.buckets)
        }
    }

    impl<V> ByNamed<V> {
        pub(in crate::rules) fn made_beside(&self, before: &Self) -> usize {
            let Self { prefixes, exactly, .. } = self;
            let made = prefixes.made_beside(&before.prefixes);
            made.saturating_add(exactly.made_beside(&before.exactly))
        }
    }

    #[test]
    fn a_value_finds_its_name_its_prefixes_and_what_is_for_somebody() {
        let mut by: ByNamed<&str> = ByNamed::default();
        let all = [
            (Named::Anybody, "anybody"),
            (Named::Somebody, "*"),
            (Named::Prefix(b"et"), "et*"),
            (Named::Prefix(b"etl-"), "etl-*"),
            (Named::Prefix(b"web"), "web*"),
            (Named::Exactly(b"etl-night"), "etl-night"),
        ];
        for (named, word) in all {
            by.set(named, Some(word));
        }
        let of =
            |by: &ByNamed<&'static str>, value: &[u8]| by.of(value).copied().collect::<Vec<_>>();
        assert_eq!(of(&by, b"etl-night"), ["etl-night", "et*", "etl-*", "*"]);
        assert_eq!(of(&by, b"e"), ["*"]);
        assert_eq!(of(&by, b""), [""; 0], "an empty value is an absent one");
        assert_eq!(by.of_anybody(), Some(&"anybody"));
        for (named, _) in all {
            assert!(!by.is_empty());
            by.set(named, None);
            assert_eq!(by.get(named), None);
        }
        assert!(by.is_empty() && by.lens.is_empty());
    }

    #[test]
    fn names_of_one_hash_are_told_apart() {
        let mut by = ByBytes::default();
        by.set(b"a", Some(1));
        let hash = fnv::plain(b"a");
        let mut bucket = by.buckets.get(hash).cloned().unwrap();
        bucket.push((b"its twin"[..].into(), 2));
        by.buckets = by.buckets.with(hash, bucket);
        by.set(b"a", None);
        assert_eq!(by.values().copied().collect::<Vec<_>>(), [2]);
    }
}
