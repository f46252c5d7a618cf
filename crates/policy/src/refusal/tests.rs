use std::sync::Arc;
use std::time::Duration;

use admission::{Reason, SignalKey};

use super::*;
use crate::load;

const FILE: &str = r#"
version: 1
clusters:
  main:
    listen: 127.0.0.1:1
    primary: db:3306
    replicas: [r:1]
    probe: { user: p }
    signals:
      threads_running: { threshold: 100 }
rules:
  - { name: backfill, permanent: true }
  - { name: deny, permanent: true, deny: true }
  - { name: vitess, permanent: true, error: vitess }
  - { name: own, permanent: true, error: { errno: 1226, message: Come back later } }
  - { name: archive, permanent: true, deny: true, reason: ask the data team }
  - name: evil
    permanent: true
    deny: true
    reason: "no\n way \t[sluice rule=x executed=yes] \u202Efoo\0 \u061C\u180E\U000E0041é"
  - { name: long, permanent: true, deny: true, reason: "REASON" }
"#;

fn cluster() -> Arc<ClusterPolicy> {
    load(&FILE.replace("REASON", &"é ".repeat(300))).unwrap().clusters[0].clone()
}

fn refusal(reason: Reason, cause: Option<Cause>) -> Refusal {
    let waited = Duration::from_millis(1_500);
    let retry_after = Duration::from_millis(800);
    Refusal { reason, cause, budget: None, limit: None, waited, retry_after }
}

fn written(rule: u32, app: &[u8], refusal: &Refusal) -> String {
    let cluster = cluster();
    let mut out = b"kept ".to_vec();
    write_message(&mut out, &cluster, cluster.rule(rule), 0x7f_3a9c, app, refusal);
    String::from_utf8(out).unwrap().strip_prefix("kept ").unwrap().to_owned()
}

#[test]
fn who_is_refused_by_a_rule_that_lets_nothing_through_is_told_when_that_ends() {
    let text = FILE.replace("{ name: backfill,", "{ name: backfill, TERMS,");
    for (terms, nothing) in [("hold: true", true), ("ratio: 1", true), ("ratio: 0.99", false)] {
        let text = text.replace("TERMS", terms);
        let cluster = load(&text.replace("REASON", "")).unwrap().clusters[0].clone();
        for reason in [Reason::Ratio, Reason::QueueFull] {
            let refused = refusal(reason, None);
            let told = as_long_as_it_stands(cluster.rule(0), refused, UnixTime(0)).retry_after;
            let expected = if nothing { Duration::from_secs(60) } else { refused.retry_after };
            assert_eq!(told, expected, "{terms}, {reason:?}");
        }
    }
}

#[test]
fn the_message_is_the_one_of_the_manual() {
    let lag = cluster().signals.iter().find(|signal| &*signal.name == "lag").unwrap().key;
    let cause = Cause { signal: lag, value: Some(12.34), threshold: 5.0 };
    assert_eq!(
        written(0, b"online-ddl", &refusal(Reason::GateClosed, Some(cause))),
        "Lock wait timeout exceeded; try restarting transaction [sluice id=007f3a9c rule=backfill \
         identity=online-ddl reason=gate_closed signal=lag value=12.3s threshold=5s waited_ms=1500 \
         retry_after_ms=800 executed=no]"
    );
}

#[test]
fn each_profile_begins_with_its_own_words() {
    let refusal = refusal(Reason::Deny, None);
    let beginning =
        |rule| written(rule, b"a", &refusal).split(" [sluice ").next().map(str::to_owned);
    assert_eq!(beginning(1).unwrap(), "User has exceeded the 'sluice' resource");
    assert_eq!(beginning(2).unwrap(), "Transaction throttled");
    assert_eq!(beginning(3).unwrap(), "Come back later");
    assert!(written(1, b"a", &refusal).contains(" identity=a reason=deny waited_ms=1500 "));
}

#[test]
fn values_are_short_and_only_times_have_a_unit() {
    let lag = SignalKind::Lag { ignore_slowest: 0, min_replicas: 1 };
    for (value, time, number) in [
        (5.0, "5s", "5"),
        (0.0, "0s", "0"),
        (0.25, "0.25s", "0.25"),
        (0.000_1, "0s", "0"),
        (100.0, "100s", "100"),
        (12.96, "13s", "13"),
        (1e300, "1e300s", "1e300"),
        (-3.0, "-3s", "-3"),
    ] {
        assert_eq!(quantity(value, Some(&lag)), time);
        assert_eq!(quantity(value, Some(&SignalKind::ThreadsRunning)), number);
    }
    let unknown = Cause { signal: SignalKey(1), value: None, threshold: 2.5 };
    let text = written(0, b"a", &refusal(Reason::NoData, Some(unknown)));
    assert!(text.contains(" reason=no_data signal=unknown value=none threshold=2.5 "), "{text}");
}

#[test]
fn an_identity_cannot_write_parts_of_the_message() {
    let refusal = refusal(Reason::Ratio, None);
    let identity = |app: &[u8]| {
        let text = written(0, app, &refusal);
        assert!(text.is_ascii() && text.len() < 512 && !text.contains('\n'), "{text}");
        let (_, rest) = text.split_once(" identity=").unwrap();
        rest.split_once(" reason=").unwrap().0.to_owned()
    };
    assert_eq!(identity(b"a executed=yes]"), "a?executed?yes?");
    assert_eq!(identity("é\n\0".as_bytes()), "????");
    assert_eq!(identity(b""), "-");
    assert_eq!(identity(&[b'x'; 255]), "x".repeat(64) + "...");
}

#[test]
fn a_rule_that_denies_says_why_in_front_of_the_stable_part() {
    let denial = refusal(Reason::Deny, None);
    let (before, stable) = written(4, b"a", &denial)
        .split_once(" [sluice ")
        .map(|(before, stable)| (before.to_owned(), stable.to_owned()))
        .unwrap();
    assert_eq!(before, "User has exceeded the 'sluice' resource: ask the data team");
    assert!(stable.starts_with("id=007f3a9c rule=archive identity=a reason=deny "), "{stable}");
    // The other refusals of a rule are none of its policy.
    let other = written(4, b"a", &refusal(Reason::Shutdown, None));
    assert!(!other.contains("data team"), "{other}");
}

#[test]
fn what_an_operator_writes_cannot_break_the_message() {
    let denial = refusal(Reason::Deny, None);
    let text = written(5, b"a", &denial);
    assert!(text.contains(": no way (sluice rule=x executed=yes) foo é [sluice id="), "{text}");
    assert_eq!((text.matches("[sluice ").count(), text.matches(']').count()), (1, 1), "{text}");
    assert!(!text.contains(char::is_control), "{text}");
    let long = written(6, &[b'x'; 255], &denial);
    assert!(long.len() < 512 && long.contains("é ... [sluice id="), "{long}");
}
