//! A siege: sequence after sequence against one target, and what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::error::{HarnessError, Result};
use crate::siege::grammar::{Maker, Trap};
use crate::siege::minimise::minimised;
use crate::siege::oracle::Moved;
use crate::siege::sequence::Sequence;
use crate::siege::target::Target;

/// What to do.
#[derive(Debug, Clone)]
pub struct Siege {
    /// The first sequence's seed; the next ones count up.
    pub seed: u64,
    /// How long.
    pub duration: Duration,
    /// How many at most.
    pub sequences_max: u64,
    /// Of which traps.
    pub traps: Vec<Trap>,
    /// How many alarms are made short; further ones are only counted.
    pub minimised_max: usize,
}

/// A way past.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The seed that made the sequence.
    pub seed: u64,
    /// As short as it got.
    pub sequence: Sequence,
    /// What it moves.
    pub moved: Moved,
}

/// What came of a siege.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Sequences played.
    pub sequences: u64,
    /// Of them, those whose login was refused.
    pub logins_refused: u64,
    /// Answers that came.
    pub answers: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// Sequences in which a connection ended or fell silent.
    pub broken: u64,
    /// Transactions of the classes that no rule holds.
    pub documented: u64,
    /// Sequences that moved something, by the names of their traps and what moved, with the first seed.
    pub alarms: BTreeMap<String, (u64, u64)>,
    /// The ways past that were made short.
    pub findings: Vec<Finding>,
    /// Seeds that made the server crash, with its last words.
    pub crashes: Vec<(u64, String)>,
    /// Seeds whose alarm did not come again on restored tables.
    pub unrepeated: Vec<u64>,
}

impl Report {
    /// Adds what another worker saw.
    pub fn add(&mut self, other: Self) {
        let Self { sequences, logins_refused, answers, errors, broken, documented, .. } = other;
        self.sequences = self.sequences.saturating_add(sequences);
        self.logins_refused = self.logins_refused.saturating_add(logins_refused);
        self.answers = self.answers.saturating_add(answers);
        self.errors = self.errors.saturating_add(errors);
        self.broken = self.broken.saturating_add(broken);
        self.documented = self.documented.saturating_add(documented);
        for (key, (count, seed)) in other.alarms {
            let entry = self.alarms.entry(key).or_insert((0, seed));
            entry.0 = entry.0.saturating_add(count);
        }
        self.findings.extend(other.findings);
        self.unrepeated.extend(other.unrepeated);
        self.crashes.extend(other.crashes);
    }

    /// How many sequences moved something.
    #[must_use]
    pub fn alarm_count(&self) -> u64 {
        self.alarms.values().map(|(count, _)| count).sum()
    }
}

impl Siege {
    /// Plays until the time or the number is over. Each finding is told as soon as it is there.
    ///
    /// # Errors
    /// When the target fails: Sluice has ended, or the server.
    pub async fn run(
        &self,
        target: &mut Target,
        mut found: impl FnMut(&Finding),
    ) -> Result<Report> {
        let started = Instant::now();
        let mut report = Report::default();
        let mut known: BTreeSet<String> = BTreeSet::new();
        for number in 0..self.sequences_max {
            if started.elapsed() >= self.duration {
                break;
            }
            let seed = self.seed.wrapping_add(number);
            let sequence = Maker::new(seed, target.flavour()).only(&self.traps).sequence();
            let (played, moved) = match target.attack(&sequence).await {
                Ok(done) => done,
                Err(error) => {
                    check_sluice(target)?;
                    let words = failed(target, &error);
                    if target.recover().await? {
                        report.crashes.push((seed, words));
                        continue;
                    }
                    return Err(error);
                }
            };
            report.sequences = report.sequences.saturating_add(1);
            report.answers = report.answers.saturating_add(u64::from(played.answers));
            report.errors = report.errors.saturating_add(u64::from(played.errors));
            report.broken = report.broken.saturating_add(u64::from(played.broken));
            report.logins_refused =
                report.logins_refused.saturating_add(u64::from(!played.logged_in));
            let documented = u64::try_from(moved.documented.len()).unwrap_or(0);
            report.documented = report.documented.saturating_add(documented);
            if documented > 0 || moved.is_alarm() {
                self.examine(target, (seed, &sequence, &moved), &mut report, &mut known).await?;
                if let Some(finding) = report.findings.last().filter(|finding| finding.seed == seed)
                {
                    found(finding);
                }
            }
        }
        check_sluice(target)?;
        Ok(report)
    }

    async fn examine(
        &self,
        target: &mut Target,
        (seed, sequence, moved): (u64, &Sequence, &Moved),
        report: &mut Report,
        known: &mut BTreeSet<String>,
    ) -> Result<()> {
        if moved.is_alarm() {
            let key = format!("{} {}", moved.kind(), sequence.name);
            let entry = report.alarms.entry(key).or_insert((0, seed));
            entry.0 = entry.0.saturating_add(1);
            let is_new = entry.0 <= MINIMISED_OF_A_KIND;
            if is_new && report.findings.len() < self.minimised_max {
                match minimised(target, sequence, TRIES).await? {
                    None => report.unrepeated.push(seed),
                    Some((sequence, moved)) if known.insert(shape(&sequence)) => {
                        report.findings.push(Finding { seed, sequence, moved });
                    }
                    Some(_) => {}
                }
            }
        }
        target.restore().await
    }
}

/// What the server said last: it may have crashed.
fn failed(target: &Target, error: &HarnessError) -> String {
    let log = std::fs::read(target.server().dir().join("error.log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let query = log.lines().rev().find(|line| line.starts_with("Query (")).unwrap_or_default();
    format!("{error}: {query}")
}

fn check_sluice(target: &mut Target) -> Result<()> {
    if let Some(status) = target.sluice().exited() {
        return Err(HarnessError::Protocol(format!("sluice has ended: {status}")));
    }
    if target.sluice().log()?.contains("panicked") {
        return Err(HarnessError::Protocol("something in sluice has panicked".into()));
    }
    Ok(())
}

fn shape(sequence: &Sequence) -> String {
    sequence.steps.iter().map(|step| format!("{step}\n")).collect()
}

const TRIES: u32 = 160;
const MINIMISED_OF_A_KIND: u64 = 2;
