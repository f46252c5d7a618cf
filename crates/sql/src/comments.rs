//! The comments of a statement, kept from one statement to the next.
//!
//! A connection tends to send the same comment again and again, so the tags are read only when the
//! bytes of the comments differ from those of the statement before.

use crate::{
    lexer::CommentSink,
    tags::{Tag, TagSpan, Tool, read_tags},
};

/// Most comments of one text that are looked at; applications add one or two.
const COMMENTS_MAX: usize = 32;
/// Most bytes of comments that are looked at; the tags of one comment fit many times.
const COMMENT_BYTES_MAX: usize = 8 * 1024;

/// Bytes of comments, and of decoded tags, that a [`Scratch`] keeps.
const BYTES_KEPT: usize = 1024;

/// Comments, and tags, that a [`Scratch`] keeps places for.
const SPANS_KEPT: usize = 32;

/// Buffers that `describe` reuses; one for each connection.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Where the comments of this statement are.
    pub(crate) spans: Spans,
    /// The same for another reading of the same text.
    pub(crate) other_spans: Spans,
    /// The comments of the latest statement that had any others than the one before, each with a
    /// line end behind it.
    raw: Vec<u8>,
    /// Keys and values of the tags, decoded.
    decoded: Vec<u8>,
    tags: Vec<TagSpan>,
    tool: Option<Tool>,
    generation: u64,
}

impl Scratch {
    /// Gives memory back that unusually long comments have grown; what is remembered of the latest
    /// goes with it. What usual comments need stays, so this may be called after every statement.
    pub fn shrink(&mut self) {
        let kept = self.raw.capacity() <= BYTES_KEPT
            && self.decoded.capacity() <= BYTES_KEPT
            && self.tags.capacity() <= SPANS_KEPT
            && self.spans.0.capacity() <= SPANS_KEPT
            && self.other_spans.0.capacity() <= SPANS_KEPT;
        if kept {
            return;
        }
        let generation = self.generation.wrapping_add(u64::from(!self.raw.is_empty()));
        *self = Self { generation, ..Self::default() };
    }

    /// Reads the tags of the comments at `spans` of `text`, unless they are those of last time.
    pub(crate) fn remember(&mut self, text: &[u8]) {
        if self.is_same(text) {
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        self.raw.clear();
        self.decoded.clear();
        self.tags.clear();
        self.tool = None;
        for &(start, end) in &self.spans.0 {
            let comment = text.get(start..end).unwrap_or_default();
            self.raw.extend_from_slice(comment);
            self.raw.push(b'\n');
            if self.tool.is_none() {
                self.tool = Tool::of_comment(comment);
            }
            read_tags(comment, &mut self.decoded, &mut self.tags);
        }
    }

    fn is_same(&self, text: &[u8]) -> bool {
        let mut known = self.raw.as_slice();
        for &(start, end) in &self.spans.0 {
            let comment = text.get(start..end).unwrap_or_default();
            match known.strip_prefix(comment).and_then(|rest| rest.strip_prefix(b"\n")) {
                Some(rest) => known = rest,
                None => return false,
            }
        }
        known.is_empty()
    }

    pub(crate) fn raw(&self) -> &[u8] {
        &self.raw
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn tool(&self) -> Option<Tool> {
        self.tool
    }

    pub(crate) fn tags(&self) -> Tags<'_> {
        Tags { spans: self.tags.iter(), decoded: &self.decoded }
    }
}

/// The tags of a statement, in the order of the text.
#[derive(Clone, Debug)]
pub struct Tags<'t> {
    spans: std::slice::Iter<'t, TagSpan>,
    decoded: &'t [u8],
}

impl<'t> Iterator for Tags<'t> {
    type Item = Tag<'t>;

    fn next(&mut self) -> Option<Tag<'t>> {
        let span = self.spans.next()?;
        Some(Tag {
            key: self.decoded.get(span.start..span.middle)?,
            value: self.decoded.get(span.middle..span.end)?,
        })
    }
}

/// Places of comments in a text: as many, and as long together, as are looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(Vec<(usize, usize)>);

impl Spans {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets a line comment that the end of a cut text has cut as well.
    pub(crate) fn forget_cut(&mut self, text: &[u8]) {
        if let Some(&(start, end)) = self.0.last()
            && end == text.len()
            && text.get(start) != Some(&b'/')
        {
            self.0.pop();
        }
    }
}

impl CommentSink for &mut Spans {
    fn comment(&mut self, start: usize, end: usize) {
        let first = self.0.first().map_or(start, |(first, _)| *first);
        // The bytes between the comments do not count, so this is only a quick upper bound.
        if end.saturating_sub(first) > COMMENT_BYTES_MAX {
            let sum = |sum: usize, span: &(usize, usize)| {
                sum.saturating_add(span.1.saturating_sub(span.0))
            };
            let have = self.0.iter().fold(end.saturating_sub(start), sum);
            if have > COMMENT_BYTES_MAX {
                return;
            }
        }
        if self.0.len() < COMMENTS_MAX {
            self.0.push((start, end));
        }
    }
}
