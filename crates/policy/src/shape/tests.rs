use sql::{Scratch, Whole, describe};

use super::*;

fn read<R>(text: &str, schema: &str, look: impl FnOnce(Shape<'_>) -> R) -> R {
    let mode = LexMode::default();
    let mut sql_scratch = Scratch::default();
    let statement = describe(text.as_bytes(), mode, Whole::Yes, &mut sql_scratch);
    let text = ShapeText::new(text.as_bytes(), mode, schema.as_bytes(), &statement);
    look(ShapeScratch::default().read(&text, ShapeNeeds::ALL))
}

fn names(text: &str, schema: &str) -> (Vec<String>, bool) {
    read(text, schema, |shape| {
        let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let tables = shape.tables().map(|(schema, name)| string(schema) + "." + &string(name));
        (tables.collect(), shape.knows_tables())
    })
}

fn patterns(values: &[&str]) -> TablePatterns {
    let mut patterns = TablePatterns::default();
    for value in values {
        patterns.add(value);
    }
    patterns
}

#[test]
fn names_are_resolved_against_the_schema_and_lose_their_case() {
    let text = "INSERT INTO Orders SELECT * FROM archive.`Old` JOIN x";
    let expected = ["shop.orders", "archive.old", "shop.x"].map(str::to_owned).to_vec();
    assert_eq!(names(text, "Shop"), (expected, true));
    assert_eq!(names("DELETE FROM a", ""), (vec![".a".to_owned()], true));
    assert_eq!(names("SELECT 1", "shop"), (vec![], true));
}

#[test]
fn what_may_hide_a_table_is_not_known() {
    for text in [
        "CALL p()",
        "DELETE FROM a WHERE s = 'x",
        "DELETE /*!99999 FROM b */ FROM a",
        "USE other; DELETE FROM a",
        "DELETE FROM `a\0b`",
        "nonsense",
    ] {
        assert!(!names(text, "shop").1, "{text}");
    }
    let long = format!("SELECT * FROM {}", vec!["a_table_of_some_length"; 300].join(", "));
    assert!(!names(&long, "shop").1, "names beyond the bound");
}

#[test]
fn a_digest_counts_only_when_it_is_certain() {
    let digest = |text: &str| read(text, "", |shape| shape.digest());
    assert_eq!(digest("DELETE FROM a WHERE i = 1"), digest("delete from a where i=2 /* x */"));
    assert!(digest("DELETE FROM a").is_some());
    assert_eq!(digest("DELETE /*!99999 FROM b */ FROM a"), None);
    let long = format!("INSERT INTO t VALUES ('{}')", "x".repeat(DIGEST_TEXT_MAX));
    assert_eq!(digest(&long), None);
    let mut scratch = ShapeScratch::default();
    let cost = scratch.digest(long.as_bytes(), LexMode::default());
    assert_eq!(scratch.digest(b"SELECT 1", LexMode::default()), cost, "once for each text");
}

#[test]
fn a_table_is_matched_alone_with_its_schema_and_by_a_prefix() {
    for (values, text, matches) in [
        (&["orders"][..], "DELETE FROM orders", true),
        (&["ORDERS"], "DELETE FROM other.Orders", true),
        (&["orders"], "DELETE FROM orders2", false),
        (&["shop.orders"], "DELETE FROM orders", true),
        (&["shop.orders"], "DELETE FROM other.orders", false),
        (&["shop.*"], "DELETE FROM orders", true),
        (&["shop.tmp_*"], "DELETE FROM orders", false),
        (&["tmp_*", "x"], "INSERT INTO orders SELECT * FROM tmp_1", true),
        (&["*"], "DELETE FROM orders", true),
        (&["*"], "SELECT 1", false),
    ] {
        let patterns = patterns(values);
        let found = read(text, "shop", |shape| shape.tables.matches(&patterns, Caution::Holds));
        assert_eq!(found, matches, "{values:?} {text}");
    }
}

#[test]
fn how_cautious_a_rule_is_decides_when_tables_are_not_known_or_not_all_its_own() {
    let patterns = patterns(&["tmp_*"]);
    let [all, some, unknown, none] = [
        "INSERT INTO tmp_a SELECT * FROM tmp_b",
        "INSERT INTO orders SELECT * FROM tmp_b",
        "CALL p()",
        "SELECT 1",
    ]
    .map(|text| {
        [Caution::Holds, Caution::Loosens]
            .map(|caution| read(text, "", |shape| shape.tables.matches(&patterns, caution)))
    });
    assert_eq!(all, [true, true]);
    assert_eq!(some, [true, false]);
    assert_eq!(unknown, [true, false]);
    assert_eq!(none, [false, false]);
}

#[test]
fn a_schema_as_a_whole_is_every_table_in_it() {
    for (values, holds, loosens) in [
        (&["shop.*"][..], true, true),
        (&["*"], true, true),
        (&["shop.orders"], true, false),
        (&["shop.tmp_*"], true, false),
        (&["orders"], true, false),
        (&["archive.*", "shop2.*", "sho.x"], false, false),
    ] {
        let patterns = patterns(values);
        let matches = |caution| {
            read("DROP DATABASE Shop", "other", |shape| shape.tables.matches(&patterns, caution))
        };
        assert_eq!(matches(Caution::Holds), holds, "{values:?}");
        assert_eq!(matches(Caution::Loosens), loosens, "{values:?}");
    }
}
