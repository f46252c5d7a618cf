//! What a statement writes, as keys of admission: what rows of it cost is learned by them.

use std::hash::Hasher as _;

use admission::{TableKey, WriteKind, Written};
use sql::{LexMode, WriteVerb};

use crate::fnv::Fnv;

/// The key of a table. Names count in lower case, as servers have them where file systems do not
/// tell case apart; elsewhere tables that only case tells apart are one.
#[must_use]
pub fn table_key(schema: &[u8], table: &[u8]) -> TableKey {
    let mut hash = Fnv::default();
    for part in [schema, table] {
        for byte in part {
            hash.write(&[byte.to_ascii_lowercase()]);
        }
        hash.write(&[0]);
    }
    TableKey(hash.finish())
}

/// What the text of one statement writes, if it says so where it begins. `schema` is the default
/// one, empty if it is not known.
#[must_use]
pub fn written(text: &[u8], mode: LexMode, schema: &[u8]) -> Option<Written> {
    let (verb, table) = sql::written(text, mode)?;
    let schema = table.schema.unwrap_or(schema);
    let kind = match verb {
        WriteVerb::Insert => WriteKind::Insert,
        WriteVerb::Replace => WriteKind::Replace,
        WriteVerb::Update => WriteKind::Update,
        WriteVerb::Delete => WriteKind::Delete,
    };
    (!schema.is_empty()).then(|| Written { table: table_key(schema, table.name), kind })
}
