//! The keys of `admin`.

use super::keys::{REQUIRED, Section, Shown, fixed, live};

pub(super) const ADMIN: Section = Section {
    title: "`admin`",
    about: "The HTTP side: metrics, health, the status, and changes. Whoever reaches it may read; who may \
            change something is said here. [ADMIN](ADMIN.md) has examples.",
    keys: &[
        fixed(
            "listen",
            "Where metrics, health and the check API are served.",
            Shown::Words("127.0.0.1:9307", "address:port"),
        ),
        live(
            "tls",
            "The certificate of the HTTP side. With it only HTTPS is spoken there.",
            Shown::Words("none: HTTP in the clear", "see below"),
            "",
        ),
        live(
            "token_env",
            "The environment variable with the token that changes need (`Authorization: Bearer …`). Rules \
             made with it have the author `admin`.",
            Shown::Words("none", "a name"),
            "",
        ),
        live(
            "token_file",
            "The same from a file; only one of the two. It is read again when it changes.",
            Shown::Words("none", "a path"),
            "",
        ),
        live(
            "tokens",
            "More of them, each with the name of who has it: the author of the rules made with it.",
            Shown::Words("none", "a list"),
            "",
        ),
        live(
            "loopback_changes",
            "Whether requests from this machine need no token. Whoever has a shell here may then change \
             rules, and so may everybody behind a proxy on this machine that hides where requests come from.",
            Shown::Words("`false`", "`true` where `listen` is a loopback address"),
            "",
        ),
        live(
            "legacy_get",
            "Whether changes of the dialects of Vitess and freno may come by GET, as their clients send them: \
             with a token, or from this machine where `listen` is a loopback address.",
            Shown::Words("`false`", "`true`, `false`"),
            "",
        ),
        live(
            "hosts",
            "Names that requests may call the HTTP side by, beside addresses, `localhost`, this machine's name and \
             names without a dot. A request that calls it otherwise is refused (421), unless it came over TLS: \
             so no page of another site gets here by a name of its own. Health, metrics and checks are answered \
             by any name.",
            Shown::Words("`[]`", "a list of host names"),
            "",
        ),
    ],
};

pub(super) const ADMIN_TLS: Section = Section {
    title: "`admin.tls`",
    about: "",
    keys: &[
        live(
            "cert",
            "The certificate, with those between it and its root, in PEM. Read again when the file changes; \
             one that cannot be used then leaves the one before in force.",
            Shown::Words(REQUIRED, "a path"),
            "",
        ),
        live("key", "Its key, in PEM.", Shown::Words(REQUIRED, "a path"), ""),
    ],
};

pub(super) const ADMIN_TOKENS: Section = Section {
    title: "`admin.tokens[]`",
    about: "",
    keys: &[
        live("name", "Who has it.", Shown::Words(REQUIRED, "a name, as of a rule"), ""),
        live("token_env", "The environment variable with it.", Shown::Words("none", "a name"), ""),
        live(
            "token_file",
            "The file with it; exactly one of the two. A token has 8 characters or more.",
            Shown::Words("none", "a path"),
            "",
        ),
    ],
};
