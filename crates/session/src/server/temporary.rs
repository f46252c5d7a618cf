//! Temporary tables of the session, by the texts that make them. They hide base tables of the same
//! name, which is all that Sluice could ask the server about over a connection of its own.
//!
//! It is kept from the moment in which a text comes, and until the session begins anew: whether the
//! table was made, or is there any more, is not followed. What procedures make, and texts out of
//! variables, is not seen.

use sql::{Survey, Temporary};

/// Names that are kept: a session that makes more may name one of its own anywhere.
const NAMES_MAX: usize = 16;

/// The longest name that a server takes, in bytes of ASCII.
const NAME_LEN_MAX: usize = 64;

/// Those of one session; most have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct TemporaryTables(Option<Box<Made>>);

#[derive(Clone, Debug, Default)]
struct Made {
    names: Vec<Box<[u8]>>,
    /// There may be others.
    others: bool,
}

impl TemporaryTables {
    /// Notes what a text makes, or names anew.
    pub(crate) fn note(&mut self, text: &[u8], survey: &Survey) {
        if survey.temporary.is_none() && (self.0.is_none() || survey.ddl.is_none()) {
            return;
        }
        let is_renamed = survey.ddl.is_some() && self.may_be_named_in(text);
        let Made { names, others } = &mut **self.0.get_or_insert_default();
        // An ALTER or RENAME may give it any name.
        *others |= is_renamed;
        let name = match survey.temporary {
            None => return,
            Some(Temporary::Named { at, len }) => plain_name(text, at, len),
            Some(Temporary::Unnamed) => None,
        };
        match name {
            Some(name) if names.iter().any(|known| known.eq_ignore_ascii_case(name)) => {}
            Some(name) if names.len() < NAMES_MAX => names.push(name.into()),
            Some(_) | None => *others = true,
        }
    }

    /// Whether a text may name one of them.
    pub(crate) fn may_be_named_in(&self, text: &[u8]) -> bool {
        let Some(Made { names, others }) = self.0.as_deref() else { return false };
        *others || names.iter().any(|name| stands_in(text, name))
    }
}

/// Whether these letters stand in a text, and are no part of a longer word.
fn stands_in(text: &[u8], name: &[u8]) -> bool {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    text.windows(name.len().max(1)).enumerate().any(|(at, part)| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        let behind = text.get(at.saturating_add(name.len()));
        part.eq_ignore_ascii_case(name)
            && !before.is_some_and(is_of_word)
            && !behind.is_some_and(is_of_word)
    })
}

/// The name at a place, without its quotes, if it can be told from others by its letters.
fn plain_name(text: &[u8], at: u32, len: u32) -> Option<&[u8]> {
    let at = usize::try_from(at).ok()?;
    let end = at.checked_add(usize::try_from(len).ok()?)?;
    let name = match text.get(at..end)? {
        [b'`', name @ .., b'`'] | [b'"', name @ .., b'"'] => name,
        name => name,
    };
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'`' | b'"');
    let fits = (1..=NAME_LEN_MAX).contains(&name.len());
    (fits && name.iter().all(is_plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use sql::{LexMode, Server, Whole, survey};

    use super::*;

    fn made(texts: &[&str]) -> TemporaryTables {
        let mode = LexMode::unknown(Server::MySql { version: 90_704 });
        let mut tables = TemporaryTables::default();
        for text in texts {
            tables.note(text.as_bytes(), &survey(text.as_bytes(), mode, Whole::Yes));
        }
        tables
    }

    fn is_named(made: &TemporaryTables, text: &str) -> bool {
        made.may_be_named_in(text.as_bytes())
    }

    #[test]
    fn a_text_that_names_a_table_of_the_session_is_known_by_its_letters() {
        for create in [
            "CREATE TEMPORARY TABLE orders (id INT)",
            "create temporary table if not exists `Orders` (id INT)",
            "CREATE TEMPORARY TABLE shop.orders SELECT 1",
            "SELECT 1; CREATE TEMPORARY TABLE `shop` . `orders` LIKE t",
            "CREATE TEMPORARY TABLE/* */orders(id INT)",
        ] {
            let made = made(&[create]);
            assert!(is_named(&made, "SELECT * FROM ORDERS"), "{create}");
            assert!(is_named(&made, "SELECT * FROM shop.`orders`"), "{create}");
            for other in ["items", "orders_old", "all_orders", "orders2"] {
                assert!(!is_named(&made, &format!("SELECT * FROM {other}")), "{create}, {other}");
            }
        }
        let none =
            made(&["CREATE TABLE orders (id INT)", "DROP TEMPORARY TABLE orders", "SELECT 1"]);
        assert!(!is_named(&none, "SELECT * FROM orders"));
    }

    #[test]
    fn what_may_have_any_name_may_be_named_anywhere() {
        let create = "CREATE TEMPORARY TABLE a (id INT)";
        for texts in [
            ["CREATE TEMPORARY TABLE `ä` (id INT)", "SELECT 1"],
            ["PREPARE s FROM 'CREATE TEMPORARY TABLE t (id INT)'", "SELECT 1"],
            ["CREATE TEMPORARY TABLE a (i INT); CREATE TEMPORARY TABLE b (i INT)", "SELECT 1"],
            [create, "ALTER TABLE a RENAME TO orders"],
            [create, "RENAME TABLE a TO orders"],
        ] {
            assert!(is_named(&made(&texts), "SELECT * FROM orders"), "{texts:?}");
        }
        assert!(!is_named(&made(&[create, "ALTER TABLE t ADD x INT"]), "SELECT 1 FROM u"));
        let many: Vec<String> =
            (0..20).map(|n| format!("CREATE TEMPORARY TABLE x{n} (i INT)")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(is_named(&made(&many), "SELECT * FROM orders"));
    }
}
