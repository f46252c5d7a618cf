//! MySQL bytes to frames, packets and commands, and where a response ends.
//!
//! Two readers, one for each direction. What a client sends is read once, from the first packet of
//! a command, by [`command::parse_command`]; what a server answers is never parsed but followed by
//! a [`response_tracker::ResponseTracker`], which looks at the header and first byte of each packet
//! and decodes only OK, EOF and ERR. Bytes are never copied on the way: whoever drives this crate
//! forwards what it was told belongs together.
//!
//! Nothing here reads a socket, a clock or SQL, and no byte of a peer can make it panic. Sequence
//! ids are reported but never checked, because real clients and servers disagree about them.
#![deny(clippy::arithmetic_side_effects)]

pub mod capability;
pub mod command;
pub mod compress;
pub mod error;
pub mod frame;
pub mod handshake;
pub mod lenenc;
pub mod packet;
pub mod proxy_protocol;
pub mod response_tracker;
pub mod status;
pub mod upload;

pub use error::{Peer, ProtocolError};
