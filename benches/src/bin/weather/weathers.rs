//! The weathers: what comes over a replica, and how long each part of it lasts.

use std::time::Duration;

use crate::load::Load;

/// One weather, in whichever way it is met.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    /// By which it is asked for.
    pub(crate) name: &'static str,
    /// What happens, for the report.
    pub(crate) about: &'static str,
    /// Who writes much.
    pub(crate) job: Load,
    /// How eagerly the job writes.
    pub(crate) eager: Eager,
    /// The longest wait of the job's rule.
    pub(crate) max_delay: &'static str,
    /// Who writes little beside it, if anybody does.
    pub(crate) beside: Option<Load>,
    /// What applying costs the replica.
    pub(crate) price: Price,
    /// Appliers of the replica.
    pub(crate) appliers: u32,
    /// For so long there is nobody but those who write little.
    pub(crate) alone: Duration,
    /// Then for so long the job is there, and nothing is counted yet.
    pub(crate) warm_up: Duration,
    /// Then this is counted.
    pub(crate) measured: Duration,
    /// What happens meanwhile.
    pub(crate) turn: Turn,
}

/// How eagerly a job writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eager {
    /// As fast as it is let.
    Always,
    /// Three quarters of what the replica was found to apply.
    ThreeQuarters,
}

/// What applying costs the replica beyond its usual work: it waits at every so many rows of a
/// table, which uses no processor, so that the rate does not depend on what else the machine does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price {
    /// The wait comes at rows whose id is a multiple of this.
    pub(crate) every: u32,
    /// How long it is.
    pub(crate) wait: Duration,
}

/// What happens when counting begins, or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing.
    None,
    /// The replica becomes so many times as slow, at once.
    Slower(u32),
    /// Sluice is taken over after a fifth of the time, and after three fifths killed and started
    /// again.
    Restarts,
}

impl Weather {
    pub(crate) fn all() -> [Self; 10] {
        [
            TRANSACTIONS,
            LARGE_TRANSACTIONS,
            NEW_JOB,
            NEWCOMER,
            DROP,
            RESTART,
            PATIENT,
            IMPATIENT,
            LIGHT_WRITER,
            PARALLEL,
        ]
    }

    /// Who writes.
    pub(crate) fn loads(&self) -> impl Iterator<Item = Load> {
        [Some(self.job), self.beside].into_iter().flatten()
    }

    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|weather| weather.name == name)
    }
}

const TRANSACTIONS: Weather = Weather {
    name: "transactions",
    about: "10 sessions whose transactions change 400 rows, a statement each 5 ms; beside them \
            20 sessions that change a row some ten times a second",
    job: Load { sessions: 10, statements: 400, each: ms(5), ..JOB },
    beside: Some(ONLINE),
    alone: secs(6),
    warm_up: secs(12),
    measured: secs(42),
    ..USUAL
};

const LARGE_TRANSACTIONS: Weather = Weather {
    name: "large-transactions",
    about: "10 sessions whose transactions change 900 rows, a statement each 5 ms, as much as the \
            replica applies in a second; beside them 20 sessions that change a row some ten times \
            a second",
    job: Load { statements: 900, ..TRANSACTIONS.job },
    warm_up: secs(25),
    measured: secs(60),
    ..TRANSACTIONS
};

const NEW_JOB: Weather = Weather {
    name: "new-job",
    about: "64 sessions begin with statements that change 1,000 rows each and that nobody has \
            seen before; counted from the first of them; beside them 20 sessions that change a \
            row some ten times a second",
    job: CHUNKS,
    beside: Some(ONLINE),
    alone: secs(8),
    warm_up: Duration::ZERO,
    measured: secs(50),
    ..USUAL
};

const NEWCOMER: Weather = Weather {
    name: "newcomer",
    about: "20 sessions change 100 rows some ten times a second that cost the replica next to \
            nothing; then 32 begin that change 5 rows a time of the usual ones; counted from the \
            first of them",
    job: Load { rows: 5, ..JOB },
    beside: Some(Load { rows: 100, priced: false, ..ONLINE }),
    alone: secs(25),
    warm_up: Duration::ZERO,
    measured: secs(40),
    ..USUAL
};

const DROP: Weather = Weather {
    name: "drop",
    about: "32 sessions change single rows, and the replica becomes ten times as slow at once; \
            counted from then on",
    turn: Turn::Slower(10),
    warm_up: secs(12),
    measured: secs(50),
    ..USUAL
};

const RESTART: Weather = Weather {
    name: "restart",
    about: "100 sessions change 20 rows a time, together three quarters of what the replica \
            applies, and wait for 5 s at most; Sluice is taken over, and later killed and \
            started again",
    job: Load { sessions: 100, rows: 20, ..JOB },
    eager: Eager::ThreeQuarters,
    max_delay: "5s",
    price: Price { every: 20, ..USUAL.price },
    turn: Turn::Restarts,
    warm_up: secs(10),
    measured: secs(40),
    ..USUAL
};

const PATIENT: Weather = Weather {
    name: "patient",
    about: "32 sessions change 50 rows a time, which are waits of some 1.6 s, and may wait for \
            60 s",
    job: CHUNKS_OF_50,
    ..USUAL
};

const IMPATIENT: Weather = Weather {
    name: "impatient",
    about: "the same, and they may wait for 0.5 s; refused, they come back when they were told \
            to",
    job: CHUNKS_OF_50,
    max_delay: "500ms",
    ..USUAL
};

const LIGHT_WRITER: Weather = Weather {
    name: "light-writer",
    about: "one session changes a row a second, beside 64 that change 1,000 rows a time",
    job: CHUNKS,
    beside: Some(Load { sessions: 1, thinks: secs(1), ..ONLINE }),
    warm_up: secs(12),
    measured: secs(48),
    ..USUAL
};

const PARALLEL: Weather = Weather {
    name: "parallel",
    about: "64 sessions change 250 rows a time, each of which keeps one of the replica's 24 appliers \
            for a quarter of a second (MariaDB 10.11)",
    job: Load { sessions: 64, rows: 250, ..JOB },
    appliers: 24,
    warm_up: secs(20),
    measured: secs(40),
    ..USUAL
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const JOB: Load = Load {
    user: "etl",
    table: "job",
    sessions: 32,
    rows: 1,
    statements: 1,
    each: Duration::ZERO,
    thinks: Duration::ZERO,
    priced: true,
};

const CHUNKS: Load = Load { sessions: 64, rows: 1_000, ..JOB };
const CHUNKS_OF_50: Load = Load { rows: 50, ..JOB };
const ONLINE: Load = Load { user: "web", table: "online", sessions: 20, thinks: ms(100), ..JOB };

/// A thousand rows a second or a little less.
const USUAL: Weather = Weather {
    name: "",
    about: "",
    job: JOB,
    eager: Eager::Always,
    max_delay: "120s",
    beside: None,
    price: Price { every: 1, wait: Duration::from_micros(900) },
    appliers: 1,
    alone: Duration::ZERO,
    warm_up: secs(8),
    measured: secs(30),
    turn: Turn::None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weather_is_found_by_its_name() {
        for weather in Weather::all() {
            assert_eq!(Weather::named(weather.name).map(|found| found.name), Some(weather.name));
        }
        assert!(Weather::named("fog").is_none());
    }
}
