//! What changes over time: rates, windows, ways.

use std::time::Duration;

use admission::MonoTime;

use crate::scenario::faults::Faults;
use crate::scenario::limits::{LIST_MAX, PERIOD_MIN, ROWS_MAX, TRANSIT_MAX};
use crate::scenario::raw::{self, Span};
use crate::scenario::{Amount, Window};

pub(super) fn instant(span: Span) -> MonoTime {
    MonoTime::ZERO.saturating_add(span.0)
}

pub(in crate::scenario) fn windows(
    raw: &[(Span, Span)],
    path: &str,
    faults: &mut Faults,
) -> Vec<Window> {
    let windows: Vec<Window> =
        raw.iter().map(|(from, to)| Window { from: instant(*from), to: instant(*to) }).collect();
    let ends: Vec<MonoTime> = windows.iter().flat_map(|window| [window.from, window.to]).collect();
    let wide = windows.iter().all(|window| window.from < window.to);
    let order = wide && ends.is_sorted();
    faults.hold(order, path, "must be windows [from, to] in the order of time, none empty");
    few(raw.len(), path, faults);
    windows
}

pub(super) fn transit(
    raw: Option<raw::Transit>,
    path: &str,
    faults: &mut Faults,
) -> Vec<(MonoTime, Duration)> {
    let Some(raw::Transit(raw)) = raw else { return Vec::new() };
    let steps: Vec<(MonoTime, Duration)> =
        raw.iter().map(|(from, transit)| (instant(*from), transit.0)).collect();
    are_steps(raw.iter().map(|(from, _)| *from), path, faults);
    let near = steps.iter().all(|(_, transit)| *transit <= TRANSIT_MAX);
    faults.hold(near, path, "must be at most 1h");
    // No delay is none, however it is said.
    if steps.iter().all(|(_, transit)| transit.is_zero()) { Vec::new() } else { steps }
}

pub(in crate::scenario) fn amount(raw: raw::Amount, path: &str, faults: &mut Faults) -> Amount {
    let amount = match raw {
        raw::Amount::Number(per_s) => Amount::constant(per_s),
        raw::Amount::Steps(steps) => {
            are_steps(steps.iter().map(|(from, _)| *from), path, faults);
            Amount::Steps(steps.into_iter().map(|(from, per_s)| (instant(from), per_s)).collect())
        }
        raw::Amount::Sine { min, max, period } => {
            if period.0 < PERIOD_MIN || min > max {
                let message =
                    format!("must be from min to max, with a period of {PERIOD_MIN:?} or more");
                faults.add(&format!("{path}.sine"), message);
            }
            Amount::Sine { min, max, period: period.0 }
        }
    };
    let in_range = |per_s: &f64| (0.0..=ROWS_MAX).contains(per_s);
    let good = match &amount {
        Amount::Steps(steps) => steps.iter().all(|(_, per_s)| in_range(per_s)),
        Amount::Sine { min, max, .. } => in_range(min) && in_range(max),
    };
    faults.hold(good, path, &format!("must be from 0 to {ROWS_MAX} at any time"));
    amount
}

/// Steps begin at the origin and follow one another. A run may end before the last of them: it is the
/// beginning of a longer one.
fn are_steps(from: impl Iterator<Item = Span> + Clone, path: &str, faults: &mut Faults) {
    let starts = from.clone().next().is_some_and(|first| first.0.is_zero());
    let grows = from.clone().map(|from| from.0).is_sorted_by(|a, b| a < b);
    let order = starts && grows;
    faults.hold(order, path, "steps must begin at 0s and be in the order of time, each once");
    few(from.count(), path, faults);
}

fn few(entries: usize, path: &str, faults: &mut Faults) {
    faults.hold(entries <= LIST_MAX, path, &format!("must have at most {LIST_MAX} entries"));
}
