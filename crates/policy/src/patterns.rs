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

impl Patterns {
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
