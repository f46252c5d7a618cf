//! The YAML text as a tree that knows its lines.
//!
//! serde has no positions, but errors of `serde_yaml` do: an error that a visitor returns is given
//! the place of what was being visited. So a key, or a scalar in a list, is visited by a visitor
//! that keeps what it is shown and returns an error; the reader stands behind that scalar then, and
//! goes on. The line is read from the error's text (`… at line 3 column 5`; nothing for the very
//! first character). `lines_are_those_of_the_text` below holds the dependency to this.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::fault::{Fault, Place};

/// Longest file that is read: a hundred times 10,000 rules of ordinary size.
const FILE_LEN_MAX: usize = 64 * 1024 * 1024;

/// Most values in a file, after aliases: 10,000 rules have about 100,000. It stops small files
/// whose aliases unfold to huge ones.
const NODES_MAX: u32 = 1_000_000;

/// A value of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The line on which it begins, counted from 1.
    pub line: u32,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A key without a value, or `null`.
    Nothing,
    /// `true` or `false`
    Flag(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number; not always a finite one.
    Float(f64),
    /// A scalar that is none of these.
    Text(String),
    /// Elements in their order.
    List(Vec<Node>),
    /// Keys and their values, in their order.
    Mapping(Vec<MappingEntry>),
}

/// A key and its value. Keys may come twice here.
#[derive(Debug, Clone, PartialEq)]
pub struct MappingEntry {
    /// The key.
    pub key: String,
    /// The key's line, counted from 1.
    pub line: u32,
    /// Its value.
    pub node: Node,
}

impl Value {
    /// What it is, for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Flag(flag) => format!("`{flag}`"),
            Self::Integer(number) => format!("the number {number}"),
            Self::Float(number) => format!("the number {number}"),
            Self::Text(text) => {
                let shown: String = text.chars().take(40).collect();
                format!("the text {shown:?}")
            }
            Self::List(_) => "a list".to_owned(),
            Self::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// Reads `text`.
///
/// # Errors
/// The first thing that is not YAML.
pub fn parse(text: &str) -> Result<Node, Fault> {
    let whole = |line, message| {
        let Place { path, .. } = Place::default();
        Fault { path, line, message }
    };
    if text.len() > FILE_LEN_MAX {
        return Err(whole(1, format!("the file is longer than {FILE_LEN_MAX} bytes")));
    }
    let mut nodes_left = NODES_MAX;
    let seed = NodeSeed { line: 1, nodes_left: &mut nodes_left };
    seed.deserialize(serde_yaml::Deserializer::from_str(text)).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let message = error.to_string();
        // The fault has its line already.
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(text, _)| text);
        let at = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let message = format!("{message}{}", remedy(at));
        whole(u32::try_from(line).unwrap_or(u32::MAX), format!("not valid YAML: {message}"))
    })
}

/// What to do about a line that is not YAML, where that can be told.
fn remedy(line: &str) -> String {
    if line.contains('\t') {
        return " (YAML is not indented by tabs)".to_owned();
    }
    let Some(value) = unquoted_indicator(line) else { return String::new() };
    let meaning = match value.chars().next() {
        Some('*') => "an alias",
        Some('!') => "a tag",
        Some(_) | None => "reserved",
    };
    format!(" (in YAML, `{value}` without quotes is {meaning}: write \"{value}\")")
}

/// The first value of a line that begins with a character which YAML keeps for itself.
fn unquoted_indicator(line: &str) -> Option<&str> {
    let mut before = ' ';
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if "*!@%`".contains(c) && " [{".contains(before) => {
                let rest = line.get(at..)?;
                let end = rest.find([' ', ',', ']', '}']).unwrap_or(rest.len());
                return rest.get(..end);
            }
            None => {}
        }
        before = c;
    }
    None
}

/// Reads one node that is known to begin at or after `line`.
struct NodeSeed<'n> {
    line: u32,
    nodes_left: &'n mut u32,
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let line = self.line;
        let value = deserializer.deserialize_any(ValueVisitor(self))?;
        Ok(Node { line, value })
    }
}

struct ValueVisitor<'n>(NodeSeed<'n>);

impl ValueVisitor<'_> {
    fn spend<E: serde::de::Error>(&mut self) -> Result<(), E> {
        match self.0.nodes_left.checked_sub(1) {
            Some(left) => {
                *self.0.nodes_left = left;
                Ok(())
            }
            None => Err(E::custom(format!(
                "more than {NODES_MAX} values, counting what aliases repeat"
            ))),
        }
    }
}

impl<'de> Visitor<'de> for ValueVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a tag")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Integer(i128::from(number)))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(i128::from(number)))
    }

    fn visit_i128<E: serde::de::Error>(self, number: i128) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u128<E: serde::de::Error>(self, number: u128) -> Result<Value, E> {
        // Out of every range either way.
        Ok(Value::Integer(i128::try_from(number).unwrap_or(i128::MAX)))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            self.spend()?;
            let mut kept = None;
            let seed = ElementSeed {
                line: self.0.line,
                nodes_left: &mut *self.0.nodes_left,
                kept: &mut kept,
            };
            match elements.next_element_seed(seed) {
                Ok(Some(node)) => list.push(node),
                Ok(None) => return Ok(Value::List(list)),
                Err(error) => match kept {
                    Some(value) => list.push(Node { line: line_of(&error), value }),
                    None => return Err(error),
                },
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut pairs: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        loop {
            self.spend()?;
            let mut kept = None;
            let (key, line) = match pairs.next_key_seed(KeySeed { kept: &mut kept }) {
                Ok(Some(never)) => match never {},
                Ok(None) => return Ok(Value::Mapping(entries)),
                Err(error) => match kept {
                    Some(key) => (key, line_of(&error)),
                    None => return Err(error),
                },
            };
            let seed = NodeSeed { line, nodes_left: &mut *self.0.nodes_left };
            let node = pairs.next_value_seed(seed)?;
            entries.push(MappingEntry { key, line, node });
        }
    }
}

/// Reads an element of a list. A scalar is kept and answered by an error, which tells its line; a
/// mapping or a list begins where the first thing in it does.
struct ElementSeed<'n> {
    line: u32,
    nodes_left: &'n mut u32,
    kept: &'n mut Option<Value>,
}

impl<'de> DeserializeSeed<'de> for ElementSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl ElementSeed<'_> {
    fn keep<E: serde::de::Error>(self, value: Value) -> Result<Node, E> {
        *self.kept = Some(value);
        Err(E::custom(KEPT))
    }
}

impl<'de> Visitor<'de> for ElementSeed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a tag")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Node, E> {
        self.keep(Value::Nothing)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Node, E> {
        self.keep(Value::Nothing)
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<Node, E> {
        self.keep(Value::Flag(flag))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Node, E> {
        self.keep(Value::Integer(i128::from(number)))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Node, E> {
        self.keep(Value::Integer(i128::from(number)))
    }

    fn visit_i128<E: serde::de::Error>(self, number: i128) -> Result<Node, E> {
        self.keep(Value::Integer(number))
    }

    fn visit_u128<E: serde::de::Error>(self, number: u128) -> Result<Node, E> {
        self.keep(Value::Integer(i128::try_from(number).unwrap_or(i128::MAX)))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Node, E> {
        self.keep(Value::Float(number))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Node, E> {
        self.keep(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<Node, A::Error> {
        let seed = NodeSeed { line: self.line, nodes_left: self.nodes_left };
        ValueVisitor(seed).visit_seq(elements).map(|value| Node::beginning_inside(self.line, value))
    }

    fn visit_map<A: MapAccess<'de>>(self, pairs: A) -> Result<Node, A::Error> {
        let seed = NodeSeed { line: self.line, nodes_left: self.nodes_left };
        ValueVisitor(seed).visit_map(pairs).map(|value| Node::beginning_inside(self.line, value))
    }
}

impl Node {
    fn beginning_inside(around: u32, value: Value) -> Self {
        let first = match &value {
            Value::List(list) => list.first().map(|node| node.line),
            Value::Mapping(entries) => entries.first().map(|entry| entry.line),
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_) => None,
        };
        Self { line: first.unwrap_or(around), value }
    }
}

/// Keeps a key and answers by an error, which tells its line.
struct KeySeed<'k> {
    kept: &'k mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = std::convert::Infallible;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl KeySeed<'_> {
    fn keep<E: serde::de::Error>(self, key: impl fmt::Display) -> E {
        *self.kept = Some(key.to_string());
        E::custom(KEPT)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_> {
    type Value = std::convert::Infallible;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key: a name, not a list or a mapping")
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<Self::Value, E> {
        Err(self.keep(flag))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Err(self.keep(number))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Err(self.keep(number))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
        Err(self.keep(number))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(self.keep(text))
    }
}

/// The text of errors that only carry a line; never shown.
const KEPT: &str = "kept";

/// The line at the end of an error's text.
fn line_of(error: &impl fmt::Display) -> u32 {
    let text = error.to_string();
    let number = text.rsplit_once(" at line ").and_then(|(_, place)| place.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(1)
}
