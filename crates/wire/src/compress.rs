//! The compressed protocol, which a leg may change to behind the OK of its login.
//!
//! ```text
//! compressed length : u24   sequence : u8   uncompressed length : u24   data
//!                                           (0 when stored as it is)
//! ```
//!
//! The data of such *compressed packets*, put together, is the stream of frames that the leg would
//! carry otherwise; a frame may be spread over several compressed packets, and several frames may
//! share one. Each is compressed for itself: nothing is remembered from one to the next.
//!
//! There are two numberings then. The compressed packets count from 0 with each command, over both
//! directions, and both ends hold each other to that. The frames inside have sequence ids that
//! nobody looks at: the servers set them to the number of the compressed packet whenever they
//! flush, so they are not what they would be on a leg in the clear, whose peer does look.
//! [`CompressedLeg`] therefore shows its driver the frames of a compressed leg with the ids that
//! they would have in the clear, and gives those it sends to a client the ids that a server would.
//!
//! Manual: "Compression", `page_protocol_basic_compression`. What the page does not say is from
//! what MySQL 9.7 and MariaDB 10.11 were seen to do.

mod codec;
mod header;
mod leg;
mod numbering;
mod whole;

pub use codec::{Algorithm, Compressor, Decompressor};
pub use leg::{CompressedLeg, Unpacked, Unread};

use std::error::Error;
use std::fmt;

/// What whoever drives a leg is on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The other end is a client.
    Server,
    /// The other end is a server.
    Client,
}

/// How a compressed packet is not what it says. Nothing behind it can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corrupt {
    /// The data cannot be decompressed.
    Data,
    /// It is longer or shorter than the header says.
    Length,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data => f.write_str("a compressed packet cannot be decompressed"),
            Self::Length => f.write_str("a compressed packet is not as long as it says"),
        }
    }
}

impl Error for Corrupt {}

#[cfg(test)]
mod tests;
