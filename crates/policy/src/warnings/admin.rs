//! Tokens that can be read on their way.

use crate::config::Config;
use crate::fault::Faults;
use crate::raw;

pub(super) fn look(file: &raw::File, config: &Config, warnings: &mut Faults) {
    let Some(admin) = &file.admin else { return };
    let is_far = !config.admin.listen.ip().is_loopback();
    if is_far && config.admin.tls.is_none() && !config.admin.access.tokens.is_empty() {
        let message = "tokens come here in the clear, and whoever sees one may use it; set `tls`";
        warnings.add(&admin.place, message);
    }
}
