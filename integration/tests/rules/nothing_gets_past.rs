//! What a rule denies is not run: attacks that once got past, attacks made from fixed seeds, and the other
//! side, that reads are not held. For hours instead of seconds: `make siege`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use integration::server::Flavour;
use integration::siege::grammar::Trap;
use integration::siege::{Finding, Sequence, Siege, Target, reads};

/// Attacks that got past once, each made as short as it still did.
const REGRESSIONS: &str = include_str!("nothing_gets_past/regressions.siege");
/// What applications and tools ask, a statement a line.
const READS: &str = include_str!("nothing_gets_past/reads.sql");
/// Those that are taken for writes, with the reason.
const HELD_READS: &str = include_str!("../../corpus/held_reads.txt");

#[tokio::test]
async fn nothing_gets_past_in_front_of_mysql() {
    besiege(Flavour::MySql).await;
}

#[tokio::test]
async fn nothing_gets_past_in_front_of_mariadb() {
    besiege(Flavour::MariaDb).await;
}

/// One target for all of it: starting one takes as long as a hundred attacks.
async fn besiege(flavour: Flavour) {
    let mut target = Target::start(flavour).await.unwrap();
    an_attack_that_no_rule_holds_is_seen(&mut target).await;
    let mut past = regressions(&mut target).await;
    past.extend(fixed_seeds(&mut target).await);
    let held = reads_held_without_a_reason(&target).await;
    assert!(past.is_empty(), "{flavour:?}: got past:\n{}", past.join("\n"));
    assert!(held.is_empty(), "{flavour:?}: held, though they write nothing: {held:#?}");
}

/// The harness itself: it must notice each sort of thing that can move.
async fn an_attack_that_no_rule_holds_is_seen(target: &mut Target) {
    let attacks = [
        ("transaction", "query INSERT INTO w.t (n) VALUES (1)"),
        ("transaction", "query DO w.f()"),
        ("ran", "query DELETE FROM w.t WHERE id = 1000"),
        ("ran", "query CALL w.pr()"),
    ];
    for (kind, step) in attacks {
        let text = format!("sequence unheld\nlogin user=unheld\n{step}");
        let sequence = Sequence::parse_all(&text).unwrap().remove(0);
        let (_, moved) = target.attack(&sequence).await.unwrap();
        assert_eq!(moved.kind(), kind, "{step}: {moved}");
    }
    target.restore().await.unwrap();
}

async fn regressions(target: &mut Target) -> Vec<String> {
    let mut past = Vec::new();
    for sequence in Sequence::parse_all(REGRESSIONS).unwrap() {
        let (_, moved) = target.attack(&sequence).await.unwrap();
        if moved.is_alarm() {
            past.push(format!("{sequence}moves {moved}"));
            target.restore().await.unwrap();
        }
    }
    past
}

async fn fixed_seeds(target: &mut Target) -> Vec<String> {
    let siege = Siege {
        seed: 1,
        duration: Duration::from_secs(60),
        sequences_max: SEQUENCES,
        traps: Trap::ALL.to_vec(),
        minimised_max: 2,
    };
    let report = siege.run(target, |_| {}).await.unwrap();
    assert!(report.sequences > SEQUENCES / 4, "too few to say anything: {report:?}");
    let found = |finding: &Finding| {
        format!("seed {}:\n{}moves {}", finding.seed, finding.sequence, finding.moved)
    };
    let mut past: Vec<String> = report.findings.iter().map(found).collect();
    if report.alarm_count() > 0 {
        past.push(format!("by seeds: {:?}", report.alarms));
    }
    past
}

async fn reads_held_without_a_reason(target: &Target) -> Vec<String> {
    let known: BTreeMap<&str, &str> = HELD_READS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(" -- ").unwrap_or_else(|| panic!("no reason: {line}")))
        .collect();
    let mut held = reads::held(target, READS).await.unwrap();
    held.retain(|sql| !known.contains_key(sql.as_str()));
    held
}

/// Some seconds for each server on a busy machine.
const SEQUENCES: u64 = 250;
