//! `bypass` of a cluster.

use super::checks::{duration, networks, patterns};
use super::limits;
use crate::bypass::Bypass;
use crate::fault::Faults;
use crate::raw::{self, Maybe};

pub(super) fn compile(bypass: Maybe<raw::Bypass>, has_probe: bool, faults: &mut Faults) -> Bypass {
    if let Some(bypass) = bypass.as_ref().filter(|_| !has_probe) {
        faults.add(&bypass.place, "has no effect: the cluster has no `probe`");
    }
    let raw = bypass.map(|bypass| bypass.value).unwrap_or_default();
    let watched = raw.watch.is_none_or(|watch| watch.value);
    let interval = duration(raw.interval, limits::BYPASS_INTERVAL, faults);
    let ignore_users = raw.ignore_users.map(|users| patterns(&users.value, &users.place, faults));
    let sluices = raw.sluices.map(|sluices| networks(&sluices.value, &sluices.place, faults));
    Bypass {
        interval: (watched && has_probe).then_some(interval),
        ignore_users: ignore_users.unwrap_or_default(),
        sluices: sluices.unwrap_or_default(),
    }
}
