//! A password arrives in every arrangement of legs, in the form that both of them allow.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's own helper")]

use session::{CloseReason, Denial, Leg};

use crate::passwords::*;

/// How a password has come to the server.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    /// As the client says it to whom it trusts.
    Clear,
    SealedByClient,
    SealedBySluice,
    /// Sluice has refused.
    Refused,
    /// The client has said nothing.
    Unsaid,
}

/// What the client can trust, and what Sluice can.
#[derive(Debug, Clone, Copy)]
struct Safe {
    client: bool,
    server: bool,
}

fn arrangements() -> impl Iterator<Item = (Legs, Safe)> {
    let servers = [(Leg::Network, 0, false), (Leg::Network, 3, true), (Leg::Unix, 0, true)];
    [Leg::Network, Leg::Tls, Leg::Unix].into_iter().flat_map(move |client| {
        servers.into_iter().map(move |(backend, mode, server)| {
            let legs = Legs { client, backend, mode, server_offers_tls: true };
            (legs, Safe { client: client != Leg::Network, server })
        })
    })
}

/// A login to a server that wants this plugin and the whole password, of a client that begins with another.
fn login(legs: Legs, plugin: &[u8], begun: &[u8]) -> Came {
    let mut talk = Talk::new(legs, begun);
    let mut goes_on = talk.begin(0, &mut || 0);
    for _ in 0..10 {
        if talk.client_has_left() {
            return Came::Unsaid;
        }
        if !goes_on {
            let denied = CloseReason::LoginDenied(Denial::PasswordExposed);
            assert_eq!(talk.closed, Some(denied));
            return Came::Refused;
        }
        let (sequence, said) = talk.last_to_server().unwrap();
        let says = |part: &[u8]| said.windows(part.len()).any(|window| window == part);
        let answer = match said {
            _ if says(PASSWORD) => return Came::Clear,
            _ if says(SEALED_BY_CLIENT) => return Came::SealedByClient,
            _ if says(SEALED_BY_SLUICE) => return Came::SealedBySluice,
            [1 | 2] => KEY.to_vec(),
            // The first packet of all.
            _ if plugin == SHA256 && says(b"\0\x01\x01sha256_password\0") => KEY.to_vec(),
            _ if plugin == CACHING_SHA2 && (said == HASH || says(CACHING_SHA2)) => {
                FULL_AUTHENTICATION.to_vec()
            }
            [] => QUESTION.to_vec(),
            _ => switch(0xfe, plugin, SWITCHED),
        };
        goes_on = talk.server_says(sequence.wrapping_add(1), &answer, &mut || 0);
    }
    panic!("it never ends");
}

#[test]
fn a_password_arrives_in_the_form_that_both_legs_allow() {
    for (legs, safe) in arrangements() {
        for plugin in [CACHING_SHA2, SHA256, CLEAR, DIALOG, UNKNOWN] {
            let is_bare = [CLEAR, DIALOG, UNKNOWN].contains(&plugin);
            let expected = match (safe.client, safe.server) {
                (true, true) => Came::Clear,
                (true, false) if is_bare => Came::Refused,
                (true, false) => Came::SealedBySluice,
                (false, true | false) if is_bare => Came::Unsaid,
                (false, true) => Came::Clear,
                (false, false) => Came::SealedByClient,
            };
            for begun in [plugin, b"mysql_native_password", CACHING_SHA2, SHA256] {
                let name = (plugin.escape_ascii(), begun.escape_ascii());
                let came = login(legs, plugin, begun);
                assert_eq!(came, expected, "{legs:?}: {} after {}", name.0, name.1);
            }
        }
    }
}
