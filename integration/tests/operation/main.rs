//! Sluice as those see it who run it and those who connect to it: probes, live edits, restarts, monitoring, drivers
//! and tools, on real servers.

mod admin_door;
mod check_connect;
mod console;
mod drivers;
mod harness;
mod history;
mod insights;
mod lag_gate;
mod live_edit;
mod monitoring;
mod probe;
mod restart;
mod server_facts;
mod tools;
