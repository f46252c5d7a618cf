//! The keys of `identity`: who may call itself what.

use super::keys::{NAMES, REQUIRED, Section, Shown, live};

pub(super) const IDENTITY: Section = Section {
    title: "`identity`",
    about: "",
    keys: &[
        live(
            "keys",
            "Keys of query attributes and of comment tags that name the app, the strongest first. They \
             are no tags.",
            Shown::Words(
                "`[sluice_app, app, throttler_app, application, workload_name]`",
                "up to 16 names",
            ),
            "",
        ),
        live(
            "claims",
            "Who may call itself what. The first entry whose user and address fit decides; if none \
             fits, nothing may be claimed.",
            Shown::Words("everything may be claimed", "a list"),
            "",
        ),
    ],
};

pub(super) const CLAIMS: Section = Section {
    title: "`identity.claims[]`",
    about: "An app is allowed if the whole of it is one of `apps`, or if each of its levels is that is \
            neither UUID-like nor a number, and there is at least one such level. The MySQL user is no \
            claim and needs no entry.",
    keys: &[
        live("user", "MySQL users.", Shown::Words(REQUIRED, NAMES), ""),
        live(
            "from",
            "Client addresses.",
            Shown::Words("anywhere", "addresses or networks, one or a list"),
            "",
        ),
        live(
            "apps",
            "What they may call themselves; `[]` is nothing.",
            Shown::Words(REQUIRED, NAMES),
            "",
        ),
    ],
};
