//! Several controllers in front of one primary: each takes its part of what all together deliver.
//!
//! Theory. Every controller sees the same lag, and of what is delivered its own part alone. Its rate
//! R follows that part, and all grow by the same factor: so the sum of the rates is steered well,
//! and which part of it is whose is left to chance. Whoever comes late, to a replica that the others
//! keep busy, never grows at all.
//!
//! So each is told from outside what the others' rates are and which part of the sum is its due, and
//! moves there by an *exchange*: with s the part, ΣR the sum and τ = [`EXCHANGE`] seconds
//!
//! ```text
//!   dR/dt = (s · ΣR − R) / τ
//! ```
//!
//! What one gains the others lose, since the parts add up to one: the sum is what it was, so the
//! steering of the lag feels nothing of it, and parts go to their due as exp(−t/τ). What the others
//! have is known late, what one has oneself is not, so nobody goes past its due, however late the
//! news. What late news do is to hold all back that moves the sum: growth takes longer, with τ as
//! short as it is about twice as long. A longer τ leaves more to chance. After [`HELD_FOR`] news say
//! nothing of now, and would hold the rate where it was then: each goes on from where it is, alone.
//!
//! All aim for the same queue. It grows with the size of the usual large statement, so whoever has
//! none is told how large the others' are: else it brakes while they do not yet, and what it leaves
//! is theirs.
//!
//! Large statements are paid for in full (`debt`), and a sample of what is delivered spans several
//! of one's own, which come as rarely as one's part is small.
//!
//! # The parts
//!
//! A controller *presses* while somebody waits there most of the time. What those who press have
//! together is divided by the weights of the rules that wait at each; a rule that waits at two of
//! them counts at both. What the other rules have at a controller that presses, u, is its own and
//! not divided: its due is s · Σ(R − u) + u. Else an app that waits beside some that have all that
//! they ask for would have what these have off its part.
//!
//! # What was given
//!
//! A rate is not what is let through at it. Whoever has large statements pays for them while nothing
//! is in the queue as well, and who has small ones brakes while one of them is applied: at equal
//! rates one had 523 rows a second and the other 402. So each tells what was let through of late,
//! too. What one had less than its part of the sum is owed to it, and what it had more is owed by it;
//! that is added up and given back:
//!
//! ```text
//!   db/dt = s · Σd − d − b / REMEMBERED        due = s · ΣR + b / BACK
//! ```
//!
//! with d what was let through. News are a second old and d is a mean of four, so less than some six
//! seconds would swing. It is forgotten within a minute, and is half of a rate at most: who cannot
//! use its due saves up no flood. Each tells what is owed to it, and nobody is given back more than
//! others give, nor gives more than others are given: else the sum would grow without an end where
//! one of many has more than it can be made to give.
//!
//! Whoever does not press uses what it uses: that is not divided either. Its own rate
//! goes to what would be its due if it pressed, so that it is there when it does, and no more: a
//! rate of an hour ago would be a flood.

use std::time::Duration;

use super::rota::Round;

/// The time constant of the exchange, in seconds.
const EXCHANGE: f64 = 1.0;

/// What is owed is given back within so many seconds.
const BACK: f64 = 8.0;

/// And it is remembered for so many.
const REMEMBERED: f64 = 60.0;

/// It changes a rate by this part of it at most.
const BACK_MAX: f64 = 0.5;

/// What is owed at most, as seconds at one's rate.
const OWED_MAX: f64 = 4.0;

/// News are followed for so long: a few of them may be lost.
pub(super) const HELD_FOR: Duration = Duration::from_secs(5);

/// What nobody asked for weighs as much as a rule that says nothing of its weight.
const WEIGHT_UNKNOWN: f64 = 1.0;

/// What one controller has and wants of what its cluster delivers: for the others in front of the
/// same primary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Weights × (1 − ratio) of the rules whose statements wait for the pace most of the time; of
    /// those that asked of late, if none waits. 0 if nobody asked.
    pub weight: f64,
    /// Rows a second: what may be admitted while it presses, else what is delivered.
    pub rows_per_s: f64,
    /// Whether somebody waits most of the time.
    pub presses: bool,
    /// The size of its usual large statement, in rows: all aim for the queue that the largest of
    /// them makes.
    pub large_rows: f64,
    /// Of `rows_per_s`, what the rules have that do not wait while others do.
    pub beside_per_s: f64,
    /// What the rules that press were let through of late, in rows a second.
    pub given_per_s: f64,
    /// What is owed to it of what the others were given, in rows; less than nothing: it owes.
    pub owed_rows: f64,
    /// Those of its usual size that are to go by turns where others have such, in rows; 0: none are.
    pub turn_rows: f64,
    /// What it was given of late in other statements while it went by turns, in rows a second.
    pub small_per_s: f64,
    /// Where the round of turns is that it goes by.
    pub round: Option<Round>,
}

/// A controller's due of what all of its cluster deliver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Its part of the sum, from 0 to 1.
    pub part: f64,
    /// What the others have of the sum, in rows a second.
    pub others_per_s: f64,
    /// The largest of the usual large statements of those who press, in rows.
    pub large_rows: f64,
    /// What is its own besides, in rows a second: it is not divided.
    pub beside_per_s: f64,
    /// The same of the others.
    pub others_beside_per_s: f64,
    /// By how much what it was given of late is less than its part of what all who press were given,
    /// in rows a second; less than nothing if it is more.
    pub behind_per_s: f64,
    /// By how much its due is more for what is owed to it, or less, in rows a second.
    pub back_per_s: f64,
}

impl Share {
    /// The share of a controller beside others, from what each of them told last: within seconds,
    /// for who is silent for longer has gone. `None`: none of the others presses, so there is nothing
    /// to divide.
    #[must_use]
    pub fn of<'a>(own: &Demand, others: impl IntoIterator<Item = &'a Demand>) -> Option<Self> {
        let (mut weight, mut rows, mut used, mut large_rows) = (0.0, 0.0, 0.0, 0.0_f64);
        let mut given = own.given_per_s.max(0.0);
        let mut owed = Owed::default();
        let mut others_beside_per_s = 0.0;
        let mut weight_of_all = own.weight();
        for other in others {
            weight_of_all += other.weight();
            if other.presses {
                weight += other.weight();
                rows += other.rows_per_s.max(0.0);
                others_beside_per_s += other.beside();
                given += other.given_per_s.max(0.0);
                owed.add(other);
                large_rows = large_rows.max(other.large_rows);
            } else {
                used += other.rows_per_s.max(0.0);
            }
        }
        if weight <= 0.0 {
            return None;
        }
        if own.presses {
            let part = own.weight() / (own.weight() + weight);
            return Some(Self {
                part,
                others_per_s: rows,
                large_rows,
                beside_per_s: own.beside(),
                others_beside_per_s,
                behind_per_s: part * given - own.given_per_s.max(0.0),
                back_per_s: owed.back_to(own),
            });
        }
        let others_per_s = rows + used;
        let due = own.weight() / weight_of_all * (others_per_s + own.rows_per_s.max(0.0));
        let sum = due + others_per_s;
        let (beside_per_s, others_beside_per_s) = (0.0, 0.0);
        let part = due / sum;
        let (behind_per_s, back_per_s) = (0.0, 0.0);
        let share = Self {
            part,
            others_per_s,
            large_rows,
            beside_per_s,
            others_beside_per_s,
            behind_per_s,
            back_per_s,
        };
        (sum > 0.0).then_some(share)
    }

    /// What is owed to a controller of such a rate that was owed so many rows, so many seconds later.
    pub(super) fn owes(&self, owed: f64, (rate, since): (f64, f64)) -> f64 {
        let most = OWED_MAX * rate.max(0.0);
        let owes = owed * (-since / REMEMBERED).exp() + self.behind_per_s * since;
        if owes.is_finite() { owes.min(most).max(-most) } else { 0.0 }
    }

    /// By which factor a rate is to change within so many seconds.
    pub(super) fn factor(&self, rate: f64, since: f64) -> f64 {
        let part = self.part.clamp(0.0, 1.0);
        let beside = self.beside_per_s.max(0.0).min(rate);
        let divided = rate - beside + (self.others_per_s - self.others_beside_per_s).max(0.0);
        let due = part * divided;
        // A rate that has fallen since the news gives no more than a part of what it is.
        let due = due + self.back_per_s.max(-BACK_MAX * due) + beside;
        let moved = 1.0 - (-since / EXCHANGE).exp();
        let to_due = due / rate;
        if to_due.is_finite() { 1.0 + moved * (to_due - 1.0) } else { 1.0 }
    }
}

/// What is owed among those who press.
#[derive(Debug, Default)]
struct Owed {
    /// What the others would be given back in a second, and what they would give.
    back: f64,
    gives: f64,
}

impl Owed {
    fn add(&mut self, other: &Demand) {
        let back = other.back();
        self.back += back.max(0.0);
        self.gives -= back.min(0.0);
    }

    /// What this one is given back beside them: no more in all than others give, nor the other way
    /// round, so that the sum stays.
    fn back_to(mut self, own: &Demand) -> f64 {
        self.add(own);
        let moved = self.back.min(self.gives);
        let of = if own.owed_rows > 0.0 { self.back } else { self.gives };
        if of > 0.0 { own.back() * moved / of } else { 0.0 }
    }
}

impl Demand {
    pub(super) fn weight(&self) -> f64 {
        if self.weight > 0.0 { self.weight } else { WEIGHT_UNKNOWN }
    }

    /// What it is to be given back in a second, if others have it to give.
    fn back(&self) -> f64 {
        let most = BACK_MAX * (self.rows_per_s.max(0.0) - self.beside());
        let back = (self.owed_rows / BACK).min(most).max(-most);
        if back.is_finite() { back } else { 0.0 }
    }

    fn beside(&self) -> f64 {
        self.beside_per_s.max(0.0).min(self.rows_per_s.max(0.0))
    }
}

#[cfg(test)]
impl Share {
    /// Beside others who deliver so much, and nothing else.
    pub(super) fn divides(part: f64, others_per_s: f64) -> Self {
        Self {
            part,
            others_per_s,
            large_rows: 1.0,
            beside_per_s: 0.0,
            others_beside_per_s: 0.0,
            behind_per_s: 0.0,
            back_per_s: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presses(weight: f64, rows_per_s: f64) -> Demand {
        Demand {
            weight,
            rows_per_s,
            presses: true,
            large_rows: 1.0,
            beside_per_s: 0.0,
            given_per_s: 0.0,
            owed_rows: 0.0,
            turn_rows: 0.0,
            small_per_s: 0.0,
            round: None,
        }
    }

    fn idles(rows_per_s: f64) -> Demand {
        Demand {
            weight: 0.0,
            rows_per_s,
            presses: false,
            large_rows: 70.0,
            beside_per_s: 0.0,
            given_per_s: 0.0,
            owed_rows: 0.0,
            turn_rows: 0.0,
            small_per_s: 0.0,
            round: None,
        }
    }

    #[test]
    fn what_those_have_who_do_not_wait_is_not_divided() {
        let mut rates = [500.0, 500.0];
        for _ in 0..200 {
            let told =
                [Demand { beside_per_s: 300.0, ..presses(1.0, rates[0]) }, presses(1.0, rates[1])];
            let moved = |n: usize| {
                let share = Share::of(&told[n], [&told[1 - n]]).unwrap();
                rates[n] * share.factor(rates[n], 0.1)
            };
            rates = [moved(0), moved(1)];
        }
        assert!((rates[0] - 650.0).abs() < 1.0 && (rates[1] - 350.0).abs() < 1.0, "{rates:?}");
    }

    #[test]
    fn those_who_press_divide_what_they_have_by_their_weights() {
        let (a, b) = (presses(9.0, 500.0), presses(1.0, 500.0));
        let share = Share::of(&a, &[b, idles(200.0)]);
        assert_eq!(share, Some(Share::divides(0.9, 500.0)));
        let large = Demand { large_rows: 70.0, ..a };
        let share = Share { large_rows: 70.0, ..Share::divides(0.1, 500.0) };
        assert_eq!(Share::of(&b, &[large]), Some(share));
    }

    #[test]
    fn an_exchange_leaves_the_sum_and_comes_to_rest_at_the_parts() {
        let mut rates = [100.0, 900.0, 2_000.0];
        let weights = [2.0, 1.0, 1.0];
        for _ in 0..200 {
            let told = std::array::from_fn(|n| presses(weights[n], rates[n]));
            let moved = |n: usize| {
                let [a, b, c]: [Demand; 3] = told;
                let others = match n {
                    0 => [b, c],
                    1 => [a, c],
                    _ => [a, b],
                };
                let share = Share::of(&told[n], &others).unwrap();
                rates[n] * share.factor(rates[n], 0.1)
            };
            rates = std::array::from_fn(moved);
            assert!((rates.iter().sum::<f64>() - 3_000.0).abs() < 1e-6, "{rates:?}");
        }
        for (rate, due) in rates.iter().zip([1_500.0, 750.0, 750.0]) {
            assert!((rate - due).abs() < 1.0, "{rates:?}");
        }
    }

    #[test]
    fn whoever_does_not_press_keeps_ready_what_would_be_due_to_it_and_no_more() {
        let share = Share::of(&idles(0.0), &[presses(1.0, 600.0), presses(2.0, 400.0)]).unwrap();
        let mut rate = 5_000.0;
        for _ in 0..2_000 {
            rate *= share.factor(rate, 0.1);
        }
        assert!((rate - 250.0).abs() < 1.0, "a quarter of 1,000: {rate}");
    }

    #[test]
    fn where_no_other_presses_there_is_nothing_to_divide() {
        assert_eq!(Share::of(&presses(1.0, 900.0), &[idles(100.0), idles(0.0)]), None);
        assert_eq!(Share::of(&idles(5.0), &[]), None);
    }

    #[test]
    fn what_one_was_given_too_much_is_given_back_to_the_other() {
        // At equal rates one is let through 1.3 times its rate and the other 0.9 times.
        let (mut rates, mut owed) = ([500.0, 500.0], [0.0; 2]);
        let given = |rates: &[f64; 2]| [1.3 * rates[0], 0.9 * rates[1]];
        for _ in 0..1_200 {
            let told: [Demand; 2] = std::array::from_fn(|n| Demand {
                given_per_s: given(&rates)[n],
                owed_rows: owed[n],
                ..presses(1.0, rates[n])
            });
            for n in 0..2 {
                let share = Share::of(&told[n], [&told[1 - n]]).unwrap();
                owed[n] = share.owes(owed[n], (rates[n], 0.1));
                rates[n] *= share.factor(rates[n], 0.1);
            }
        }
        let [one, other] = given(&rates);
        assert!((0.95..=1.05).contains(&(one / other)), "{one} : {other}");
        assert!((rates[0] + rates[1] - 1_000.0).abs() < 1.0, "the sum stays: {rates:?}");
        assert!((owed[0] + owed[1]).abs() < 1.0, "{owed:?}");
    }

    #[test]
    fn one_of_many_that_cannot_give_more_leaves_the_sum_as_it_is() {
        let (mut rates, mut owed) = ([125.0; 8], [0.0; 8]);
        for _ in 0..3_000 {
            let told: [Demand; 8] = std::array::from_fn(|n| Demand {
                given_per_s: if n == 0 { 480.0 } else { 55.0 },
                owed_rows: owed[n],
                ..presses(1.0, rates[n])
            });
            for n in 0..8 {
                let others = (0..8).filter(|other| *other != n).map(|other| &told[other]);
                let share = Share::of(&told[n], others).unwrap();
                owed[n] = share.owes(owed[n], (rates[n], 0.1));
                rates[n] *= share.factor(rates[n], 0.1);
            }
        }
        assert!((rates.iter().sum::<f64>() - 1_000.0).abs() < 1.0, "{rates:?}");
        assert!(rates[0] < 100.0 && rates[1] > 128.0, "{rates:?}");
    }

    #[test]
    fn who_cannot_use_its_due_saves_up_no_flood() {
        let none = Demand { given_per_s: 0.0, ..presses(1.0, 500.0) };
        let other = Demand { given_per_s: 1_000.0, ..presses(1.0, 500.0) };
        let share = Share::of(&none, [&other]).unwrap();
        let owed = (0..10_000).fold(0.0, |owed, _| share.owes(owed, (500.0, 0.1)));
        assert!((owed - 2_000.0).abs() < 1.0, "four seconds of its due: {owed}");
        let hour = Share { behind_per_s: 0.0, ..share };
        assert!(hour.owes(owed, (500.0, 600.0)) < 1.0, "and forgotten");
    }

    #[test]
    fn nonsense_moves_nothing() {
        for (part, others_per_s) in
            [(f64::NAN, 5.0), (0.5, f64::INFINITY), (2.0, f64::NAN), (f64::NAN, f64::NAN)]
        {
            let factor = Share::divides(part, others_per_s).factor(100.0, 1.0);
            assert!((factor - 1.0).abs() < 1e-9, "{part} {others_per_s}: {factor}");
        }
        for nonsense in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let share = Share { behind_per_s: nonsense, ..Share::divides(0.5, 500.0) };
            assert_eq!(share.owes(1.0, (500.0, 0.1)), 0.0);
            assert_eq!(Share::divides(nonsense, 500.0).owes(nonsense, (500.0, 0.1)), 0.0);
        }
        let share = Share::divides(0.5, -7.0);
        assert!(share.factor(100.0, 1.0) > 0.0 && share.factor(0.0, 1.0).is_finite());
    }
}
