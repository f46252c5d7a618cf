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
pub(super) fn read(text: &str) -> Option<Learned> {
    let mut lines = text.split(';');
    if lines.next() != Some(VERSION) {
        return None;
    }
    let mut learned = Learned::default();
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
                learned.digests.push((DigestKey(key(words.next()?)?), amount(words.next()?)?));
            }
            "app" if learned.apps.len() < READ_MAX => {
                let app = AppKey(key(words.next()?)?);
                learned.apps.push((app, amount(words.next()?)?, amount(words.next()?)?));
            }
            _ => return None,
        }
        if words.next().is_some() {
            return None;
        }
    }
    Some(learned)
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
        assert_eq!(read(&text), Some(learned));
        assert_eq!(read(&write(&Learned::default())), Some(Learned::default()));
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
            "sluice 1;speed 1",
            "sluice 1;",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
