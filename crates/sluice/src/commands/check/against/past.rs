//! A row of insights, as the policy wants to be asked about it.

use admin::insights::{Row, Sender};
use policy::{Recorded, UnixTime};
use sql::{Class, ClassSet, Exemption};

/// The longest digest text that insights keep.
const TEXT_LEN_MAX: usize = 1024;

/// What insights read of a text.
const FRONT_LEN: u64 = 4 * 1024;

/// Bytes of a COM_QUERY that are not its text, at least.
const HEAD_LEN: u64 = 5;

/// A row that says what its statements were.
#[derive(Debug)]
pub(super) struct Past<'r> {
    row: &'r Row,
    classes: Option<ClassSet>,
    tables: Vec<(String, String)>,
    seen: (UnixTime, UnixTime),
    bytes_of_one: u64,
}

impl<'r> Past<'r> {
    /// The row. Why not, if it does not say what its statements were.
    pub(super) fn of(row: &'r Row, window: (UnixTime, UnixTime)) -> Result<Self, &'static str> {
        let text = row.digest_text.as_deref().unwrap_or_default();
        match row.digest.as_deref() {
            Some("other") => return Err("their digest has no row of its own"),
            Some("unknown") | None => return Err("their text is not known"),
            Some(_) if text.is_empty() => return Err("their text is not known"),
            Some(_) => {}
        }
        if row.app.is_none() || row.senders.iter().all(|sender| sender.user.is_none()) {
            return Err("who sent them is not known");
        }
        let is_newer = names_of_classes(row).any(|name| Class::parse(name).is_none())
            || row.exemption.as_deref().is_some_and(|name| Exemption::parse(name).is_none());
        if is_newer {
            return Err("their class is not known here: the insights are of a newer Sluice");
        }
        let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
        let (first, last) = (time(&row.cost.first_seen), time(&row.cost.last_seen));
        let tables = row.tables.iter().flatten();
        Ok(Self {
            row,
            classes: classes(row),
            tables: tables.map(|table| named(table)).collect(),
            seen: (first.unwrap_or(window.0), last.unwrap_or(window.1)),
            bytes_of_one: row.cost.bytes_in.checked_div(row.cost.count).unwrap_or_default(),
        })
    }

    /// Calls `ask` with what is known of one sender's statements.
    pub(super) fn ask<T>(
        &self,
        sender: &Sender,
        ask: impl FnOnce(&Recorded<'_>) -> T,
    ) -> Result<T, &'static str> {
        let Self { row, classes, tables, seen, bytes_of_one } = self;
        let user = sender.user.as_deref().ok_or("who sent them is not known")?;
        let text = row.digest_text.as_deref().unwrap_or_default();
        let pairs = sender.tags.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes()));
        let tags: Vec<(&[u8], &[u8])> = pairs.collect();
        let count = sender.count.saturating_add(sender.refused);
        Ok(ask(&Recorded {
            app: row.app.as_deref().unwrap_or_default().as_bytes(),
            user: user.as_bytes(),
            schema: row.schema.as_deref().unwrap_or_default().as_bytes(),
            tags: &tags,
            text: text.as_bytes(),
            // What is cut is as long, give or take a character.
            whole: text.len() < TEXT_LEN_MAX - 4,
            long: *bytes_of_one > FRONT_LEN + HEAD_LEN,
            digest: row.digest.as_deref().and_then(|hex| u64::from_str_radix(hex, 16).ok()),
            classes: *classes,
            exemption: row.exemption.as_deref().and_then(Exemption::parse),
            tables,
            all_tables: row.tables_complete.unwrap_or(false),
            count,
            // What was refused has not been counted by its bytes.
            bytes: if row.cost.refused == 0 { row.cost.bytes_in } else { u64::MAX },
            seen: *seen,
        }))
    }
}

/// The classes that the row names.
fn classes(row: &Row) -> Option<ClassSet> {
    row.class.as_deref()?;
    Some(names_of_classes(row).filter_map(Class::parse).collect())
}

fn names_of_classes(row: &Row) -> impl Iterator<Item = &str> {
    row.classes.iter().chain(&row.class).map(String::as_str)
}

/// Schema and name. Every table of a schema is `schema.*`.
fn named(table: &str) -> (String, String) {
    let (schema, name) = table.split_once('.').unwrap_or(("", table));
    (schema.to_owned(), if name == "*" { String::new() } else { name.to_owned() })
}
