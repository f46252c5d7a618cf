//! What happened: minutes, intervals and changes, kept in memory and in a file that people can open,
//! and sentences about them; and why one statement was refused or had to wait.
//!
//! A shell around pure parts. [`look`] is what one moment finds, [`book`] makes minutes and
//! intervals of many, [`answer`] puts memory and [`disk`] together, [`words`] says it; none of these
//! has a clock. [`watch`] is the shell: a thread that looks, and one that writes.

pub mod answer;
pub mod book;
pub mod disk;
pub mod look;
pub mod record;
pub mod time;
pub mod watch;
pub mod why;
pub mod words;

mod diff;

pub use self::answer::Answer;
pub use self::record::At;
pub use self::watch::{FreedKept, History, Query};
pub use self::why::{Why, WhyAnswer};
