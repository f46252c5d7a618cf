//! `guards`.

use std::iter::empty;

use crate::identity::SessionIdentity;
use crate::{GuardMode, Guarded, UnixTime, load};

fn file_of(guards: &str) -> String {
    format!(
        "version: 1\nclusters:\n  main: {{listen: 127.0.0.1:1, primary: db:3306}}\n  \
         other: {{listen: 127.0.0.1:2, primary: db:3307, mode: observe}}\nguards:\n{guards}"
    )
}

fn faults_of(guards: &str) -> Vec<String> {
    let text = file_of(guards);
    let faults = load(&text).expect_err(&text);
    faults.into_iter().map(|fault| format!("{}: {}", fault.path, fault.message)).collect()
}

#[test]
fn a_guard_goes_no_further_than_its_mode_and_its_cluster() {
    let config = load(&file_of(
        "- { name: a, where_required: deny, no_cross_join: warn, max_in_list: 10 }\n\
         - { name: b, mode: warn, where_required: deny, max_statement_bytes: 10 }\n\
         - { name: c, mode: off, where_required: deny }\n\
         - { name: d, where_required: off, match: { cluster: main } }\n",
    ))
    .expect("no fault");
    let of = |cluster: usize| -> Vec<(String, &'static str, GuardMode)> {
        let guards = config.clusters[cluster].guards.iter();
        guards
            .flat_map(|guard| {
                guard.checks().map(|(check, mode)| (guard.name.to_string(), check, mode))
            })
            .collect()
    };
    let expected = [
        ("a", "where_required", GuardMode::Deny),
        ("a", "no_cross_join", GuardMode::Warn),
        ("a", "max_in_list", GuardMode::Deny),
        ("b", "where_required", GuardMode::Warn),
        ("b", "max_statement_bytes", GuardMode::Warn),
    ];
    let expected = expected.map(|(name, check, mode)| (name.to_owned(), check, mode));
    assert_eq!(of(0), expected);
    assert_eq!(of(1), expected.map(|(name, check, _)| (name, check, GuardMode::Warn)));
}

#[test]
fn nobody_is_asked_about_a_guard_that_cannot_be_about_their_session() {
    let config = load(&file_of(
        "- { name: a, match: { user: shop }, require_tag: [controller] }\n\
         - { name: b, where_required: deny }\n",
    ))
    .expect("no fault");
    let may_object = |user: &[u8], text: &[u8]| {
        let survey = sql::survey(text, sql::LexMode::default(), sql::Whole::Yes);
        let guarded = Guarded {
            survey: Some(&survey),
            len: 0,
            goes_on: false,
            now: UnixTime::default(),
            tags: true,
            all_tags: true,
        };
        let session = SessionIdentity::new(user, None, b"", empty());
        config.clusters[0].guards.may_object(&guarded, &session)
    };
    assert!(may_object(b"shop", b"SELECT 1 FROM t"));
    assert!(!may_object(b"etl", b"SELECT 1 FROM t"));
    assert!(may_object(b"etl", b"DELETE FROM t"));
    let wants_tags = |user: &[u8]| {
        let session = SessionIdentity::new(user, None, b"", empty());
        config.clusters[0].guards.may_want_tags_of(&session)
    };
    assert!(wants_tags(b"shop") && !wants_tags(b"etl"));
}

/// `require_tag: off` was taken for a tag of that name, and refused whatever had none.
#[test]
fn every_check_can_be_off() {
    let config = load(&file_of(
        "- { name: a, where_required: off, no_cross_join: off, max_in_list: off, \
         max_statement_bytes: off, max_rows_expected: off, explain_timeout: 1s, require_tag: off, \
         no_ddl_hours: off }\n\
         - { name: b, require_tag: [off], max_in_list: off }\n",
    ))
    .expect("no fault");
    let checks = |guard: &crate::Guard| guard.checks().map(|(check, _)| check).collect::<Vec<_>>();
    let guards: Vec<_> = config.clusters[0].guards.iter().map(checks).collect();
    assert_eq!(guards, [vec!["require_tag"]], "and a tag may be called so");
}

/// Programs that write YAML 1.1 make `false` of `off`, and a fault stopped their file.
#[test]
fn false_is_off_as_programs_write_it() {
    let config = load(&file_of(
        "- { name: a, mode: false, where_required: deny }\n\
         - { name: b, where_required: false, no_cross_join: false, max_in_list: false, \
         require_tag: false, no_ddl_hours: false }\n",
    ))
    .expect("no fault");
    assert_eq!(config.clusters[0].guards.iter().count(), 0);
}

#[test]
fn hours_without_ddl_may_be_hours_alone() {
    let guards = |hours: &str| {
        let file = file_of(&format!("- {{ name: a, no_ddl_hours: {hours} }}\n"));
        format!("{:?}", load(&file).expect(hours).clusters[0].guards)
    };
    let written = guards("{ hours: \"08:00-19:00\" }");
    assert_eq!(guards("08:00-19:00"), written);
    assert_eq!(guards("[08:00-19:00]"), written);
    assert_ne!(guards("[08:00-19:00, 20:00-21:00]"), written);
    assert_eq!(guards("{ days: [Mon-FRI] }"), guards("{ days: mon-fri }"));
    assert!(faults_of("- { name: a, no_ddl_hours: 9-17 }\n")[0].contains("must be a span"));
}

/// `1e6` was said to be no whole number, but the number 1000000.
#[test]
fn a_large_number_may_have_an_exponent() {
    let guards = |number: &str| {
        let file = file_of(&format!("- {{ name: a, max_in_list: {number} }}\n"));
        format!("{:?}", load(&file).expect("no fault").clusters[0].guards)
    };
    assert_eq!(guards("1e5"), guards("100000"));
    assert_ne!(guards("1e5"), guards("100001"));
    for number in ["1.5", "1e400", ".inf", ".nan"] {
        let faults = faults_of(&format!("- {{ name: a, max_in_list: {number} }}\n"));
        let said = faults.iter().any(|fault| fault.contains("expected a whole number"));
        assert!(said, "{number}: {faults:?}");
    }
}

#[test]
fn a_guard_that_guards_nothing_is_a_fault() {
    for (guards, fault) in [
        ("- { name: a, where_required: true }\n", "`true` is not one of `off`, `warn`, `deny`"),
        ("- { name: a, no_cross_join: 1 }\n", "`1` is not one of `off`, `warn`, `deny`"),
        ("- { name: a, require_tag: warn }\n", "how far the guard goes is its `mode: warn`"),
        ("- { name: a, max_in_list: deny }\n", "how far the guard goes is its `mode: deny`"),
        ("- { name: a, max_in_list: some }\n", "expected a whole number"),
        ("- { name: a }\n", "guards nothing"),
        ("- { where_required: deny }\n", "`name` is missing"),
        ("- { name: a, where_required: yes please }\n", "is not one of"),
        ("- { name: a, max_in_list: 0 }\n", "must be from 1 to"),
        ("- { name: a, no_cross_join: deny, limit_counts: true }\n", "has no effect without"),
        ("- { name: a, require_tag: [app] }\n", "names the app"),
        ("- { name: a, require_tag: [] }\n", "must be from 1 to"),
        ("- { name: a, no_ddl_hours: { hours: \"9-17\" } }\n", "must be a span"),
        ("- { name: a, where_required: deny }\n- { name: a, where_required: warn }\n", "same name"),
        ("- { name: a, where_required: deny, match: { nobody: x } }\n", "unknown key"),
    ] {
        let faults = faults_of(guards);
        assert!(faults.iter().any(|found| found.contains(fault)), "{guards}: {faults:?}");
    }
}
