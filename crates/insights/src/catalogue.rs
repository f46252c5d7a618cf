//! What hashes stand for: texts of digests, names of apps, schemas and users.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::hash::Seeded;
use crate::kept::KeptName;

/// The longest digest text, or sample, that is kept: the server's own `max_digest_length`.
pub const TEXT_LEN_MAX: usize = 1024;

/// The longest name that is kept.
pub const NAME_LEN_MAX: usize = 255;

/// What all texts and names take together, in bytes: some 50,000 everyday texts.
const BYTES_MAX: usize = 12 << 20;

/// From so much on it is looked what can be forgotten.
const NEARLY_FULL: usize = BYTES_MAX / 4 * 3;

/// What an entry takes beside its text, about.
const ENTRY_LEN: usize = 96;

/// What a hash stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Learned {
    /// A name, by [`crate::name_hash`].
    Name {
        /// Its hash.
        hash: u64,
        /// The name.
        name: Box<[u8]>,
    },
    /// Tags.
    Tags {
        /// What stands for them.
        hash: u64,
        /// Key, NUL, value, NUL; again and again.
        pairs: Box<[u8]>,
    },
    /// A digest.
    Digest {
        /// Its hash.
        hash: u64,
        /// Its text, which may be cut at [`TEXT_LEN_MAX`].
        text: Box<[u8]>,
        /// Its tables: schema, NUL, table, NUL; again and again. An empty schema is the default
        /// one of whoever asks, an empty table stands for every one of the schema.
        tables: Box<[u8]>,
        /// Whether these are all.
        all_tables: bool,
        /// What kind of statement it is.
        kind: Kind,
        /// A statement as it came, if that is wanted.
        sample: Option<Box<[u8]>>,
    },
}

/// What kind of statement a digest is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kind {
    /// The classes that its text has, the one that it counts as first.
    pub classes: Vec<Cow<'static, str>>,
    /// Why nothing may hold it back.
    pub exemption: Option<Cow<'static, str>>,
}

/// The texts and names.
#[derive(Debug)]
pub(crate) struct Catalogue {
    names: HashMap<u64, Box<[u8]>, Seeded>,
    digests: HashMap<u64, DigestText, Seeded>,
    bytes: usize,
}

/// What is known of a digest.
#[derive(Debug)]
pub(crate) struct DigestText {
    pub(crate) text: Box<[u8]>,
    tables: Box<[u8]>,
    pub(crate) all_tables: bool,
    pub(crate) kind: Kind,
    pub(crate) sample: Option<Box<[u8]>>,
}

impl DigestText {
    /// Schema and name of its tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut parts = self.tables.split(|byte| *byte == 0);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    fn len(&self) -> usize {
        let sample = self.sample.as_ref().map_or(0, |sample| sample.len());
        let texts = self.text.len().saturating_add(self.tables.len()).saturating_add(sample);
        texts.saturating_add(ENTRY_LEN)
    }
}

impl Catalogue {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            names: HashMap::with_hasher(Seeded(seed)),
            digests: HashMap::with_hasher(Seeded(seed)),
            bytes: 0,
        }
    }

    /// Keeps it, if there is room. What is known already stays as it is, but for a sample that was not
    /// there.
    pub(crate) fn learn(&mut self, learned: Learned) {
        match learned {
            Learned::Name { hash, name } | Learned::Tags { hash, pairs: name } => {
                let len = name.len().saturating_add(ENTRY_LEN);
                if self.has_room(len) && !self.names.contains_key(&hash) {
                    self.names.insert(hash, name);
                    self.bytes = self.bytes.saturating_add(len);
                }
            }
            Learned::Digest { hash, text, tables, all_tables, kind, sample } => {
                let learned = DigestText { text, tables, all_tables, kind, sample };
                let known = self.digests.get(&hash).map(DigestText::len);
                // Of what was before the process there is no sample.
                let is_less =
                    |known: &DigestText| known.sample.is_none() && learned.sample.is_some();
                if known.is_some() && !self.digests.get(&hash).is_some_and(is_less) {
                    return;
                }
                let len = learned.len().saturating_sub(known.unwrap_or_default());
                if self.has_room(len) {
                    self.digests.insert(hash, learned);
                    self.bytes = self.bytes.saturating_add(len);
                }
            }
        }
    }

    fn has_room(&self, len: usize) -> bool {
        self.bytes.saturating_add(len) <= BYTES_MAX
    }

    /// Whether it is time to forget what nothing refers to.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.bytes > NEARLY_FULL
    }

    /// Forgets all but these.
    pub(crate) fn retain(&mut self, used: &HashSet<u64, Seeded>) {
        self.names.retain(|hash, _| used.contains(hash));
        self.digests.retain(|hash, _| used.contains(hash));
        let names = self.names.values().map(|name| name.len().saturating_add(ENTRY_LEN));
        let digests = self.digests.values().map(DigestText::len);
        self.bytes = names.chain(digests).fold(0, usize::saturating_add);
    }

    /// What the hash stands for. `None`: it is not known any more, or never was.
    pub(crate) fn name(&self, hash: u64) -> Option<&[u8]> {
        if hash == 0 { Some(b"") } else { self.names.get(&hash).map(|name| &**name) }
    }

    /// Keys and values of tags. `None`: they are not known.
    pub(crate) fn tags(&self, hash: u64) -> Option<Vec<(String, String)>> {
        let pairs = self.name(hash)?;
        let mut parts = pairs.split(|byte| *byte == 0);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pair = || Some((text(parts.next()?), text(parts.next()?)));
        Some(std::iter::from_fn(pair).collect())
    }

    pub(crate) fn digest(&self, hash: u64) -> Option<&DigestText> {
        self.digests.get(&hash)
    }

    /// A name, as it is kept beyond the process.
    pub(crate) fn kept_name(&self, hash: u64) -> Option<KeptName> {
        self.names.get(&hash).map(|name| KeptName::Name(in_utf8(name)))
    }

    /// Tags, likewise.
    pub(crate) fn kept_tags(&self, hash: u64) -> Option<KeptName> {
        self.names.get(&hash).map(|pairs| KeptName::Tags(in_utf8(pairs)))
    }

    /// A digest, likewise.
    pub(crate) fn kept_digest(&self, hash: u64) -> Option<KeptName> {
        let DigestText { text, tables, all_tables, kind, sample: _ } = self.digests.get(&hash)?;
        Some(KeptName::Digest {
            text: in_utf8(text),
            tables: in_utf8(tables),
            all_tables: *all_tables,
            classes: kind.classes.iter().map(|class| class.clone().into_owned()).collect(),
            exemption: kind.exemption.clone().map(Cow::into_owned),
        })
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn in_utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
