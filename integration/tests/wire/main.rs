//! What a client sees through Sluice is what it sees without it: every command, connection and end of one, on real
//! servers.

mod authentication;
mod certificates_live;
mod client_gone;
mod commands;
mod compression;
mod faults;
mod fidelity;
mod hostile;
mod hostile_server;
mod network;
mod prepared;
mod redirect;
mod tls;
mod unwanted;
mod user_names;
