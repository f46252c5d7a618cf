//! Why an address cannot be listened on, with what can be done about it.

use std::fmt;
use std::io::{self, ErrorKind};

/// What an operator is told who wants something to listen there.
#[must_use]
pub fn cannot_listen(on: &impl fmt::Display, error: &io::Error) -> String {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => {
            ": another process listens there; if it is a Sluice that this one is to follow, start \
             with --takeover (takeover_socket in its file), else end it or choose another address \
             (`ss -ltnp` shows whose it is)"
        }
        ErrorKind::AddrNotAvailable => {
            ": this machine has no such address (`ip address` lists them)"
        }
        ErrorKind::PermissionDenied => {
            ": ports below 1024 need CAP_NET_BIND_SERVICE, a socket's folder the right to write"
        }
        ErrorKind::NotFound => ": the folder of the socket is not there",
        _ => "",
    };
    format!("cannot listen on {on}: {error}{remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_else_may_listen_is_named() {
        let error = io::Error::from(ErrorKind::AddrInUse);
        let told = cannot_listen(&"127.0.0.1:3307", &error);
        assert!(told.contains("127.0.0.1:3307") && told.contains("--takeover"), "{told}");
        let error = io::Error::other("something else");
        assert_eq!(cannot_listen(&"a:1", &error), "cannot listen on a:1: something else");
    }
}
