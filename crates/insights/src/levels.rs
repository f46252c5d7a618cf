//! Seconds by what there was in them.
//!
//! What there was in a second of an app is one of some levels, and of each minute it is kept how many
//! seconds had which. Three things are counted so; their levels stand one behind the other.

/// Levels of how many statements were there at once: up to some seven thousand.
const AT_ONCE: usize = 64;

/// Levels of how much came in a second: up to some twenty-eight million.
const AMOUNTS: usize = 96;

/// Where the levels of rows begin, behind those of statements.
const ROWS: usize = AT_ONCE + AMOUNTS;

/// Levels of all three.
pub(crate) const LEVELS: usize = ROWS + AMOUNTS;

/// Up to this many at once a level is a whole statement, each above is a quarter of a power of two.
const AT_ONCE_EXACT: f64 = 32.0;

/// The same of what came.
const AMOUNT_EXACT: f64 = 4.0;

/// Microseconds of a second.
pub(crate) const SECOND_US: u64 = 1_000_000;

/// Seconds of a minute, by level.
pub(crate) type Levels = [u8; LEVELS];

/// The most that there was of something in a second, and how many seconds had no more and were not of
/// the level below.
pub type SecondsOf = Vec<(f64, u64)>;

/// Of an app: its seconds by what there was in them, those without anything left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BySecond {
    /// By how many statements were at the server at once, on average; by the seconds of the server that
    /// they took, which is the same.
    pub at_once: SecondsOf,
    /// By how many statements ended.
    pub statements: SecondsOf,
    /// By how many rows these sent and changed.
    pub rows: SecondsOf,
}

impl BySecond {
    /// Of sums over minutes. `None`: there is no second with anything.
    pub(crate) fn of(sums: &[u64; LEVELS]) -> Option<Self> {
        let mut told = Self::default();
        for (level, seconds) in sums.iter().enumerate().filter(|(_, seconds)| **seconds > 0) {
            let (list, most) = match level.checked_sub(AT_ONCE) {
                None => (&mut told.at_once, value(level, AT_ONCE_EXACT)),
                Some(level) => match level.checked_sub(AMOUNTS) {
                    None => (&mut told.statements, value(level, AMOUNT_EXACT)),
                    Some(level) => (&mut told.rows, value(level, AMOUNT_EXACT)),
                },
            };
            list.push((most, *seconds));
        }
        (told != Self::default()).then_some(told)
    }
}

/// In 99 of 100 of these seconds there was no more.
#[must_use]
pub fn p99(seconds: &[(f64, u64)]) -> f64 {
    let all: u64 = seconds.iter().map(|(_, seconds)| *seconds).fold(0, u64::saturating_add);
    let beyond = all / 100;
    let mut above = 0_u64;
    let level = seconds.iter().rev().find(|(_, seconds)| {
        above = above.saturating_add(*seconds);
        above > beyond
    });
    level.map(|(most, _)| *most).unwrap_or_default()
}

/// What there was in the fullest.
#[must_use]
pub fn most(seconds: &[(f64, u64)]) -> f64 {
    seconds.last().map(|(most, _)| *most).unwrap_or_default()
}

/// What has been added up of a second.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Second {
    /// For how many microseconds its statements were at the server.
    pub(crate) busy_us: u64,
    pub(crate) statements: u64,
    pub(crate) rows: u64,
}

impl Second {
    /// Its levels, of what there was.
    pub(crate) fn levels(self) -> impl Iterator<Item = usize> {
        let at_once = level(number(self.busy_us) / number(SECOND_US), AT_ONCE_EXACT, AT_ONCE);
        let amount = |amount: u64, first: usize| {
            let level = level(number(amount), AMOUNT_EXACT, AMOUNTS);
            (amount > 0).then(|| level.saturating_add(first))
        };
        [
            (self.busy_us > 0).then_some(at_once),
            amount(self.statements, AT_ONCE),
            amount(self.rows, ROWS),
        ]
        .into_iter()
        .flatten()
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "what a second has is below 2^53"
)]
fn number(amount: u64) -> f64 {
    amount as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::as_conversions,
    reason = "levels are small and no less than 0"
)]
fn level(amount: f64, exact: f64, levels: usize) -> usize {
    let level = if amount <= exact {
        amount.ceil()
    } else {
        exact + ((amount / exact).log2() * 4.0).ceil()
    };
    (level as usize).min(levels.saturating_sub(1))
}

/// The most that a level stands for.
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "levels are below 256")]
fn value(level: usize, exact: f64) -> f64 {
    let level = level as f64;
    if level <= exact { level } else { (exact * ((level - exact) / 4.0).exp2()).ceil() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_stands_for_a_fifth_more_at_most_and_never_for_less() {
        for statements in [1_u64, 2, 4, 5, 7, 33, 100, 999, 48_211, 9_999_999] {
            let mut sums = [0; LEVELS];
            let second = Second { busy_us: statements * 1_000, statements, rows: statements * 3 };
            second.levels().for_each(|level| sums[level] += 1);
            let told = BySecond::of(&sums).unwrap();
            let of = |seconds: &[(f64, u64)], amount: f64| {
                let part = most(seconds) / amount;
                assert_eq!(seconds.iter().map(|(_, seconds)| *seconds).sum::<u64>(), 1);
                assert!(part >= 1.0 && (part < 1.2 || amount < 6.0), "{amount}: {seconds:?}");
            };
            of(&told.statements, number(statements));
            of(&told.rows, number(statements * 3).min(28_000_000.0));
            assert_eq!(p99(&told.at_once), most(&told.at_once));
        }
        assert_eq!(BySecond::of(&[0; LEVELS]), None);
        assert_eq!(Second::default().levels().count(), 0);
    }
}
