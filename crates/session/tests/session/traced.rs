//! The trace that a statement says it belongs to.

use super::driver::{Driver, STATUS_AUTOCOMMIT};

#[test]
fn a_statement_that_asks_says_its_trace_and_the_next_one_its_own() {
    let rules = "  - { name: gated, match: { statements: [write] }, permanent: true }\n";
    let mut driver = Driver::logged_in(rules, 0);
    let traced = |digit: &str| {
        let (trace, parent) = (digit.repeat(32), digit.repeat(16));
        format!("INSERT INTO t VALUES (1) /*app='x',traceparent='00-{trace}-{parent}-01'*/")
    };
    // The second of the same text is not read again.
    for digit in ["a", "a", "b"] {
        driver.asks(&traced(digit), STATUS_AUTOCOMMIT);
        let trace = driver.session.trace_id().map(|trace| trace.to_string());
        assert_eq!(trace, Some(digit.repeat(32)));
    }
    driver.asks("INSERT INTO t VALUES (1) /*app='x',traceparent='00-a'*/", STATUS_AUTOCOMMIT);
    assert_eq!(driver.session.trace_id(), None);
    driver.asks(&traced("c"), STATUS_AUTOCOMMIT);
    driver.passes("SELECT 1", STATUS_AUTOCOMMIT);
    assert_eq!(driver.session.trace_id(), None, "it says none");
}
