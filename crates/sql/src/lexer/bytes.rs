//! What a byte may begin, as a table of 256.

/// What a byte begins where no token has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// Nothing that the lexer has to look into: operators, brackets, commas.
    Punct,
    Space,
    Word,
    Digit,
    /// `'` or `"`.
    Quote,
    Backtick,
    Dash,
    Hash,
    Slash,
    Star,
    Semicolon,
    At,
    Dollar,
    Dot,
    /// 0x80 and up: part of a word, or not, as the character set says.
    High,
}

/// What `byte` begins.
#[inline]
pub(super) fn start_of(byte: u8) -> Start {
    STARTS.get(usize::from(byte)).copied().unwrap_or(Start::Punct)
}

/// Whether `byte`, below 0x80, can stand inside an unquoted word.
#[inline]
pub(super) fn is_word(byte: u8) -> bool {
    WORDS.get(usize::from(byte)).copied().unwrap_or(false)
}

/// Whether `byte` is a letter in swe7 and in no other character set.
pub(crate) fn is_swe7_letter(byte: u8) -> bool {
    matches!(byte, b'[' | b'\\' | b']' | b'^' | b'{' | b'}' | b'~')
}

/// Whether what `byte` means depends on `sql_mode` or on the character set. Behind a byte from 0x80
/// up any other may, so such a byte stands for them.
pub(crate) fn depends_on_mode(byte: u8) -> bool {
    byte >= 0x80 || byte == b'"' || is_swe7_letter(byte)
}

/// Whether the server's lexer skips `byte` as white space.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}

/// Whether a bracket may stand at `byte`, or behind it if it is skipped: it is white space, may be
/// or begins or ends a comment.
#[inline]
pub(crate) fn is_before_bracket(byte: u8) -> bool {
    BEFORE_BRACKET.get(usize::from(byte)).copied().unwrap_or(true)
}

static STARTS: [Start; 256] = starts();
/// Word bytes in every character set, and 0x80 and up for those where they are letters.
static WORDS: [bool; 256] = words();
/// See [`is_before_bracket`].
static BEFORE_BRACKET: [bool; 256] = before_bracket();

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler, where a fault stops the build"
)]
const fn starts() -> [Start; 256] {
    let mut table = [Start::Punct; 256];
    let mut byte = 0_u8;
    let mut at = 0_usize;
    while at < 256 {
        table[at] = classify(byte);
        at += 1;
        byte = byte.wrapping_add(1);
    }
    table
}

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler, where a fault stops the build"
)]
const fn words() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    let mut at = 0_usize;
    while at < 256 {
        table[at] =
            matches!(classify(byte), Start::Word | Start::Digit | Start::Dollar | Start::High);
        at += 1;
        byte = byte.wrapping_add(1);
    }
    table
}

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler, where a fault stops the build"
)]
const fn before_bracket() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    let mut at = 0_usize;
    while at < 256 {
        table[at] = matches!(byte, 0..=b' ' | b'(' | b'*' | b'/' | b'#' | b'-' | 0x80..);
        at += 1;
        byte = byte.wrapping_add(1);
    }
    table
}

const fn classify(byte: u8) -> Start {
    match byte {
        b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r' => Start::Space,
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => Start::Word,
        b'0'..=b'9' => Start::Digit,
        b'\'' | b'"' => Start::Quote,
        b'`' => Start::Backtick,
        b'-' => Start::Dash,
        b'#' => Start::Hash,
        b'/' => Start::Slash,
        b'*' => Start::Star,
        b';' => Start::Semicolon,
        b'@' => Start::At,
        b'$' => Start::Dollar,
        b'.' => Start::Dot,
        0x80.. => Start::High,
        _ => Start::Punct,
    }
}
