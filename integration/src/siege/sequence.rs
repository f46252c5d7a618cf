//! What one client sends, as a value and as lines of text.
//!
//! ```text
//! sequence a name of words
//! login user=besieged leg=plain
//! query SELECT 1
//! query@1 SELECT 2
//! prepare+ INSERT INTO w.t VALUES (1)
//! execute 1 0 value
//! ```
//!
//! `@N` says which of the sequence's connections (0 unless told), `+` that the step goes out in one
//! write with the next one, `/N` that the write is cut behind so many bytes. Bytes that are not
//! printable ASCII are `\xNN`, and a backslash is two.

use std::fmt::{self, Write as _};

use crate::error::{HarnessError, Result};

/// A login, and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// Which traps it was made from, or what it shows.
    pub name: String,
    /// How each of its connections logs in.
    pub entry: Entry,
    /// In order.
    pub steps: Vec<Step>,
}

/// Who logs in, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The user as it stands in the login; the account is what is in the quotes, if there are any.
    pub user: String,
    /// Which listener.
    pub leg: Leg,
    /// Whether the client asks for TLS.
    pub tls: bool,
    /// `z` for zlib, `s` for zstd.
    pub compress: Option<char>,
    /// Capability flags that the client does not ask for.
    pub without: u32,
    /// Capability flags that it asks for beside the usual.
    pub with: u32,
    /// The collation's number.
    pub collation: u8,
    /// Bytes sent right behind the login response, in the same write.
    pub ahead: Vec<u8>,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            user: "besieged".into(),
            leg: Leg::Plain,
            tls: false,
            compress: None,
            without: 0,
            with: 0,
            collation: 45,
            ahead: Vec::new(),
        }
    }
}

/// Which of Sluice's listeners: they differ in how the server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Leg {
    /// Encrypted when the client is.
    Plain,
    /// Never encrypted behind Sluice.
    Front,
    /// Always encrypted behind Sluice.
    Back,
    /// By the server's Unix socket.
    Socket,
}

impl Leg {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Front, Self::Back, Self::Socket];

    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Front => "front",
            Self::Back => "back",
            Self::Socket => "socket",
        }
    }
}

/// One thing sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// On which connection.
    pub conn: u8,
    /// Whether it goes out in one write with the next step.
    pub joined: bool,
    /// Where its bytes are cut into two writes.
    pub cut: Option<u16>,
    /// What.
    pub act: Act,
}

impl Step {
    /// On the first connection, whole, in a write of its own.
    #[must_use]
    pub fn new(act: Act) -> Self {
        Self { conn: 0, joined: false, cut: None, act }
    }
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// COM_QUERY.
    Query(Vec<u8>),
    /// COM_QUERY behind so many blanks: a text of several packets.
    Padded(u32, Vec<u8>),
    /// COM_STMT_PREPARE.
    Prepare(Vec<u8>),
    /// COM_STMT_EXECUTE of the connection's n-th prepared statement (from 1; 0 is the id −1).
    Execute {
        /// Which.
        nth: u32,
        /// The flags' byte.
        flags: u8,
        /// Strings, one for each parameter.
        params: Vec<Vec<u8>>,
    },
    /// COM_STMT_SEND_LONG_DATA to the n-th prepared statement's first parameter.
    LongData {
        /// Which.
        nth: u32,
        /// What.
        data: Vec<u8>,
    },
    /// Any payload, its first byte the command.
    Command(Vec<u8>),
    /// Bytes as they are, frames' headers among them, that so many answers follow.
    Frames(u8, Vec<u8>),
    /// COM_CHANGE_USER, and what the server asks then.
    ChangeUser(String, u8),
    /// The content that the next LOCAL INFILE request is answered with.
    Infile(Vec<u8>),
}

impl Sequence {
    /// The first connection's default login.
    #[must_use]
    pub fn new(name: &str, acts: impl IntoIterator<Item = Act>) -> Self {
        let steps = acts.into_iter().map(Step::new).collect();
        Self { name: name.into(), entry: Entry::default(), steps }
    }

    /// Reads a file of sequences. Blank lines and lines that begin with `#` are for people.
    ///
    /// # Errors
    /// The first line that cannot be read.
    pub fn parse_all(text: &str) -> Result<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |why: &str| {
                HarnessError::Malformed(format!("line {}: {why}: {line}", number.saturating_add(1)))
            };
            if let Some(name) = line.strip_prefix("sequence ") {
                all.push(Self::new(name, []));
                continue;
            }
            let current = all.last_mut().ok_or_else(|| bad("no sequence has begun"))?;
            if let Some(entry) = line.strip_prefix("login") {
                current.entry = parse_entry(entry).ok_or_else(|| bad("not a login"))?;
            } else {
                current.steps.push(parse_step(line).ok_or_else(|| bad("not a step"))?);
            }
        }
        Ok(all)
    }

    /// Whether one of its texts has one of these words, which are in capitals.
    #[must_use]
    pub fn has_word(&self, words: &[&str]) -> bool {
        let texts = self.steps.iter().map(|step| step.act.bytes().to_ascii_uppercase());
        let has =
            |text: &[u8], word: &str| text.windows(word.len()).any(|part| part == word.as_bytes());
        texts.into_iter().any(|text| words.iter().any(|word| has(&text, word)))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "sequence {}", self.name)?;
        writeln!(f, "login {}", self.entry)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, leg, tls, compress, without, with, collation, ahead } = self;
        write!(f, "user={} leg={}", escaped(user.as_bytes()), leg.name())?;
        if *tls {
            f.write_str(" tls=1")?;
        }
        if let Some(compress) = compress {
            write!(f, " compress={compress}")?;
        }
        if *without != 0 {
            write!(f, " without={without:#x}")?;
        }
        if *with != 0 {
            write!(f, " with={with:#x}")?;
        }
        if *collation != 45 {
            write!(f, " collation={collation}")?;
        }
        if !ahead.is_empty() {
            write!(f, " ahead={}", escaped(ahead).replace(' ', "\\x20"))?;
        }
        Ok(())
    }
}

fn parse_entry(text: &str) -> Option<Entry> {
    let mut entry = Entry::default();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let (key, value) = word.split_once('=')?;
        match key {
            "user" => entry.user = String::from_utf8(unescaped(value)?).ok()?,
            "leg" => entry.leg = Leg::ALL.into_iter().find(|leg| leg.name() == value)?,
            "tls" => entry.tls = value == "1",
            "compress" => entry.compress = value.chars().next(),
            "without" => entry.without = number(value)?,
            "with" => entry.with = number(value)?,
            "collation" => entry.collation = value.parse().ok()?,
            "ahead" => entry.ahead = unescaped(value)?,
            _ => return None,
        }
    }
    Some(entry)
}

fn number(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

impl Act {
    /// The bytes that it is about.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Query(bytes)
            | Self::Padded(_, bytes)
            | Self::Prepare(bytes)
            | Self::LongData { data: bytes, .. }
            | Self::Command(bytes)
            | Self::Frames(_, bytes)
            | Self::Infile(bytes) => bytes,
            Self::Execute { .. } => &[],
            Self::ChangeUser(user, _) => user.as_bytes(),
        }
    }

    /// The text of a statement, when it is one.
    pub fn text_mut(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Query(text) | Self::Padded(_, text) | Self::Prepare(text) => Some(text),
            Self::LongData { .. }
            | Self::Command(_)
            | Self::Frames(..)
            | Self::Infile(_)
            | Self::Execute { .. }
            | Self::ChangeUser(..) => None,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Query(_) => "query",
            Self::Padded(..) => "padded",
            Self::Prepare(_) => "prepare",
            Self::Execute { .. } => "execute",
            Self::LongData { .. } => "long",
            Self::Command(_) => "command",
            Self::Frames(..) => "frames",
            Self::ChangeUser(..) => "user",
            Self::Infile(_) => "infile",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.act.word())?;
        if self.conn != 0 {
            write!(f, "@{}", self.conn)?;
        }
        if let Some(cut) = self.cut {
            write!(f, "/{cut}")?;
        }
        if self.joined {
            f.write_char('+')?;
        }
        match &self.act {
            Act::Query(bytes) | Act::Prepare(bytes) | Act::Command(bytes) | Act::Infile(bytes) => {
                write!(f, " {}", escaped(bytes))
            }
            Act::Padded(n, bytes) => write!(f, " {n} {}", escaped(bytes)),
            Act::Frames(n, bytes) => write!(f, " {n} {}", escaped(bytes)),
            Act::LongData { nth, data } => write!(f, " {nth} {}", escaped(data)),
            Act::ChangeUser(user, collation) => {
                write!(f, " {collation} {}", escaped(user.as_bytes()))
            }
            Act::Execute { nth, flags, params } => {
                write!(f, " {nth} {flags}")?;
                params
                    .iter()
                    .try_for_each(|param| write!(f, " {}", escaped(param).replace(' ', "\\x20")))
            }
        }
    }
}

fn parse_step(line: &str) -> Option<Step> {
    let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (head, joined) = match head.strip_suffix('+') {
        Some(head) => (head, true),
        None => (head, false),
    };
    let (head, cut) = match head.split_once('/') {
        Some((head, cut)) => (head, Some(cut.parse().ok()?)),
        None => (head, None),
    };
    let (word, conn) = match head.split_once('@') {
        Some((word, conn)) => (word, conn.parse().ok()?),
        None => (head, 0),
    };
    let two = || rest.split_once(' ').unwrap_or((rest, ""));
    let act = match word {
        "query" => Act::Query(unescaped(rest)?),
        "prepare" => Act::Prepare(unescaped(rest)?),
        "command" => Act::Command(unescaped(rest)?),
        "infile" => Act::Infile(unescaped(rest)?),
        "padded" => Act::Padded(two().0.parse().ok()?, unescaped(two().1)?),
        "frames" => Act::Frames(two().0.parse().ok()?, unescaped(two().1)?),
        "long" => Act::LongData { nth: two().0.parse().ok()?, data: unescaped(two().1)? },
        "user" => {
            let user = String::from_utf8(unescaped(two().1)?).ok()?;
            Act::ChangeUser(user, two().0.parse().ok()?)
        }
        "execute" => {
            let mut words = rest.split(' ');
            let nth = words.next()?.parse().ok()?;
            let flags = words.next()?.parse().ok()?;
            Act::Execute { nth, flags, params: words.map(unescaped).collect::<Option<_>>()? }
        }
        _ => return None,
    };
    Some(Step { conn, joined, cut, act })
}

fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' => out.push(char::from(*byte)),
            // Writing to a String cannot fail.
            _ => write!(out, "\\x{byte:02x}").unwrap_or_default(),
        }
    }
    out
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let (kind, after) = rest.split_first()?;
        rest = after;
        match kind {
            b'\\' => out.push(b'\\'),
            b'x' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            }
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests;
