//! The worked example: two identities, ratios 0.9 and 0.1, lag around its threshold, sessions
//! enough.

use super::*;
use crate::{StarvationConfig, Starved, StarvedKind};

/// Sessions of one identity that ask, run for a while, and ask again.
struct Crowd {
    identity: IdentityKey,
    terms: Terms,
    sessions: usize,
    /// When those that run will ask again.
    running: Vec<MonoTime>,
    admitted: u32,
}

impl Crowd {
    fn new(identity: u64, ratio: f64, weight: u32, sessions: usize) -> Self {
        let max_delay = Duration::from_secs(600);
        let terms = Terms { max_delay, weight, ..with_ratio(ratio) };
        let identity = IdentityKey(identity);
        Self { identity, terms, sessions, running: vec![], admitted: 0 }
    }

    fn runs(&mut self, now: MonoTime) {
        self.admitted += 1;
        self.running.push(now.saturating_add(ms(4)));
    }
}

/// Runs the crowds for `seconds` while lag saws around its threshold with the given period.
fn admissions(mut crowds: Vec<Crowd>, period_ms: u64, seconds: u64) -> Vec<f64> {
    let mut lab = Lab::lagging();
    let limits = StarvationConfig { share: 0.01, window: Duration::from_secs(100) };
    lab.controller.watch_starvation(lab.now, Some(limits));
    let mut owner: BTreeMap<Ticket, usize> = BTreeMap::new();
    for crowd in &mut crowds {
        crowd.running = vec![lab.now; crowd.sessions];
    }
    for tick in 0..seconds * 1_000 {
        if tick.is_multiple_of(period_ms) {
            lab.lag(if (tick / period_ms).is_multiple_of(2) { 1.2 } else { 0.8 });
        }
        for (index, crowd) in crowds.iter_mut().enumerate() {
            let (ask, running): (Vec<_>, Vec<_>) =
                crowd.running.drain(..).partition(|&at| at <= lab.now);
            crowd.running = running;
            for _ in ask {
                match lab.ask(GATED, crowd.identity, crowd.terms) {
                    Decision::Admit(permit) => {
                        lab.controller.complete(lab.now, permit, Outcome::default());
                        crowd.runs(lab.now);
                    }
                    Decision::Queue(ticket) => {
                        owner.insert(ticket, index);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        lab.run(ms(1));
        for ticket in lab.winners() {
            crowds[owner[&ticket]].runs(lab.now);
        }
    }
    let is_below = |starved: &Starved| starved.kind == StarvedKind::BelowShare;
    let below: Vec<Starved> =
        lab.controller.starved(lab.now).into_iter().filter(is_below).collect();
    assert_eq!(below, [], "whoever takes turns has its share");
    crowds.iter().map(|crowd| f64::from(crowd.admitted)).collect()
}

#[test]
fn at_a_contended_gate_ratios_of_90_and_10_percent_admit_one_to_nine() {
    for period_ms in [20, 150, 700] {
        let crowds = vec![Crowd::new(1, 0.9, 1, 20), Crowd::new(2, 0.1, 1, 20)];
        let admitted = admissions(crowds, period_ms, 60);
        let share = admitted[1] / admitted[0];
        assert!((8.1..=9.9).contains(&share), "saw of {period_ms} ms: {admitted:?} is {share}");
        assert!(admitted[0] > 1_000.0, "{admitted:?}");
    }
}

#[test]
fn many_sessions_are_no_larger_share() {
    let crowds = vec![Crowd::new(1, 0.0, 1, 100), Crowd::new(2, 0.0, 1, 10)];
    let admitted = admissions(crowds, 150, 30);
    let share = admitted[0] / admitted[1];
    assert!((0.95..=1.05).contains(&share), "{admitted:?}");
}

#[test]
fn a_weight_multiplies_the_share() {
    let crowds =
        vec![Crowd::new(1, 0.5, 3, 60), Crowd::new(2, 0.5, 1, 60), Crowd::new(3, 0.0, 1, 60)];
    let admitted = admissions(crowds, 150, 60);
    for (index, expected) in [(0, 3.0), (2, 2.0)] {
        let share = admitted[index] / admitted[1];
        assert!((share / expected - 1.0).abs() < 0.1, "{admitted:?}");
    }
}
