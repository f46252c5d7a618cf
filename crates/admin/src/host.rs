//! By which name a request calls the door.
//!
//! A page of another site can have a name of its own mean this machine's address (DNS rebinding),
//! and its scripts then may read what they are answered, for the browser takes it for the same
//! site. It cannot have the browser call the door by another name than its own. So names that nobody gave
//! the door are refused. Over TLS the browser has seen to it already.

use std::net::IpAddr;

use axum::http::Version;
use axum::http::header::HOST;
use axum::http::request::Parts;

use crate::refusal::{Error, Refusal};

/// The name that a request calls the door by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CalledBy {
    /// None: an old client, and no browser.
    Nothing,
    /// An address, `localhost`, or a name that was given to it.
    Ours,
    /// A name without a dot, which no site on the internet has.
    Neighbour,
    /// Another one.
    Foreign(String),
}

/// The names that were given to the door.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    given: Vec<String>,
}

impl Names {
    /// These, in lower case, and this machine's.
    pub(crate) fn new(listed: &[String]) -> Self {
        let machine = std::fs::read_to_string(HOSTNAME).unwrap_or_default();
        let machine = machine.trim().to_ascii_lowercase();
        let machine = (!machine.is_empty()).then_some(machine);
        Self { given: listed.iter().cloned().chain(machine).collect() }
    }

    /// How `request` calls the door.
    ///
    /// # Errors
    /// When that cannot be told.
    pub(crate) fn called_by(&self, request: &Parts) -> Result<CalledBy, Refusal> {
        let mut named = request.headers.get_all(HOST).iter();
        let name = match (named.next(), named.next()) {
            (None, _) if request.version < Version::HTTP_11 => return Ok(CalledBy::Nothing),
            (None, _) => return Err(bad("a request of HTTP/1.1 has a Host")),
            (Some(_), Some(_)) => return Err(bad("there are several Hosts")),
            (Some(name), None) => name,
        };
        let name = name.to_str().map_err(|_| bad("the Host cannot be read"))?;
        // `GET http://host/path`, as to a proxy: the host in it counts as much.
        let target = request.uri.authority().map(|authority| self.sort(authority.as_str()));
        match target {
            Some(foreign @ CalledBy::Foreign(_)) => Ok(foreign),
            Some(CalledBy::Neighbour) => Ok(match self.sort(name) {
                CalledBy::Ours => CalledBy::Neighbour,
                other @ (CalledBy::Nothing | CalledBy::Neighbour | CalledBy::Foreign(_)) => other,
            }),
            Some(CalledBy::Nothing | CalledBy::Ours) | None => Ok(self.sort(name)),
        }
    }

    fn sort(&self, host: &str) -> CalledBy {
        let name = without_port(host).to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        if bare.parse::<IpAddr>().is_ok() || name == "localhost" || self.given.contains(&name) {
            CalledBy::Ours
        } else if !name.is_empty() && !name.contains('.') {
            CalledBy::Neighbour
        } else {
            CalledBy::Foreign(name)
        }
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !is_v6(host) => name,
        Some(_) | None => host,
    }
}

/// An address of IPv6 without its brackets has colons and no port.
fn is_v6(host: &str) -> bool {
    host.parse::<std::net::Ipv6Addr>().is_ok()
}

fn bad(why: &str) -> Refusal {
    Refusal::new(Error::BadRequest, why)
}

/// Linux's; elsewhere the name is not known.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names { given: vec!["db1.example".to_owned()] }
    }

    #[test]
    fn addresses_and_given_names_are_ours_and_others_are_not() {
        for ours in [
            "127.0.0.1",
            "10.0.0.5:9307",
            "[::1]:9307",
            "[::1]",
            "::1",
            "localhost",
            "LocalHost:80",
            "DB1.example:9307",
        ] {
            assert_eq!(names().sort(ours), CalledBy::Ours, "{ours}");
        }
        for neighbour in ["sluice", "sluice:9307", "x"] {
            assert_eq!(names().sort(neighbour), CalledBy::Neighbour, "{neighbour}");
        }
        for foreign in [
            "",
            ":9307",
            "evil.example",
            "db1.example.evil.example:9307",
            "127.0.0.1.evil.example",
            "localhost.",
            "db1.example:80:80",
        ] {
            assert!(matches!(names().sort(foreign), CalledBy::Foreign(_)), "{foreign}");
        }
    }
}
