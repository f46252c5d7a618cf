//! Drawing lost checks ahead gives what throwing them one at a time gives.

use super::*;

/// Two rules, one with three apps of some identities each; every identity has a statement in line,
/// and comes back with the next at once.
struct Contest {
    ring: Ring,
    thrown: Thrown,
    dice: StdRng,
    ratios: BTreeMap<u64, Ratio>,
    next_ticket: u64,
    /// Of each app, what its wins have cost it in checks, each.
    checks: BTreeMap<u64, Vec<u32>>,
    /// Checks of each app since its last win, as they are counted.
    counted: BTreeMap<u64, u64>,
    /// Who has won, in order.
    wins: Vec<Lane>,
}

#[derive(Clone, Copy, PartialEq)]
enum Thrown {
    OneByOne,
    Ahead,
}

impl Contest {
    fn new(thrown: Thrown, seed: u64, ratios: &[f64]) -> Self {
        let ratios = (1..).zip(ratios.iter().map(|ratio| Ratio::new(*ratio).unwrap()));
        let mut contest = Self {
            ring: Ring::default(),
            thrown,
            dice: StdRng::seed_from_u64(seed),
            ratios: ratios.collect(),
            next_ticket: 0,
            checks: BTreeMap::new(),
            counted: BTreeMap::new(),
            wins: Vec::new(),
        };
        for app in 1..=u64::try_from(contest.ratios.len()).unwrap() {
            for identity in 0..4 {
                contest.join(lane(app.min(2), app, app * 100 + identity));
            }
        }
        contest
    }

    fn join(&mut self, lane: Lane) {
        let place = (MonoTime::ZERO, Ticket(self.next_ticket));
        self.next_ticket += 1;
        let ratio = match self.thrown {
            Thrown::Ahead => self.ratios[&lane.app.0],
            Thrown::OneByOne => Ratio::ZERO,
        };
        let joining = Joining { lane, place, weight: 1, cost: 1.0, known: 1.0, ratio, kept: false };
        let lost = self.ring.join(MonoTime::ZERO, &joining, &mut self.dice);
        self.count(lane, lost);
    }

    fn count(&mut self, lane: Lane, checks: u64) {
        *self.counted.entry(lane.app.0).or_default() += checks;
    }

    fn run(mut self, wins: usize) -> Self {
        while self.wins.len() < wins {
            let head = self.ring.head().unwrap();
            let lost = self.ring.take(&head, 1.0, &mut self.dice);
            self.count(head.lane, lost + 1);
            let ratio = self.ratios[&head.lane.app.0];
            if self.thrown == Thrown::OneByOne && ratio.loses(&mut self.dice) {
                continue;
            }
            self.wins.push(head.lane);
            let place = (MonoTime::ZERO, head.ticket);
            let lost = self.ring.leave(MonoTime::ZERO, head.lane, place, &mut self.dice);
            self.count(head.lane, lost);
            let checks = std::mem::take(self.counted.entry(head.lane.app.0).or_default());
            self.checks.entry(head.lane.app.0).or_default().push(u32::try_from(checks).unwrap());
            self.join(head.lane);
        }
        self
    }

    fn share(&self, app: u64) -> f64 {
        let of_app = self.wins.iter().filter(|lane| lane.app.0 == app).count();
        number(of_app) / number(self.wins.len())
    }

    /// How many wins of these rules passed from one of an identity of this app to its next, each
    /// time, in order of length.
    fn waits(&self, app: u64, rules: &[u64]) -> Vec<u32> {
        let mut last = BTreeMap::new();
        let mut waits = Vec::new();
        let wins = self.wins.iter().filter(|lane| rules.contains(&lane.rule.0));
        for (at, lane) in wins.enumerate().filter(|(_, lane)| lane.app.0 == app) {
            if let Some(before) = last.insert(lane.identity, at) {
                waits.push(u32::try_from(at - before).unwrap());
            }
        }
        waits.sort_unstable();
        waits
    }
}

/// Pearson's statistic of two samples with this mean, over eight bins: seven degrees of freedom.
fn chi_square(some: &[u32], others: &[u32], mean: f64) -> f64 {
    let bins: Vec<f64> = (1..8).map(|n| 0.9 + mean * 0.4 * f64::from(n)).collect();
    let counts = |of: &[u32]| -> Vec<f64> {
        let mut counts = vec![0.0; bins.len() + 1];
        for value in of {
            counts[bins.partition_point(|end| *end <= f64::from(*value))] += 1.0;
        }
        counts
    };
    let (some_in, others_in) = (counts(some), counts(others));
    let (all_some, all_others) = (number(some.len()), number(others.len()));
    let cells = some_in.iter().zip(&others_in).filter(|(a, b)| *a + *b > 0.0);
    cells
        .map(|(a, b)| {
            let difference =
                a * (all_others / all_some).sqrt() - b * (all_some / all_others).sqrt();
            difference * difference / (a + b)
        })
        .sum()
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

#[test]
fn lost_checks_that_are_drawn_at_once_are_those_of_single_throws() {
    for (seed, ratio) in [(1, 0.3), (2, 0.9), (3, 0.999)] {
        let ratio = Ratio::new(ratio).unwrap();
        let mut dice = StdRng::seed_from_u64(seed);
        let drawn: Vec<u32> =
            (0..5_000).map(|_| u32::try_from(ratio.losses(&mut dice)).unwrap()).collect();
        let thrown: Vec<u32> =
            (0..5_000).map(|_| (0..).find(|_| !ratio.loses(&mut dice)).unwrap()).collect();
        let mean = 1.0 / (1.0 - ratio.as_f64());
        let statistic = chi_square(&drawn, &thrown, mean);
        // One of 1,000 passes 24.3.
        assert!(statistic < 24.3, "ratio {ratio:?}: {statistic}");
    }
}

#[test]
fn admissions_waits_and_checks_are_those_of_single_throws() {
    let ratios = [0.5, 0.9, 0.9, 0.9];
    let one_by_one = Contest::new(Thrown::OneByOne, 11, &ratios).run(60_000);
    let ahead = Contest::new(Thrown::Ahead, 12, &ratios).run(60_000);
    for (app, share) in [(1, 5.0 / 6.0), (2, 1.0 / 18.0), (3, 1.0 / 18.0), (4, 1.0 / 18.0)] {
        for contest in [&one_by_one, &ahead] {
            let got = contest.share(app);
            // Of 60,000 wins, 3,300 ± 56 for each of the three.
            let within = if app == 1 { 0.03 } else { 0.06 };
            assert!((got / share - 1.0).abs() < within, "app {app}: {got} of {share}");
        }
        let (some, others) = (&ahead.checks[&app], &one_by_one.checks[&app]);
        let mean = if app == 1 { 2.0 } else { 10.0 };
        let statistic = chi_square(some, others, mean);
        assert!(statistic < 24.3, "checks to a win of app {app}: {statistic}");
        let per_win = f64::from(some.iter().sum::<u32>()) / number(some.len());
        // The mean of 3,300 geometric counts is off by 5 % once in 250.
        assert!((per_win / mean - 1.0).abs() < 0.05, "{per_win} checks to a win of {app}");
        // Against the other rule: what a rule loses to a win is drawn apart from what its
        // identities lose, so that only the quantiles agree.
        let (some, others) = (ahead.waits(app, &[1, 2]), one_by_one.waits(app, &[1, 2]));
        for percent in [10, 50, 90, 99] {
            let at = |waits: &[u32]| f64::from(waits[waits.len() * percent / 100]);
            let ratio = at(&some) / at(&others);
            assert!((ratio - 1.0).abs() < 0.15, "p{percent} of the waits in {app}: {ratio}");
        }
        let rule = app.min(2);
        let (some, others) = (ahead.waits(app, &[rule]), one_by_one.waits(app, &[rule]));
        let mean = f64::from(others.iter().sum::<u32>()) / number(others.len());
        let statistic = chi_square(&some, &others, mean);
        assert!(statistic < 24.3, "waits in app {app}: {statistic}");
    }
}

#[test]
fn checks_that_were_lost_are_counted_although_nobody_won() {
    let mut contest = Contest::new(Thrown::Ahead, 5, &[0.0, 0.999_999_999]).run(4_000);
    assert_eq!(contest.share(1), 1.0);
    let mut lost = BTreeMap::new();
    contest.ring.count_lost(10, |rule, app, checks| {
        assert!(lost.insert((rule, app), checks).is_none());
    });
    // Both rules have had a check in turn.
    let of_loser = lost[&(RuleKey(2), AppKey(2))];
    assert!(of_loser.abs_diff(4_000) <= 1, "{lost:?}");
    contest.ring.count_lost(10, |_, _, checks| panic!("{checks} are counted twice"));
    let waiting = |n: u64| (lane(2, 2, 200 + n), (MonoTime::ZERO, Ticket(4 + n)));
    for (lane, place) in (0..4).map(waiting) {
        assert_eq!(contest.ring.leave(MonoTime::ZERO, lane, place, &mut contest.dice), 0);
    }
    assert_eq!(contest.ring.len(), 4);
}

#[test]
fn a_statement_of_another_ratio_at_the_head_only_draws_again() {
    let mut ring = Ring::default();
    let mut dice = dice();
    let mut join = |ring: &mut Ring, lane, n, ratio| {
        let ratio = Ratio::new(ratio).unwrap();
        ring.join(
            MonoTime::ZERO,
            &Joining {
                lane,
                place: place(n),
                weight: 1,
                cost: 1.0,
                known: 1.0,
                ratio,
                kept: false,
            },
            &mut dice,
        );
    };
    join(&mut ring, A, 2, 0.999_999_999);
    join(&mut ring, B, 3, 0.5);
    assert_eq!(ring.head().unwrap().lane, B);
    // One of higher priority came first.
    join(&mut ring, A, 1, 0.0);
    assert_eq!(ring.head().unwrap().lane, A, "it does not wait for the dice of the other");
    ring.leave(MonoTime::ZERO, A, place(1), &mut dice);
    assert_eq!(ring.head().unwrap().lane, B);
}

#[test]
fn what_was_not_known_when_a_line_formed_makes_no_lost_check_dearer() {
    let mut ring = Ring::default();
    let mut dice = StdRng::seed_from_u64(11);
    let ratio_of = |lane: Lane| Ratio::new(if lane == A { 0.9 } else { 0.1 }).unwrap();
    let joining = |lane: Lane, n: u64, cost: f64| {
        let ratio = ratio_of(lane);
        Joining { lane, place: place(n), weight: 1, cost, known: 1.0, ratio, kept: false }
    };
    for n in 0..200 {
        // A statement that nobody knows may be one of sixty rows.
        ring.join(MonoTime::ZERO, &joining(A, 2 * n, 60.0), &mut dice);
        ring.join(MonoTime::ZERO, &joining(B, 2 * n + 1, 60.0), &mut dice);
    }
    let mut wins = 0;
    for n in 1_000..3_000 {
        let head = ring.head().unwrap();
        wins += u32::from(head.lane == A);
        // The first that has run has told that it is one row.
        ring.take(&head, 1.0, &mut dice);
        let of_head = |n: u64| (MonoTime::from_nanos(n), head.ticket);
        ring.leave(MonoTime::ZERO, head.lane, of_head(head.ticket.as_u64()), &mut dice);
        ring.join(MonoTime::ZERO, &joining(head.lane, n, 1.0), &mut dice);
    }
    assert!((150..=250).contains(&wins), "{wins} of 2,000, a tenth is its share");
}
