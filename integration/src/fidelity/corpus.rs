//! The format of the corpus.
//!
//! One step a line; blank lines and lines that begin with `#` are for people. A step is
//! `[expectation] @verb arguments`, or just a statement.
//!
//! | expectation | meaning |
//! |---|---|
//! | none | succeeds on both servers |
//! | `[mysql]`, `[mariadb]` | succeeds on that one; whatever on the other |
//! | `[!]` | ends in an ERR on both |
//! | `[?]` | whatever, but the same |
//!
//! | step | what is sent |
//! |---|---|
//! | `SQL` | COM_QUERY |
//! | `@both SQL` | COM_QUERY; then COM_STMT_PREPARE, COM_STMT_EXECUTE and COM_STMT_CLOSE of the same |
//! | `@attr k=v,k=v SQL` | COM_QUERY with query attributes, when the client has them; else without |
//! | `@prepare NAME SQL` | COM_STMT_PREPARE; `NAME` is for the steps below |
//! | `@execute NAME [cursor] [remembered] PARAM…` | COM_STMT_EXECUTE, with a cursor, without types |
//! | `@long NAME INDEX DATA` | COM_STMT_SEND_LONG_DATA |
//! | `@fetch NAME ROWS`, `@reset NAME`, `@close NAME` | the COM_STMT_… of that name |
//! | `@single BYTES`, `@query BYTES`, `@fields BYTES`, `@silent BYTES` | any payload; the word says what its answer looks like |
//! | `@infile DATA` | nothing: what the next LOCAL INFILE request is answered with |
//! | `@user NAME` | COM_CHANGE_USER to another account of the harness |
//!
//! A `PARAM` is `null`, `long` (sent by `@long` before), or `kind=value`; see [`Param`] for the kinds.
//! In any text, `{{hex 0a ff}}` stands for those bytes and `{{repeat x 1000}}` for so many `x`.
//! `BYTES` is text too: COM_PING is `@single {{hex 0e}}`.

use std::path::Path;

use crate::error::{HarnessError, Result};
use crate::raw::{Cursor, Param, Types};
use crate::server::Flavour;

/// One file of the corpus.
#[derive(Debug, Clone, PartialEq)]
pub struct Corpus {
    /// The file's name.
    pub name: String,
    /// In order.
    pub steps: Vec<Step>,
}

/// One line of a corpus.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its number in the file.
    pub line: usize,
    /// The line.
    pub source: String,
    /// How it must end.
    pub expected: Expected,
    /// What is sent.
    pub verb: Verb,
}

/// How a step must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Without an ERR on both servers.
    Success,
    /// Without an ERR on this one.
    SuccessOn(Flavour),
    /// With an ERR on both.
    Error,
    /// Either way.
    Either,
}

/// What a step sends. See the module's table.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the module's table tells what each is")]
pub enum Verb {
    Text(Vec<u8>),
    Both(Vec<u8>),
    Attributes { attributes: Vec<(String, String)>, sql: Vec<u8> },
    Prepare { name: String, sql: Vec<u8> },
    Execute { name: String, cursor: Cursor, types: Types, params: Vec<Param> },
    LongData { name: String, param: u16, data: Vec<u8> },
    Fetch { name: String, rows: u32 },
    Reset { name: String },
    Close { name: String },
    Single(Vec<u8>),
    Query(Vec<u8>),
    Fields(Vec<u8>),
    Silent(Vec<u8>),
    Infile(Vec<u8>),
    ChangeUser(String),
}

impl Verb {
    /// How many statements or commands it sends.
    #[must_use]
    pub fn statements(&self) -> usize {
        match self {
            Self::Infile(_) => 0,
            Self::Both(_) => 2,
            Self::Text(_)
            | Self::Attributes { .. }
            | Self::Prepare { .. }
            | Self::Execute { .. }
            | Self::LongData { .. }
            | Self::Fetch { .. }
            | Self::Reset { .. }
            | Self::Close { .. }
            | Self::Single(_)
            | Self::Query(_)
            | Self::Fields(_)
            | Self::Silent(_)
            | Self::ChangeUser(_) => 1,
        }
    }
}

/// Reads every `*.corpus` file of this package's `corpus/`, in the order of their names.
///
/// # Errors
/// When a file cannot be read, or a line cannot be understood.
pub fn read_all() -> Result<Vec<Corpus>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let entries = std::fs::read_dir(&folder).map_err(HarnessError::io("cannot list corpus/"))?;
    let mut files: Vec<_> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "corpus"));
    files.sort();
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Corpus> {
    let what = format!("cannot read {}", path.display());
    let text = std::fs::read_to_string(path).map_err(HarnessError::io(what))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    parse(&name, &text)
}

/// Reads the text of a file.
///
/// # Errors
/// At the first line that cannot be understood.
pub fn parse(name: &str, text: &str) -> Result<Corpus> {
    let mut steps = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let source = line.trim();
        if source.is_empty() || source.starts_with('#') {
            continue;
        }
        let step = parse_step(source, number).ok_or_else(|| {
            HarnessError::Malformed(format!("corpus {name}, line {number}: {source:.100}"))
        })?;
        steps.push(step);
    }
    Ok(Corpus { name: name.into(), steps })
}

fn parse_step(source: &str, line: usize) -> Option<Step> {
    let (expected, rest) = parse_expected(source)?;
    let verb = match rest.strip_prefix('@') {
        Some(rest) => {
            let (word, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
            parse_verb(word, arguments.trim_start())?
        }
        None => Verb::Text(bytes(rest)?),
    };
    Some(Step { line, source: source.into(), expected, verb })
}

fn parse_expected(source: &str) -> Option<(Expected, &str)> {
    let Some(rest) = source.strip_prefix('[') else {
        return Some((Expected::Success, source));
    };
    let (word, rest) = rest.split_once(']')?;
    let expected = match word {
        "mysql" => Expected::SuccessOn(Flavour::MySql),
        "mariadb" => Expected::SuccessOn(Flavour::MariaDb),
        "!" => Expected::Error,
        "?" => Expected::Either,
        _ => return None,
    };
    Some((expected, rest.trim_start()))
}

fn parse_verb(word: &str, arguments: &str) -> Option<Verb> {
    Some(match word {
        "text" => Verb::Text(bytes(arguments)?),
        "both" => Verb::Both(bytes(arguments)?),
        "attr" => {
            let (attributes, sql) = arguments.split_once(' ')?;
            let pair = |pair: &str| pair.split_once('=').map(|(k, v)| (k.into(), v.into()));
            let attributes = attributes.split(',').map(pair).collect::<Option<_>>()?;
            Verb::Attributes { attributes, sql: bytes(sql)? }
        }
        "prepare" => {
            let (name, sql) = arguments.split_once(' ')?;
            Verb::Prepare { name: name.into(), sql: bytes(sql)? }
        }
        "execute" => parse_execute(arguments)?,
        "long" => {
            let mut parts = arguments.splitn(3, ' ');
            let (name, param) = (parts.next()?.into(), parts.next()?.parse().ok()?);
            Verb::LongData { name, param, data: bytes(parts.next().unwrap_or_default())? }
        }
        "fetch" => {
            let (name, rows) = arguments.split_once(' ')?;
            Verb::Fetch { name: name.into(), rows: rows.trim().parse().ok()? }
        }
        "reset" => Verb::Reset { name: arguments.into() },
        "close" => Verb::Close { name: arguments.into() },
        "single" => Verb::Single(bytes(arguments)?),
        "query" => Verb::Query(bytes(arguments)?),
        "fields" => Verb::Fields(bytes(arguments)?),
        "silent" => Verb::Silent(bytes(arguments)?),
        "infile" => Verb::Infile(bytes(arguments)?),
        "user" => Verb::ChangeUser(arguments.into()),
        _ => return None,
    })
}

fn parse_execute(arguments: &str) -> Option<Verb> {
    let mut words = split_words(arguments).into_iter();
    let name = words.next()?.to_owned();
    let (mut cursor, mut types, mut params) = (Cursor::None, Types::Sent, Vec::new());
    for word in words {
        match word {
            "cursor" => cursor = Cursor::ReadOnly,
            "remembered" => types = Types::Remembered,
            "null" => params.push(Param::null()),
            "long" => params.push(Param::long_data()),
            param => params.push(parse_param(param)?),
        }
    }
    Some(Verb::Execute { name, cursor, types, params })
}

/// Splits at spaces, but not inside `{{…}}`.
fn split_words(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let mut words: Vec<&str> = text
        .split(|c: char| {
            match c {
                '{' => depth = depth.saturating_add(1),
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ' ' && depth == 0
        })
        .collect();
    words.retain(|word| !word.is_empty());
    words
}

/// `kind=value`. Integers are written as such and cut to their width; dates and times are the bytes of
/// the binary protocol; everything else is text.
fn parse_param(word: &str) -> Option<Param> {
    let (kind, value) = word.split_once('=')?;
    let (code, width) = match kind {
        "tiny" => (0x01, Some(1)),
        "utiny" => (0x8001, Some(1)),
        "short" => (0x02, Some(2)),
        "ushort" => (0x8002, Some(2)),
        "int" => (0x03, Some(4)),
        "uint" => (0x8003, Some(4)),
        "bigint" => (0x08, Some(8)),
        "ubigint" => (0x8008, Some(8)),
        "year" => (0x0d, Some(2)),
        "float" => return Some(Param::encoded(0x04, &value.parse::<f32>().ok()?.to_le_bytes())),
        "double" => return Some(Param::encoded(0x05, &value.parse::<f64>().ok()?.to_le_bytes())),
        "timestamp" => (0x07, None),
        "date" => (0x0a, None),
        "time" => (0x0b, None),
        "datetime" => (0x0c, None),
        "decimal" => (0xf6, None),
        "blob" => (0xfc, None),
        "text" => (0xfd, None),
        "string" => (0xfe, None),
        _ => return None,
    };
    let value = match width {
        Some(width) => value.parse::<i128>().ok()?.to_le_bytes().get(..width)?.to_vec(),
        None => bytes(value)?,
    };
    Some(Param::encoded(code, &value))
}

/// Text with its `{{…}}` replaced.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) = after.split_once("}}")?;
        out.extend_from_slice(before.as_bytes());
        let (word, arguments) = inside.split_once(' ')?;
        match word {
            "hex" => {
                for pair in arguments.split_whitespace() {
                    out.push(u8::from_str_radix(pair, 16).ok()?);
                }
            }
            "repeat" => {
                let (what, count) = arguments.rsplit_once(' ')?;
                out.extend_from_slice(what.repeat(count.parse().ok()?).as_bytes());
            }
            _ => return None,
        }
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    Some(out)
}

#[cfg(test)]
mod tests;
