//! Identity in comments.
//!
//! Forms: sqlcommenter `app='a%3Ab',controller='x'`, Rails and marginalia
//! `application:Shop,controller:orders`, `app=a:b:c`, and Vitess directives
//! `vt+ WORKLOAD_NAME=etl PRIORITY=70`. One reader serves the first three, because they mix: a key,
//! `=` or `:`, a value in quotes or not. Comments are prose as often as not: whatever does not fit
//! ends the tags of its comment, and what came before it stands.

/// Most tags read from the comments of one text.
const TAGS_MAX: usize = 64;
/// Longest key and longest value, in bytes, decoded.
const PART_MAX: usize = 255;

/// A key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'t> {
    /// ASCII letters, digits, `_`, `.`, `-`; lower case in Vitess directives, else as written.
    pub key: &'t [u8],
    /// The decoded value: not empty, at most 255 bytes, no control characters.
    pub value: &'t [u8],
}

/// A program known by the comment it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// `/* gh-ost … */`, after the first keyword.
    GhOst,
    /// `/*pt-online-schema-change …*/`, at the end.
    PtOnlineSchemaChange,
    /// `/*checksum chunk*/` and `/*checksum table*/` at the end, `/* pt-table-checksum */`.
    PtTableChecksum,
    /// `/*maintenance:lhm*/` at the end, `/* large hadron migration */`.
    Lhm,
}

impl Tool {
    /// The name of its app.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GhOst => "gh-ost",
            Self::PtOnlineSchemaChange => "pt-online-schema-change",
            Self::PtTableChecksum => "pt-table-checksum",
            Self::Lhm => "lhm",
        }
    }

    /// Whether a connection on which it was seen is its own: what follows there without a comment
    /// is the tool's too. LHM borrows an application's, and says its comment each time.
    #[must_use]
    pub fn keeps_connection(self) -> bool {
        match self {
            Self::GhOst | Self::PtOnlineSchemaChange | Self::PtTableChecksum => true,
            Self::Lhm => false,
        }
    }

    /// The tool whose comment this is: its name is the first word, or it is one of those that it
    /// always says.
    pub(crate) fn of_comment(comment: &[u8]) -> Option<Self> {
        let body = body_of(comment)?.trim_ascii();
        match body {
            b"checksum chunk" | b"checksum table" => return Some(Self::PtTableChecksum),
            b"maintenance:lhm" | b"large hadron migration" => return Some(Self::Lhm),
            _ => {}
        }
        [Self::GhOst, Self::PtOnlineSchemaChange, Self::PtTableChecksum].into_iter().find(|tool| {
            body.strip_prefix(tool.as_str().as_bytes())
                .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
        })
    }
}

/// A tag in the buffer of decoded bytes: its key, and right behind it its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TagSpan {
    pub(crate) start: usize,
    pub(crate) middle: usize,
    pub(crate) end: usize,
}

/// Appends the tags of `comment`, delimiters included.
pub(crate) fn read_tags(comment: &[u8], decoded: &mut Vec<u8>, tags: &mut Vec<TagSpan>) {
    let Some(body) = body_of(comment) else { return };
    let mut out = Out { decoded, tags };
    match body.strip_prefix(b"vt+") {
        Some(directives) => read_directives(directives, &mut out),
        None => read_pairs(body, &mut out),
    }
}

struct Out<'o> {
    decoded: &'o mut Vec<u8>,
    tags: &'o mut Vec<TagSpan>,
}

impl Out<'_> {
    /// Adds a tag whose key and value are written by `key` and `value`; nothing stays of one
    /// that is malformed. An empty value is no tag, and no fault either.
    fn push(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>) -> Option<()>,
        value: impl FnOnce(&mut Vec<u8>) -> Option<()>,
    ) -> Option<()> {
        let start = self.decoded.len();
        let span = self.write(start, key, value);
        match span {
            Some(span) if span.middle < span.end => self.tags.push(span),
            Some(_) | None => self.decoded.truncate(start),
        }
        span.map(|_| ())
    }

    fn write(
        &mut self,
        start: usize,
        key: impl FnOnce(&mut Vec<u8>) -> Option<()>,
        value: impl FnOnce(&mut Vec<u8>) -> Option<()>,
    ) -> Option<TagSpan> {
        if self.tags.len() >= TAGS_MAX {
            return None;
        }
        key(self.decoded)?;
        let middle = self.decoded.len();
        let key = self.decoded.get(start..middle)?;
        if key.is_empty() || key.len() > PART_MAX || !key.iter().all(|byte| is_key(*byte)) {
            return None;
        }
        value(self.decoded)?;
        let end = self.decoded.len();
        let value = self.decoded.get(middle..end)?;
        if value.len() > PART_MAX || value.iter().any(u8::is_ascii_control) {
            return None;
        }
        Some(TagSpan { start, middle, end })
    }
}

/// `key=value`, `key:value`, separated by commas or white space.
fn read_pairs(body: &[u8], out: &mut Out<'_>) {
    let mut rest = body;
    loop {
        rest = skip(rest, |byte| byte == b',' || byte.is_ascii_whitespace());
        if rest.is_empty() {
            return;
        }
        let Some(after) = read_pair(rest, out) else { return };
        rest = after;
    }
}

/// One pair; gives what follows it.
fn read_pair<'b>(rest: &'b [u8], out: &mut Out<'_>) -> Option<&'b [u8]> {
    // Three bytes stand for one at most, so a longer key cannot be a good one.
    let within = rest.get(..rest.len().min(PART_MAX.wrapping_mul(3).wrapping_add(1)))?;
    let at = within.iter().position(|byte| !is_key(*byte) && *byte != b'%')?;
    let (key, after) = rest.split_at_checked(at)?;
    let (&separator, value) = after.split_first()?;
    if separator != b'=' && separator != b':' {
        return None;
    }
    let key = |to: &mut Vec<u8>| percent_decode(key, to);
    let value = if separator == b':' { skip(value, |byte| byte == b' ') } else { value };
    if let Some(quoted) = value.strip_prefix(b"'") {
        let (inner, after) = split_quoted(quoted)?;
        if !after.first().is_none_or(|byte| *byte == b',' || byte.is_ascii_whitespace()) {
            return None;
        }
        out.push(key, |to| decode_quoted(inner, to))?;
        return Some(after);
    }
    let ends = |byte: &u8| *byte == b',' || (separator == b'=' && byte.is_ascii_whitespace());
    let len = value.iter().position(ends).unwrap_or(value.len());
    let (value, after) = value.split_at_checked(len)?;
    let value = value.trim_ascii_end();
    out.push(key, |to| {
        to.extend_from_slice(value.get(..value.len().min(PART_MAX.wrapping_add(1)))?);
        Some(())
    })?;
    Some(after)
}

/// Vitess: words, some of them `KEY=value`; a value may stand in quotes.
fn read_directives(body: &[u8], out: &mut Out<'_>) {
    for word in body.split(u8::is_ascii_whitespace) {
        let Some(at) = word.iter().position(|byte| *byte == b'=') else { continue };
        let Some((key, value)) = word.split_at_checked(at) else { continue };
        let value = unquoted(value.strip_prefix(b"=").unwrap_or(value));
        let lower = |to: &mut Vec<u8>| {
            to.extend(key.iter().take(PART_MAX.wrapping_add(1)).map(u8::to_ascii_lowercase));
            Some(())
        };
        let copy = |to: &mut Vec<u8>| {
            to.extend(value.iter().take(PART_MAX.wrapping_add(1)));
            Some(())
        };
        if out.push(lower, copy).is_none() {
            return;
        }
    }
}

/// The text between the delimiters.
fn body_of(comment: &[u8]) -> Option<&[u8]> {
    comment
        .strip_prefix(b"/*")
        .and_then(|rest| rest.strip_suffix(b"*/"))
        .or_else(|| comment.strip_prefix(b"--"))
        .or_else(|| comment.strip_prefix(b"#"))
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

fn skip(text: &[u8], unwanted: impl Fn(u8) -> bool) -> &[u8] {
    let at = text.iter().position(|byte| !unwanted(*byte)).unwrap_or(text.len());
    text.get(at..).unwrap_or_default()
}

fn unquoted(value: &[u8]) -> &[u8] {
    for quote in [b"'", b"\""] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

/// Splits behind the quote that ends a sqlcommenter value; `\'` does not.
fn split_quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = 0_usize;
    loop {
        let found = memchr::memchr2(b'\'', b'\\', text.get(at..)?)?;
        at = at.wrapping_add(found);
        if text.get(at) == Some(&b'\'') {
            let (inner, after) = text.split_at_checked(at)?;
            return Some((inner, after.strip_prefix(b"'").unwrap_or(after)));
        }
        at = at.wrapping_add(2);
    }
}

/// The inside of a sqlcommenter value: `\'` is a quote, and what comes out is URL-encoded.
fn decode_quoted(inner: &[u8], to: &mut Vec<u8>) -> Option<()> {
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (before, after) = rest.split_at_checked(at)?;
        percent_decode(before, to)?;
        let (&escaped, after) = after.strip_prefix(b"\\").unwrap_or(after).split_first()?;
        to.push(escaped);
        rest = after;
    }
    percent_decode(rest, to)
}

/// `%3A` to `:`; nothing for a `%` without two hexadecimal digits.
fn percent_decode(text: &[u8], to: &mut Vec<u8>) -> Option<()> {
    if text.len() > PART_MAX.wrapping_mul(3) {
        return None;
    }
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            to.push(byte);
            continue;
        }
        let (digits, after) = tail.split_at_checked(2)?;
        let mut value = 0_u8;
        for digit in digits {
            let digit =
                char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())?;
            value = (value << 4) | digit;
        }
        to.push(value);
        rest = after;
    }
    Some(())
}

#[cfg(test)]
mod tests;
