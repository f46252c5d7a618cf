//! The figures of a weather as a table.

use std::fmt::Write as _;

use crate::figures::{Figures, Met};
use crate::run::Seen;
use crate::weathers::{Turn, Weather};

/// Markdown: what the weather is, and a row for each way.
pub(crate) fn markdown(weather: &Weather, ways: &[Seen]) -> String {
    let all = || ways.iter().map(|seen| &seen.figures);
    let beside = all().any(|figures| figures.beside.is_some());
    let refused = all().any(|figures| figures.job.refused > 0);
    let restarts = weather.turn == Turn::Restarts;
    let mut head = HEAD.to_owned();
    for (shown, columns) in [(beside, BESIDE), (refused, REFUSED), (restarts, LOST)] {
        if shown {
            head += columns;
        }
    }
    let columns = head.matches('|').count().saturating_sub(1);
    let mut text = format!("### `{}`\n\n{}.\n\n{head}\n", weather.name, sentence(weather.about));
    text += "|";
    text += &"---|".repeat(columns);
    text += "\n";
    for figures in all() {
        text += &usual(figures);
        if beside {
            text += &of_beside(figures);
        }
        if refused {
            text += &of_refused(&figures.job);
        }
        if restarts {
            // Writing to a String cannot fail.
            match figures.lost {
                Some((first, then)) => write!(text, " {first} | {then} |").ok(),
                None => write!(text, " – | – |").ok(),
            };
        }
        text += "\n";
    }
    text
}

fn usual(figures: &Figures) -> String {
    let lag = |part| figures.lag.quantile(part).as_secs_f64();
    format!(
        "| {} | {:.0} | {:.0} | {:.2} | {:.3} | {:.2} s | {:.2} s | {:.2} s | {:.0} | {} |",
        figures.way.as_str(),
        figures.capacity_per_s,
        figures.applied_per_s(),
        figures.used(),
        figures.lag.share_from(crate::THRESHOLD),
        lag(0.5),
        lag(0.99),
        lag(1.0),
        figures.job.rows_per_s(),
        seconds(figures.job.took(0.99)),
    )
}

fn of_beside(figures: &Figures) -> String {
    let Some((alone, beside)) = &figures.beside else {
        return " – | – | – | – |".to_owned();
    };
    let part = if alone.rows == 0 {
        "–".to_owned()
    } else {
        format!("{:.2}", beside.rows_per_s() / alone.rows_per_s())
    };
    let (p50, p99) = (seconds(beside.took(0.5)), seconds(beside.took(0.99)));
    let longest = seconds(beside.took(1.0));
    format!(" {:.1} | {part} | {p50}, {p99} | {longest} |", beside.rows_per_s())
}

fn of_refused(job: &Met) -> String {
    let told = job.told_right().map_or_else(|| "–".to_owned(), |part| format!("{part:.2}"));
    let (p50, longest) = (seconds(job.told(0.5)), seconds(job.told(1.0)));
    format!(
        " {} | {} | {:.2} | {p50}, {longest} | {told} |",
        seconds(job.took(0.5)),
        job.refused,
        job.refused_each()
    )
}

fn seconds(seconds: f64) -> String {
    if seconds.is_nan() {
        "–".to_owned()
    } else if seconds < 0.1 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

fn sentence(about: &str) -> String {
    let mut letters = about.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

const HEAD: &str = "| way | replica can, rows/s | applied, rows/s | used | at or over 1 s | \
                    lag p50 | p99 | max | job's rows/s | its p99 |";
const BESIDE: &str = " beside it, rows/s | ÷ alone | its p50, p99 | longest |";
const REFUSED: &str = " its p50 | refused | for each change | told p50, longest | told right |";
const LOST: &str = " lost at the takeover | at the kill |";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Event;
    use benches::way::Way;
    use integration::lag_meter::LagSeries;
    use std::time::Duration;

    #[test]
    fn every_row_has_as_many_columns_as_the_head() {
        let time = Duration::from_secs(10);
        let met = |events: &[Event]| Met::of(events, time);
        let done = [Event::Done { rows: 1, took: time }];
        let of = |way, job, beside| Seen {
            figures: Figures {
                way,
                lag: LagSeries::default(),
                time,
                capacity_per_s: 100.0,
                applied: 10,
                job,
                lost: None,
                beside,
            },
            lag: LagSeries::default(),
            moments: Vec::new(),
            said: Vec::new(),
        };
        let ways = [
            of(Way::Adaptive, met(&[Event::Refused]), None),
            of(Way::Binary, met(&[]), Some((met(&[]), met(&done)))),
            of(Way::Direct, met(&done), Some((met(&done), met(&done)))),
        ];
        for weather in Weather::all() {
            let text = markdown(&weather, &ways);
            let columns = |line: &str| line.matches('|').count();
            let table: Vec<usize> =
                text.lines().filter(|line| line.starts_with('|')).map(columns).collect();
            assert_eq!(table.len(), 5, "{text}");
            let expected = if weather.turn == Turn::Restarts { 22 } else { 20 };
            assert!(table.iter().all(|count| *count == expected), "{text}");
        }
    }
}
