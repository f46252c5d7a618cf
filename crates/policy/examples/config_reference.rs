//! Prints the reference of the configuration file: `docs/CONFIG.md` is made of it.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().write_all(policy::config_reference().as_bytes())
}
