//! `error` of a rule.
//!
//! Clients do not only read an error, they act on it. Refused are codes and states that make them
//! drop the connection (which is alive), or believe that the transaction was rolled back (it was
//! not: a framework that starts it again runs its first half twice, or commits a half).

use std::ops::RangeInclusive;

use super::checks::list;
use super::limits::MESSAGE_LEN_MAX;
use crate::fault::{Faults, Place};
use crate::raw::{ErrorProfile, Maybe, Spanned};
use crate::rule::RefusalProfile;

/// What a custom profile says when it has no message.
const DEFAULT_MESSAGE: &str = "Statement refused";

/// Codes outside are read as something else: below are no server errors, from 2000 on are those of
/// client libraries, from 32768 on they are negative to some.
const ERRNOS: [RangeInclusive<i128>; 2] = [1_000..=1_999, 3_000..=32_767];

/// Codes that clients act on.
const BAD_ERRNOS: [(RangeInclusive<i128>, &str); 14] = [
    (1040..=1040, "clients take it for a connection that was never made"),
    (1044..=1046, "clients take it for a connection without rights"),
    (1053..=1053, "clients drop the connection"),
    (1105..=1105, "HikariCP drops the connection"),
    (1148..=1148, "clients take it for a protocol that is not allowed"),
    (1213..=1213, "clients believe that the transaction was rolled back"),
    (1290..=1290, "drivers take the server for read-only and fail over"),
    (1317..=1317, "clients drop the connection"),
    (1402..=1402, "clients believe that the transaction was rolled back"),
    (1613..=1614, "clients believe that the transaction was rolled back"),
    (1792..=1792, "drivers take the server for read-only and fail over"),
    (1836..=1836, "drivers take the server for read-only and fail over"),
    (1927..=1927, "clients drop the connection"),
    (4031..=4031, "clients drop the connection"),
];

/// Classes of SQLSTATE that clients act on.
const BAD_SQLSTATES: [(&str, &str); 8] = [
    ("00", "it means success"),
    ("01", "it means a warning"),
    ("02", "it means the end of data"),
    ("08", "clients drop the connection"),
    ("40", "clients believe that the transaction was rolled back (see `retryable_40001`)"),
    ("53", "clients take it for a server out of resources and leave"),
    ("70", "clients drop the connection"),
    ("XA", "clients believe that the transaction was rolled back"),
];

pub(super) fn compile(
    error: Maybe<ErrorProfile>,
    default: RefusalProfile,
    faults: &mut Faults,
) -> RefusalProfile {
    let Some(Spanned { value, place }) = error else { return default };
    match value {
        ErrorProfile::Keyword(word) => named(&word, &place, faults).unwrap_or(default),
        ErrorProfile::Custom { errno, sqlstate, message } => RefusalProfile {
            errno: errno.map_or(default.errno, |errno| compile_errno(&errno, faults)),
            sqlstate: sqlstate.map_or(*b"HY000", |state| compile_sqlstate(&state, faults)),
            prefix: message
                .map_or_else(|| DEFAULT_MESSAGE.to_owned(), |text| compile_message(text, faults)),
        },
    }
}

fn named(word: &str, place: &Place, faults: &mut Faults) -> Option<RefusalProfile> {
    let profiles = [
        ("retryable", RefusalProfile::retryable()),
        ("retryable_40001", RefusalProfile::retryable_40001()),
        ("quota", RefusalProfile::quota()),
        ("vitess", RefusalProfile::vitess()),
    ];
    let names = list(profiles.iter().map(|(name, _)| name));
    let found = profiles.into_iter().find(|(name, _)| *name == word);
    if found.is_none() {
        let message = format!("`{word}` is not one of {names}, nor {{errno, sqlstate, message}}");
        faults.add(place, message);
    }
    found.map(|(_, profile)| profile)
}

fn compile_errno(errno: &Spanned<i128>, faults: &mut Faults) -> u16 {
    let Spanned { value, place } = errno;
    if !ERRNOS.iter().any(|range| range.contains(value)) {
        faults.add(place, "must be from 1000 to 1999 or from 3000 to 32767");
    }
    if let Some((_, why)) = BAD_ERRNOS.iter().find(|(range, _)| range.contains(value)) {
        faults.add(place, format!("{value} cannot be used: {why}"));
    }
    u16::try_from(*value).unwrap_or_default()
}

fn compile_sqlstate(state: &Spanned<String>, faults: &mut Faults) -> [u8; 5] {
    let Spanned { value, place } = state;
    let allowed = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    let bytes = <[u8; 5]>::try_from(value.as_bytes()).ok();
    let Some(bytes) = bytes.filter(|bytes| bytes.iter().all(allowed)) else {
        faults.add(place, "must be five digits or capital letters, in quotes, like \"HY000\"");
        return *b"HY000";
    };
    if let Some((_, why)) = BAD_SQLSTATES.iter().find(|(class, _)| value.starts_with(class)) {
        faults.add(place, format!("{value} cannot be used: {why}"));
    }
    bytes
}

fn compile_message(message: Spanned<String>, faults: &mut Faults) -> String {
    let Spanned { value, place } = message;
    if value.is_empty() || value.len() > MESSAGE_LEN_MAX || value.chars().any(char::is_control) {
        faults.add(&place, format!("must be one line of 1 to {MESSAGE_LEN_MAX} bytes"));
    }
    value
}
