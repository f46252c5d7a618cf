//! The one table that a statement writes, where that can be told from how it begins.

use crate::{
    lexer::{Kind, Lexer, NoComments, Reading, Token},
    mode::LexMode,
    tables::TableRef,
};

/// How a statement writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVerb {
    /// INSERT.
    Insert,
    /// REPLACE.
    Replace,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

/// What stands between the verb and its table.
const MODIFIERS: [&str; 7] =
    ["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO", "FROM"];

/// What stands behind the table of an UPDATE and of a DELETE that has no other.
const BEHIND_UPDATE: [&str; 1] = ["SET"];
const BEHIND_DELETE: [&str; 4] = ["WHERE", "ORDER", "LIMIT", "RETURNING"];

/// The table that the first statement of `text` writes. `None`: it writes none, or it may write
/// several, or that cannot be told without reading all of it. Reads a few words, however long the
/// text is.
pub fn written(text: &[u8], mode: LexMode) -> Option<(WriteVerb, TableRef<'_>)> {
    let mut lexer = Lexer::new(text, mode, Reading::first(mode), NoComments);
    let verb = lexer.next();
    let verbs = [
        ("INSERT", WriteVerb::Insert),
        ("REPLACE", WriteVerb::Replace),
        ("UPDATE", WriteVerb::Update),
        ("DELETE", WriteVerb::Delete),
    ];
    let (_, verb) = verbs.into_iter().find(|(word, _)| is(&lexer, verb, word))?;
    let mut token = lexer.next();
    while MODIFIERS.iter().any(|word| is(&lexer, token, word)) {
        token = lexer.next();
    }
    let table = table(&mut lexer, token)?;
    let alone = match verb {
        // Others are only read there.
        WriteVerb::Insert | WriteVerb::Replace => true,
        WriteVerb::Update => is_alone(&mut lexer, &BEHIND_UPDATE),
        WriteVerb::Delete => is_alone(&mut lexer, &BEHIND_DELETE),
    };
    (alone && !lexer.broken).then_some((verb, table))
}

fn table<'t>(lexer: &mut Lexer<'t, NoComments>, first: Token) -> Option<TableRef<'t>> {
    let name = lexer.name_of(first)?;
    if lexer.peeked().kind != Kind::Punct(b'.') {
        return Some(TableRef { schema: None, name });
    }
    lexer.next();
    let second = lexer.next();
    Some(TableRef { schema: Some(name), name: lexer.name_of(second)? })
}

/// Whether behind the table, and its alias, comes what ends a list of tables.
fn is_alone(lexer: &mut Lexer<'_, NoComments>, behind: &[&str]) -> bool {
    let mut token = lexer.next();
    if is(lexer, token, "AS") {
        token = lexer.next();
        token = if lexer.name_of(token).is_some() { lexer.next() } else { token };
    } else if lexer.name_of(token).is_some() && !ends(lexer, token, behind) {
        token = lexer.next();
    }
    ends(lexer, token, behind)
}

fn ends(lexer: &Lexer<'_, NoComments>, token: Token, behind: &[&str]) -> bool {
    let at_end = matches!(token.kind, Kind::End | Kind::Semicolon);
    // An UPDATE does not end there.
    (at_end && behind.len() > 1) || behind.iter().any(|word| is(lexer, token, word))
}

fn is(lexer: &Lexer<'_, NoComments>, token: Token, word: &str) -> bool {
    token.kind == Kind::Word && lexer.bytes(token).eq_ignore_ascii_case(word.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Server;

    fn of(text: &str) -> Option<(WriteVerb, String)> {
        let mode = LexMode::unknown(Server::MySql { version: 90_700 });
        written(text.as_bytes(), mode).map(|(verb, table)| {
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let schema = table.schema.map(|schema| name(schema) + ".").unwrap_or_default();
            (verb, schema + &name(table.name))
        })
    }

    #[test]
    fn the_table_behind_the_verb_is_written() {
        let some = |verb, table: &str| Some((verb, table.to_owned()));
        for text in [
            "INSERT INTO t VALUES (1)",
            "insert low_priority ignore t(a) select * from other",
            "/* a */ INSERT /*+ hint */ INTO `t` SET a = 1 ON DUPLICATE KEY UPDATE a = 2",
        ] {
            assert_eq!(of(text), some(WriteVerb::Insert, "t"), "{text}");
        }
        assert_eq!(of("REPLACE INTO shop.t VALUES (1)"), some(WriteVerb::Replace, "shop.t"));
        for text in [
            "UPDATE t SET a = 1",
            "update ignore t as x set a = 1 where b in (select 1 from u)",
            "UPDATE t x SET x.a = 1",
        ] {
            assert_eq!(of(text), some(WriteVerb::Update, "t"), "{text}");
        }
        for text in [
            "DELETE FROM `s`.`t`",
            "DELETE FROM s.t;",
            "delete quick from s.t as x where x.a = 1",
            "DELETE FROM s.t LIMIT 5",
        ] {
            assert_eq!(of(text), some(WriteVerb::Delete, "s.t"), "{text}");
        }
    }

    #[test]
    fn what_may_write_several_or_is_hard_to_read_has_none() {
        for text in [
            "",
            "SELECT 1",
            "WITH c AS (SELECT 1) UPDATE t SET a = 1",
            "UPDATE t, u SET t.a = 1",
            "UPDATE t JOIN u ON t.a = u.a SET t.a = 1",
            "UPDATE t x JOIN u SET x.a = 1",
            "UPDATE t PARTITION (p) SET a = 1",
            "UPDATE t",
            "DELETE t FROM t JOIN u USING (a)",
            "DELETE FROM t USING t JOIN u USING (a)",
            "DELETE FROM t, u USING t JOIN u",
            "INSERT INTO",
            "INSERT INTO 'text' VALUES (1)",
            "LOAD DATA INFILE 'f' INTO TABLE t",
            "CALL p()",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
