//! What a client is told in place of a response of the server's.

/// An ERR packet of Sluice's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Error code.
    pub errno: u16,
    /// SQLSTATE.
    pub sqlstate: [u8; 5],
    /// The text, one line.
    pub message: Vec<u8>,
}
