//! A mode out of an input.

use sql::LexMode;
use testkit::Input;

use crate::dress::{CHARSETS, SERVERS};

/// Any mode.
pub(crate) fn mode(input: &mut Input<'_>) -> LexMode {
    let flags = input.u8();
    LexMode {
        no_backslash_escapes: (flags & 1 != 0).into(),
        ansi_quotes: (flags & 2 != 0).into(),
        charset: input.choose(&CHARSETS),
        server: input.choose(&SERVERS),
    }
}
