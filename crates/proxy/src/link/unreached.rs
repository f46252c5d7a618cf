//! Why a server cannot be connected to, in words that say where to look.

use std::io::{self, ErrorKind};

use policy::ServerAddress;

/// What the system's error says of the way to `server`, which is `host:port` or `unix:/path`.
pub(crate) fn why(error: &io::Error, server: &str) -> String {
    let is_socket = matches!(ServerAddress::of(server), ServerAddress::Unix(_));
    match error.kind() {
        ErrorKind::ConnectionRefused => format!("nothing listens at {server}"),
        ErrorKind::NotFound if is_socket => format!("there is no socket at {server}"),
        ErrorKind::PermissionDenied if is_socket => {
            format!("no permission to open {server}")
        }
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            format!("there is no way to {server}: {error}")
        }
        ErrorKind::TimedOut => format!("{server} does not answer: {error}"),
        ErrorKind::UnexpectedEof => closed(server),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            format!("{}: {error}", closed(server))
        }
        _ if error.to_string().contains("lookup address") => {
            format!("the name in {server} leads to no address: {error}")
        }
        _ => format!("{server}: {error}"),
    }
}

/// The library's words for it are about TLS, and where to read about its close_notify.
pub(crate) fn closed(server: &str) -> String {
    format!("{server} has closed the connection")
}

/// What a server says unasked is why it ends the session, and the library reads it as the answer to what
/// is asked next.
pub(crate) fn goodbye(server: &str) -> String {
    format!(
        "{server} had ended the session before it was asked (error 4031, if that was idle for longer \
         than wait_timeout)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_was_killed_is_told_without_the_librarys_manual() {
        let message = "peer closed connection without sending TLS close_notify: https://docs.rs/";
        let killed = io::Error::new(ErrorKind::UnexpectedEof, message);
        assert_eq!(why(&killed, "db1:3306"), "db1:3306 has closed the connection");
    }

    #[test]
    fn a_port_where_nobody_listens_is_named() {
        let refused = io::Error::from(ErrorKind::ConnectionRefused);
        assert_eq!(why(&refused, "db1:3306"), "nothing listens at db1:3306");
        let missing = io::Error::from(ErrorKind::NotFound);
        assert_eq!(why(&missing, "unix:/run/a"), "there is no socket at unix:/run/a");
    }
}
