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

/// The legs, and what that to the server is in the end.
fn arrangements() -> impl Iterator<Item = (Legs, Leg)> {
    let servers = [(Leg::Network, 0), (Leg::Network, 3), (Leg::Unix, 0)];
    let clients = [(Leg::Network, false), (Leg::Tls, false), (Leg::Unix, false), (Leg::Unix, true)];
    clients.into_iter().flat_map(move |(client, trusts_socket)| {
        servers.into_iter().map(move |(backend, mode)| {
            let legs = Legs { client, backend, mode, server_offers_tls: true, trusts_socket };
            (legs, if mode == 3 { Leg::Tls } else { backend })
        })
    })
}

/// sha256_password of servers takes TLS for safe, and wants RSA over a Unix socket.
fn by_sha256(legs: Legs, server: Leg) -> Came {
    match (legs.client, server) {
        (_, Leg::Tls) => Came::Clear,
        (Leg::Tls, Leg::Network | Leg::Unix) => Came::SealedBySluice,
        (Leg::Unix, Leg::Network) if legs.trusts_socket => Came::SealedBySluice,
        // As it is without Sluice: the server refuses it.
        (Leg::Unix, Leg::Unix) if legs.trusts_socket => Came::Clear,
        (Leg::Network | Leg::Unix, Leg::Network | Leg::Unix) => Came::SealedByClient,
    }
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
    for (legs, server) in arrangements() {
        for plugin in [CACHING_SHA2, SHA256, CLEAR, DIALOG, UNKNOWN] {
            let is_bare = [CLEAR, DIALOG, UNKNOWN].contains(&plugin);
            let safe = (legs.client != Leg::Network, server != Leg::Network);
            let expected = match safe {
                _ if plugin == SHA256 => by_sha256(legs, server),
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
