//! The keys of a replica.

use super::keys::{Key, REQUIRED, Shown, live};

pub(super) const REPLICA: &[Key] = &[
    live("host", "Where it is.", Shown::Words(REQUIRED, "host, host:port or unix:/path"), ""),
    live(
        "port",
        "Its port, where `host` does not name it.",
        Shown::Words("3306", "1 to 65535"),
        "",
    ),
    live(
        "group",
        "A word for what it is for, shown with it. All replicas of a group have the threshold that one \
             of them names; two that differ are a fault.",
        Shown::Words("none", "a name"),
        "",
    ),
    live(
        "threshold",
        "What its lag must stay below.",
        Shown::Words("that of `lag`", "10ms to 1d"),
        "It may fall further behind before anybody waits for it.",
    ),
];
