//! Checks that many settings share.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use admission::Mode;

use super::limits::{Limits, NAME_LEN_MAX, PATTERN_LEN_MAX, show};
use crate::cidr::Cidr;
use crate::fault::{Faults, Place};
use crate::network::UNIX_PREFIX;
use crate::patterns::Patterns;
use crate::raw::{Maybe, OneOrMany, Spanned};
use crate::secret::Secret;

/// A duration in its range, or the default.
pub(super) fn duration(
    value: Maybe<Duration>,
    limits: Limits<Duration>,
    faults: &mut Faults,
) -> Duration {
    let Some(Spanned { value, place }) = value else { return limits.default };
    if value < limits.min || value > limits.max {
        let message = format!("must be from {} to {}", show(limits.min), show(limits.max));
        faults.add(&place, message);
    }
    value
}

/// A whole number in its range, or the default.
pub(super) fn whole(value: Maybe<i128>, limits: Limits<u32>, faults: &mut Faults) -> u32 {
    let Some(Spanned { value, place }) = value else { return limits.default };
    match u32::try_from(value) {
        Ok(value) if (limits.min..=limits.max).contains(&value) => value,
        Ok(_) | Err(_) => {
            faults.add(&place, format!("must be from {} to {}", limits.min, limits.max));
            limits.default
        }
    }
}

/// One of a few words, or the default.
pub(super) fn keyword<T: Copy>(
    value: Maybe<String>,
    default: T,
    words: &[(&str, T)],
    faults: &mut Faults,
) -> T {
    let Some(Spanned { value, place }) = value else { return default };
    match words.iter().find(|(word, _)| *word == value) {
        Some((_, meaning)) => *meaning,
        None => {
            let words = list(words.iter().map(|(word, _)| word));
            faults.add(&place, format!("`{value}` is not one of {words}"));
            default
        }
    }
}

/// Words for people: `a`, `b`.
pub(super) fn list(words: impl Iterator<Item = impl Display>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// An address to listen on.
pub(super) fn address(text: &Spanned<String>, faults: &mut Faults) -> Option<SocketAddr> {
    let address = text.value.parse().ok();
    if address.is_none() {
        let message = "must be an IP address and a port, like 127.0.0.1:3307 or [::]:3307";
        faults.add(&text.place, message);
    }
    address
}

/// The address of a server, `host:port` or `unix:/path`.
pub(super) fn server(text: &Spanned<String>, faults: &mut Faults) -> Arc<str> {
    if let Some(path) = text.value.strip_prefix(UNIX_PREFIX) {
        // A fault has been noted; what is built after one is never used.
        socket_path(path, text, faults);
        return text.value.as_str().into();
    }
    let well_formed = text.value.rsplit_once(':').is_some_and(|(host, port)| {
        let host_chars = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_host = !host.is_empty() && host.chars().all(host_chars);
        let is_v6 = text.value.parse::<SocketAddr>().is_ok();
        (is_host || is_v6) && port.parse::<u16>().is_ok_and(|port| port != 0)
    });
    if !well_formed {
        faults.add(&text.place, "must be a host and a port or a socket, like db1.example:3306, [::1]:3306 or unix:/path");
    }
    text.value.as_str().into()
}

/// A secret from the environment or a file, not both.
pub(super) fn secret(
    env: Maybe<String>,
    file: Maybe<String>,
    place: &Place,
    faults: &mut Faults,
) -> Option<Secret> {
    for value in [&env, &file].into_iter().flatten() {
        if value.value.is_empty() {
            faults.add(&value.place, "must not be empty");
        }
    }
    match (env, file) {
        (Some(_), Some(_)) => {
            faults.add(place, "the secret comes from the environment or from a file, not both");
            None
        }
        (Some(env), None) => Some(Secret::Env(env.value)),
        (None, Some(file)) => Some(Secret::File(file.value.into())),
        (None, None) => None,
    }
}

/// A name that stands in labels, logs and messages as it is.
pub(super) fn name(name: &str, place: &Place, faults: &mut Faults) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+".contains(c);
    if name.is_empty() || name.len() > NAME_LEN_MAX || !name.chars().all(allowed) {
        let message = format!(
            "a name has 1 to {NAME_LEN_MAX} letters, digits and the characters - _ . : / @ +"
        );
        faults.add(place, message);
    }
}

/// Values of a condition: at least one, each `*`, `prefix*` or a value.
pub(super) fn patterns(values: &OneOrMany<String>, place: &Place, faults: &mut Faults) -> Patterns {
    let mut patterns = Patterns::default();
    for Spanned { value, .. } in check_patterns(values, place, faults) {
        patterns.add(value);
    }
    patterns
}

/// Those of the values that can be patterns; at least one must be there.
pub(super) fn check_patterns<'v>(
    values: &'v OneOrMany<String>,
    place: &Place,
    faults: &mut Faults,
) -> Vec<&'v Spanned<String>> {
    if values.0.is_empty() {
        faults.add(place, "an empty list matches nothing; leave the key out to match everything");
    }
    let mut good = Vec::with_capacity(values.0.len());
    for spanned in &values.0 {
        let Spanned { value, place } = spanned;
        let stem = value.strip_suffix('*').unwrap_or(value);
        if value.is_empty() {
            faults.add(place, "an empty value matches nothing");
        } else if stem.contains('*') {
            faults.add(place, "`*` stands alone or at the end of a prefix");
        } else if value.len() > PATTERN_LEN_MAX {
            faults.add(place, format!("longer than {PATTERN_LEN_MAX} bytes: it matches nothing"));
        } else if value.chars().any(char::is_control) {
            faults.add(place, "holds a control character");
        } else {
            good.push(spanned);
        }
    }
    good
}

/// Networks: at least one.
pub(super) fn networks(
    values: &OneOrMany<String>,
    place: &Place,
    faults: &mut Faults,
) -> Vec<Cidr> {
    if values.0.is_empty() {
        faults.add(place, "an empty list matches nothing; leave the key out to match everything");
    }
    let mut networks = Vec::new();
    for Spanned { value, place } in &values.0 {
        match Cidr::parse(value) {
            Some(network) => networks.push(network),
            None => {
                faults.add(place, "must be an address or a network, like 10.1.2.3 or 10.0.0.0/8")
            }
        }
    }
    networks
}

/// The path of a Unix socket, as long as the kernel takes it.
pub(super) fn socket_path(
    path: &str,
    text: &Spanned<String>,
    faults: &mut Faults,
) -> Option<PathBuf> {
    let fault = if !Path::new(path).is_absolute() {
        "the path of a socket must be absolute, like unix:/run/sluice/mysql.sock"
    } else if path.len() > SOCKET_PATH_LEN_MAX {
        "longer than the 107 bytes that a socket's path may have"
    } else if path.chars().any(char::is_control) {
        "holds a control character"
    } else {
        return Some(path.into());
    };
    faults.add(&text.place, fault);
    None
}

/// The path of a directory of ours.
pub(super) fn directory(path: &Spanned<String>, faults: &mut Faults) -> Option<PathBuf> {
    let fault = if !Path::new(&path.value).is_absolute() {
        "the path must be absolute, like /var/lib/sluice"
    } else if path.value.chars().any(char::is_control) {
        "holds a control character"
    } else {
        return Some(path.value.as_str().into());
    };
    faults.add(&path.place, fault);
    None
}

/// `sun_path` of unix(7) with its closing zero byte.
const SOCKET_PATH_LEN_MAX: usize = 107;

/// A query that measures something. It runs with the rights of the probe's user, as it is written.
pub(super) fn query(query: Spanned<String>, faults: &mut Faults) -> String {
    let text = query.value.trim().trim_end_matches(';').trim_end().to_owned();
    if text.is_empty() || text.len() > QUERY_LEN_MAX {
        faults.add(&query.place, format!("must be one query of 1 to {QUERY_LEN_MAX} bytes"));
    }
    text
}

/// Longest query of a signal: one that measures something is short.
const QUERY_LEN_MAX: usize = 4_096;

/// The modes of a cluster, and of a rule.
pub(super) const MODES: [(&str, Mode); 2] =
    [("enforce", Mode::Enforce), ("observe", Mode::Observe)];
