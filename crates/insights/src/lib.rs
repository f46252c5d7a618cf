//! What every digest, app, schema and user has cost, in bounded memory.
//!
//! Records of statements that are over go in ([`Insights::observe`]), with the texts and names that
//! their hashes stand for ([`Insights::learn`]); views of a window come out ([`Insights::look`]).
//! Time is an argument, nothing here blocks, and what is kept does not grow with what comes: a
//! window holds its heavy hitters (module `sketch`), and everything else is summed up in `other`,
//! so that totals are exact whatever happens.
//!
//! Statements are counted in windows of a minute, which are kept for an hour, and of ten minutes,
//! which are kept for a day (module `windows`). Percentiles come from a histogram whose buckets are
//! an eighth of a power of two wide (module `histogram`). What outlives the process is in module `kept`.
#![deny(clippy::arithmetic_side_effects)]

mod catalogue;
mod compare;
mod counts;
mod hash;
mod histogram;
mod insights;
mod kept;
mod levels;
mod record;
mod seconds;
mod sketch;
mod stats;
mod tag_sets;
mod view;
mod windows;

pub use catalogue::{Kind, Learned, NAME_LEN_MAX, TEXT_LEN_MAX};
pub use compare::{Change, Compared, SAMPLE_MIN, compare};
pub use counts::Counts;
pub use hash::name_hash;
pub use histogram::Histogram;
pub use insights::Insights;
pub use kept::{Kept, KeptMinute, KeptName, KeptRow, KeptSeconds, Mark, Past, Restored};
pub use levels::{BySecond, SecondsOf, most, p99};
pub use record::{Ending, RECORD_WORDS, Record};
pub use stats::Stats;
pub use view::{By, Filter, Group, Look, Pieces, Sender, Sums, View, ViewRow};
pub use windows::{Length, Time};
