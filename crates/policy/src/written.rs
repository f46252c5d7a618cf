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
        WriteVerb::Insert if may_update(text) => WriteKind::Replace,
        WriteVerb::Insert => WriteKind::Insert,
        WriteVerb::Replace => WriteKind::Replace,
        WriteVerb::Update => WriteKind::Update,
        WriteVerb::Delete => WriteKind::Delete,
    };
    (!schema.is_empty()).then(|| Written { table: table_key(schema, table.name), kind })
}

/// Whether an INSERT may say ON DUPLICATE KEY UPDATE, which stands at its end: its rows are applied as what they became.
fn may_update(text: &[u8]) -> bool {
    const WORD: &[u8] = b"DUPLICATE";
    let (_, end) = text.split_at(text.len().saturating_sub(END_LEN));
    end.windows(WORD.len()).any(|part| part.eq_ignore_ascii_case(WORD))
}

/// So much of a text is looked at, in bytes.
const END_LEN: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_that_may_update_is_of_no_one_kind() {
        let kind =
            |text: &str| written(text.as_bytes(), LexMode::default(), b"shop").map(|of| of.kind);
        assert_eq!(kind("INSERT INTO t VALUES (1)"), Some(WriteKind::Insert));
        let upsert = "INSERT INTO t VALUES (1) ON duplicate KEY UPDATE n = n + 1";
        assert_eq!(kind(upsert), Some(WriteKind::Replace));
        assert_eq!(kind("REPLACE t VALUES (1)"), Some(WriteKind::Replace));
        assert_eq!(kind("UPDATE t SET n = 1"), Some(WriteKind::Update));
    }
}
