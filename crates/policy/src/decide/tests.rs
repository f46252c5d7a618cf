use std::sync::Arc;

use sql::{LexMode, Scratch, Whole, describe};

use super::*;
use crate::compile::{RuntimeChange, RuntimeEffect, RuntimeRule, RuntimeSpec};
use crate::identity::{IdentityScratch, SessionIdentity, resolve};
use crate::load;
use crate::shape::Shape;
use crate::time::UnixTime;
use crate::verdict::Cover;

fn policy(rules: &str) -> Arc<ClusterPolicy> {
    let text = format!(
        "version: 1\nclusters:\n  main: {{listen: 127.0.0.1:1, primary: db:3306}}\nrules:\n{rules}"
    );
    load(&text).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}")).clusters[0].clone()
}

fn session() -> SessionIdentity {
    SessionIdentity::new(b"bob", None, b"shop", std::iter::empty())
}

/// What becomes of a text: `ask RULE`, `deny RULE` or the reason why it passes.
fn outcome(policy: &ClusterPolicy, session: &SessionIdentity, sql: &str, cover: Cover) -> String {
    let mut scratch = Scratch::default();
    let statement = describe(sql.as_bytes(), LexMode::default(), Whole::Yes, &mut scratch);
    let mut buffer = IdentityScratch::default();
    let tags = statement.tags().map(|tag| (tag.key, tag.value));
    let none = std::iter::empty();
    let identity = resolve(&policy.identity, session, none, tags, statement.tool(), &mut buffer);
    let facts = Facts {
        identity: &identity,
        session,
        classes: statement.classes,
        exemption: statement.exemption,
        shape: Shape::default(),
        now: UnixTime(0),
    };
    match decide(policy, &facts).under(cover) {
        Verdict::Pass { why, .. } => why.as_str().to_owned(),
        Verdict::Ask(rule) => format!("ask {}", rule.name),
        Verdict::Deny(rule) => format!("deny {}", rule.name),
    }
}

fn uncovered(policy: &ClusterPolicy, sql: &str) -> String {
    outcome(policy, &session(), sql, Cover::Nothing)
}

const DENIED: &str = "- {name: all, permanent: true, deny: true, statements: [read, write, ddl]}\n";

#[test]
fn what_no_rule_can_hold_passes_whatever_the_rules_say_and_names_its_rule() {
    let policy = policy(DENIED);
    for (sql, why) in [
        ("INSERT INTO t VALUES (1)", "deny all"),
        ("SELECT * FROM information_schema.tables", "never_held"),
        ("SELECT GET_LOCK('a', 0)", "never_held"),
        ("RENAME USER a TO b", "not_gateable"),
        ("COMMIT", "not_gateable"),
        ("COMMIT; INSERT INTO t VALUES (1)", "deny all"),
        ("", "deny all"),
    ] {
        assert_eq!(uncovered(&policy, sql), why, "{sql}");
    }
}

#[test]
fn a_rule_that_denies_ddl_denies_renaming_tables_and_no_other_rule_holds_it() {
    let rename = "RENAME TABLE a TO b";
    for (rule, becomes) in [
        ("deny: true", "deny r"),
        ("deny: true, mode: observe", "deny r"),
        ("deny: true, statements: [ddl]", "deny r"),
        ("deny: true, match: {statements: [write, load, ddl]}", "deny r"),
        ("deny: true, statements: [write]", "never_held"),
        ("deny: true, match: {statements: [write]}", "never_held"),
        ("hold: true, statements: [write, ddl]", "never_held"),
        ("ratio: 1, statements: [ddl]", "never_held"),
        ("exempt: true, essential: true", "never_held"),
    ] {
        let policy = policy(&format!("- {{name: r, permanent: true, {rule}}}\n"));
        assert_eq!(uncovered(&policy, rename), becomes, "{rule}");
        let replaced = uncovered(&policy, "CLONE INSTANCE FROM u@h:1 IDENTIFIED BY 'x'");
        assert_eq!(replaced, becomes.replace("never_held", "not_gateable"), "{rule}");
    }
    // What stands in front decides, and what stands beside does not carry it past.
    let shielded = policy(
        "- {name: passes, permanent: true, gate: none}\n- {name: no, permanent: true, deny: true}\n",
    );
    assert_eq!(uncovered(&shielded, rename), "never_held");
    let denied = policy("- {name: no, permanent: true, deny: true, statements: [ddl]}\n");
    for text in
        ["INSERT INTO c VALUES (1); RENAME TABLE a TO b", "RENAME TABLE a TO b; SHOW TABLES"]
    {
        assert_eq!(uncovered(&denied, text), "deny no", "{text}");
    }
    for text in
        ["SHOW TABLES", "KILL 7", "FLUSH TABLES", "GRANT ALL ON *.* TO u", "LOCK TABLES a WRITE"]
    {
        assert_eq!(uncovered(&denied, text), "not_gateable", "{text}");
    }
}

#[test]
fn nobody_writes_the_changelog_where_nobody_may_write() {
    let says_so = "insert /* gh-ost `shop`.`t` */ into _t_ghc (id) values (1)";
    assert_eq!(uncovered(&policy(DENIED), says_so), "deny all");
}

#[test]
fn the_changelog_is_held_for_everybody_but_ghost() {
    let policy = policy("- {name: all, permanent: true, hold: true}\n");
    let heartbeat = "insert into _t_ghc (id) values (1)";
    assert_eq!(uncovered(&policy, heartbeat), "ask all");
    let says_so = "insert /* gh-ost `shop`.`t` */ into _t_ghc (id) values (1)";
    assert_eq!(uncovered(&policy, says_so), "never_held");
    let mut has_said_so = session();
    assert!(has_said_so.handle_tool_seen(Tool::GhOst));
    assert_eq!(outcome(&policy, &has_said_so, heartbeat, Cover::Nothing), "never_held");
    let mut is_another = session();
    assert!(is_another.handle_tool_seen(Tool::PtOnlineSchemaChange));
    assert_eq!(outcome(&policy, &is_another, heartbeat, Cover::Nothing), "ask all");
}

#[test]
fn a_transaction_and_table_locks_cover_everything_a_named_lock_neither_deny_nor_hold() {
    let rules = |what: &str| policy(&format!("- {{name: r, permanent: true, {what}}}\n"));
    let write = "INSERT INTO t VALUES (1)";
    for (what, bare, named_lock) in [
        ("gate: none, ratio: 0.5", "ask r", "holds_named_lock"),
        ("max_delay: 1s", "ask r", "holds_named_lock"),
        ("hold: true", "ask r", "ask r"),
        ("deny: true", "deny r", "deny r"),
        ("gate: none", "ungated", "ungated"),
    ] {
        let policy = rules(what);
        let session = session();
        let under = |cover| outcome(&policy, &session, write, cover);
        let passes = |reason| if bare == "ungated" { "ungated" } else { reason };
        assert_eq!(under(Cover::Nothing), bare, "{what}");
        assert_eq!(under(Cover::NamedLock), named_lock, "{what}");
        let worked = named_lock.replace("holds_named_lock", "holds_row_locks");
        assert_eq!(under(Cover::Worked), worked, "{what}");
        assert_eq!(under(Cover::Transaction), passes("in_transaction"), "{what}");
        assert_eq!(under(Cover::TableLocks), passes("holds_table_locks"), "{what}");
    }
}

#[test]
fn a_statement_that_is_held_is_not_carried_past_a_named_lock_by_one_that_throws_dice() {
    let policy = policy(
        "- {name: dice, permanent: true, gate: none, ratio: 0.5, match: {statements: [write]}}
- {name: held, permanent: true, hold: true, statements: [ddl], match: {statements: [ddl]}}
",
    );
    let both = "INSERT INTO t VALUES (1); CREATE TABLE u (a INT)";
    assert_eq!(uncovered(&policy, both), "ask held");
    assert_eq!(outcome(&policy, &session(), both, Cover::NamedLock), "ask held");
}

#[test]
fn a_statement_is_not_carried_past_its_rule_by_one_that_is_only_observed() {
    let policy = policy(
        "- {name: seen, permanent: true, deny: true, mode: observe, statements: [read],
   match: {statements: [read]}}
- {name: held, permanent: true, gate: none, ratio: 1.0}
",
    );
    assert_eq!(uncovered(&policy, "SELECT a FROM t"), "deny seen");
    assert_eq!(uncovered(&policy, "INSERT INTO t VALUES (1); SELECT a FROM t"), "ask held");
}

/// The rule that decides, and the one that watches for what runs away.
fn watched(policy: &ClusterPolicy, sql: &str) -> (String, String) {
    let session = session();
    let mut scratch = Scratch::default();
    let statement = describe(sql.as_bytes(), LexMode::default(), Whole::Yes, &mut scratch);
    let mut buffer = IdentityScratch::default();
    let tags = statement.tags().map(|tag| (tag.key, tag.value));
    let none = std::iter::empty();
    let identity = resolve(&policy.identity, &session, none, tags, None, &mut buffer);
    let (classes, now) = (statement.classes, UnixTime(0));
    let shape = Shape::default();
    let facts =
        Facts { identity: &identity, session: &session, classes, exemption: None, shape, now };
    let verdict = decide(policy, &facts);
    let name = |rule: Option<&Rule>| rule.map_or("none", |rule| &*rule.name).to_owned();
    (name(verdict.rule()), name(watching(policy, &facts, &verdict)))
}

#[test]
fn who_is_slowed_down_at_runtime_is_watched_by_the_file_and_who_is_exempted_is_not() {
    let file = policy(
        "- { name: slow, match: { app: slow }, gate: none, permanent: true, runaway: { elapsed: 1s } }\n\
         - { name: rest, gate: none, permanent: true }\n",
    );
    let said = |policy: &ClusterPolicy, app: &str| {
        watched(policy, &format!("/* app='{app}' */ UPDATE t SET a = 1"))
    };
    let both = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(said(&file, "slow"), both("slow", "slow"));
    assert_eq!(said(&file, "other"), both("rest", "rest"));
    let made = |effect| {
        let spec = RuntimeSpec {
            name: "runtime:slow".to_owned(),
            app: Some("slow".to_owned()),
            user: None,
            classes: Vec::new(),
            effect,
            reason: String::new(),
            made_at_ms: 0,
        };
        let rule = RuntimeRule::new(spec, "ann".into(), UnixTime(9)).unwrap();
        file.with_runtime_changes([RuntimeChange::Stands(rule)])
    };
    for effect in [RuntimeEffect::Throttle { ratio: 0.5 }, RuntimeEffect::Hold] {
        assert_eq!(said(&made(effect), "slow"), both("runtime:slow", "slow"));
    }
    assert_eq!(said(&made(RuntimeEffect::Exempt), "slow"), both("runtime:slow", "none"));
    let unwatched = policy("- { name: rest, gate: none, permanent: true }\n");
    assert_eq!(said(&unwatched, "slow"), both("rest", "none"), "nobody looks");
}
