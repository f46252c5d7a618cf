//! `client_tls`, `backend_tls` and `redirect` of a cluster.

use super::checks::keyword;
use crate::fault::{Faults, Place};
use crate::raw::{self, Maybe, Spanned};
use crate::tls::{
    BackendTls, BackendTlsMode, ClientTls, ClientTlsMode, Redirect, TlsFile, TlsIdentity,
    TlsVersion,
};

const CLIENT_MODES: [(&str, ClientTlsMode); 3] = [
    ("disabled", ClientTlsMode::Disabled),
    ("preferred", ClientTlsMode::Preferred),
    ("required", ClientTlsMode::Required),
];

const BACKEND_MODES: [(&str, BackendTlsMode); 6] = [
    ("disabled", BackendTlsMode::Disabled),
    ("as_client", BackendTlsMode::AsClient),
    ("preferred", BackendTlsMode::Preferred),
    ("required", BackendTlsMode::Required),
    ("verify_ca", BackendTlsMode::VerifyCa),
    ("verify_identity", BackendTlsMode::VerifyIdentity),
];

/// Named as the servers' `tls_version` names them.
const VERSIONS: [(&str, TlsVersion); 2] =
    [("TLSv1.2", TlsVersion::V12), ("TLSv1.3", TlsVersion::V13)];

pub(super) const REDIRECTS: [(&str, Redirect); 2] =
    [("strip", Redirect::Strip), ("deny", Redirect::Deny)];

pub(super) fn client(tls: Maybe<raw::ClientTls>, faults: &mut Faults) -> ClientTls {
    let Some(Spanned { value: raw, place }) = tls else {
        return ClientTls {
            mode: ClientTlsMode::Preferred,
            identity: None,
            client_ca: None,
            min_version: TlsVersion::V12,
        };
    };
    ClientTls {
        mode: keyword(raw.mode, ClientTlsMode::Preferred, &CLIENT_MODES, faults),
        identity: identity(raw.cert, raw.key, &place, faults),
        client_ca: raw.client_ca.map(|file| tls_file(file, faults)),
        min_version: keyword(raw.min_version, TlsVersion::V12, &VERSIONS, faults),
    }
}

pub(super) fn backend(tls: Maybe<raw::BackendTls>, faults: &mut Faults) -> BackendTls {
    let Some(Spanned { value: raw, place }) = tls else {
        return BackendTls {
            mode: BackendTlsMode::AsClient,
            ca: None,
            identity: None,
            server_name: None,
        };
    };
    let mode = keyword(raw.mode, BackendTlsMode::AsClient, &BACKEND_MODES, faults);
    let verifies = matches!(mode, BackendTlsMode::VerifyCa | BackendTlsMode::VerifyIdentity);
    match &raw.ca {
        None if verifies => {
            let message =
                format!("`{}` needs `ca`: who may have signed the certificate", mode.as_str());
            faults.add(&place, message);
        }
        Some(ca) if !verifies => {
            // Whoever writes it expects that the server is verified.
            let message =
                "without effect: only the modes `verify_ca` and `verify_identity` look at it";
            faults.add(&ca.place, message);
        }
        Some(_) | None => {}
    }
    if let Some(name) = &raw.server_name {
        if mode != BackendTlsMode::VerifyIdentity {
            faults.add(&name.place, "without effect: only the mode `verify_identity` looks at it");
        } else if !is_host(&name.value) {
            faults.add(&name.place, "must be a host name or an address");
        }
    }
    BackendTls {
        mode,
        ca: raw.ca.map(|file| tls_file(file, faults)),
        identity: identity(raw.cert, raw.key, &place, faults),
        server_name: raw.server_name.map(|name| name.value),
    }
}

fn identity(
    cert: Maybe<String>,
    key: Maybe<String>,
    place: &Place,
    faults: &mut Faults,
) -> Option<TlsIdentity> {
    match (cert, key) {
        (Some(cert), Some(key)) => Some(pair(cert, key, faults)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            faults.add(place, "`cert` and `key` come together");
            None
        }
    }
}

pub(super) fn pair(
    cert: Spanned<String>,
    key: Spanned<String>,
    faults: &mut Faults,
) -> TlsIdentity {
    TlsIdentity { cert: tls_file(cert, faults), key: tls_file(key, faults) }
}

fn tls_file(file: Spanned<String>, faults: &mut Faults) -> TlsFile {
    let Spanned { value, place } = file;
    if value.is_empty() {
        faults.add(&place, "must not be empty");
    }
    TlsFile { path: value.into(), key: place.path, line: place.line }
}

pub(super) fn is_host(name: &str) -> bool {
    let host_chars = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_name = !name.is_empty() && name.chars().all(host_chars);
    is_name || name.parse::<std::net::IpAddr>().is_ok()
}
