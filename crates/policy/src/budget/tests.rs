use std::collections::BTreeSet;

use sql::{LexMode, Scratch, Whole, describe};

use super::*;
use crate::cluster::ClusterPolicy;
use crate::identity::{IdentityScratch, SessionIdentity, resolve};
use crate::load;
use crate::shape::{ShapeScratch, ShapeText};
use crate::time::UnixTime;

fn file_of(budgets: &str) -> String {
    format!(
        "version: 1\nclusters:\n  main: {{listen: 127.0.0.1:1, primary: db:3306}}\n  calm: {{listen: \
         127.0.0.1:2, primary: db:3306, mode: observe}}\nrules: []\nbudgets:\n{budgets}"
    )
}

fn clusters(budgets: &str) -> Vec<Arc<ClusterPolicy>> {
    let text = file_of(budgets);
    load(&text).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}")).clusters
}

fn policy(budgets: &str) -> Arc<ClusterPolicy> {
    clusters(budgets)[0].clone()
}

fn faults(budgets: &str) -> Vec<String> {
    let faults = load(&file_of(budgets)).expect_err("it has faults");
    faults.iter().map(ToString::to_string).collect()
}

/// What a statement of `bob` in `shop` from 10.1.2.3 meets.
fn met(policy: &ClusterPolicy, sql: &str) -> BudgetSet {
    met_by(policy, b"bob", sql)
}

fn met_by(policy: &ClusterPolicy, user: &[u8], sql: &str) -> BudgetSet {
    let address = std::net::IpAddr::from([10, 1, 2, 3]);
    let session = SessionIdentity::new(user, Some(address), b"shop", std::iter::empty());
    let mode = LexMode::default();
    let mut scratch = Scratch::default();
    let statement = describe(sql.as_bytes(), mode, Whole::Yes, &mut scratch);
    let mut identities = IdentityScratch::default();
    let tags = statement.tags().map(|tag| (tag.key, tag.value));
    let none = std::iter::empty();
    let tool = statement.tool();
    let identity = resolve(&policy.identity, &session, none, tags, tool, &mut identities);
    let mut shape = ShapeScratch::default();
    let text = ShapeText::new(sql.as_bytes(), mode, b"shop", &statement);
    let facts = Facts {
        identity: &identity,
        session: &session,
        classes: statement.classes,
        exemption: statement.exemption,
        shape: shape.read(&text, policy.budgets.shape_needs()),
        now: UnixTime(0),
    };
    policy.budgets.meeting(&facts)
}

fn names(policy: &ClusterPolicy, sql: &str) -> String {
    let name = |at: BudgetUse| policy.budgets.get(at.budget).map(|budget| budget.name.to_string());
    met(policy, sql).iter().filter_map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn all_that_match_meet_a_statement_each_once_in_the_order_of_the_file() {
    let policy = policy(
        "- {name: two-levels, match: {app: [a, b, 'a:b']}, rate: 1}
- {name: all, max_concurrency: 9}
- {name: others, match: {app: c}, rate: 1}
- {name: mine, match: {user: bob, schema: shop, client: 10.0.0.0/8}, rate: 1}
- {name: reads, match: {statements: read}, rate: 1}
- {name: writes, match: {statements: write}, rate: 1}
- {name: orders, match: {table: orders}, rate: 1}
",
    );
    for (sql, expected) in [
        ("SELECT 1 /* app=a:b */", "two-levels all mine reads"),
        ("SELECT * FROM orders", "all mine reads orders"),
        ("UPDATE t SET a = 1 /* app=c */", "all others mine writes"),
        ("DELETE FROM orders", "all mine writes orders"),
        ("SELECT 1 FROM t FOR UPDATE", "all mine writes"),
        ("CREATE TABLE n (id INT)", "all mine"),
        ("SELECT 1; DELETE FROM t", "all mine reads writes"),
        ("CALL p()", "all mine writes orders"),
    ] {
        assert_eq!(names(&policy, sql), expected, "{sql}");
    }
}

#[test]
fn what_nothing_may_hold_back_none_meets() {
    let policy = policy("- {name: all, max_concurrency: 1}\n");
    for sql in [
        "COMMIT",
        "BEGIN",
        "SET @a = 1",
        "SHOW TABLES",
        "KILL 7",
        "LOCK TABLES t WRITE",
        "RENAME TABLE a TO b",
        "SELECT GET_LOCK('a', 1)",
        "SELECT * FROM performance_schema.threads",
    ] {
        assert!(met(&policy, sql).is_empty(), "{sql}");
    }
    assert_eq!(names(&policy, "not sql at all"), "all", "what cannot be read counts");
}

#[test]
fn each_has_a_bucket_of_what_its_budget_is_per() {
    let policy = policy(
        "- {name: a, per: app, rate: 1}
- {name: u, per: user, rate: 1}
- {name: t, per: 'tag:tenant', rate: 1}
- {name: c, per: client, rate: 1}
- {name: d, per: digest, rate: 1}
- {name: all, rate: 1}
",
    );
    let of = |user: &[u8], sql: &str| -> Vec<u64> {
        met_by(&policy, user, sql).iter().map(|at| at.instance).collect()
    };
    let base = of(b"bob", "SELECT 1 /* app=x, tenant=a */");
    assert_eq!((base.len(), base[5]), (6, 0));
    let differs = |other: Vec<u64>| -> BTreeSet<usize> {
        base.iter().zip(&other).zip(0..).filter(|((a, b), _)| a != b).map(|(_, n)| n).collect()
    };
    assert_eq!(differs(of(b"bob", "SELECT 2 /* app=x, tenant=a */")), BTreeSet::from([]));
    assert_eq!(differs(of(b"bob", "SELECT 2 /* app=77:x, tenant=a */")), BTreeSet::from([]));
    assert_eq!(differs(of(b"bob", "SELECT 2 /* app=y, tenant=a */")), BTreeSet::from([0]));
    assert_eq!(differs(of(b"ann", "SELECT 2 /* app=x, tenant=a */")), BTreeSet::from([1]));
    assert_eq!(differs(of(b"bob", "SELECT 2 /* app=x, tenant=b */")), BTreeSet::from([2]));
    assert_eq!(differs(of(b"bob", "SELECT a FROM t /* app=x, tenant=a */")), BTreeSet::from([4]));
}

#[test]
fn of_more_than_eight_the_first_in_the_file_count() {
    let line = |n: u32| format!("- {{name: b{n}, rate: 1}}\n");
    let policy = policy(&(0..12).map(line).collect::<String>());
    assert_eq!(names(&policy, "SELECT 1"), "b0 b1 b2 b3 b4 b5 b6 b7");
}

#[test]
fn one_of_ten_thousand_is_found() {
    let line = |n: u32| format!("- {{name: b{n}, match: {{app: app-{n}}}, max_concurrency: 1}}\n");
    let policy = policy(&(0..10_000).map(line).collect::<String>());
    assert_eq!(names(&policy, "SELECT 1 /* app=app-7321 */"), "b7321");
    assert_eq!(names(&policy, "SELECT 1 /* app=another */"), "");
}

#[test]
fn where_everything_observes_budgets_warn_and_defaults_are_those_of_the_manual() {
    let both = clusters("- {name: a, share: 0.5}\n- {name: b, rate: 1, match: {cluster: main}}\n");
    let modes = |of: &ClusterPolicy| -> Vec<admission::Mode> {
        of.budgets.iter().map(|budget| budget.terms.mode).collect()
    };
    assert_eq!(modes(&both[0]), [admission::Mode::Enforce; 2]);
    assert_eq!(modes(&both[1]), [admission::Mode::Observe]);
    let terms = both[0].budgets.iter().next().unwrap().terms;
    assert_eq!((terms.share, terms.burst), (Some(0.5), 0.5));
    assert_eq!(terms.max_delay, std::time::Duration::from_secs(60));
    assert_eq!(terms.on_exceeded, admission::OnExceeded::Delay);
}

#[test]
fn amounts_are_numbers_of_seconds_or_durations() {
    let policy = policy(
        "- {name: a, share: 0.25, burst: 2, max_query_cost: 500ms}
- {name: b, share: 1, burst: 250ms, max_query_cost: 3}
",
    );
    let amounts: Vec<_> = policy
        .budgets
        .iter()
        .map(|budget| (budget.terms.burst, budget.terms.max_query_cost))
        .collect();
    assert_eq!(amounts, [(2.0, Some(0.5)), (0.25, Some(3.0))]);
}

#[test]
fn a_budget_takes_the_words_of_rules_too() {
    let policy = policy(
        "- {name: a, rate: 1, on_exceeded: refuse, mode: warn}
- {name: b, rate: 1, on_exceeded: reject, mode: observe}
",
    );
    let said = |budget: &Budget| (budget.terms.on_exceeded, budget.terms.mode);
    let said: Vec<_> = policy.budgets.iter().map(said).collect();
    assert_eq!(said, [(admission::OnExceeded::Refuse, admission::Mode::Observe); 2]);
}

#[test]
fn a_budget_says_why_it_exists() {
    let policy =
        policy("- {name: a, rate: 1, reason: the shop goes first}\n- {name: b, rate: 1}\n");
    let reasons: Vec<&str> = policy.budgets.iter().map(|budget| &*budget.reason).collect();
    assert_eq!(reasons, ["the shop goes first", ""]);
}

#[test]
fn every_fault_is_told() {
    let found = faults(
        "- {name: a, match: {app: x}}
- {name: a, rate: 0, on_exceeded: wait, mode: off}
- {rate: 1, per: table}
- {name: c, max_concurrency: 0, burst: 2}
- {name: d, rate: 1, match: {statements: [session]}}
- {name: e, share: .nan, max_delay: 5, per: 'tag:app'}
- {name: f, rate: 1, expires_at: tomorrow}
- {name: g, share: 1, burst: off, mode: false, per: 'tag:'}
- {name: h, rate: 1, reason: [a]}
",
    );
    for (line, part) in [
        (7, "limits nothing"),
        (8, "name: the budget on line 7 has the same name, `a`"),
        (8, "rate: must be from 0.001 to 1000000000"),
        (8, "`wait` is not one of `delay`, `refuse`, `reject`"),
        (8, "`off` is not one of `enforce`, `warn`, `observe`"),
        (9, "`name` is missing"),
        (9, "`table` is not one of `app`, `user`, `tag:NAME`"),
        (10, "max_concurrency: must be from 1 to 1000000"),
        (10, "`burst` is how much may be owed to `share`"),
        (11, "it meets none"),
        (12, "share: must be from 0.001 to 100000"),
        (12, "max_delay: expected a duration"),
        (12, "`app` names the app"),
        (13, "expires_at: unknown key"),
        (14, "burst: expected a number, or a duration like 500ms or 2s"),
        (14, "`false` is not one of `enforce`, `warn`"),
        (14, "per: `tag:` is followed by the tag's key"),
        (15, "reason: expected text"),
    ] {
        let is_there =
            |fault: &&String| fault.starts_with(&format!("line {line}: ")) && fault.contains(part);
        assert!(found.iter().any(|fault| is_there(&fault)), "{line} {part}: {found:#?}");
    }
}

/// What runs is in the buckets in which it would be if it came now, as far as that can be told.
#[test]
fn what_runs_meets_the_budgets_that_were_not_there_and_those_that_are_about_others_now() {
    let before = "- { name: kept, match: { app: etl }, rate: 1 }\n- { name: moved, match: { app: web }, rate: 1 }\n";
    let after = "- { name: kept, match: { app: etl }, rate: 2 }\n\
                 - { name: moved, match: { app: etl }, rate: 1 }\n\
                 - { name: users, match: { app: etl }, per: user, rate: 1 }\n\
                 - { name: apps, per: app, rate: 1 }\n\
                 - { name: clients, per: client, rate: 1 }\n\
                 - { name: digests, match: { user: bob }, per: digest, rate: 1 }\n\
                 - { name: others, match: { user: ann }, rate: 1 }\n\
                 - { name: writes, match: { statements: [write] }, rate: 1 }\n";
    let text = "- { name: tenants, per: \"tag:tenant\", rate: 1 }\n\
                - { name: tagged, match: { tag: { a: b } }, rate: 1 }\n\
                - { name: table, match: { table: t }, rate: 1 }\n";
    let (before, after, text) = (policy(before), policy(after), policy(text));
    let address = std::net::IpAddr::from([10, 1, 2, 3]);
    let session = SessionIdentity::new(b"bob", Some(address), b"shop", std::iter::empty());
    let not_met = crate::running::Met::Nothing;
    let rules = &before.rules;
    let running =
        Running { session: &session, app: b"etl", class: Class::Read, rules, met: not_met };
    let sql = "/* app='etl' */ SELECT a FROM t";
    let digest = crate::shape::ShapeScratch::default().digest(sql.as_bytes(), LexMode::default());
    let runs = |now: &ClusterPolicy, running: &Running<'_>, digest| {
        now.budgets.meeting_running(&before.budgets, running, digest)
    };
    let comes: Vec<BudgetUse> = met_by(&after, b"bob", sql).iter().collect();
    let wanted = ["moved", "users", "apps", "clients", "digests"].map(budget_key);
    let wanted: Vec<BudgetUse> = wanted
        .into_iter()
        .filter_map(|key| comes.iter().find(|at| at.budget == key).copied())
        .collect();
    assert_eq!(wanted.len(), 5);
    assert_eq!(runs(&after, &running, Some(digest)).iter().collect::<Vec<_>>(), wanted);
    assert_eq!(runs(&after, &running, None).iter().collect::<Vec<_>>(), wanted[..4]);
    assert_eq!(runs(&text, &running, Some(digest)), BudgetSet::default(), "nobody can say");
    assert_eq!(runs(&before, &running, Some(digest)), BudgetSet::default(), "it is counted");
    let sets = Running { class: Class::Session, ..running };
    assert_eq!(runs(&after, &sets, Some(digest)), BudgetSet::default(), "no budget meets it");
    assert!(after.budgets.count_otherwise(&before.budgets));
    assert!(!before.budgets.count_otherwise(&before.budgets));
    let dearer = policy("- { name: kept, match: { app: etl }, rate: 9 }\n");
    assert!(!dearer.budgets.count_otherwise(&before.budgets), "one is gone, one has another rate");
}
