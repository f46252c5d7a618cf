//! The keys of TLS.

use super::keys::{Key, Shown, live};

/// `clusters.NAME.client_tls`.
pub(super) const CLIENT_TLS_KEYS: &[Key] = &[
    live(
        "mode",
        "`disabled`: not offered. `preferred`: offered, clients may come without. `required`: clients that \
         come without it over the network are refused with errno 3159; a Unix socket counts as safe.",
        Shown::Words("`preferred`", "`disabled`, `preferred`, `required`"),
        "",
    ),
    live(
        "cert",
        "The certificate shown to clients, with those between it and its root, in PEM. Read again when the \
         file changes; one that cannot be used then leaves the one before in force.",
        Shown::Words("a self-signed one, made at start", "a path"),
        "",
    ),
    live("key", "Its key, in PEM.", Shown::Words("none", "a path"), ""),
    live(
        "client_ca",
        "Clients that use TLS must show a certificate signed by one of these. In mode `preferred` they may \
         still come without TLS.",
        Shown::Words("none: clients need no certificate", "a path"),
        "",
    ),
    live(
        "min_version",
        "The oldest version of TLS that is spoken.",
        Shown::Words("`TLSv1.2`", "`TLSv1.2`, `TLSv1.3`"),
        "",
    ),
];

/// `clusters.NAME.backend_tls`.
pub(super) const BACKEND_TLS_KEYS: &[Key] = &[
    live(
        "mode",
        "`disabled`: never. `as_client`: when the client came with TLS; a server that offers none is refused \
         then, so that no leg is less safe than the client thinks, and TLS is offered to clients in front of \
         such a server only where `client_tls` is `required` or names certificates. `preferred`: when the server offers it. \
         `required`: always, whatever its certificate. `verify_ca`: its certificate must be signed by `ca`. \
         `verify_identity`: and name the server. Probes take `as_client` as `preferred`.",
        Shown::Words(
            "`as_client`",
            "`disabled`, `as_client`, `preferred`, `required`, `verify_ca`, `verify_identity`",
        ),
        "",
    ),
    live(
        "ca",
        "Who may have signed the server's certificate, in PEM; the server's own certificate can stand here \
         too. Needed by the modes that verify.",
        Shown::Words("none", "a path"),
        "",
    ),
    live(
        "cert",
        "The certificate shown to servers that ask for one, in PEM: for accounts with REQUIRE X509.",
        Shown::Words("none", "a path"),
        "",
    ),
    live("key", "Its key, in PEM.", Shown::Words("none", "a path"), ""),
    live(
        "server_name",
        "The name that the certificates of all of the cluster's servers must have.",
        Shown::Words("the host of each server", "a host name or an address"),
        "",
    ),
];
