use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use sql::{ClassSet, LexMode, Scratch, Whole, describe};

use super::*;
use crate::cluster::ClusterPolicy;
use crate::identity::{IdentityScratch, SessionIdentity, resolve};
use crate::load;
use crate::rule::Standing;
use crate::shape::{Shape, ShapeScratch, ShapeText};

mod made;
mod tables;

fn file_of(rules: &str) -> String {
    format!(
        "version: 1\nclusters:\n  main: {{listen: 127.0.0.1:1, primary: db:3306}}\nrules:\n{rules}"
    )
}

fn policy(rules: &str) -> Arc<ClusterPolicy> {
    let text = file_of(rules);
    let config = load(&text).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
    config.clusters[0].clone()
}

/// One statement of one connection.
#[derive(Debug, Clone)]
struct Case {
    user: String,
    client: Option<IpAddr>,
    schema: String,
    attributes: Vec<(String, String)>,
    app: Option<String>,
    tags: Vec<(String, String)>,
    class: Class,
    sql: &'static str,
    now: i64,
}

impl Case {
    fn of(app: &str) -> Self {
        Self {
            user: "bob".into(),
            client: Some(IpAddr::from([10, 1, 2, 3])),
            schema: "shop".into(),
            attributes: Vec::new(),
            app: Some(app.into()),
            tags: Vec::new(),
            class: Class::Write,
            sql: "UPDATE t SET a = 1",
            now: 0,
        }
    }

    fn with<R>(&self, policy: &ClusterPolicy, look: impl FnOnce(&Facts<'_>) -> R) -> R {
        let pairs = |pairs: &[(String, String)]| -> Vec<(Vec<u8>, Vec<u8>)> {
            pairs.iter().map(|(key, value)| (key.clone().into(), value.clone().into())).collect()
        };
        let attributes = pairs(&self.attributes);
        let mut tags = pairs(&self.tags);
        if let Some(app) = &self.app {
            tags.push((b"app".to_vec(), app.clone().into()));
        }
        let attributes = attributes.iter().map(|(key, value)| (&key[..], &value[..]));
        let session = SessionIdentity::new(
            self.user.as_bytes(),
            self.client,
            self.schema.as_bytes(),
            attributes,
        );
        let mut scratch = IdentityScratch::default();
        let tags = tags.iter().map(|(key, value)| (&key[..], &value[..]));
        let none = std::iter::empty();
        let identity = resolve(&policy.identity, &session, none, tags, None, &mut scratch);
        let now = UnixTime(self.now);
        let mode = LexMode::default();
        let mut sql_scratch = Scratch::default();
        let statement = describe(self.sql.as_bytes(), mode, Whole::Yes, &mut sql_scratch);
        let text = ShapeText::new(self.sql.as_bytes(), mode, self.schema.as_bytes(), &statement);
        let mut shape_scratch = ShapeScratch::default();
        let facts = Facts {
            identity: &identity,
            session: &session,
            classes: [self.class].into_iter().collect(),
            exemption: None,
            shape: Shape::default(),
            now,
        };
        let needs = policy.rules.shape_needs(&facts);
        let mut all = ShapeScratch::default();
        let facts_of_all = Facts { shape: all.read(&text, ShapeNeeds::ALL), ..facts };
        let facts = Facts { shape: shape_scratch.read(&text, needs), ..facts };
        // What nobody needs changes nothing.
        assert_eq!(policy.rules.evaluate(&facts), policy.rules.evaluate(&facts_of_all), "{self:?}");
        look(&facts)
    }

    fn rule(&self, policy: &ClusterPolicy) -> Option<String> {
        self.with(policy, |facts| {
            let rule = policy.rules.evaluate(facts).rule();
            rule.map(|rule| rule.name.to_string())
        })
    }
}

#[track_caller]
fn assert_rule(policy: &ClusterPolicy, case: &Case, expected: &str) {
    assert_eq!(case.rule(policy).as_deref().unwrap_or(""), expected, "{case:?}");
}

#[test]
fn a_value_matches_a_level_and_a_value_with_a_colon_the_whole_app() {
    let policy = policy(
        "- {name: whole, permanent: true, match: {app: \"a:b\"}}
- {name: level, permanent: true, match: {app: online-ddl}}
- {name: prefix, permanent: true, match: {app: \"etl-*\"}}
- {name: whole-prefix, permanent: true, match: {app: \"x:y*\"}}
",
    );
    for (app, rule) in [
        ("online-ddl", "level"),
        ("d666:vcopier:vreplication:online-ddl", "level"),
        ("online-ddl:a:b", "level"),
        ("a:b", "whole"),
        ("x:a:b", ""),
        ("a:b:c", ""),
        ("etl-night", "prefix"),
        ("7:etl-night:x", "prefix"),
        ("etl", ""),
        ("my-etl-night", ""),
        ("x:yz:q", "whole-prefix"),
        ("a:x:y", ""),
        ("Online-ddl", ""),
    ] {
        assert_rule(&policy, &Case::of(app), rule);
    }
}

#[test]
fn the_first_match_in_the_list_decides_whatever_it_is_found_by() {
    let policy = policy(
        "- {name: by-tag, permanent: true, match: {tag: {controller: \"rep*\"}, user: bob}}
- {name: by-client, permanent: true, match: {client: 10.0.0.0/8, schema: shop, app: b}}
- {name: by-long-prefix, permanent: true, match: {client: 10.1.2.3}}
- {name: by-schema, permanent: true, match: {schema: shop}}
- {name: rest, permanent: true}
",
    );
    let mut case = Case::of("b");
    assert_rule(&policy, &case, "by-client");
    case.tags.push(("controller".into(), "reports".into()));
    assert_rule(&policy, &case, "by-tag");
    case.user = "eve".into();
    assert_rule(&policy, &case, "by-client");
    case.app = Some("c".into());
    assert_rule(&policy, &case, "by-long-prefix");
    case.client = Some("::ffff:10.1.2.3".parse().unwrap());
    assert_rule(&policy, &case, "by-long-prefix");
    case.client = None;
    assert_rule(&policy, &case, "by-schema");
    case.schema = "SHOP".into();
    assert_rule(&policy, &case, "by-schema");
    case.schema = String::new();
    assert_rule(&policy, &case, "rest");
}

#[test]
fn a_connection_attribute_is_an_attribute_and_a_tag() {
    let policy = policy(
        "- {name: attribute, permanent: true, match: {attribute: {_client_name: \"*\"}}}
- {name: tag, permanent: true, match: {tag: {team: a}}}
",
    );
    let mut case = Case::of("b");
    case.attributes.push(("team".into(), "a".into()));
    assert_rule(&policy, &case, "tag");
    case.attributes.push(("_client_name".into(), "libmysql".into()));
    assert_rule(&policy, &case, "attribute");
}

#[test]
fn networks_of_both_families_are_matched() {
    let policy = policy(
        "- {name: v4, permanent: true, match: {client: [10.0.0.0/8, 192.168.1.7]}}
- {name: v6, permanent: true, match: {client: \"fd00::/9\"}}
- {name: all-v4, permanent: true, match: {client: 0.0.0.0/0}}
- {name: any, permanent: true, match: {client: \"::/0\"}}
",
    );
    let cases = [
        ("10.255.0.1", "v4"),
        ("11.0.0.1", "all-v4"),
        ("192.168.1.7", "v4"),
        ("192.168.1.8", "all-v4"),
        ("fd12::1", "v6"),
        ("fe80::1", "any"),
        ("::ffff:10.0.0.1", "v4"),
    ];
    for (client, rule) in cases {
        let client = Some(client.parse().unwrap());
        assert_rule(&policy, &Case { client, ..Case::of("b") }, rule);
    }
}

#[test]
fn an_expired_rule_is_gone_at_its_second() {
    let policy = policy(
        "- {name: short, expires_at: 1970-01-01T00:01:40Z}
- {name: long, expires_at: 1970-01-01T00:03:20Z}
- {name: rest, permanent: true}
",
    );
    for (now, rule) in [(99, "short"), (100, "long"), (199, "long"), (200, "rest")] {
        assert_rule(&policy, &Case { now, ..Case::of("b") }, rule);
    }
    let next = |now| policy.rules.next_change_after(UnixTime(now)).map(|time| time.0);
    assert_eq!(
        [next(0), next(99), next(100), next(199), next(200)],
        [Some(100), Some(100), Some(200), Some(200), None]
    );
}

#[test]
fn a_rule_on_a_digest_is_found_by_its_hash_and_by_its_text() {
    let mut case = Case { sql: "delete from t where a in (1, 2)", ..Case::of("b") };
    let text = "DELETE FROM t WHERE a IN (...)";
    let mut buffer = Vec::new();
    let hash = sql::digest(case.sql.as_bytes(), LexMode::default(), &mut buffer);
    assert_eq!(buffer, text.as_bytes());
    for value in [format!("{hash:016x}"), text.to_owned(), case.sql.to_owned()] {
        let policy = policy(&format!(
            "- {{name: digest, permanent: true, match: {{digest: [\"{value}\"]}}}}\n"
        ));
        case.sql = "delete from t where a in (1, 2)";
        assert_rule(&policy, &case, "digest");
        case.sql = "DELETE FROM t WHERE a IN (7) /* again */";
        assert_rule(&policy, &case, "digest");
        case.sql = "DELETE FROM t WHERE b IN (7)";
        assert_rule(&policy, &case, "");
    }
}

#[test]
fn a_verdict_says_what_happens_and_why() {
    let policy = policy(
        "- {name: asks, permanent: true, match: {app: asks}}
- {name: denies, permanent: true, deny: true, match: {app: denies}}
- {name: exempts, permanent: true, essential: true, exempt: true, match: {app: exempts}}
- {name: ungated, permanent: true, gate: none, match: {app: ungated}}
- {name: dice, permanent: true, gate: none, ratio: 0.1, match: {app: dice}}
- {name: holds, permanent: true, gate: none, hold: true, match: {app: holds}}
- {name: slow, permanent: true, gate: none, speed: 0.5, match: {app: slow}}
- {name: reads, permanent: true, statements: [read], match: {app: reads}}
",
    );
    let verdict = |app: &str, class| {
        let case = Case { class, ..Case::of(app) };
        case.with(&policy, |facts| match policy.rules.evaluate(facts) {
            Verdict::Pass { why, .. } => why.as_str(),
            Verdict::Ask(_) => "ask",
            Verdict::Deny(_) => "deny",
        })
    };
    assert_eq!(verdict("asks", Class::Write), "ask");
    assert_eq!(verdict("asks", Class::Unknown), "ask");
    assert_eq!(verdict("asks", Class::Read), "not_covered");
    assert_eq!(verdict("denies", Class::Write), "deny");
    assert_eq!(verdict("denies", Class::Ddl), "deny");
    assert_eq!(verdict("denies", Class::Read), "not_covered");
    assert_eq!(verdict("slow", Class::Write), "ask");
    assert_eq!(verdict("exempts", Class::Ddl), "exempt");
    assert_eq!(verdict("ungated", Class::Write), "ungated");
    assert_eq!(verdict("dice", Class::Write), "ask");
    assert_eq!(verdict("holds", Class::Call), "ask");
    assert_eq!(verdict("reads", Class::Read), "ask");
    assert_eq!(verdict("reads", Class::Write), "not_covered");
    assert_eq!(verdict("other", Class::Write), "no_rule");
}

#[test]
fn of_several_statements_the_strictest_verdict_counts() {
    let policy = policy(
        "- {name: ddl, permanent: true, statements: [ddl], match: {app: a}}
- {name: write, permanent: true, match: {statements: write}}
- {name: read, permanent: true, deny: true, statements: [read], match: {statements: read, app: b}}
",
    );
    let rule = |app: &str, classes: &[Class]| {
        let classes: ClassSet = classes.iter().copied().collect();
        Case::of(app).with(&policy, |facts| {
            match policy.rules.evaluate(&Facts { classes, ..*facts }) {
                Verdict::Pass { why, .. } => why.as_str().to_owned(),
                Verdict::Ask(rule) => format!("ask {}", rule.name),
                Verdict::Deny(rule) => format!("deny {}", rule.name),
            }
        })
    };
    assert_eq!(rule("a", &[Class::Write, Class::Ddl]), "ask ddl");
    assert_eq!(rule("b", &[Class::Write, Class::Read]), "deny read");
    assert_eq!(rule("b", &[Class::Write, Class::Ddl]), "ask write");
    assert_eq!(rule("a", &[Class::Write]), "not_covered");
    assert_eq!(rule("c", &[Class::Ddl, Class::Session]), "no_rule");
}

/// What the index replaces: every rule in turn.
fn naive<'p>(policy: &'p ClusterPolicy, facts: &Facts<'_>) -> Option<&'p Rule> {
    policy.rules.iter().find(|rule| {
        rule.is_about(facts, facts.class()) && rule.standing(facts.now) == Standing::InForce
    })
}

fn words() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "abc", "b-1", "7", "c"]).prop_map(str::to_owned)
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => words(),
        2 => words().prop_map(|word| word + "*"),
        1 => Just("*".to_owned()),
        1 => (words(), words()).prop_map(|(first, second)| format!("{first}:{second}")),
        1 => (words(), words()).prop_map(|(first, second)| format!("{first}:{second}*")),
    ]
}

fn patterns() -> impl Strategy<Value = String> {
    prop::collection::vec(pattern(), 1..4).prop_map(|patterns| format!("{patterns:?}"))
}

fn networks() -> impl Strategy<Value = String> {
    let network = prop::sample::select(vec![
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.1.2.3",
        "0.0.0.0/0",
        "::/0",
        "fd00::/8",
        "fd00::1",
    ]);
    prop::collection::vec(network, 1..3).prop_map(|networks| format!("{networks:?}"))
}

fn classes() -> impl Strategy<Value = String> {
    let class = prop::sample::select(vec!["read", "write", "ddl", "load"]);
    prop::collection::vec(class, 1..3).prop_map(|classes| format!("{classes:?}"))
}

fn condition() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        4 => patterns().prop_map(|values| ("app", values)),
        2 => patterns().prop_map(|values| ("user", values)),
        2 => patterns().prop_map(|values| ("schema", values)),
        2 => networks().prop_map(|values| ("client", values)),
        2 => (words(), patterns()).prop_map(|(key, values)| ("tag", format!("{{{key}: {values}}}"))),
        2 => (words(), patterns())
            .prop_map(|(key, values)| ("attribute", format!("{{{key}: {values}}}"))),
        1 => classes().prop_map(|values| ("statements", values)),
        1 => patterns_of_tables().prop_map(|values| ("table", values)),
        1 => prop::sample::select(TEXTS.to_vec())
            .prop_map(|text| ("digest", format!("{text:?}"))),
    ];
    prop::collection::vec(one, 0..3).prop_map(|conditions| {
        let unique: std::collections::BTreeMap<&str, String> = conditions.into_iter().collect();
        let all: Vec<String> =
            unique.iter().map(|(key, values)| format!("{key}: {values}")).collect();
        format!("{{{}}}", all.join(", "))
    })
}

const TEXTS: [&str; 7] = [
    "UPDATE t SET a = 1",
    "INSERT INTO a SELECT * FROM b.c",
    "DELETE FROM ab",
    "CALL p()",
    "SELECT 1 + 1",
    "DROP DATABASE b",
    "CREATE TRIGGER x BEFORE INSERT ON a FOR EACH ROW SET @i = 1",
];

fn patterns_of_tables() -> impl Strategy<Value = String> {
    let patterns = vec!["a", "t", "a*", "*", "b.c", "b.*", "abc.ab", "c"];
    prop::collection::vec(prop::sample::select(patterns), 1..3)
        .prop_map(|patterns| format!("{patterns:?}"))
}

fn rules() -> impl Strategy<Value = String> {
    let expiry = prop_oneof![
        3 => Just("permanent: true".to_owned()),
        1 => (1..4_i64).prop_map(|s| format!("expires_at: 1970-01-01T00:00:0{s}Z")),
    ];
    let action = prop::sample::select(vec!["ratio: 0.1", "gate: none", "deny: true"]);
    prop::collection::vec((condition(), expiry, action), 0..24).prop_map(|rules| {
        let rule = |(at, (condition, expiry, action)): (usize, (String, String, &str))| {
            // A rule that names classes in `match` names the same beside it.
            let classes = condition.split_once("statements: ").and_then(|(_, rest)| {
                rest.split_once(']').map(|(classes, _)| format!("{classes}]"))
            });
            let classes = classes.unwrap_or_else(|| "[write, read, ddl]".to_owned());
            let action = format!("statements: {classes}, {action}");
            format!("- {{name: r{at}, {expiry}, {action}, match: {condition}}}\n")
        };
        let rules: String = rules.into_iter().enumerate().map(rule).collect();
        if rules.is_empty() { " []".to_owned() } else { rules }
    })
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((words(), words()), 0..3)
}

fn cases() -> impl Strategy<Value = Case> {
    let app = prop::option::of(prop::collection::vec(words(), 1..4).prop_map(|app| app.join(":")));
    let client = prop::sample::select(vec![
        None,
        Some("10.1.2.3"),
        Some("10.1.9.9"),
        Some("192.168.0.1"),
        Some("fd00::1"),
        Some("fe80::1"),
        Some("::ffff:10.1.2.3"),
    ]);
    let class = prop::sample::select(Class::ALL.to_vec());
    let sql = prop::sample::select(TEXTS.to_vec());
    (words(), client, words(), pairs(), app, pairs(), class, (sql, 0..4_i64)).prop_map(
        |(user, client, schema, attributes, app, tags, class, (sql, now))| Case {
            user,
            client: client.map(|client| client.parse().unwrap()),
            schema,
            attributes,
            app,
            tags,
            class,
            sql,
            now,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_index_finds_what_a_walk_through_the_list_finds(
        rules in rules(), cases in prop::collection::vec(cases(), 1..24),
    ) {
        let policy = policy(&rules);
        for case in cases {
            let (indexed, walked) = case.with(&policy, |facts| {
                let indexed = policy.rules.file.first_match(facts, facts.class());
                let indexed = indexed.map(|rule| rule.index);
                (indexed, naive(&policy, facts).map(|rule| rule.index))
            });
            prop_assert_eq!(indexed, walked, "{:?}\n{}", case, rules);
        }
    }
}

#[test]
fn a_rule_outside_its_schedule_leaves_the_decision_to_those_behind_it() {
    let policy = policy(
        "- {name: noon, permanent: true, schedule: {hours: \"12:00-13:00\"}}
- {name: short, expires_at: 1970-01-01T12:30:30Z}
- {name: rest, permanent: true}
",
    );
    let noon = 12 * 3_600;
    for (now, rule) in [
        (0, "short"),
        (noon - 1, "short"),
        (noon, "noon"),
        (noon + 3_599, "noon"),
        (noon + 3_600, "rest"),
    ] {
        assert_rule(&policy, &Case { now, ..Case::of("b") }, rule);
    }
    let next = |now| policy.rules.next_change_after(UnixTime(now)).map(|time| time.0);
    assert_eq!([next(0), next(59)], [Some(60), Some(60)]);
    assert_eq!([next(noon + 1_829), next(noon + 1_830)], [Some(noon + 1_830), Some(noon + 1_860)]);
    let changes = |before, after| policy.rules.changes_between(UnixTime(before), UnixTime(after));
    assert!(changes(noon - 60, noon) && changes(noon, noon - 60));
    assert!(changes(noon, noon + 1_860), "one expires");
    let stands_for = |name: &str, now| {
        let rule = policy.rules.iter().find(|rule| *rule.name == *name).unwrap();
        rule.stands_for(UnixTime(now)).as_secs()
    };
    assert_eq!([stands_for("noon", noon), stands_for("noon", noon + 3_590)], [60, 10]);
    assert_eq!([stands_for("short", noon + 1_820), stands_for("rest", noon)], [10, 60]);
    assert!(!changes(0, noon - 60) && !changes(noon, noon + 1_800));
}

mod shadowed;
