//! The text by which one process tells the next: `key value…`, with `;` between them, in characters
//! that need no quoting in SQL.

use std::ops::RangeInclusive;
use std::time::Duration;

use admission::{AppKey, DigestKey, Learned};

/// What the text begins with. The number is its version: another is not read.
const VERSION: &str = "sluice 1";

/// Digests and apps that are read: more was not written by any Sluice.
const READ_MAX: usize = 10_000;

/// The rates that a controller finds, in rows a second. Whoever wrote another is no Sluice: from a
/// rate that is many powers of ten off, the pace would be minutes on its way back.
const RATES: RangeInclusive<f64> = 0.1..=1e8;

/// The most that a statement is believed to cost before one of its kind was seen, in rows: of what
/// costs more the first is charged too little, and then it is known. From a number that somebody
/// made up, it would take dozens of statements, each with the pace to itself, to come down.
pub(super) const COST_MAX: f64 = 1e6;

/// What was read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Read {
    pub(super) learned: Learned,
    /// Costs that were above [`COST_MAX`].
    pub(super) lowered: usize,
}

pub(super) fn write(learned: &Learned) -> String {
    let Learned { rows_per_s, service, digests, apps } = learned;
    let rate = rows_per_s.map(|rate| format!("rate {rate:.3}"));
    let service = format!("service {:.6}", service.as_secs_f64());
    let digest =
        |(DigestKey(digest), cost): &(DigestKey, f64)| format!("digest {digest:016x} {cost:.1}");
    let app = |(AppKey(app), cost, news): &(AppKey, f64, f64)| {
        format!("app {app:016x} {cost:.1} {news:.3}")
    };
    let parts = [VERSION.to_owned()].into_iter().chain(rate).chain([service]);
    let parts = parts.chain(digests.iter().map(digest)).chain(apps.iter().map(app));
    parts.collect::<Vec<_>>().join(";")
}

/// `None` if it is of another version or makes no sense: half of it is not believed either.
pub(super) fn read(text: &str) -> Option<Read> {
    let mut lines = text.split(';');
    if lines.next() != Some(VERSION) {
        return None;
    }
    let (mut learned, mut lowered) = (Learned::default(), 0_usize);
    let mut cost = |word: &str| {
        let cost = amount(word)?;
        lowered = lowered.saturating_add(usize::from(cost > COST_MAX));
        Some(cost.min(COST_MAX))
    };
    for line in lines {
        let mut words = line.split(' ');
        match words.next()? {
            "rate" => {
                let rate = amount(words.next()?).filter(|rate| RATES.contains(rate))?;
                learned.rows_per_s = Some(rate);
            }
            "service" => {
                learned.service = Duration::try_from_secs_f64(amount(words.next()?)?).ok()?;
            }
            "digest" if learned.digests.len() < READ_MAX => {
                learned.digests.push((DigestKey(key(words.next()?)?), cost(words.next()?)?));
            }
            "app" if learned.apps.len() < READ_MAX => {
                let app = AppKey(key(words.next()?)?);
                learned.apps.push((app, cost(words.next()?)?, amount(words.next()?)?));
            }
            _ => return None,
        }
        if words.next().is_some() {
            return None;
        }
    }
    Some(Read { learned, lowered })
}

fn key(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

fn amount(word: &str) -> Option<f64> {
    word.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let learned = Learned {
            rows_per_s: Some(12_345.5),
            service: Duration::from_millis(12),
            digests: vec![(DigestKey(u64::MAX), 500.0), (DigestKey(0), 1.5)],
            apps: vec![(AppKey(7), 20.0, 0.25)],
        };
        let text = write(&learned);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ;.".contains(&byte)));
        assert_eq!(read(&text), Some(Read { learned, lowered: 0 }));
        assert_eq!(read(&write(&Learned::default())), Some(Read::default()));
    }

    #[test]
    fn costs_that_nobody_has_seen_here_are_believed_up_to_a_bound() {
        let text = "sluice 1;rate 10;digest 1 1e300;digest 2 7;app 3 1000000.5 0.5";
        let Read { learned, lowered } = read(text).unwrap();
        assert_eq!(lowered, 2);
        assert_eq!(learned.digests, [(DigestKey(1), COST_MAX), (DigestKey(2), 7.0)]);
        assert_eq!(learned.apps, [(AppKey(3), COST_MAX, 0.5)]);
    }

    #[test]
    fn a_text_of_which_a_part_makes_no_sense_is_not_read() {
        for text in [
            "",
            "sluice 2;rate 1",
            "sluice 1;rate",
            "sluice 1;rate NaN",
            "sluice 1;rate -1",
            "sluice 1;rate inf",
            "sluice 1;rate 1e308",
            "sluice 1;rate 1e-300",
            "sluice 1;rate 0",
            "sluice 1;rate 1 2",
            "sluice 1;digest xyz 1",
            "sluice 1;digest 1 -7",
            "sluice 1;digest 1 NaN",
            "sluice 1;digest 1 1e999",
            "sluice 1;app 1 inf 0.5",
            "sluice 1;app 1 1 -inf",
            "sluice 1;app 1 NULL 0",
            "sluice 1;speed 1",
            "sluice 1;",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
