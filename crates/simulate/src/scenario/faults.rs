//! What is wrong with a scenario, where.

use std::collections::BTreeMap;
use std::time::Duration;

use policy::reading::{self, Fault, Node, Place, Value};

use super::limits::Time;

/// Collects faults by their paths, and knows the lines.
#[derive(Debug)]
pub(super) struct Faults {
    all: reading::Faults,
    lines: BTreeMap<String, u32>,
    /// Keys of the file that could not be read throughout: nobody knows what they were meant to say.
    unread: Vec<&'static str>,
}

/// The keys that others are checked against.
const MET_BY_OTHERS: [&str; 7] =
    ["apps", "signals", "replicas", "proxies", "threshold", "probe_delay", "probe_interval"];

impl Faults {
    /// None so far in the file that is this node.
    pub(super) fn of(root: &Node) -> Self {
        let mut lines = BTreeMap::new();
        note_lines(root, &Place { path: String::new(), line: root.line }, &mut lines);
        Self { all: reading::Faults::default(), lines, unread: Vec::new() }
    }

    /// Those that reading notes itself.
    pub(super) fn reading(&mut self) -> &mut reading::Faults {
        &mut self.all
    }

    /// Notes that what has this path is wrong.
    pub(super) fn add(&mut self, path: &str, message: impl Into<String>) {
        let place = Place { path: path.to_owned(), line: self.line_of(path) };
        self.all.add(&place, message);
    }

    /// Notes it unless what is said holds.
    pub(super) fn hold(&mut self, holds: bool, path: &str, message: &str) {
        if !holds {
            self.add(path, message);
        }
    }

    /// Notes a number that is not between these; one that is no number is not either.
    pub(super) fn number(&mut self, value: f64, (min, max): (f64, f64), path: &str) -> f64 {
        if !(min..=max).contains(&value) {
            self.add(path, format!("must be from {min} to {max}, not {value}"));
        }
        value
    }

    /// The same of a number of things.
    pub(super) fn count(&mut self, value: u32, (min, max): (u32, u32), path: &str) -> u32 {
        if !(min..=max).contains(&value) {
            self.add(path, format!("must be from {min} to {max}, not {value}"));
        }
        value
    }

    /// The time, or the default; a fault if it is out of its range.
    pub(super) fn time(&mut self, said: Option<Duration>, range: Time, path: &str) -> Duration {
        let Time { default, min, max } = range;
        let value = said.unwrap_or(default);
        if said.is_some() && !(min..=max).contains(&value) {
            self.add(path, format!("must be from {min:?} to {}", shown(max)));
        }
        value
    }

    /// All has been read that can be: what follows is about values.
    pub(super) fn have_read(&mut self) {
        let root = Place::default();
        let unread = MET_BY_OTHERS.into_iter().filter(|key| self.all.is_about(&root, &[key]));
        self.unread = unread.collect();
    }

    /// Whether all of this key of the file could be read: what meets it can be checked then.
    pub(super) fn has_read(&self, key: &str) -> bool {
        !self.unread.contains(&key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn into_sorted(self) -> Vec<Fault> {
        self.all.into_sorted()
    }

    /// The line of a path, or of what it is a part of.
    fn line_of(&self, path: &str) -> u32 {
        let mut part = path;
        loop {
            if let Some(line) = self.lines.get(part) {
                return *line;
            }
            let end = part.rfind(['.', '[']);
            match end.and_then(|end| part.split_at_checked(end)) {
                Some((shorter, _)) => part = shorter,
                None => return self.lines.get("").copied().unwrap_or(1),
            }
        }
    }
}

fn shown(time: Duration) -> String {
    match time.as_secs() {
        0..3_600 => format!("{time:?}"),
        seconds => format!("{}h", seconds.checked_div(3_600).unwrap_or_default()),
    }
}

fn note_lines(node: &Node, place: &Place, lines: &mut BTreeMap<String, u32>) {
    lines.entry(place.path.clone()).or_insert(place.line);
    match &node.value {
        Value::List(list) => {
            for (index, element) in list.iter().enumerate() {
                note_lines(element, &place.element(index, element.line), lines);
            }
        }
        Value::Mapping(entries) => {
            for entry in entries {
                note_lines(&entry.node, &place.key(&entry.key, entry.line), lines);
            }
        }
        Value::Nothing | Value::Flag(_) | Value::Integer(_) | Value::Float(_) | Value::Text(_) => {}
    }
}
