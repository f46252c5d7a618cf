//! `admin`.

use super::*;
use crate::admin::AdminToken;

fn admin(keys: &str) -> String {
    MANUAL.replace("listen: 127.0.0.1:9307", keys)
}

#[test]
fn nobody_may_change_anything_unless_the_file_says_so() {
    let config = load(MANUAL).unwrap();
    assert_eq!(config.admin.access, crate::admin::AdminAccess::default());
    assert_eq!(config.admin.tls, None);
    assert!(config.secrets.iter().all(|named| named.len_min == 0), "{:?}", config.secrets);
}

#[test]
fn tokens_have_owners_and_come_from_elsewhere() {
    let keys = "token_env: T, tokens: [{name: ann, token_file: /run/a}, {name: bob, token_env: B}]";
    let config = load(&admin(keys)).unwrap();
    let token = |name: &str, secret| AdminToken { name: name.into(), secret };
    let (env, file) = (|name: &str| Secret::Env(name.into()), Secret::File("/run/a".into()));
    let expected = [token("admin", env("T")), token("ann", file), token("bob", env("B"))];
    assert_eq!(config.admin.access.tokens, expected);
    // Before the password of the probe.
    let named: Vec<_> = config.secrets.iter().map(|s| (s.key.as_str(), s.len_min)).collect();
    let tokens = [
        ("admin.token_env", 8),
        ("admin.tokens[0].token_file", 8),
        ("admin.tokens[1].token_env", 8),
    ];
    assert_eq!(named[..3], tokens);
}

#[test]
fn what_makes_no_sense_of_who_may_is_a_fault() {
    let cases = [
        ("token: hunter2hunter2", "secrets are not written in this file"),
        (
            "tokens: [{name: a, token: hunter2hunter2, token_env: A}]",
            "secrets are not written in this file",
        ),
        ("token_env: A, token_file: /b", "not both"),
        ("token_env: \"\"", "must not be empty"),
        ("tokens: [{name: a}]", "`token_env` or `token_file` is missing"),
        ("tokens: [{token_env: A}]", "`name` is missing"),
        ("tokens: [{name: \"a b\", token_env: A}]", "a name has"),
        ("tokens: [{name: loopback, token_env: A}]", "without a token have this name"),
        ("tokens: [{name: a, token_env: A}, {name: a, token_env: B}]", "has this name"),
        ("token_env: B, tokens: [{name: admin, token_env: A}]", "has this name"),
        ("listen: 0.0.0.0:1, loopback_changes: true", "is not a loopback address"),
        ("listen: 0.0.0.0:1, legacy_get: true", "need a token as well"),
        ("hosts: [\"db1:9307\"]", "without a port"),
        ("tls: {cert: a}", "`key` is missing"),
        ("tls: {cert: a, key: \"\"}", "must not be empty"),
    ];
    for (keys, part) in cases {
        assert_fault(&admin(keys), part);
    }
}

#[test]
fn this_machine_may_be_allowed_and_names_are_compared_in_lower_case() {
    let keys = "loopback_changes: true, legacy_get: true, hosts: [DB1.example], \
                tls: {cert: /c, key: /k}";
    let Config { admin, .. } = load(&admin(keys)).unwrap();
    assert!(admin.access.loopback_changes && admin.access.legacy_get);
    assert_eq!(admin.access.hosts, ["db1.example"]);
    assert_eq!(admin.tls.unwrap().key.path.to_str(), Some("/k"));
    let far = "listen: 0.0.0.0:1, legacy_get: true, token_env: A";
    assert!(load(&MANUAL.replace("listen: 127.0.0.1:9307", far)).is_ok());
}
