//! A greeting that no client answers is answered all the same.
//!
//! Servers count the connections of an address that end ahead of a login, and behind
//! `max_connect_errors` of them in a row (100, unless told) they refuse that address with error 1129,
//! for good. Behind Sluice it is the address of all clients: one that connects and leaves, a health
//! check of a load balancer or a scanner, would lock out the others. A login that is refused for its
//! user is not counted, whether anybody waits for the refusal or not.

use std::future::poll_fn;

use wire::capability::{
    CLIENT_MYSQL, CLIENT_PLUGIN_AUTH, CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION, Capabilities,
};
use wire::frame::{FrameHeader, split_frame};
use wire::handshake::{AuthReply, auth_reply};

use super::Connection;
use super::errors::LAST_WORDS_TIMEOUT;

impl Connection {
    /// Logs nobody in where the server still waits for its client. To be boxed.
    pub(super) async fn answer_greeting(&mut self) {
        // The client has nothing to wait for.
        drop(tokio::time::timeout(LAST_WORDS_TIMEOUT, self.client.shutdown()).await);
        let exchange = async {
            self.backend.write(&frame(FIRST_SEQUENCE, &nobody())).await.ok()?;
            for _ in 0..QUESTIONS_MAX {
                let answer = self.next_answer().await?;
                self.backend.write(&answer).await.ok()?;
            }
            Some(())
        };
        // Behind its time the server may count it.
        drop(tokio::time::timeout(LAST_WORDS_TIMEOUT, exchange).await);
    }

    /// What the server's next question is answered with; none when it has said its last word.
    async fn next_answer(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some((header, payload, rest)) = split_frame(self.backend.bytes()) {
                let len = self.backend.bytes().len().saturating_sub(rest.len());
                let said: &[u8] = match auth_reply(payload, Capabilities::default()) {
                    AuthReply::Ok | AuthReply::Err => return None,
                    // Anything shorter is no signature, and would be counted.
                    AuthReply::Plugin { name: b"client_ed25519", .. } => &[0; SIGNATURE_LEN],
                    AuthReply::Plugin { .. } | AuthReply::MoreData(_) | AuthReply::Other => &[],
                };
                let answer = frame(header.sequence.wrapping_add(1), said);
                self.backend.consume(len);
                return Some(answer);
            }
            if !matches!(poll_fn(|cx| self.backend.poll_fill(cx)).await, Ok(1..)) {
                return None;
            }
        }
    }
}

/// A login without a password, of a user that nobody has: the server's log names it.
fn nobody() -> Vec<u8> {
    let capabilities =
        CLIENT_MYSQL | CLIENT_PROTOCOL_41 | CLIENT_SECURE_CONNECTION | CLIENT_PLUGIN_AUTH;
    let mut response = capabilities.to_le_bytes().to_vec();
    response.extend_from_slice(&MAX_PACKET_LEN.to_le_bytes());
    response.push(UTF8MB4);
    response.extend_from_slice(&[0; 23]);
    response.extend_from_slice(NOBODY);
    response.extend_from_slice(b"\0\0caching_sha2_password\0");
    response
}

fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader { payload_len: payload.len(), sequence };
    [&header.encode(), payload].concat()
}

/// Servers' names of users have 32 characters at most.
const NOBODY: &[u8] = b"sluice-client-without-login";
/// What follows a greeting.
const FIRST_SEQUENCE: u8 = 1;
/// More than any plugin asks of who has no password.
const QUESTIONS_MAX: usize = 4;
const SIGNATURE_LEN: usize = 64;
const MAX_PACKET_LEN: u32 = 1 << 24;
/// `utf8mb4_general_ci`.
const UTF8MB4: u8 = 45;
