use std::sync::Arc;

use sql::digest;

use super::*;
use crate::load;

const FILE: &str = "
version: 1
clusters: { main: { listen: 127.0.0.1:1, primary: db:3306 } }
budgets:
  - { name: all, rate: 5 }
  - { name: tenants, match: { tag: { tenant: acme } }, per: 'tag:tenant', max_concurrency: 4 }
  - { name: clients, match: { app: web }, per: client, max_concurrency: 4 }
guards:
  - { name: where, where_required: deny, no_cross_join: warn, max_in_list: 2 }
  - { name: tagged, match: { app: web }, require_tag: [route] }
  - { name: near, match: { client: [10.0.0.0/8] }, where_required: deny }
  - { name: long, match: { app: long }, max_statement_bytes: 40 }
rules:
  - { name: near, match: { client: [10.0.0.0/8], app: etl }, ratio: 0.5, permanent: true }
  - { name: acme, match: { tag: { tenant: acme } }, deny: true, permanent: true }
  - { name: payroll, match: { table: hr.payroll }, deny: true, permanent: true }
  - { name: etl, match: { app: etl }, ratio: 0.9, permanent: true }
  - { name: nights, match: { app: night }, deny: true, permanent: true,
      schedule: { time_zone: UTC, hours: ['00:00-06:00'] } }
";

fn cluster() -> Arc<ClusterPolicy> {
    load(FILE).unwrap().clusters[0].clone()
}

/// A day from six in the morning on.
const WINDOW: (UnixTime, UnixTime) = (UnixTime(6 * 3_600), UnixTime(20 * 3_600));

struct Past<'t> {
    app: &'t str,
    sql: &'t str,
    tags: &'t [(&'t [u8], &'t [u8])],
    tables: &'t [(&'t str, &'t str)],
    long: bool,
    kept: &'t [&'t str],
    window: (UnixTime, UnixTime),
    /// How many, and the bytes of all.
    counts: (u64, u64),
}

const NONE: Past<'_> = Past {
    app: "shop",
    sql: "",
    tags: &[],
    tables: &[],
    long: false,
    kept: &[],
    window: WINDOW,
    counts: (7, 700),
};

/// What of it a test looks at, in words.
fn told(past: &Past<'_>) -> String {
    let policy = cluster();
    let kept: Vec<String> = past.kept.iter().map(|key| (*key).to_owned()).collect();
    let ahead = Ahead::new(&policy, &kept, past.window);
    let mut text = Vec::new();
    let hash = digest(past.sql.as_bytes(), LexMode::default(), &mut text);
    let tables = past.tables.iter();
    let tables: Vec<(String, String)> =
        tables.map(|(schema, name)| ((*schema).to_owned(), (*name).to_owned())).collect();
    let foreseen = ahead.foresee(&Recorded {
        app: past.app.as_bytes(),
        user: b"u",
        schema: b"shop",
        tags: past.tags,
        text: &text,
        whole: true,
        long: past.long,
        digest: Some(hash),
        classes: None,
        exemption: None,
        tables: &tables,
        all_tables: true,
        count: past.counts.0,
        bytes: past.counts.1,
        seen: past.window,
    });
    let verdict = match foreseen.verdict {
        Verdict::Pass { .. } => "pass",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    };
    let mut told = format!("{verdict} {}", foreseen.verdict.rule().map_or("-", |rule| &*rule.name));
    for (rule, _) in &foreseen.perhaps {
        told += &format!(" perhaps {}", rule.name);
    }
    for met in &foreseen.budgets {
        let known = if met.bucket.is_some() { "" } else { "?" };
        told += &format!(" budget {}{known}", met.budget.name);
    }
    for (budget, _) in &foreseen.budgets_perhaps {
        told += &format!(" budget? {}", budget.name);
    }
    for hit in &foreseen.guards.hits {
        told += &format!(" hit {}.{}", hit.guard, hit.check);
    }
    for (guard, check) in &foreseen.guards.unjudged {
        told += &format!(" unknown {guard}.{check}");
    }
    told
}

#[test]
fn what_is_known_is_decided_as_it_would_be_for_a_statement_that_comes() {
    let kept = &["tenant", "route"][..];
    let acme: &[(&[u8], &[u8])] = &[(b"tenant", b"acme")];
    let update = "UPDATE t SET a = 1 WHERE id = 7";
    let past = Past { sql: update, kept, tags: acme, ..NONE };
    assert_eq!(told(&past), "deny acme budget all budget tenants");
    let tables = &[("hr", "payroll")][..];
    let past = Past { sql: "UPDATE hr.payroll SET a = 1 WHERE b", kept, tables, ..NONE };
    assert_eq!(told(&past), "deny payroll budget all");
    let past = Past { sql: "SELECT a FROM t WHERE b = 2", kept, ..NONE };
    assert_eq!(told(&past), "pass - budget all");
    let past = Past { sql: "COMMIT", kept, ..NONE };
    assert_eq!(told(&past), "pass -", "nothing holds it");
}

#[test]
fn what_a_rule_looks_at_and_nobody_kept_makes_it_unknown_and_never_a_pass() {
    let update = "UPDATE t SET a = 1 WHERE id = 7";
    // The tag may have been acme.
    let past = Past { sql: update, ..NONE };
    assert_eq!(told(&past), "pass - perhaps acme budget all budget? tenants");
    // The address may have been near; etl stands behind it.
    let kept = &["tenant"][..];
    let past = Past { sql: update, app: "etl", kept, ..NONE };
    assert_eq!(told(&past), "ask etl perhaps near budget all");
    let past = Past { sql: update, app: "web", kept: &["tenant", "route"], ..NONE };
    let expected = "pass - budget all budget clients? hit tagged.require_tag";
    assert_eq!(told(&past), expected, "a bucket of the client is nobody's");
    let past = Past { sql: update, app: "web", kept, ..NONE };
    assert!(told(&past).ends_with("unknown tagged.require_tag"), "{}", told(&past));
    // Of a long text not all tables are known.
    let past = Past { sql: update, kept, long: true, ..NONE };
    assert!(told(&past).starts_with("deny payroll perhaps payroll"), "{}", told(&past));
    assert!(told(&past).contains("unknown where.where_required"), "{}", told(&past));
}

#[test]
fn a_schedule_that_begins_within_the_window_is_unknown_and_one_that_does_not_is_known() {
    let kept = &["tenant"][..];
    let (night, late) = (UnixTime(3_600), UnixTime(2 * 3_600));
    let past = Past { sql: "DELETE FROM t WHERE a = 1", app: "night", kept, ..NONE };
    assert_eq!(told(&past), "pass - budget all", "by day");
    let past = Past { window: (night, late), ..past };
    assert_eq!(told(&past), "deny nights budget all", "by night");
    let past = Past { window: (night, WINDOW.1), ..past };
    assert_eq!(told(&past), "pass - perhaps nights budget all", "both");
}

#[test]
fn guards_judge_a_digest_as_far_as_it_tells() {
    let kept = &["tenant"][..];
    let of = |sql: &str| told(&Past { sql, kept, ..NONE });
    let (hit, near) = (" hit where.where_required", " unknown near.where_required");
    for sql in [
        "UPDATE t SET a = 1",
        "DELETE FROM t",
        "DELETE FROM t WHERE 1 = 1",
        "DELETE FROM t WHERE 'a'",
        "DELETE FROM t WHERE 1 IN (1, 2)",
    ] {
        assert!(of(sql).contains(hit) && of(sql).contains(near), "{sql}: {}", of(sql));
    }
    for sql in ["DELETE FROM t WHERE a = 1", "INSERT INTO t VALUES (1, 2), (3, 4)"] {
        assert_eq!(of(sql), "pass - budget all", "{sql}");
    }
    // How many values there were is gone; in a list of columns it is not.
    let list = of("DELETE FROM t WHERE a IN (1, 2, 3)");
    assert_eq!(list, "pass - budget all unknown where.max_in_list");
    let list = of("SELECT a FROM t WHERE 1 IN (a, b, c)");
    assert_eq!(list, "pass - budget all hit where.max_in_list");
    let list = of("SELECT a FROM t WHERE a IN (b, 1, 2, 3, 4)");
    assert_eq!(list, "pass - budget all hit where.max_in_list");
    assert_eq!(of("SELECT a FROM t ORDER BY FIELD(a, 1, 2, 3)"), "pass - budget all");
    assert_eq!(of("SELECT 1 FROM a, b"), "pass - budget all hit where.no_cross_join");
}

/// One statement of a digest that others had sent a hundred times was said to be as long as all of
/// those.
#[test]
fn how_long_a_text_was_is_known_where_all_together_are_no_longer() {
    let of =
        |sql: &str, counts| told(&Past { app: "long", sql, counts, kept: &["tenant"], ..NONE });
    let unknown = "pass - budget all unknown long.max_statement_bytes";
    assert_eq!(of("SELECT 1", (2, 40)), "pass - budget all");
    assert_eq!(of("SELECT 1", (1, 41)), unknown);
    assert_eq!(of("SELECT 1", (7, u64::MAX)), unknown, "some were refused");
    let prepared = "SELECT a, b, c, d, e FROM t WHERE f = ? AND g = ?";
    assert_eq!(of(prepared, (1, 20)), unknown, "what is executed has no text");
}
