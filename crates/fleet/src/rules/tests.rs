use std::time::Duration;

use policy::{RuntimeEffect, Standing};
use proxy::clock::Clock;
use proxy::telemetry::TelemetryConfig;

use super::*;
use crate::draft::LASTS_DEFAULT;
use crate::ledger::Now;

fn clusters(rules: &str) -> Vec<Arc<Cluster>> {
    let text = format!(
        "version: 1\nclusters:\n  a: {{ listen: 127.0.0.1:1, primary: db:1 }}\n  \
         b: {{ listen: 127.0.0.1:2, primary: db:2 }}\nrules:\n{rules}"
    );
    let config = policy::load(&text).unwrap();
    let clock = Clock::start();
    config.clusters.iter().map(|policy| Cluster::new(policy.clone(), clock, 7)).collect()
}

fn fleet(rules: &str) -> (RuntimeRules, Vec<Arc<Cluster>>, Arc<Telemetry>) {
    let clusters = clusters(rules);
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    (RuntimeRules::new(&clusters, &telemetry), clusters, telemetry)
}

fn names(cluster: &Arc<Cluster>) -> Vec<String> {
    cluster.policy().rules.iter().map(|rule| rule.name.to_string()).collect()
}

const FILE: &str = "  - { name: file, permanent: true }\n";

#[tokio::test(start_paused = true)]
async fn a_rule_stands_before_the_files_and_is_lifted_by_its_app() {
    let (rules, clusters, telemetry) = fleet(FILE);
    let draft =
        RuleDraft { reason: "night".into(), ..RuleDraft::of_app("etl", RuntimeEffect::Hold) };
    let receipt = rules.make(draft, "ann").await.unwrap();
    assert_eq!(receipt.rules.len(), 2, "one in each cluster");
    assert_eq!(receipt.rules[0].left, LASTS_DEFAULT);
    assert!(!receipt.outlives_restart(), "there is neither a journal nor a probe");
    for cluster in &clusters {
        assert_eq!(names(cluster), ["runtime:etl", "file"]);
        let policy = cluster.policy();
        let rule = policy.rules.iter().next().unwrap();
        assert_eq!((rule.author.as_deref(), &*rule.reason), (Some("ann"), "night"));
    }
    let text = telemetry.gather(&clusters);
    assert!(text.contains("sluice_rule_hits_total{rule=\"runtime:etl\"} 0"), "{text}");
    assert!(text.contains("sluice_rule_expires_timestamp_seconds{rule=\"runtime:etl\"}"), "{text}");
    assert!(text.contains("sluice_runtime_rules{cluster=\"a\"} 1"), "{text}");
    let lifted = rules.lift(&Lift::of_app("etl"), "bob").await.unwrap();
    assert_eq!(lifted.rules.len(), 2);
    assert_eq!(names(&clusters[0]), ["file"]);
    assert_eq!(rules.lift(&Lift::of_app("etl"), "bob").await, Err(LiftError::NotThere));
    let text = telemetry.gather(&clusters);
    assert!(!text.contains("sluice_rule_expires_timestamp_seconds{"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_later_rule_for_the_same_target_replaces_the_former_where_it_is_made() {
    let (rules, clusters, _) = fleet(FILE);
    let hold = RuleDraft::of_app("etl", RuntimeEffect::Hold);
    drop(rules.make(hold.clone(), "ann").await.unwrap());
    let exempt =
        RuleDraft { cluster: Some("a".into()), ..RuleDraft::of_app("etl", RuntimeEffect::Exempt) };
    drop(rules.make(exempt, "ann").await.unwrap());
    let effects: Vec<_> = rules.standing().iter().map(|rule| rule.effect.as_str()).collect();
    assert_eq!(effects, ["exempt", "hold"]);
    let of_user = RuleDraft { user: Some("batch".into()), ..hold };
    drop(rules.make(of_user, "ann").await.unwrap());
    assert_eq!(names(&clusters[0]), ["runtime:etl@batch", "runtime:etl", "file"]);
    let lifted = rules.lift(&Lift::of_app("etl"), "ann").await.unwrap();
    assert_eq!(lifted.rules.len(), 4, "whatever their user");
}

#[tokio::test(start_paused = true)]
async fn a_rule_ends_by_itself() {
    let (rules, clusters, _) = fleet(FILE);
    let draft = RuleDraft {
        lasts: Duration::from_secs(60),
        ..RuleDraft::of_app("etl", RuntimeEffect::Deny)
    };
    drop(rules.make(draft, "ann").await.unwrap());
    let keeping = tokio::spawn(rules.clone().keep());
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(names(&clusters[0]), ["runtime:etl", "file"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(names(&clusters[0]), ["file"]);
    assert!(rules.standing().is_empty());
    keeping.abort();
}

#[tokio::test(start_paused = true)]
async fn what_a_file_would_refuse_is_refused_with_its_words_and_changes_nothing() {
    let (rules, clusters, _) = fleet(FILE);
    let etl = |effect| RuleDraft::of_app("etl", effect);
    let hold = etl(RuntimeEffect::Hold);
    let long = "x".repeat(1_001);
    let cases = [
        (
            etl(RuntimeEffect::Throttle { ratio: 1.5 }),
            "ratio: 1.5 is not a probability: must be from 0 to 1",
        ),
        (RuleDraft { app: None, ..hold.clone() }, "names neither an app nor a user"),
        (RuleDraft { app: Some("a*b".into()), ..hold.clone() }, "`*` stands alone or at the end"),
        (
            RuleDraft { app: Some("a\u{7}".into()), ..hold.clone() },
            "app: holds a control character",
        ),
        (RuleDraft { app: Some(String::new()), ..hold.clone() }, "app: an empty value matches"),
        (RuleDraft { reason: long, ..hold.clone() }, "reason: longer than 1000 bytes"),
        (RuleDraft { classes: vec!["wirte".into()], ..hold.clone() }, "`wirte` is not one of"),
        (RuleDraft { classes: vec!["session".into()], ..hold.clone() }, "are never delayed"),
        (RuleDraft { lasts: LASTS_MAX * 2, ..hold.clone() }, "stands from 1s to 7d"),
        (RuleDraft { lasts: Duration::ZERO, ..hold.clone() }, "stands from 1s to 7d"),
        (RuleDraft { cluster: Some("c".into()), ..hold.clone() }, "there is no cluster `c`"),
    ];
    for (draft, wanted) in cases {
        let told = rules.make(draft, "ann").await.unwrap_err().to_string();
        assert!(told.contains(wanted), "{told}");
    }
    assert_eq!(names(&clusters[0]), ["file"]);
}

#[tokio::test(start_paused = true)]
async fn a_reload_of_the_file_leaves_runtime_rules_where_they_are() {
    let (rules, clusters, _) = fleet(FILE);
    drop(rules.make(RuleDraft::of_app("etl", RuntimeEffect::Hold), "ann").await.unwrap());
    let other = super::tests::clusters("  - { name: other, permanent: true }\n");
    clusters[0].apply(other[0].policy());
    assert_eq!(names(&clusters[0]), ["runtime:etl", "other"]);
}

/// For a quarter of a second after a jump it had ended, and who waited was let through.
#[tokio::test(start_paused = true)]
async fn a_hold_stands_while_the_wall_clock_jumps() {
    let (rules, clusters, _) = fleet(FILE);
    let receipt = rules.make(RuleDraft::of_app("etl", RuntimeEffect::Hold), "ann").await;
    assert!(receipt.is_ok());
    let (member, cluster) = (&rules.inner.members[0], &clusters[0]);
    let held = || {
        let policy = cluster.policy();
        let rule = policy.rules.iter().next().unwrap();
        rule.standing(cluster.rule_time()) == Standing::InForce
    };
    let start = member.now();
    member.pass_time(start);
    for jump_ms in [86_400_000, 0, -86_400_000, 0] {
        let now = Now { unix_ms: start.unix_ms + jump_ms, ..start };
        // As whoever asks for the time.
        cluster.follow_wall_clock_back(now.mono, now.unix_ms);
        assert!(held(), "{jump_ms}: nobody has looked yet");
        member.follow_wall_clock(now);
        member.pass_time(now);
        member.follow_wall_clock(now);
        assert!(held(), "{jump_ms}: its end is named anew, and not in force");
        member.put_in_force();
        assert!(held(), "{jump_ms}");
        member.follow_wall_clock(now);
        assert!(held(), "{jump_ms}");
        assert_eq!(cluster.rule_time().0, now.unix_ms.div_euclid(1_000), "{jump_ms}");
    }
}

/// A start with this folder.
fn kept_in(directory: &Path) -> (RuntimeRules, Vec<Arc<Cluster>>) {
    let clusters = clusters(FILE);
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    (RuntimeRules::kept_in(Some(directory), &clusters, &telemetry), clusters)
}

/// A hold made at runtime was not in force behind a restart whose disk had become read-only.
#[tokio::test(start_paused = true)]
async fn what_a_journal_holds_stands_also_where_nobody_can_write_it() {
    let directory = std::env::temp_dir().join(format!("sluice-unwritable-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&directory));
    let start = || kept_in(&directory);
    let (rules, _) = start();
    let made = rules.make(RuleDraft::of_app("etl", RuntimeEffect::Hold), "ann").await.unwrap();
    assert_eq!((made.journal, rules.trouble()), (Ok(()), None));
    drop(rules);
    // A folder cannot be written by root either.
    let lock = directory.join("rules.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let (rules, clusters) = start();
    assert_eq!(names(&clusters[0]), ["runtime:etl", "file"]);
    let trouble = rules.trouble().unwrap();
    assert!(trouble.contains("directory"), "{trouble}");
    // Lifted meanwhile it does not come back when it can be written again.
    drop(rules.lift(&Lift::of_app("etl"), "bob").await.unwrap());
    std::fs::remove_dir(&lock).unwrap();
    let keeping = tokio::spawn(rules.clone().keep());
    while rules.trouble().is_some() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(names(&clusters[0]), ["file"]);
    keeping.abort();
    drop(rules);
    let (_, clusters) = start();
    assert_eq!(names(&clusters[0]), ["file"]);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// What stood was in no journal from then on, though whoever made it was told so, and another process
/// could take the place.
#[tokio::test(start_paused = true)]
async fn a_journal_that_is_removed_is_begun_anew() {
    let directory = std::env::temp_dir().join(format!("sluice-removed-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&directory));
    let start = || kept_in(&directory);
    let (rules, _) = start();
    drop(rules.make(RuleDraft::of_app("etl", RuntimeEffect::Hold), "ann").await.unwrap());
    let keeping = tokio::spawn(rules.clone().keep());
    std::fs::remove_dir_all(&directory).unwrap();
    let journal = directory.join("rules.journal");
    while !journal.exists() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (second, clusters) = start();
    assert_eq!(names(&clusters[0]), ["runtime:etl", "file"]);
    let web = RuleDraft::of_app("web", RuntimeEffect::Hold);
    let made = second.make(web.clone(), "bob").await.unwrap();
    assert!(made.journal.unwrap_err().contains("in use by another process"));
    assert_eq!(rules.make(web, "ann").await.unwrap().journal, Ok(()));
    keeping.abort();
    std::fs::remove_dir_all(&directory).unwrap();
}
