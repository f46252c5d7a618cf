//! What the watch for starvation is told.

use std::collections::BTreeSet;

use super::*;
use crate::{Passage, StarvationConfig, Starved, StarvedKind};

const LIMITS: StarvationConfig = StarvationConfig { share: 0.1, window: Duration::from_secs(100) };

fn watched(mut lab: Lab) -> Lab {
    lab.controller.watch_starvation(lab.now, Some(LIMITS));
    lab
}

fn patient() -> Terms {
    Terms { max_delay: Duration::from_secs(3_600), ..Terms::default() }
}

fn starved(lab: &Lab) -> Vec<Starved> {
    lab.controller.starved(lab.now)
}

#[test]
fn a_waiter_at_a_shut_gate_is_starved_by_what_passes_without_asking() {
    let mut lab = watched(Lab::lagging());
    assert!(lab.controller.is_contended(), "whoever asked would wait");
    let began = lab.now;
    let _ticket = lab.queued(GATED, ETL, patient());
    lab.run(Duration::from_secs(5));
    lab.controller.handle_passed(lab.now, Passage::Exempt, Some(RuleKey(3)), AppKey(3));
    lab.admitted(FREE, DDL, Terms::default());
    assert_eq!(starved(&lab), []);
    lab.run(Duration::from_secs(5));
    let [starved] = &starved(&lab)[..] else { panic!("{:?}", starved(&lab)) };
    assert_eq!((starved.identity, starved.since, starved.blocked), (ETL, began, true));
    let by: Vec<(Passage, u64)> =
        starved.meanwhile.iter().map(|by| (by.passage, by.count)).collect();
    assert_eq!(by, [(Passage::Exempt, 1), (Passage::Asked, 1)]);
}

#[test]
fn a_release_ends_the_spell_and_an_open_gate_is_not_contended() {
    let mut lab = watched(Lab::lagging());
    let _ticket = lab.queued(GATED, ETL, patient());
    lab.run(Duration::from_secs(20));
    lab.lag(0.0);
    lab.run(Duration::from_secs(20));
    let [starved] = &starved(&lab)[..] else { panic!("{:?}", starved(&lab)) };
    assert!(!starved.blocked);
    assert!((0.2..0.22).contains(&starved.share), "{starved:?}");
    lab.sample(THREADS, 5.0);
    assert!(!lab.controller.is_contended());
}

#[test]
fn refusals_deadlines_and_clients_that_go_are_all_in_vain() {
    for round in 0..3 {
        let mut lab = watched(Lab::lagging());
        for _ in 0..12 {
            if round == 0 {
                lab.refused(GATED, ETL, rejecting(0.0));
            } else {
                let ticket = lab.queued(GATED, ETL, Terms { max_delay: ms(900), ..patient() });
                lab.run(ms(400));
                if round == 1 {
                    lab.controller.cancel(lab.now, ticket);
                }
            }
            lab.run(ms(1_000));
        }
        assert_eq!(starved(&lab).len(), 1, "round {round}");
    }
}

#[test]
fn a_reload_does_not_end_a_spell_and_other_limits_begin_anew() {
    let mut lab = watched(Lab::lagging());
    let began = lab.now;
    let _ticket = lab.queued(GATED, ETL, patient());
    for _ in 0..12 {
        lab.run(Duration::from_secs(1));
        lab.controller.reconfigure(config(), lab.now);
        lab.controller.watch_starvation(lab.now, Some(LIMITS));
        lab.collect();
        let _ticket = lab.queued(GATED, ETL, patient());
    }
    assert_eq!(starved(&lab)[0].since, began);
    let (identities, apps) = lab.controller.watched();
    assert_eq!((identities, apps), (vec![ETL], vec![AppKey(ETL.0)]));
    lab.controller.watch_starvation(lab.now, Some(StarvationConfig { share: 0.2, ..LIMITS }));
    assert_eq!(starved(&lab), []);
    lab.controller.watch_starvation(lab.now, None);
    assert!(!lab.controller.is_watching());
}

/// Two crowds of ten always wait at a gate that lets one through each second, and opens and shuts
/// again and again. Who is below its share after a minute, and by how much.
fn after_a_minute_of(both: [Terms; 2]) -> Vec<(IdentityKey, f64)> {
    let pacing = Pacing::Binary(BinaryPacing { release_per_s: 1 });
    let mut lab = watched(Lab::new(ControllerConfig { pacing, ..config() }));
    let mut waiting = [BTreeSet::new(), BTreeSet::new()];
    for round in 0..6_000_u32 {
        if round % 50 == 0 {
            lab.lag(if round % 100 == 0 { 0.5 } else { 1.5 });
        }
        for (crowd, (identity, terms)) in [(ETL, both[0]), (DDL, both[1])].into_iter().enumerate() {
            while waiting[crowd].len() < 10 {
                match lab.ask(GATED, identity, terms) {
                    Decision::Queue(ticket) => waiting[crowd].insert(ticket),
                    Decision::Admit(permit) => {
                        lab.controller.complete(lab.now, permit, Outcome::default());
                        break;
                    }
                    other => panic!("{other:?}"),
                };
            }
        }
        lab.run(ms(10));
        for ticket in lab.winners() {
            waiting.iter_mut().for_each(|tickets| {
                tickets.remove(&ticket);
            });
        }
    }
    let below = starved(&lab);
    let below = below.iter().filter(|starved| starved.kind == StarvedKind::BelowShare);
    below.map(|of| (of.identity, of.received_of_share.expect("it was below"))).collect()
}

#[test]
fn who_gets_a_trickle_beside_anothers_floor_is_below_its_share_and_by_turns_nobody_is() {
    let floor = Terms { min_rate: Some(100), ..patient() };
    let starved = after_a_minute_of([patient(), floor]);
    let [(ETL, part)] = starved[..] else { panic!("{starved:?}") };
    assert!(part < 0.1, "{part}");
    assert_eq!(after_a_minute_of([patient(), patient()]), []);
    assert_eq!(after_a_minute_of([patient(), Terms { weight: 9, ..patient() }]), []);
    assert_eq!(
        after_a_minute_of([patient(), Terms { ratio: with_ratio(0.9).ratio, ..patient() }]),
        []
    );
}

#[test]
fn a_rule_that_only_observes_starves_nobody() {
    let mut lab = watched(Lab::lagging());
    for _ in 0..30 {
        assert!(lab.observed(GATED, ETL, Terms::default()).is_some());
        lab.run(Duration::from_secs(1));
    }
    assert_eq!(starved(&lab), []);
}
