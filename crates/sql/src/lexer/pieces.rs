//! Where one token or one comment ends.

use super::{
    CommentSink, Kind, Lexer,
    bytes::{is_space, is_swe7_letter, is_word},
    executable::{Content, Marker},
};
use crate::mode::{Charset, Server, Setting};

impl<S: CommentSink> Lexer<'_, S> {
    /// A word in a character set that has plain ones, from its first byte on.
    #[inline(always)]
    pub(super) fn plain_word(&mut self) -> Kind {
        self.pos = self.pos.wrapping_add(plain_word_len(self.rest()));
        Kind::Word
    }

    /// A word, from its first byte on.
    pub(super) fn word(&mut self) -> Kind {
        match self.mode.charset {
            Charset::Plain | Charset::Euc | Charset::SingleByte | Charset::Unknown => {
                self.plain_word();
            }
            charset @ (Charset::Latin | Charset::Armscii8 | Charset::Dos) => {
                let rest = self.rest();
                let ends = |&byte: &u8| !is_word(byte) || charset.is_space(byte);
                let len = rest.iter().position(ends).unwrap_or(rest.len());
                self.pos = self.pos.wrapping_add(len);
            }
            Charset::Swe7 => {
                let rest = self.rest();
                let ends = |&byte: &u8| !is_word(byte) && !is_swe7_letter(byte);
                let len = rest.iter().position(ends).unwrap_or(rest.len());
                self.pos = self.pos.wrapping_add(len);
            }
            Charset::Big5 | Charset::Cp932 | Charset::Gbk | Charset::Sjis | Charset::Gb18030 => {
                while self.peek(0).is_some_and(is_word) {
                    self.pos = self.pos.wrapping_add(self.mode.charset.step(self.rest()));
                }
            }
        }
        Kind::Word
    }

    /// A number, or a name that begins with digits: `1`, `1.5`, `1e5`, `0x4D`, `1a`. As in the
    /// server, a number with a fraction or an exponent ends where its digits end (`1e5FOR` is
    /// two tokens), any other that runs into letters is a name.
    pub(super) fn number(&mut self) -> Kind {
        let whole = self.digits();
        match whole {
            Some(b'.') if !self.follows_name_before_digits() => {
                self.pos = self.pos.wrapping_add(1);
                self.fraction()
            }
            Some(b'e' | b'E') if !self.follows_name_before_digits() => {
                if self.exponent() {
                    Kind::Number
                } else {
                    self.word()
                }
            }
            Some(byte) if is_word(byte) => {
                let before = self.pos;
                self.word();
                if self.pos == before { Kind::Number } else { Kind::Word }
            }
            _ => Kind::Number,
        }
    }

    /// What follows the point of a number.
    pub(super) fn fraction(&mut self) -> Kind {
        if let Some(b'e' | b'E') = self.digits() {
            self.exponent();
        }
        Kind::Number
    }

    /// Skips digits; gives the byte after them.
    fn digits(&mut self) -> Option<u8> {
        let rest = self.rest();
        let len = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        self.pos = self.pos.wrapping_add(len);
        rest.get(len).copied()
    }

    /// Skips `e5`, `e+5`, `e-5`; nothing if it is not one.
    fn exponent(&mut self) -> bool {
        let sign = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
        let first = sign.wrapping_add(1);
        if !self.peek(first).is_some_and(|byte| byte.is_ascii_digit()) {
            return false;
        }
        self.pos = self.pos.wrapping_add(first);
        self.digits();
        true
    }

    /// Whether the point just passed separates two names: `t.1a`.
    pub(super) fn follows_name(&self) -> bool {
        let point = self.pos.wrapping_sub(1);
        self.is_name_end(point)
    }

    /// Whether the digits just passed stand after the point of a name: `t.1e5`.
    fn follows_name_before_digits(&self) -> bool {
        let passed = self.text.get(..self.pos).unwrap_or_default();
        let digits = passed.iter().rev().take(64).take_while(|byte| byte.is_ascii_digit()).count();
        let first = self.pos.wrapping_sub(digits);
        let point = first.wrapping_sub(1);
        self.text.get(point) == Some(&b'.') && self.is_name_end(point)
    }

    fn is_name_end(&self, at: usize) -> bool {
        self.text.get(at.wrapping_sub(1)).is_some_and(|&byte| is_word(byte))
    }

    /// `'…'` or `"…"`.
    #[inline]
    pub(super) fn quoted(&mut self, quote: u8) -> Kind {
        if quote == b'"' && self.mode.ansi_quotes == Setting::On {
            return self.name(quote);
        }
        self.pos = self.pos.wrapping_add(1);
        if self.mode.charset.has_ascii_trail() {
            self.quoted_wide(quote, self.mode.no_backslash_escapes != Setting::On);
        } else {
            self.quoted_plain(quote);
        }
        Kind::Text
    }

    fn quoted_plain(&mut self, quote: u8) {
        let escape = if self.mode.no_backslash_escapes == Setting::On { quote } else { b'\\' };
        loop {
            let Some(found) = memchr::memchr2(quote, escape, self.rest()) else {
                return self.unterminated();
            };
            let at = self.pos.wrapping_add(found);
            let first = self.text.get(at).copied();
            self.pos = at.wrapping_add(1);
            if first == Some(quote) && self.peek(0) != Some(quote) {
                return;
            }
            if self.pos >= self.text.len() {
                return self.unterminated();
            }
            self.pos = self.pos.wrapping_add(1);
        }
    }

    /// The same for character sets whose characters may contain a quote or a backslash.
    fn quoted_wide(&mut self, quote: u8, backslash: bool) {
        while let Some(byte) = self.peek(0) {
            let step = self.mode.charset.step(self.rest());
            self.pos = self.pos.wrapping_add(step);
            if step > 1 {
                continue;
            }
            if byte == quote {
                if self.peek(0) != Some(quote) {
                    return;
                }
                self.pos = self.pos.wrapping_add(1);
            } else if byte == b'\\' && backslash {
                if self.peek(0).is_none() {
                    break;
                }
                self.pos = self.pos.wrapping_add(1);
            }
        }
        self.unterminated();
    }

    /// `` `…` ``, or `"…"` with ANSI_QUOTES.
    pub(super) fn name(&mut self, quote: u8) -> Kind {
        self.pos = self.pos.wrapping_add(1);
        if self.mode.charset.has_ascii_trail() {
            self.quoted_wide(quote, false);
            return Kind::Name;
        }
        loop {
            let Some(found) = memchr::memchr(quote, self.rest()) else {
                self.unterminated();
                return Kind::Name;
            };
            self.pos = self.pos.wrapping_add(found).wrapping_add(1);
            if self.peek(0) != Some(quote) {
                return Kind::Name;
            }
            self.pos = self.pos.wrapping_add(1);
        }
    }

    fn unterminated(&mut self) {
        self.broken = true;
        self.pos = self.text.len();
    }

    /// `@name`, `` @`name` ``, `@'name'` or `@@`.
    pub(super) fn variable(&mut self) -> Kind {
        self.pos = self.pos.wrapping_add(1);
        match self.peek(0) {
            Some(b'@') => {
                self.pos = self.pos.wrapping_add(1);
                return Kind::SysVar;
            }
            Some(quote @ (b'\'' | b'"')) => {
                self.quoted(quote);
            }
            Some(b'`') => {
                self.name(b'`');
            }
            _ => {
                let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._$".contains(byte);
                let rest = self.rest();
                let len = rest.iter().position(|byte| !name(byte)).unwrap_or(rest.len());
                self.pos = self.pos.wrapping_add(len);
            }
        }
        Kind::UserVar
    }

    /// `$tag$ … $tag$` where the server knows it, else a word. One without its end is broken; as
    /// releases may differ on it, the text is then read again with `$` as a letter.
    pub(super) fn dollar(&mut self) -> Kind {
        let rest = self.rest();
        let tag = |byte: &u8| is_word(*byte) && *byte != b'$';
        let inner = rest.iter().skip(1).take_while(|byte| tag(byte)).count();
        let len = inner.wrapping_add(2);
        if rest.get(inner.wrapping_add(1)) != Some(&b'$') {
            return self.word();
        }
        self.unsure |= self.mode.server == Server::Unknown;
        if !self.reading.dollar_quotes {
            return self.word();
        }
        self.unsure |= rest.get(1).is_some_and(|byte| byte.is_ascii_digit() || *byte >= 0x80);
        let (delimiter, body) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        match memchr::memmem::find(body, delimiter) {
            Some(at) => self.pos = self.pos.wrapping_add(at).wrapping_add(len).wrapping_add(len),
            None => {
                self.unsure = true;
                self.unterminated();
            }
        }
        Kind::DollarText
    }

    /// A comment, skipped; or the byte is only an operator.
    pub(super) fn comment_or_punct(&mut self, byte: u8) -> Option<Kind> {
        match byte {
            b'#' => self.line_comment(),
            b'-' if self.peek(1) == Some(b'-') && self.ends_dashes() => self.line_comment(),
            b'/' if self.peek(1) == Some(b'*') => self.block_comment(),
            b'*' if self.in_executable && self.peek(1) == Some(b'/') => {
                self.in_executable = false;
                self.pos = self.pos.wrapping_add(2);
            }
            _ => {
                self.pos = self.pos.wrapping_add(1);
                return Some(Kind::Punct(byte));
            }
        }
        None
    }

    /// Whether what follows `--` makes it a comment: white space, a control byte, the end. Which
    /// bytes from 0x80 up are control characters differs from one character set of single bytes to
    /// the next, so the text is broken then.
    fn ends_dashes(&mut self) -> bool {
        match self.peek(2) {
            None => true,
            Some(byte) if byte >= 0x80 && self.mode.charset.is_single_byte() => {
                self.broken = true;
                false
            }
            Some(byte) => is_space(byte) || byte.is_ascii_control(),
        }
    }

    fn line_comment(&mut self) {
        let start = self.pos;
        let rest = self.rest();
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.pos = start.wrapping_add(len);
        if !self.in_executable {
            self.sink.comment(start, self.pos);
        }
    }

    fn block_comment(&mut self) {
        let start = self.pos;
        let marked = match self.text.get(start.wrapping_add(2)..).unwrap_or_default() {
            [b'!', ..] => Some((Marker::MySql, 3)),
            [b'M', b'!', ..] => Some((Marker::MariaDb, 4)),
            _ => None,
        };
        if let Some((marker, head)) = marked {
            return self.executable(marker, head);
        }
        self.pos = start.wrapping_add(2);
        let hint = self.peek(0) == Some(b'+');
        self.comment_end();
        let body = self.text.get(start..self.pos).unwrap_or_default();
        if hint {
            // Hints have a lexer of their own, in which a quote may hide the end of the comment.
            // Since 9.7 it does not.
            self.broken |=
                self.hints_have_quotes() && b"'\"`".iter().any(|quote| is_odd(*quote, body));
        } else if !self.broken && !self.in_executable {
            self.sink.comment(start, self.pos);
        }
    }

    fn hints_have_quotes(&self) -> bool {
        match self.mode.server {
            Server::MySql { version } => version < 90_700,
            Server::Unknown => true,
            Server::MariaDb { version } => version >= 120_000,
        }
    }

    fn executable(&mut self, marker: Marker, head: usize) {
        self.pos = self.pos.wrapping_add(head);
        let rest = self.rest();
        self.unsure |= self.mode.server == Server::Unknown;
        self.unsure |= self.reading.executable.is_unsure(rest);
        match self.reading.executable.content(marker, rest) {
            Content::Code { after } => {
                self.in_executable = true;
                self.pos = self.pos.wrapping_add(after);
            }
            Content::Plain => {
                // Not one character of the marker can be part of the end.
                self.comment_end();
            }
            Content::Nested => self.nested_end(),
        }
    }

    /// Moves behind the next `*/`.
    fn comment_end(&mut self) {
        loop {
            let Some(found) = memchr::memchr(b'*', self.rest()) else {
                return self.unterminated();
            };
            self.pos = self.pos.wrapping_add(found).wrapping_add(1);
            if self.peek(0) == Some(b'/') {
                self.pos = self.pos.wrapping_add(1);
                return;
            }
        }
    }

    /// The same, over comments inside the comment, one level deep.
    fn nested_end(&mut self) {
        loop {
            let Some(found) = memchr::memchr2(b'*', b'/', self.rest()) else {
                return self.unterminated();
            };
            self.pos = self.pos.wrapping_add(found);
            match (self.peek(0), self.peek(1)) {
                (Some(b'*'), Some(b'/')) => {
                    self.pos = self.pos.wrapping_add(2);
                    return;
                }
                (Some(b'/'), Some(b'*')) => {
                    self.pos = self.pos.wrapping_add(2);
                    self.comment_end();
                }
                _ => self.pos = self.pos.wrapping_add(1),
            }
        }
    }
}

/// How many bytes of a plain word `text` begins with. It is what takes most of the time of reading
/// a text, so four of them are looked at in one go.
#[inline(always)]
fn plain_word_len(text: &[u8]) -> usize {
    let mut len = 0_usize;
    let mut rest = text;
    while let [first, second, third, fourth, behind @ ..] = rest {
        let words = [is_word(*first), is_word(*second), is_word(*third), is_word(*fourth)];
        match words {
            [true, true, true, true] => {
                len = len.wrapping_add(4);
                rest = behind;
            }
            [false, _, _, _] => return len,
            [_, false, _, _] => return len.wrapping_add(1),
            [_, _, false, _] => return len.wrapping_add(2),
            [_, _, _, false] => return len.wrapping_add(3),
        }
    }
    for byte in rest {
        if !is_word(*byte) {
            break;
        }
        len = len.wrapping_add(1);
    }
    len
}

fn is_odd(byte: u8, text: &[u8]) -> bool {
    memchr::memchr_iter(byte, text).count() % 2 == 1
}
