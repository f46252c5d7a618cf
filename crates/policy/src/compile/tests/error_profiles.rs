use super::*;

#[test]
fn errors_that_make_clients_drop_the_connection_or_believe_in_a_rollback_are_refused() {
    for errno in [
        1040, 1044, 1045, 1046, 1053, 1105, 1148, 1213, 1290, 1317, 1792, 1836, 1927, 2006, 2013,
        2999, 4031, 0, 999, 32_768, 65_535, -1,
    ] {
        assert_rule_fault(&format!("error: {{errno: {errno}}}"), "rules[0].error.errno");
    }
    for state in
        ["08S01", "53000", "40001", "70100", "00000", "01000", "02000", "XA100", "hy000", "HY00"]
    {
        let keys = format!("error: {{errno: 1226, sqlstate: \"{state}\"}}");
        assert_rule_fault(&keys, "rules[0].error.sqlstate");
    }
    assert_rule_fault("error: {sqlstate: HY000}", "`errno` is missing");
    assert_rule_fault("error: harsh", "`harsh` is not one of `retryable`, `retryable_40001`");
    assert_rule_fault("error: {errno: 1226, message: \"a\\nb\"}", "one line");
    assert_rule_fault("error: {errno: 1226, sqlstate: 45000}", "put it in quotes");
}
