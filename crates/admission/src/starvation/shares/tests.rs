#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use super::*;

const GATE: GateKey = GateKey(1);
const TRICKLE: u64 = 1;
const FLOOD: u64 = 2;

fn at(ms: u64) -> MonoTime {
    MonoTime::from_nanos((100_000_000 + ms) * 1_000_000)
}

/// An identity that is an app and a rule of its own.
fn of(n: u64) -> Request {
    Request {
        rule: RuleKey(n),
        identity: IdentityKey(n),
        app: AppKey(n),
        digest: None,
        written: None,
        gate: GATE,
        terms: Terms::default(),
        arrived: at(0),
        since: at(0),
    }
}

fn with(weight: u32, ratio: f64, request: Request) -> Request {
    let terms = Terms { weight, ratio: Ratio::new(ratio).unwrap(), ..request.terms };
    Request { terms, ..request }
}

/// Accounts, and what was found by them.
struct Lab {
    shares: Shares,
    now: u64,
    below: Vec<Below>,
}

impl Lab {
    fn new() -> Self {
        let shares = Shares::new(Duration::from_secs(5));
        Self { shares, now: 0, below: Vec::new() }
    }

    fn joins(&mut self, request: &Request) {
        let below = self.shares.joins(at(self.now), request);
        self.below.extend(below);
    }

    fn leaves(&mut self, request: &Request) {
        self.shares.leaves(at(self.now), request);
    }

    fn refused(&mut self, request: &Request) {
        let below = self.shares.refused(at(self.now), request);
        self.below.extend(below);
    }

    /// One of its waiters is admitted.
    fn admitted(&mut self, request: &Request, rows: f64) {
        self.leaves(request);
        self.passes(request, rows);
    }

    /// It is admitted without having waited.
    fn passes(&mut self, request: &Request, rows: f64) {
        if self.shares.counts(at(self.now), request) {
            let below = self.shares.admitted(at(self.now), request, rows);
            self.below.extend(below);
        }
    }

    fn settled(&mut self, request: &Request, more: f64) {
        let below = self.shares.settled(at(self.now), (GATE, request.lane()), more);
        self.below.extend(below);
    }

    /// One of many of its sessions is admitted, and the next one waits.
    fn turn(&mut self, request: &Request, rows: f64) {
        self.admitted(request, rows);
        self.joins(request);
    }

    /// For how long it was below its share, in seconds.
    fn below_s(&self, identity: u64) -> f64 {
        let own = self.below.iter().filter(|below| below.identity == IdentityKey(identity));
        own.map(|below| below.time.as_secs_f64()).sum()
    }

    /// What an app received of its share, of late.
    fn received_of_share(&mut self, app: u64) -> Option<f64> {
        let apps = self.shares.apps_after(at(self.now), None, usize::MAX);
        let found = apps.iter().find(|share| share.app == AppKey(app))?;
        Some(found.received / found.entitled)
    }

    /// Beside a flood of 100 rows a second one is admitted every so many milliseconds.
    fn trickle(&mut self, one: &Request, flood: &Request, every: u64) {
        self.joins(one);
        self.joins(flood);
        for _ in 0..12_000 {
            self.now += 10;
            self.turn(flood, 1.0);
            if self.now.is_multiple_of(every) {
                self.turn(one, 1.0);
            }
        }
    }
}

#[test]
fn whoever_is_served_every_few_seconds_beside_a_flood_is_below_its_share() {
    let mut lab = Lab::new();
    lab.trickle(&of(TRICKLE), &of(FLOOD), 4_000);
    assert!((110.0..=120.0).contains(&lab.below_s(TRICKLE)), "{}", lab.below_s(TRICKLE));
    assert!(lab.below_s(FLOOD) < 1e-9);
    let below = lab.below[0];
    assert!((below.received / below.entitled) < 0.01, "{below:?}");
    assert!(lab.received_of_share(TRICKLE).unwrap() < 0.01);
    assert!(lab.received_of_share(FLOOD).unwrap() > 1.9);
}

#[test]
fn a_share_goes_by_weight_and_who_gets_its_own_is_not_below_it() {
    // 100 rows a second of the other: 11 are due to a ninth of its weight, 100 to the same.
    for (weight, every) in [(9, 90), (9, 150), (1, 10), (1, 20)] {
        let mut lab = Lab::new();
        lab.trickle(&of(TRICKLE), &with(weight, 0.0, of(FLOOD)), every);
        assert!(lab.below_s(TRICKLE) < 1e-9, "{weight} {every}");
    }
    let mut lab = Lab::new();
    lab.trickle(&with(9, 0.0, of(TRICKLE)), &of(FLOOD), 20);
    assert!(lab.below_s(TRICKLE) > 100.0, "half as much as the other, with nine times its weight");
}

#[test]
fn whoever_is_held_by_its_own_ratio_is_not_below_its_share_and_below_that_it_is() {
    let mut lab = Lab::new();
    lab.trickle(&with(1, 0.9, of(TRICKLE)), &of(FLOOD), 100);
    assert!(lab.below_s(TRICKLE) < 1e-9, "a tenth of the other's");
    let ratio = lab.received_of_share(TRICKLE).unwrap();
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
    let mut lab = Lab::new();
    lab.trickle(&with(1, 0.9, of(TRICKLE)), &of(FLOOD), 1_000);
    assert!(lab.below_s(TRICKLE) > 80.0, "a hundredth");
    let mut lab = Lab::new();
    lab.trickle(&of(TRICKLE), &of(FLOOD), 100);
    assert!(lab.below_s(TRICKLE) > 100.0, "without a ratio a tenth is too little");
}

#[test]
fn whoever_asks_for_little_and_gets_it_is_not_below_its_share_and_neither_is_who_thinks() {
    let mut lab = Lab::new();
    let (little, flood) = (of(TRICKLE), of(FLOOD));
    lab.joins(&flood);
    for _ in 0..60 {
        lab.joins(&little);
        // It waits for a turn of the other, however large that is.
        lab.now += 400;
        lab.turn(&flood, 1_000.0);
        lab.admitted(&little, 1.0);
        for _ in 0..2 {
            lab.now += 800;
            lab.turn(&flood, 1_000.0);
        }
    }
    assert!(lab.below.is_empty(), "{:?}", lab.below);
    let mut lab = Lab::new();
    lab.joins(&flood);
    for _ in 0..2_000 {
        lab.joins(&little);
        lab.now += 10;
        lab.admitted(&little, 1.0);
        for _ in 0..5 {
            lab.now += 10;
            lab.turn(&flood, 1.0);
        }
    }
    assert!(lab.below.is_empty(), "a sixth of all is all that it asked for: {:?}", lab.below);
}

#[test]
fn whoever_is_refused_again_and_again_beside_a_line_contends() {
    let mut lab = Lab::new();
    let (hasty, flood) = (of(TRICKLE), of(FLOOD));
    lab.joins(&flood);
    for _ in 0..6_000 {
        lab.now += 10;
        lab.turn(&flood, 1.0);
        if lab.now.is_multiple_of(3_000) {
            lab.passes(&hasty, 1.0);
        } else if lab.now.is_multiple_of(100) {
            lab.refused(&hasty);
        }
    }
    assert!(lab.below_s(TRICKLE) > 50.0, "{}", lab.below_s(TRICKLE));
    // It gives up: what others get from then on is not due to it.
    let before = lab.below_s(TRICKLE);
    for _ in 0..6_000 {
        lab.now += 10;
        lab.turn(&flood, 1.0);
    }
    lab.refused(&hasty);
    assert!(lab.below_s(TRICKLE) - before < 7.0, "{} {before}", lab.below_s(TRICKLE));
}

#[test]
fn what_was_written_counts_and_not_what_was_expected() {
    for (expected, wrote, below) in [(1.0, 100.0, false), (100.0, 1.0, true)] {
        let mut lab = Lab::new();
        let (one, flood) = (of(TRICKLE), of(FLOOD));
        lab.joins(&one);
        lab.joins(&flood);
        for _ in 0..6_000 {
            lab.now += 10;
            lab.turn(&flood, 1.0);
            if lab.now.is_multiple_of(1_000) {
                lab.turn(&one, expected);
                lab.settled(&one, wrote - expected);
            }
        }
        assert_eq!(lab.below_s(TRICKLE) > 30.0, below, "{expected} {:?}", lab.below);
        assert!(lab.below_s(FLOOD) < 1e-9, "{expected} {:?}", lab.below);
    }
}

#[test]
fn the_apps_of_a_rule_and_the_identities_of_an_app_share_what_is_due_to_it() {
    let mut lab = Lab::new();
    let alone = of(99);
    let member = |n: u64| Request { rule: RuleKey(1), app: AppKey(n / 10), ..of(n) };
    lab.joins(&alone);
    let all: Vec<Request> = (10..50).map(member).collect();
    for one in &all {
        lab.joins(one);
    }
    // As much for the rule of forty as for the one that is alone, but the last gets nothing.
    for round in 0..60_u64 {
        for one in &all {
            lab.now += 5;
            lab.turn(&alone, 1.0);
            if one.identity != IdentityKey(49) || round % 20 == 0 {
                lab.turn(one, 1.0);
            }
        }
    }
    for n in 10..49 {
        assert!(lab.below_s(n) < 1e-9, "{n}");
    }
    assert!(lab.below_s(99) < 1e-9);
    assert!(lab.below_s(49) > 5.0, "{:?}", lab.below);
    let apps = lab.shares.apps_after(at(lab.now), None, usize::MAX);
    let received: Vec<(u64, bool)> = apps
        .iter()
        .map(|share| (share.app.0, (0.85..1.1).contains(&(share.received / share.entitled))))
        .collect();
    assert_eq!(received, [(1, true), (2, true), (3, true), (4, true), (99, true)]);
    // In pieces it is the same.
    let mut pieces = Vec::new();
    while let piece = lab.shares.apps_after(at(lab.now), pieces.last().map(key), 2)
        && !piece.is_empty()
    {
        pieces.extend(piece);
    }
    assert_eq!(pieces, apps);
}

fn key(share: &AppShare) -> AppShareKey {
    (share.gate, share.rule, share.app)
}

#[test]
fn while_nobody_is_admitted_nobody_is_below_its_share() {
    let mut lab = Lab::new();
    let (one, other) = (of(1), of(2));
    lab.joins(&one);
    lab.joins(&other);
    // For an hour the gate is shut; then both have their turns, one a little later.
    lab.now += 3_600_000;
    for _ in 0..20 {
        lab.now += 10;
        lab.turn(&other, 1.0);
    }
    lab.now += 6_000;
    lab.turn(&one, 1.0);
    assert!(lab.below_s(1) < 12.0, "not for the hour: {:?}", lab.below);
    for _ in 0..2_000 {
        lab.now += 10;
        lab.turn(&one, 1.0);
        lab.turn(&other, 1.0);
    }
    assert!(lab.below_s(1) < 12.0 && lab.below_s(2) < 1e-9, "{:?}", lab.below);
}

#[test]
fn at_another_gate_nobody_takes_anything_and_a_reload_begins_the_lines_anew() {
    let mut lab = Lab::new();
    let (one, flood) = (of(TRICKLE), Request { gate: GateKey(2), ..of(FLOOD) });
    lab.trickle(&one, &flood, 4_000);
    assert!(lab.below.is_empty());
    let gone = lab.shares.forget_lines(|gate| gate == GATE);
    assert_eq!(gone.len(), 1);
    assert!(!lab.shares.counts(at(lab.now), &one), "nobody contends");
    lab.trickle(&one, &of(FLOOD), 4_000);
    assert!(lab.below_s(TRICKLE) > 100.0, "{:?}", lab.below_s(TRICKLE));
}

#[test]
fn identities_that_clients_make_up_are_bounded_and_forgotten() {
    let mut lab = Lab::new();
    let pool = |lab: &Lab| {
        let pool = &lab.shares.pools[&GATE];
        (pool.remembered.len(), pool.contending)
    };
    let waiting = 3 * u64::try_from(REMEMBERED_MAX).unwrap();
    for n in 0..waiting {
        lab.joins(&of(n));
    }
    assert_eq!(pool(&lab).1, 3 * REMEMBERED_MAX, "all that wait count, the queue bounds them");
    for n in 0..waiting {
        lab.leaves(&of(n));
    }
    for n in 0..10 * waiting {
        lab.refused(&of(n));
        assert!(pool(&lab).0 <= 2 * REMEMBERED_MAX + TIDIED, "{:?}", pool(&lab));
    }
    assert!(!lab.shares.counts(at(lab.now), &of(0)), "whose share is it?");
    for _ in 0..1_000 {
        lab.now += 200;
        lab.refused(&of(0));
    }
    assert_eq!(pool(&lab), (1, 1));
    assert!(lab.shares.counts(at(lab.now), &of(0)));
    // Lines that are gone with a reload leave nothing behind either.
    for n in 0..100 {
        lab.joins(&of(n));
    }
    lab.shares.forget_lines(|_| true);
    for _ in 0..1_000 {
        lab.now += 200;
        lab.refused(&of(0));
    }
    assert_eq!(pool(&lab), (1, 1));
}

/// What is kept beyond the bound until the next ones ask.
const TIDIED: usize = 16;
