//! What the benchmarks share: other proxies, sysbench, a process's cost, a web application, a report, medians, plots.

pub mod beside;
pub mod export;
pub mod lag_panel;
pub mod line;
pub mod peer;
pub mod plot;
pub mod process;
pub mod relay;
pub mod rules;
pub mod shipped;
pub mod stats;
pub mod sysbench;
pub mod watch;
pub mod way;
pub mod web;

/// What a benchmark may fail of; it ends the program with its text.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
