//! The keys of `keepalive` and `proxy_protocol`.

use super::keys::{Section, Shown, live};
use crate::compile::limits;

pub(super) const KEEPALIVE: Section = Section {
    title: "`clusters.NAME.keepalive`",
    about: "For TCP, on both legs, of connections made after a change.",
    keys: &[
        live(
            "idle",
            "Silence before the kernel asks whether the peer is there.",
            Shown::Time(limits::KEEPALIVE_IDLE),
            "Peers that vanished are found later; fewer probes.",
        ),
        live(
            "interval",
            "Time between two questions.",
            Shown::Time(limits::KEEPALIVE_INTERVAL),
            "Peers that vanished are found later.",
        ),
        live(
            "count",
            "Unanswered questions after which the connection is given up.",
            Shown::Count(limits::KEEPALIVE_COUNT),
            "Longer outages of the network are survived.",
        ),
        live(
            "user_timeout",
            "How long sent data may go unacknowledged. Also ends a client that has no room for its result \
             for so long. 0s: the kernel's own limit (about 15 minutes) for the first, none for the second.",
            Shown::Time(limits::USER_TIMEOUT),
            "Peers that vanished in the middle of a transfer are found later.",
        ),
    ],
};

pub(super) const PROXY_PROTOCOL: Section = Section {
    title: "`clusters.NAME.proxy_protocol`",
    about: "",
    keys: &[
        live(
            "from",
            "The proxies whose connections begin with a PROXY header, version 1 or 2. They must send one, \
             nobody else may; the address in it is the client's for rules, claims and the log. Whoever comes by a \
             Unix socket has no address and cannot be named: no header is taken there.",
            Shown::Words("nobody", "addresses and networks, one or a list"),
            "",
        ),
        live(
            "timeout",
            "How long such a proxy may take for its header.",
            Shown::Time(limits::PROXY_HEADER_TIMEOUT),
            "Connections that say nothing are held for longer.",
        ),
        live(
            "send",
            "`v2`: the server gets a PROXY header with the client's address. MariaDB \
             (`proxy_protocol_networks`) and Percona Server take it, MySQL does not.",
            Shown::Words("`none`", "`none`, `v2`"),
            "",
        ),
    ],
};
