//! The shell: sockets, tasks, clock, probes, reload, drain, telemetry.
