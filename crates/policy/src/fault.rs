//! What is wrong with a file, where.

use std::fmt;

/// Most faults that are collected: an operator reads the first few, and a file that is wrong
/// throughout is wrong in one way.
pub(crate) const FAULTS_MAX: usize = 1_000;

/// One thing wrong with the configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key it is about, as in `rules[3].ratio`; empty for the file as a whole.
    pub path: String,
    /// The line it is on, counted from 1.
    pub line: u32,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "line {}: {}", self.line, self.message)
        } else {
            write!(f, "line {}: {}: {}", self.line, self.path, self.message)
        }
    }
}

impl std::error::Error for Fault {}

/// Where a value stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The keys on the way to it, as in `rules[3].ratio`; empty for the file as a whole.
    pub path: String,
    /// Its line, counted from 1.
    pub line: u32,
}

impl Place {
    /// The place of the value of `key` in the mapping that stands here.
    #[must_use]
    pub fn key(&self, key: &str, line: u32) -> Self {
        let path =
            if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { path, line }
    }

    /// The place of an element of the list that stands here.
    #[must_use]
    pub fn element(&self, index: usize, line: u32) -> Self {
        Self { path: format!("{}[{index}]", self.path), line }
    }
}

/// Collects faults.
#[derive(Debug, Default)]
pub struct Faults {
    list: Vec<Fault>,
    /// Faults beyond the bound: they are only counted.
    more: usize,
}

impl Faults {
    /// Notes that what stands at `place` is wrong.
    pub fn add(&mut self, place: &Place, message: impl Into<String>) {
        if self.list.len() < FAULTS_MAX {
            let Place { path, line } = place.clone();
            self.list.push(Fault { path, line, message: message.into() });
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Notes it unless one of these keys of the mapping at `of` has a fault of its own: nobody knows
    /// what it was meant to say, and putting that right may be all that is needed.
    pub(crate) fn add_unless_of(
        &mut self,
        (of, keys): (&Place, &[&str]),
        place: &Place,
        message: impl Into<String>,
    ) {
        if !self.is_about(of, keys) {
            self.add(place, message);
        }
    }

    /// Whether something is wrong with the value of one of these keys of the mapping at `of`.
    #[must_use]
    pub fn is_about(&self, of: &Place, keys: &[&str]) -> bool {
        let is_about = |fault: &Fault| {
            let below = fault.path.strip_prefix(of.path.as_str());
            let below = below.and_then(|path| match of.path.as_str() {
                "" => Some(path),
                _ => path.strip_prefix('.'),
            });
            let key = below.and_then(|path| path.split(['.', '[']).next());
            key.is_some_and(|key| keys.contains(&key))
        };
        self.list.iter().any(is_about)
    }

    /// Whether nothing is wrong so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them, in the order of the file.
    #[must_use]
    pub fn into_sorted(mut self) -> Vec<Fault> {
        self.list.sort_by_key(|fault| fault.line);
        self.list.dedup();
        if let (Some(last), 1..) = (self.list.last(), self.more) {
            let (line, message) = (last.line, format!("and {} more", self.more));
            self.list.push(Fault { path: String::new(), line, message });
        }
        self.list
    }
}
