//! Reading typed values out of nodes, collecting every fault on the way.

use std::time::Duration;

use super::node::{MappingEntry, Node, Value};
use crate::fault::{Faults, Place};

/// A value that may be left out.
pub type Maybe<T> = Option<Spanned<T>>;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its place in the file.
    pub place: Place,
}

/// What can be read from a node. `None` after a fault has been noted.
pub trait FromNode: Sized {
    /// Reads it, and notes what is wrong.
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self>;
}

/// The entries of a mapping whose keys are known.
#[derive(Debug)]
pub struct Fields<'f> {
    place: Place,
    entries: Vec<MappingEntry>,
    /// Every key asked for: those that are known here.
    known: Vec<&'static str>,
    faults: &'f mut Faults,
}

impl<'f> Fields<'f> {
    /// The entries of `node`; a fault if it is not a mapping, or has a key twice.
    pub fn open(node: Node, place: &Place, faults: &'f mut Faults) -> Option<Self> {
        let entries = entries(node, place, faults)?;
        Some(Self { place: place.clone(), entries, known: Vec::new(), faults })
    }

    /// The value of `key`, if it is there and can be read.
    pub fn take<T: FromNode>(&mut self, key: &'static str) -> Option<Spanned<T>> {
        self.known.push(key);
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        let entry = self.entries.swap_remove(index);
        let place = self.place.key(key, entry.line);
        let value = T::from_node(entry.node, &place, self.faults)?;
        Some(Spanned { value, place })
    }

    /// The value of `key`, which must be there.
    pub fn require<T: FromNode>(&mut self, key: &'static str) -> Option<Spanned<T>> {
        self.note_missing(key);
        self.take(key)
    }

    fn note_missing(&mut self, key: &str) {
        if !self.entries.iter().any(|entry| entry.key == key) {
            self.faults.add(&self.place, format!("`{key}` is missing"));
        }
    }

    /// The word of `key`, one of a few. `false` and numbers are no text, and no word of any key: what
    /// the words are is told where they are known.
    pub(crate) fn take_word(&mut self, key: &'static str) -> Option<Spanned<String>> {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) {
            let word = match &entry.node.value {
                Value::Flag(flag) => Some(flag.to_string()),
                Value::Integer(number) => Some(number.to_string()),
                Value::Float(number) => Some(number.to_string()),
                Value::Nothing | Value::Text(_) | Value::List(_) | Value::Mapping(_) => None,
            };
            if let Some(word) = word {
                entry.node.value = Value::Text(word);
            }
        }
        self.take(key)
    }

    /// The word of `key`, of which one is `off`: programs that write YAML 1.1 make `false` of that.
    pub(crate) fn take_switch(&mut self, key: &'static str) -> Option<Spanned<String>> {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key)
            && entry.node.value == Value::Flag(false)
        {
            entry.node.value = Value::Text("off".to_owned());
        }
        self.take_word(key)
    }

    /// The address, or addresses, of `key`. A port alone is no text and no address either.
    pub(crate) fn take_address<T: FromNode>(&mut self, key: &'static str) -> Option<Spanned<T>> {
        let entry = self.entries.iter_mut().find(|entry| entry.key == key);
        if let Some(MappingEntry { line, node, .. }) = entry {
            let place = self.place.key(key, *line);
            if let Value::List(list) = &mut node.value {
                let mut index = 0_usize..;
                list.retain(|node| {
                    let place = place.element(index.next().unwrap_or_default(), node.line);
                    !is_port_alone(node, &place, self.faults)
                });
            } else if is_port_alone(node, &place, self.faults) {
                self.known.push(key);
                self.entries.retain(|entry| entry.key != key);
                return None;
            }
        }
        self.take(key)
    }

    /// The address of `key`, which must be there.
    pub(crate) fn require_address<T: FromNode>(&mut self, key: &'static str) -> Option<Spanned<T>> {
        self.note_missing(key);
        self.take_address(key)
    }

    /// `key` would be a secret in the file: it is known only to say so.
    pub(crate) fn secret(&mut self, key: &str) {
        let message = format!(
            "secrets are not written in this file; name the environment variable in `{key}_env` \
             or the file in `{key}_file`"
        );
        self.refuse(key, &message);
    }

    /// A key that may not be there.
    pub(crate) fn refuse(&mut self, key: &str, message: &str) {
        if let Some(index) = self.entries.iter().position(|entry| entry.key == key) {
            let entry = self.entries.swap_remove(index);
            self.faults.add(&self.place.key(key, entry.line), message);
        }
    }

    /// Whatever has not been asked for is unknown.
    pub fn finish(self) {
        let mut known = self.known;
        known.sort_unstable();
        for entry in self.entries {
            let place = self.place.key(&entry.key, entry.line);
            let hint = if entry.key == "<<" {
                "merge keys are not supported".to_owned()
            } else {
                format!("unknown key; known here: {}", known.join(", "))
            };
            self.faults.add(&place, hint);
        }
    }
}

/// The entries of a mapping, each key once.
fn entries(node: Node, place: &Place, faults: &mut Faults) -> Option<Vec<MappingEntry>> {
    let Value::Mapping(entries) = node.value else {
        expected("a mapping of keys to values", &node, place, faults);
        return None;
    };
    let mut seen = std::collections::HashSet::new();
    let mut unique = Vec::with_capacity(entries.len());
    for entry in entries {
        if seen.insert(entry.key.clone()) {
            unique.push(entry);
        } else {
            faults.add(&place.key(&entry.key, entry.line), "the key is there twice");
        }
    }
    Some(unique)
}

/// Notes that a number is no address: which machine is meant, it does not say.
fn is_port_alone(node: &Node, place: &Place, faults: &mut Faults) -> bool {
    let Value::Integer(port) = node.value else { return false };
    let message = format!("must be a host and a port, like 127.0.0.1:{port}; found the port alone");
    faults.add(place, message);
    true
}

/// Notes that something else was expected.
pub fn expected(what: &str, node: &Node, place: &Place, faults: &mut Faults) {
    let message = match &node.value {
        Value::Nothing => format!("has no value; expected {what} (or leave the key out)"),
        Value::Flag(_) | Value::Integer(_) | Value::Float(_) if what.starts_with("text") => {
            format!("expected {what}, found {}; put it in quotes", node.value.describe())
        }
        Value::Flag(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::List(_)
        | Value::Mapping(_) => format!("expected {what}, found {}", node.value.describe()),
    };
    faults.add(place, message);
}

impl FromNode for String {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Text(text) => Some(text),
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Mapping(_) => {
                expected("text", &node, place, faults);
                None
            }
        }
    }
}

impl FromNode for bool {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Flag(flag) => Some(flag),
            Value::Nothing
            | Value::Text(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Mapping(_) => {
                expected("`true` or `false`", &node, place, faults);
                None
            }
        }
    }
}

impl FromNode for f64 {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Float(number) => Some(number),
            // Every integer that means something here is exact.
            Value::Integer(number) if i32::try_from(number).is_ok() => {
                i32::try_from(number).ok().map(Self::from)
            }
            Value::Integer(number) => number.to_string().parse().ok(),
            Value::Nothing
            | Value::Flag(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Mapping(_) => {
                expected("a number", &node, place, faults);
                None
            }
        }
    }
}

impl FromNode for i128 {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let read = match node.value {
            Value::Integer(number) => Some(number),
            Value::Float(number) => whole(number),
            Value::Nothing
            | Value::Flag(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Mapping(_) => None,
        };
        if read.is_none() {
            expected("a whole number", &node, place, faults);
        }
        read
    }
}

/// A whole number that is written with an exponent, like `1e6`.
fn whole(number: f64) -> Option<i128> {
    if number.fract() == 0.0 { format!("{number:.0}").parse().ok() } else { None }
}

impl FromNode for Duration {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let read = match &node.value {
            Value::Text(text) => parse_duration(text),
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Mapping(_) => None,
        };
        if read.is_none() {
            expected("a duration with its unit, like 250ms, 5s, 10m or 1h", &node, place, faults);
        }
        read
    }
}

/// A duration with its unit: `250ms`, `1.5s`, `10m`, `1h`, `2d`; or several, the largest first:
/// `1h30m`. At most a century.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    const CENTURY_S: f64 = 100.0 * 366.0 * 86_400.0;
    let (mut seconds, mut smallest_s, mut rest) = (0.0, f64::INFINITY, text);
    loop {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at_checked(unit_at)?;
        let unit = unit.trim_start();
        let next_at = unit.find(|c: char| c.is_ascii_digit());
        let (unit, next) = unit.split_at_checked(next_at.unwrap_or(unit.len()))?;
        let per_unit_s = unit_s(unit)?;
        let is_last = next.is_empty();
        if per_unit_s >= smallest_s || (number.contains('.') && !is_last) {
            return None;
        }
        seconds += number.parse::<f64>().ok()? * per_unit_s;
        if is_last {
            break;
        }
        (smallest_s, rest) = (per_unit_s, next);
    }
    if !(0.0..=CENTURY_S).contains(&seconds) {
        return None;
    }
    // Rounded to microseconds, so that 0.3s is 300 ms.
    Duration::try_from_secs_f64((seconds * 1e6).round() / 1e6).ok()
}

fn unit_s(unit: &str) -> Option<f64> {
    match unit {
        "us" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3_600.0),
        "d" => Some(86_400.0),
        _ => None,
    }
}

/// A list.
impl<T: FromNode> FromNode for Vec<Spanned<T>> {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let Value::List(list) = node.value else {
            expected("a list", &node, place, faults);
            return None;
        };
        let is_empty = list.is_empty();
        let mut elements = Self::with_capacity(list.len());
        for (index, node) in list.into_iter().enumerate() {
            let place = place.element(index, node.line);
            if let Some(value) = T::from_node(node, &place, faults) {
                elements.push(Spanned { value, place });
            }
        }
        // One that holds nothing which can be read is not empty.
        (is_empty || !elements.is_empty()).then_some(elements)
    }
}

/// A value, or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct OneOrMany<T>(pub Vec<Spanned<T>>);

impl<T: FromNode> FromNode for OneOrMany<T> {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        if matches!(node.value, Value::List(_)) {
            return Vec::from_node(node, place, faults).map(Self);
        }
        let value = T::from_node(node, place, faults)?;
        Some(Self(vec![Spanned { value, place: place.clone() }]))
    }
}

/// A mapping whose keys the operator chooses, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Named<T>(pub Vec<(String, Spanned<T>)>);

impl<T: FromNode> FromNode for Named<T> {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut named = Vec::new();
        let entries = entries(node, place, faults)?;
        let is_empty = entries.is_empty();
        for MappingEntry { key, line, node } in entries {
            let place = place.key(&key, line);
            if let Some(value) = T::from_node(node, &place, faults) {
                named.push((key, Spanned { value, place }));
            }
        }
        (is_empty || !named.is_empty()).then_some(Self(named))
    }
}
