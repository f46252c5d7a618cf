//! The three packets that end things: OK, ERR and EOF.
//!
//! Manual: "Generic Response Packets".

mod err;
mod ok;
mod redirect;

pub use err::{ERR_MESSAGE_LEN_MAX, ErrPacket, encode_err, encode_err_no_sqlstate};
pub use ok::{EofPacket, OkPacket, SessionChange, SessionChanges};
pub use redirect::put_without_redirect;

/// First byte of an OK packet.
pub const OK_HEADER: u8 = 0x00;
/// First byte of an EOF packet, and of an OK in its place under CLIENT_DEPRECATE_EOF.
pub const EOF_HEADER: u8 = 0xfe;
/// First byte of an ERR packet.
pub const ERR_HEADER: u8 = 0xff;
/// First byte of the request for a LOCAL INFILE.
pub const LOCAL_INFILE_HEADER: u8 = 0xfb;
/// The code that makes an ERR a progress report of MariaDB.
pub const PROGRESS_REPORT_CODE: u16 = 0xffff;
