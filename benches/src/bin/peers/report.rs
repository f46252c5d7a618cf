//! The figures as Markdown.

use std::fmt::Write as _;

use benches::stats::median;
use benches::sysbench::Run;

use crate::bulk::{Rows, Transfer};
use crate::idle::{self, Idle};
use crate::neighbours::Neighbours;

/// One run of one target.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    /// CPU of the proxy per statement in µs, which is also seconds per million statements.
    pub(crate) cpu_us: f64,
    /// Of it in its own code.
    pub(crate) user_us: f64,
}

/// The table of one kind of run: the rounds, each with all targets, the direct way first and Sluice last.
pub(crate) fn runs(title: &str, rounds: &[Vec<Measured>]) -> String {
    let of = |index: usize, figure: &dyn Fn(&Measured, &[Measured]) -> f64| {
        let per_round = rounds.iter().filter_map(|round| Some(figure(round.get(index)?, round)));
        median(per_round.collect())
    };
    let direct = |round: &[Measured]| round.first().map(|m| m.run).unwrap_or(NOTHING);
    let sluice_us = |round: &[Measured]| round.last().map_or(f64::NAN, |m| m.cpu_us);
    let names = rounds.first().map(|round| round.iter().map(|m| m.name)).into_iter().flatten();

    let mut text = format!(
        "### {title}\n\n\
         | way | statements/s | ÷ direct | proxy CPU µs/statement | of it user | Sluice's CPU ÷ its | p50 µs | added | p99 µs | added |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (index, name) in names.enumerate() {
        let row = writeln!(
            text,
            "| {name} | {:.0} | {:.2} | {} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0} |",
            of(index, &|m, _| m.run.per_s),
            of(index, &|m, round| m.run.per_s / direct(round).per_s),
            cell(of(index, &|m, _| m.cpu_us), 1),
            cell(of(index, &|m, _| m.user_us), 1),
            cell(of(index, &|m, round| sluice_us(round) / m.cpu_us), 2),
            of(index, &|m, _| m.run.p50_us),
            of(index, &|m, round| m.run.p50_us - direct(round).p50_us),
            of(index, &|m, _| m.run.p99_us),
            of(index, &|m, round| m.run.p99_us - direct(round).p99_us),
        );
        // Writing to a String cannot fail.
        row.ok();
    }
    text
}

/// The table of memory.
pub(crate) fn memory(all: &[Idle]) -> String {
    let mut text = format!(
        "### Memory per idle connection, of {}\n\n| proxy | KiB |\n|---|---|\n",
        idle::CONNECTIONS
    );
    for Idle { name, kib_per_connection } in all {
        writeln!(text, "| {name} | {kib_per_connection:.1} |").ok();
    }
    text
}

/// The table of large results of one kind.
pub(crate) fn transfers(rows: Rows, all: &[Transfer]) -> String {
    let mut text = format!(
        "### A result of 1 GiB in rows of {} bytes\n\n\
         | way | MiB/s | ÷ direct | proxy CPU s | proxy grew by, KiB |\n|---|---|---|---|---|\n",
        rows.len
    );
    for Transfer { name, mib_per_s, of_direct, cpu_s, grown_kib } in all {
        let (cpu, grown) = (cell(*cpu_s, 2), cell(*grown_kib, 0));
        writeln!(text, "| {name} | {mib_per_s:.0} | {of_direct:.2} | {cpu} | {grown} |").ok();
    }
    text
}

pub(crate) fn neighbours(all: &[Neighbours]) -> String {
    let mut text = String::from(
        "### Small statements beside two large results\n\n\
         | way | p99 alone, ms | beside | ÷ alone | p999 alone, ms | beside | ÷ alone | results, MiB/s |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for Neighbours { name, alone_ms, beside_ms, mib_per_s } in all {
        write!(text, "| {name} ").ok();
        for (alone, beside) in [(alone_ms.0, beside_ms.0), (alone_ms.1, beside_ms.1)] {
            write!(text, "| {alone:.2} | {beside:.2} | {:.1} ", beside / alone).ok();
        }
        writeln!(text, "| {mib_per_s:.0} |").ok();
    }
    text
}

/// A figure, or a dash where there is none: the direct way has no proxy.
fn cell(figure: f64, decimals: usize) -> String {
    if figure.is_nan() { "–".to_owned() } else { format!("{figure:.decimals$}") }
}

const NOTHING: Run =
    Run { statements: f64::NAN, per_s: f64::NAN, p50_us: f64::NAN, p99_us: f64::NAN };
