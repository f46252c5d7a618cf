//! The functions that a text calls and that are not built in.

/// Most different functions of one text that are told apart.
const CALLS_MAX: usize = 8;

/// Where a text names functions that are not built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Calls {
    /// Start and end of each name, with its schema if it has one.
    places: [(u32, u32); CALLS_MAX],
    len: u8,
    /// What is called is more than `places` says: a procedure, a function that cannot be told, or
    /// one function too many.
    pub(crate) others: bool,
    /// The text changes the default schema, so a name alone may be of any.
    pub(crate) changes_schema: bool,
}

/// A function as a text names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Callee<'t> {
    pub(crate) schema: Option<&'t [u8]>,
    pub(crate) name: &'t [u8],
}

impl Calls {
    /// Notes the name at `start..end` of `text`.
    pub(crate) fn push(&mut self, text: &[u8], start: usize, end: usize) {
        let bytes = text.get(start..end);
        if !self.spans().any(|(start, end)| text.get(start..end) == bytes) {
            self.add(start, end);
        }
    }

    fn add(&mut self, start: usize, end: usize) {
        match (u32::try_from(start), u32::try_from(end), self.places.get_mut(usize::from(self.len)))
        {
            (Ok(start), Ok(end), Some(place)) => {
                *place = (start, end);
                self.len = self.len.wrapping_add(1);
            }
            _ => self.others = true,
        }
    }

    /// What either of two readings of a text calls.
    pub(crate) fn merged(mut self, other: &Self) -> Self {
        self.others |= other.others;
        self.changes_schema |= other.changes_schema;
        for span in other.spans() {
            if !self.spans().any(|known| known == span) {
                self.add(span.0, span.1);
            }
        }
        self
    }

    /// Whether `harmless` holds for every function that is called, and nothing else is.
    pub(crate) fn are_all(&self, text: &[u8], harmless: impl Fn(Callee<'_>) -> bool) -> bool {
        !self.others
            && self.spans().all(|(start, end)| {
                let callee = text.get(start..end).and_then(callee);
                callee.is_some_and(|callee| {
                    (callee.schema.is_some() || !self.changes_schema) && harmless(callee)
                })
            })
    }

    /// Every function that is called, if each can be told and nothing else is called.
    pub(crate) fn list<'t>(&self, text: &'t [u8]) -> Option<Vec<Callee<'t>>> {
        if self.others {
            return None;
        }
        self.spans()
            .map(|(start, end)| {
                let callee = text.get(start..end).and_then(callee)?;
                (callee.schema.is_some() || !self.changes_schema).then_some(callee)
            })
            .collect()
    }

    fn spans(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let index = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
        self.places
            .iter()
            .take(usize::from(self.len))
            .map(move |(start, end)| (index(*start), index(*end)))
    }
}

/// Reads `name` or `schema.name`, quoted by backticks or not. A name that could be read in several
/// ways is none.
fn callee(bytes: &[u8]) -> Option<Callee<'_>> {
    let (first, rest) = identifier(bytes)?;
    if rest.is_empty() {
        return Some(Callee { schema: None, name: first });
    }
    let rest = rest.trim_ascii_start().strip_prefix(b".")?.trim_ascii_start();
    let (second, rest) = identifier(rest)?;
    rest.is_empty().then_some(Callee { schema: Some(first), name: second })
}

fn identifier(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    if let Some(quoted) = bytes.strip_prefix(b"`") {
        let len = memchr::memchr(b'`', quoted)?;
        let (name, rest) = quoted.split_at_checked(len)?;
        let rest = rest.strip_prefix(b"`")?;
        return (name.iter().all(plain) && !name.is_empty()).then_some((name, rest));
    }
    let len = bytes.iter().position(|byte| !plain(byte)).unwrap_or(bytes.len());
    let (name, rest) = bytes.split_at_checked(len)?;
    (!name.is_empty()).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(Option<&str>, &str)> {
        let string = |bytes| std::str::from_utf8(bytes).expect("ASCII");
        callee(text.as_bytes()).map(|callee| (callee.schema.map(string), string(callee.name)))
    }

    #[test]
    fn a_name_is_read_only_where_it_can_be_read_in_one_way() {
        assert_eq!(parts("f"), Some((None, "f")));
        assert_eq!(parts("`f`"), Some((None, "f")));
        assert_eq!(parts("d.f"), Some((Some("d"), "f")));
        assert_eq!(parts("`d` . `f`"), Some((Some("d"), "f")));
        for text in ["", "``", "`a``b`", "d./**/f", "a.b.c", "\u{e9}", "`\u{e9}`", "\"f\"", "d."] {
            assert_eq!(parts(text), None, "{text}");
        }
    }

    #[test]
    fn more_functions_than_are_told_apart_are_others() {
        let text: String = (0..20).map(|n| format!("f{n:02} ")).collect();
        let mut calls = Calls::default();
        for _ in 0..2 {
            for at in 0..CALLS_MAX {
                calls.push(text.as_bytes(), at * 4, at * 4 + 3);
            }
        }
        assert!(calls.are_all(text.as_bytes(), |callee| callee.name.starts_with(b"f")));
        calls.push(text.as_bytes(), 60, 63);
        assert!(!calls.are_all(text.as_bytes(), |_| true));
    }
}
