//! The keys of `bypass`.

use super::keys::{Section, Shown, live};
use crate::compile::limits;

pub(super) const BYPASS: Section = Section {
    title: "`clusters.NAME.bypass`",
    about: "Sessions of the primary that have not come through a Sluice of the cluster and write are \
            named in `sluice_bypass_sessions`, in the log and on the page.",
    keys: &[
        live(
            "watch",
            "Whether they are looked for; it takes a `probe`.",
            Shown::Words("`true`", "`true`, `false`"),
            "",
        ),
        live(
            "interval",
            "How often. A session is named when two looks have found it.",
            Shown::Time(limits::BYPASS_INTERVAL),
            "Less work for the primary; sessions are named later.",
        ),
        live(
            "ignore_users",
            "MySQL users that are meant to go around: backups, administrators. The probe's own user, \
             replication and the event scheduler need no entry.",
            Shown::Words("nobody", "users or prefixes (`backup-*`), one or a list"),
            "",
        ),
        live(
            "sluices",
            "Where other Sluices of the cluster run, as the server sees their addresses. Those whose probe \
             has the same user are known without. What comes from such an address may have come through \
             them, and is never named.",
            Shown::Words("none", "addresses and networks, one or a list"),
            "",
        ),
    ],
};
