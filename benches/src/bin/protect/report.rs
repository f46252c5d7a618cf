//! What was measured, as Markdown, and what the goal makes of it.

use benches::stats::median;

use crate::block::{Measured, Way};
use crate::distribution::{Distribution, best_mixture};
use crate::jobs::Kind;
use crate::{JOBS_PART, WITHIN};

pub(crate) fn print(kind: Kind, threshold_s: f64, all: &[Measured]) {
    let alone = undisturbed(all);
    println!(
        "\n### {}\n\n{}; threshold {}.\n\n\
         | way | web p50 | p99 | ÷ undisturbed | over 1.25 × | the server's own p99 | ÷ undisturbed | \
         the client's p99 | web statements a second | reports a second | the signal | limit | gate open |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|",
        kind.name(),
        kind.described(),
        ms(threshold_s),
    );
    for it in all {
        let (p99, own) = (sluice_p99(it), it.server.quantile(0.99));
        let seen = |of: &dyn Fn(&Distribution) -> f64| it.sluice.as_ref().map_or(f64::NAN, of);
        println!(
            "| {} | {} | {} | {} | {} | {} | {:.2} | {} | {:.0} | {:.1} | {} | {} | {} |",
            it.way.name(),
            ms(seen(&|all| all.quantile(0.5))),
            ms(p99),
            plain(p99 / alone.sluice_p99_s),
            percent(seen(&|all| all.above(alone.sluice_p99_s * WITHIN))),
            ms(own),
            own / alone.server_p99_s,
            ms(it.client_p99_s),
            it.web_per_s,
            it.reports_per_s,
            ms(it.said_s()),
            plain(it.limit()),
            plain(it.open()),
        );
    }
    println!();
    judge(all, &alone);
}

/// The app alone: the medians of all times.
pub(crate) struct Alone {
    pub(crate) server_p99_s: f64,
    pub(crate) sluice_p99_s: f64,
}

pub(crate) fn undisturbed(all: &[Measured]) -> Alone {
    Alone {
        server_p99_s: median_alone(all, |it| it.server.quantile(0.99)),
        sluice_p99_s: median_alone(all, sluice_p99),
    }
}

/// What the signal says while the app is alone and at its usual work, in seconds.
pub(crate) fn said_alone_s(all: &[Measured]) -> f64 {
    median_alone(all, Measured::said_at_first_s)
}

fn median_alone(all: &[Measured], of: fn(&Measured) -> f64) -> f64 {
    median(all.iter().filter(|it| it.way == Way::Undisturbed).map(of).collect())
}

pub(crate) fn sluice_p99(it: &Measured) -> f64 {
    it.sluice.as_ref().map_or(f64::NAN, |seen| seen.quantile(0.99))
}

/// Holds both goals against what was measured, and against the best that steering could reach.
fn judge(all: &[Measured], alone: &Alone) {
    let best = |factor: f64| {
        let fixed = all
            .iter()
            .filter(|it| matches!(it.way, Way::Undisturbed | Way::Part(_) | Way::Limit(_)));
        let ways = fixed.filter_map(|it| {
            Some((it.sluice.as_ref()?.above(alone.sluice_p99_s * factor), it.reports_per_s))
        });
        best_mixture(&ways.collect::<Vec<_>>(), 0.01)
    };
    let (doubles, most) = (best(2.0), best(WITHIN));
    let alone_p99 = || all.iter().filter(|it| it.way == Way::Undisturbed).map(sluice_p99);
    let (least, largest) = (
        alone_p99().fold(f64::INFINITY, f64::min) / alone.sluice_p99_s,
        alone_p99().fold(0.0, f64::max) / alone.sluice_p99_s,
    );
    println!(
        "Undisturbed blocks are {least:.2} to {largest:.2} of their median. The p99 doubles at {doubles:.1} reports a second; within {WITHIN} × no mixture of limits gets \
         more than {most:.1}, {:.2} of that.\n",
        most / doubles,
    );
    for it in all.iter().filter(|it| matches!(it.way, Way::Protected | Way::Binary)) {
        let (factor, part) = (sluice_p99(it) / alone.sluice_p99_s, it.reports_per_s / doubles);
        let word = |reached: bool| if reached { "reached" } else { "missed" };
        println!(
            "- {}: {factor:.2} × undisturbed (goal {WITHIN}: {}), {part:.2} of the reports where it doubles \
             (goal {JOBS_PART}: {}), {:.2} of the best mixture",
            it.way.name(),
            word(factor <= WITHIN),
            word(part >= JOBS_PART),
            it.reports_per_s / most,
        );
    }
    println!();
}

fn ms(seconds: f64) -> String {
    if seconds.is_finite() { format!("{:.3} ms", seconds * 1e3) } else { "–".to_owned() }
}

fn percent(part: f64) -> String {
    if part.is_finite() { format!("{:.2} %", part * 1e2) } else { "–".to_owned() }
}

fn plain(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { "–".to_owned() }
}
