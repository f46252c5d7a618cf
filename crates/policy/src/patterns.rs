//! The values that one condition names.

/// Values of one condition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patterns {
    /// Sorted.
    pub(crate) exact: Vec<Box<[u8]>>,
    pub(crate) prefixes: Vec<Box<[u8]>>,
    /// `*`: any value, but there must be one.
    pub(crate) present: bool,
}

/// The longest name of a schema, 64 characters of utf8mb4.
const NAME_LEN_MAX: usize = 256;

/// The name of a schema in lower case, as far as it is ASCII: some servers have all of them so
/// (`lower_case_table_names`), whatever a client writes.
pub(crate) struct Folded {
    bytes: [u8; NAME_LEN_MAX],
    len: usize,
}

impl Folded {
    /// That of a longer name is empty: no server has one.
    pub(crate) fn of(name: &[u8]) -> Self {
        let mut folded = Self { bytes: [0; NAME_LEN_MAX], len: 0 };
        if let Some(bytes) = folded.bytes.get_mut(..name.len()) {
            bytes.copy_from_slice(name);
            bytes.make_ascii_lowercase();
            folded.len = name.len();
        }
        folded
    }

    /// The name.
    pub(crate) fn name(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Patterns {
    /// The same values in lower case.
    pub(crate) fn in_lower_case(self) -> Self {
        let lower = |values: Vec<Box<[u8]>>| {
            let mut values: Vec<Box<[u8]>> =
                values.iter().map(|value| value.to_ascii_lowercase().into()).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        Self { exact: lower(self.exact), prefixes: lower(self.prefixes), present: self.present }
    }

    /// Adds `*`, `prefix*` or a value.
    pub(crate) fn add(&mut self, pattern: &str) {
        match pattern.strip_suffix('*') {
            Some("") => self.present = true,
            Some(prefix) => self.prefixes.push(prefix.as_bytes().into()),
            None => {
                let value: Box<[u8]> = pattern.as_bytes().into();
                if let Err(at) = self.exact.binary_search(&value) {
                    self.exact.insert(at, value);
                }
            }
        }
    }

    /// Whether it names no value.
    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.prefixes.is_empty() && !self.present
    }

    /// Whether `value` is one of them. An empty value is an absent one.
    pub(crate) fn matches(&self, value: &[u8]) -> bool {
        if value.is_empty() {
            return false;
        }
        self.present
            || self.exact.binary_search_by(|exact| (**exact).cmp(value)).is_ok()
            || self.prefixes.iter().any(|prefix| value.starts_with(prefix))
    }

    /// Whether the whole app, or one of its levels, is one of them.
    pub(crate) fn matches_app(&self, app: &[u8]) -> bool {
        self.matches(app) || app.split(|byte| *byte == b':').any(|level| self.matches(level))
    }
}
