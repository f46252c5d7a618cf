//! All prefixes of a value that are known, in logarithmic time.
//!
//! The prefixes are sorted. The last one that is not greater than the value is either a prefix of
//! it, or shares with it every known prefix of the value: whatever sorts between a prefix and the
//! value begins with that prefix. So all of them lie on the chain of that entry's own prefixes.

/// Rules by prefix.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefixes {
    /// Sorted by prefix.
    entries: Vec<PrefixEntry>,
}

#[derive(Debug, Clone)]
struct PrefixEntry {
    prefix: Box<[u8]>,
    /// The longest other entry that is a prefix of this one.
    parent: Option<usize>,
    /// Ascending.
    rules: Vec<u32>,
}

impl Prefixes {
    /// Every prefix with its rule; of one prefix, rules come in ascending order.
    pub(super) fn new(mut pairs: Vec<(Box<[u8]>, u32)>) -> Self {
        pairs.sort();
        let mut entries: Vec<PrefixEntry> = Vec::new();
        for (prefix, rule) in pairs {
            match entries.last_mut() {
                Some(last) if last.prefix == prefix => last.rules.push(rule),
                Some(_) | None => {
                    entries.push(PrefixEntry { prefix, parent: None, rules: vec![rule] });
                }
            }
        }
        let mut prefixes = Self { entries };
        prefixes.link();
        prefixes
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn link(&mut self) {
        let mut chain: Vec<usize> = Vec::new();
        for at in 0..self.entries.len() {
            let Some(prefix) = self.entries.get(at).map(|entry| &entry.prefix) else { continue };
            while chain
                .last()
                .and_then(|last| self.entries.get(*last))
                .is_some_and(|last| !prefix.starts_with(&last.prefix))
            {
                chain.pop();
            }
            let parent = chain.last().copied();
            chain.push(at);
            if let Some(entry) = self.entries.get_mut(at) {
                entry.parent = parent;
            }
        }
    }

    /// The rules of every prefix of `value`, the longest first.
    pub(super) fn of<'i>(&'i self, value: &'i [u8]) -> impl Iterator<Item = &'i [u32]> {
        let after = self.entries.partition_point(|entry| *entry.prefix <= *value);
        let mut next = after.checked_sub(1);
        std::iter::from_fn(move || {
            loop {
                let entry = self.entries.get(next?)?;
                next = entry.parent;
                if value.starts_with(&entry.prefix) {
                    return Some(entry.rules.as_slice());
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_prefix_is_found() {
        let known = ["a", "ab", "abc", "abd", "b", "etl-", "etl-n", "etl-night", "zz"];
        let pairs = (0_u32..).zip(known).map(|(rule, prefix)| (prefix.as_bytes().into(), rule));
        let prefixes = Prefixes::new(pairs.collect());
        for value in ["", "a", "abcd", "abz", "etl-nightly", "etl-morning", "zzz", "c", "abd"] {
            let mut found: Vec<u32> = prefixes.of(value.as_bytes()).flatten().copied().collect();
            found.sort_unstable();
            let expected: Vec<u32> = (0_u32..)
                .zip(known)
                .filter(|(_, prefix)| value.starts_with(prefix))
                .map(|(rule, _)| rule)
                .collect();
            assert_eq!(found, expected, "{value}");
        }
    }
}
