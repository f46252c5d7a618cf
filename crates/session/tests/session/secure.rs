//! TLS and passwords: what goes where, under which sequence id.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's own helper")]

use session::{CloseReason, Crypt, Denial, Password, Side};

use crate::driver::*;

const SSL: u32 = 0x800;
const CAPS: u32 = 0x0108_8200;
const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";

/// A response with this plugin and its answer, under this sequence id.
fn answered(sequence: u8, caps: u32, plugin: &[u8], answer: &[u8]) -> Vec<u8> {
    let mut payload = fixed(caps);
    payload.extend(b"app\0");
    payload.push(u8::try_from(answer.len()).unwrap());
    payload.extend(answer);
    payload.extend(plugin);
    payload.push(0);
    frame(sequence, &payload)
}

fn fixed(caps: u32) -> Vec<u8> {
    let mut payload = (caps | 1).to_le_bytes().to_vec();
    payload.extend([0, 0, 0, 1, 255]);
    payload.extend([0; 23]);
    payload
}

fn switch(sequence: u8, plugin: &[u8]) -> Vec<u8> {
    frame(sequence, &[&b"\xfe"[..], plugin, b"\0", NONCE, b"\0"].concat())
}

fn masked(password: &[u8]) -> Vec<u8> {
    password.iter().zip(NONCE.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

/// A client in TLS, and a server in the clear: the response is still to come.
fn exposed() -> Driver {
    let mut driver = Driver::with_cluster("backend_tls: { mode: disabled }");
    driver.backend.extend(greeting(CAPS));
    driver.run();
    driver.client.extend(frame(1, &fixed(CAPS | SSL)));
    assert!(matches!(driver.run(), Stop::StartTls(Side::Client)));
    driver.session.handle_encrypted(Side::Client);
    driver.to_client.clear();
    driver
}

/// A client in the clear, and a server in TLS that awaits its response.
fn hidden(response: &[u8]) -> Driver {
    let mut driver = Driver::with_cluster("backend_tls: { mode: required }");
    driver.backend.extend(greeting(CAPS | SSL));
    driver.run();
    driver.client.extend(response);
    assert!(matches!(driver.run(), Stop::StartTls(Side::Backend)));
    assert_eq!(driver.to_backend, frame(1, &fixed(CAPS | SSL)), "an SSLRequest");
    driver.session.handle_encrypted(Side::Backend);
    driver.to_client.clear();
    driver.to_backend.clear();
    driver
}

impl Driver {
    /// What has been sent to the server since the last look.
    fn sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.to_backend)
    }

    /// What has been sent to the client since the last look.
    fn shown(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.to_client)
    }

    fn server_says(&mut self, bytes: &[u8]) -> Stop {
        self.backend.extend(bytes);
        self.run()
    }

    fn client_says(&mut self, bytes: &[u8]) -> Stop {
        self.client.extend(bytes);
        self.run()
    }

    /// The server has sent its key: encrypts by turning the bytes round.
    fn seal(&mut self, stop: Stop, password: &[u8]) {
        let Stop::Crypt(Crypt::Seal(sealing)) = stop else { panic!("{stop:?}") };
        assert_eq!(sealing.key, b"PEM");
        assert_eq!(sealing.masked.bytes(), masked(password));
        assert!(!format!("{sealing:?}").contains("secret"));
        self.session.handle_sealed(Some(b"sealed".to_vec()));
        self.run();
    }
}

#[test]
fn sequence_ids_count_on_each_leg_by_itself() {
    let mut driver = exposed();
    driver.client_says(&answered(2, CAPS | SSL, b"mysql_native_password", b"hash"));
    assert_eq!(driver.sent(), answered(1, CAPS, b"mysql_native_password", b"hash"));
    driver.server_says(&switch(2, b"client_ed25519"));
    assert_eq!(driver.shown(), switch(3, b"client_ed25519"));
    driver.client_says(&frame(4, b"signature"));
    assert_eq!(driver.sent(), frame(3, b"signature"));
    assert!(matches!(driver.server_says(&ok(4, STATUS_AUTOCOMMIT)), Stop::LoggedIn));
    assert_eq!(driver.shown(), ok(5, STATUS_AUTOCOMMIT));
}

#[test]
fn a_password_from_tls_is_encrypted_for_a_server_in_the_clear() {
    let mut driver = exposed();
    driver.client_says(&answered(2, CAPS | SSL, b"caching_sha2_password", b"hash"));
    driver.server_says(&switch(2, b"caching_sha2_password"));
    driver.client_says(&frame(4, b"hash"));
    driver.server_says(&frame(4, b"\x01\x04"));
    driver.sent();
    driver.shown();
    driver.client_says(&frame(6, b"secret\0"));
    assert_eq!(driver.sent(), frame(5, b"\x02"), "the request for the key");
    let stop = driver.server_says(&frame(6, b"\x01PEM"));
    driver.seal(stop, b"secret\0");
    assert_eq!(driver.sent(), frame(7, b"sealed"));
    assert!(matches!(driver.server_says(&ok(8, STATUS_AUTOCOMMIT)), Stop::LoggedIn));
    assert_eq!(driver.shown(), ok(7, STATUS_AUTOCOMMIT), "one packet after the password");
}

#[test]
fn a_server_that_refuses_instead_of_sending_its_key_is_heard() {
    let mut driver = exposed();
    driver.client_says(&answered(2, CAPS | SSL, b"caching_sha2_password", b"hash"));
    driver.server_says(&frame(2, b"\x01\x04"));
    driver.client_says(&frame(4, b"secret\0"));
    driver.shown();
    let stop = driver.server_says(&err(4, 1045));
    assert!(matches!(stop, Stop::Close(CloseReason::LoginRefused)), "{stop:?}");
    assert_eq!(driver.shown(), err(5, 1045));
}

#[test]
fn a_password_in_the_first_packet_does_not_go_on_in_the_clear() {
    let mut driver = exposed();
    driver.client_says(&answered(2, CAPS | SSL, b"sha256_password", b"secret\0"));
    assert_eq!(driver.sent(), answered(1, CAPS, b"sluice_asks_again", b""));
    driver.server_says(&switch(2, b"sha256_password"));
    assert_eq!(driver.sent(), frame(3, b"\x01"));
    let stop = driver.server_says(&frame(4, b"\x01PEM"));
    driver.seal(stop, b"secret\0");
    assert_eq!(driver.sent(), frame(5, b"sealed"));
    assert!(driver.shown().is_empty(), "the client has said everything");
    driver.server_says(&ok(6, STATUS_AUTOCOMMIT));
    assert_eq!(driver.shown(), ok(3, STATUS_AUTOCOMMIT));
}

#[test]
fn a_password_in_the_first_packet_is_forgotten_when_the_account_needs_another_plugin() {
    let mut driver = exposed();
    driver.client_says(&answered(2, CAPS | SSL, b"sha256_password", b"secret\0"));
    driver.server_says(&switch(2, b"mysql_native_password"));
    assert_eq!(driver.shown(), switch(3, b"mysql_native_password"));
    driver.sent();
    driver.client_says(&frame(4, b"hash"));
    assert_eq!(driver.sent(), frame(3, b"hash"));
}

#[test]
fn a_plugin_that_knows_no_encryption_is_refused_where_it_would_be_overheard() {
    for plugin in [&b"mysql_clear_password"[..], b"dialog", b"authentication_openid_connect_client"]
    {
        let mut driver = exposed();
        driver.client_says(&answered(2, CAPS | SSL, b"caching_sha2_password", b"hash"));
        let stop = driver.server_says(&switch(2, plugin));
        let denied = CloseReason::LoginDenied(Denial::PasswordExposed);
        assert!(matches!(stop, Stop::Close(reason) if reason == denied), "{stop:?}");
        let shown = driver.shown();
        assert_eq!(shown.get(3..7), Some(&b"\x03\xff\x13\x04"[..]), "sequence id and errno 1043");
    }
}

#[test]
fn a_client_in_the_clear_is_sent_sluices_key_where_the_server_would_misread_its_request() {
    let response = answered(1, CAPS, b"caching_sha2_password", b"hash");
    let mut driver = hidden(&response);
    driver.run();
    assert_eq!(driver.sent(), answered(2, CAPS | SSL, b"caching_sha2_password", b"hash"));
    driver.server_says(&switch(3, b"caching_sha2_password"));
    driver.client_says(&frame(3, b"hash"));
    driver.server_says(&frame(5, b"\x01\x04"));
    driver.sent();
    driver.shown();
    assert!(matches!(driver.client_says(&frame(5, b"\x02")), Stop::Crypt(Crypt::ShowKey)));
    driver.session.handle_own_key(b"OWN");
    driver.run();
    assert_eq!(driver.shown(), frame(6, b"\x01OWN"));
    let stop = driver.client_says(&frame(7, b"sealed"));
    assert!(matches!(&stop, Stop::Crypt(Crypt::Open(sealed)) if sealed == b"sealed"), "{stop:?}");
    driver.session.handle_opened(Some(Password::new(masked(b"secret\0"))));
    driver.run();
    assert_eq!(driver.sent(), frame(6, b"secret\0"), "inside TLS");
    driver.server_says(&ok(7, STATUS_AUTOCOMMIT));
    assert_eq!(driver.shown(), ok(8, STATUS_AUTOCOMMIT));
}

#[test]
fn a_request_for_the_key_in_the_first_packet_is_answered_when_the_account_needs_it() {
    let mut driver = hidden(&answered(1, CAPS, b"sha256_password", b"\x01"));
    driver.run();
    assert_eq!(driver.sent(), answered(2, CAPS | SSL, b"sluice_asks_again", b""));
    let stop = driver.server_says(&switch(3, b"sha256_password"));
    assert!(matches!(stop, Stop::Crypt(Crypt::ShowKey)), "{stop:?}");
    driver.session.handle_own_key(b"OWN");
    driver.run();
    assert_eq!(driver.shown(), frame(2, b"\x01OWN"));
    driver.client_says(&frame(3, b"sealed"));
    // This client has never seen the switch: it masks with the greeting's nonce.
    let greeted = b"saltsaltsaltsaltsalt";
    let masked = b"secret\0".iter().zip(greeted).map(|(byte, mask)| byte ^ mask).collect();
    driver.session.handle_opened(Some(Password::new(masked)));
    driver.run();
    assert_eq!(driver.sent(), frame(4, b"secret\0"));
    driver.server_says(&ok(5, STATUS_AUTOCOMMIT));
    assert_eq!(driver.shown(), ok(4, STATUS_AUTOCOMMIT));
}

#[test]
fn a_password_under_another_key_is_refused_with_a_reason() {
    let mut driver = hidden(&answered(1, CAPS, b"caching_sha2_password", b"hash"));
    driver.run();
    driver.server_says(&frame(3, b"\x01\x04"));
    driver.shown();
    let stop = driver.client_says(&frame(3, b"sealed with the server's own key"));
    assert!(matches!(stop, Stop::Crypt(Crypt::Open(_))), "{stop:?}");
    driver.session.handle_opened(None);
    let stop = driver.run();
    let denied = CloseReason::LoginDenied(Denial::PasswordUnreadable);
    assert!(matches!(stop, Stop::Close(reason) if reason == denied), "{stop:?}");
    let shown = driver.shown();
    assert_eq!(shown.get(3..7), Some(&b"\x04\xff\x15\x04"[..]), "sequence id and errno 1045");
}

#[test]
fn a_server_whose_tls_fails_is_named_to_the_client() {
    let mut driver = Driver::with_cluster("backend_tls: { mode: required }");
    driver.server_says(&greeting(CAPS | SSL));
    driver.shown();
    let stop = driver.client_says(&answered(1, CAPS, b"caching_sha2_password", b"hash"));
    assert!(matches!(stop, Stop::StartTls(Side::Backend)), "{stop:?}");
    driver.session.handle_not_encrypted("UnknownIssuer".into());
    let stop = driver.run();
    let denied = CloseReason::LoginDenied(Denial::ServerTlsFailed);
    assert!(matches!(stop, Stop::Close(reason) if reason == denied), "{stop:?}");
    let shown = driver.shown();
    assert_eq!(shown.get(3), Some(&2));
    assert!(shown.ends_with(b"failed: UnknownIssuer"), "{}", shown.escape_ascii());
}

#[test]
fn tls_is_asked_for_once() {
    let mut driver = exposed();
    let stop = driver.client_says(&frame(2, &fixed(CAPS | SSL)));
    let denied = CloseReason::LoginDenied(Denial::BadHandshake);
    assert!(matches!(stop, Stop::Close(reason) if reason == denied), "{stop:?}");
}

/// SESSION_TRACK.
const TRACKING: u32 = 0x0080_0000;

/// An OK that reports `redirect_url`.
fn redirecting(sequence: u8) -> Vec<u8> {
    let pair = b"\x0credirect_url\x09mysql://b";
    let entry = [&[0, 23][..], pair].concat();
    frame(sequence, &[&[0, 0, 0, 2, 0x40, 0, 0, 0, 25][..], &entry].concat())
}

#[test]
fn a_redirection_is_left_out_of_the_login() {
    let mut driver = Driver::new(UNGATED);
    driver.server_says(&greeting(CAPS | TRACKING));
    driver.client_says(&response(CAPS | TRACKING));
    driver.shown();
    assert!(matches!(driver.server_says(&redirecting(2)), Stop::LoggedIn));
    assert_eq!(driver.shown(), frame(2, &[0, 0, 0, 2, 0, 0, 0, 0]));
}

#[test]
fn a_redirection_can_be_refused() {
    let mut driver = Driver::with_cluster("redirect: deny");
    driver.server_says(&greeting(CAPS | TRACKING));
    driver.client_says(&response(CAPS | TRACKING));
    driver.shown();
    let stop = driver.server_says(&redirecting(2));
    let denied = CloseReason::LoginDenied(Denial::Redirected);
    assert!(matches!(stop, Stop::Close(reason) if reason == denied), "{stop:?}");
    assert_eq!(driver.shown().get(3..7), Some(&b"\x02\xff\x13\x04"[..]));
}

#[test]
fn a_server_that_gives_up_on_a_silent_client_is_heard() {
    let mut driver = exposed();
    let stop = driver.server_says(&err(1, 1159));
    assert!(matches!(stop, Stop::Close(CloseReason::LoginRefused)), "{stop:?}");
    assert_eq!(driver.shown(), err(2, 1159));
}

#[test]
fn an_ok_ahead_of_the_response_is_not_the_servers() {
    let mut driver = exposed();
    let stop = driver.server_says(&ok(2, STATUS_AUTOCOMMIT));
    assert!(matches!(stop, Stop::Close(CloseReason::BackendProtocol)), "{stop:?}");
    assert!(driver.shown().is_empty());
}

#[test]
fn a_server_cannot_have_a_password_said_to_another_question() {
    for second in [frame(3, b"\x01\x04"), switch(3, b"mysql_native_password")] {
        let mut driver = exposed();
        driver.client_says(&answered(2, CAPS | SSL, b"caching_sha2_password", b"hash"));
        driver.server_says(&frame(2, b"\x01\x04"));
        let stop = driver.server_says(&second);
        assert!(matches!(stop, Stop::Close(CloseReason::BackendProtocol)), "{stop:?}");
    }
}

#[test]
fn a_server_cannot_have_a_password_taken_for_a_command() {
    let mut driver = exposed();
    driver.client_says(&answered(2, CAPS | SSL, b"caching_sha2_password", b"hash"));
    // The client would answer with sequence id 0.
    let stop = driver.server_says(&frame(254, b"\x01\x04"));
    assert!(matches!(stop, Stop::Close(CloseReason::BackendProtocol)), "{stop:?}");
}

/// The login is refused with sequence id 3 because of this plugin.
fn assert_exposed(driver: &mut Driver, stop: &Stop, plugin: &str) {
    let denied = CloseReason::LoginDenied(Denial::PasswordExposed);
    assert!(matches!(stop, Stop::Close(reason) if *reason == denied), "{stop:?}");
    let shown = driver.shown();
    assert_eq!(shown.get(3..7), Some(&b"\x03\xff\x13\x04"[..]));
    let named = format!("may send the password as it is: {plugin}");
    assert!(shown.ends_with(named.as_bytes()), "{}", shown.escape_ascii());
}

#[test]
fn a_plugin_that_nobody_knows_is_not_let_say_what_it_likes_in_the_clear() {
    for (plugin, named) in [
        (&b"corporate_sso"[..], "corporate_sso"),
        (b"dialog", "dialog"),
        (b"mysql_old_password", "mysql_old_password"),
        (b"authentication_oci_client", "authentication_oci_client"),
        (b"a\nb\xff", "a\\nb\\xff"),
    ] {
        let mut driver = exposed();
        driver.client_says(&answered(2, CAPS | SSL, b"mysql_native_password", b"hash"));
        let stop = driver.server_says(&switch(2, plugin));
        assert_exposed(&mut driver, &stop, named);
    }
    for plugin in [
        &b"client_ed25519"[..],
        b"parsec",
        b"auth_gssapi_client",
        b"authentication_kerberos_client",
        b"authentication_ldap_sasl_client",
        b"authentication_webauthn_client",
    ] {
        let mut driver = exposed();
        driver.client_says(&answered(2, CAPS | SSL, b"mysql_native_password", b"hash"));
        let stop = driver.server_says(&switch(2, plugin));
        assert!(matches!(stop, Stop::Reads(_)), "{stop:?}");
        assert_eq!(driver.shown(), switch(3, plugin));
    }
}

#[test]
fn a_plugin_that_asks_for_the_password_later_is_not_let_ask_in_the_clear() {
    for (plugin, named) in [(&b"dialog"[..], "dialog"), (b"corporate_sso", "corporate_sso")] {
        for question in [&b"\x04Password: "[..], b"\x01Password: "] {
            // It has nothing to say at first: the server may go on with it at once.
            let mut driver = exposed();
            driver.client_says(&answered(2, CAPS | SSL, plugin, b""));
            let stop = driver.server_says(&frame(2, question));
            assert_exposed(&mut driver, &stop, named);
        }
    }
    let mut driver = exposed();
    driver.client_says(&answered(2, CAPS | SSL, b"corporate_sso", b"secret"));
    let sent = driver.to_backend.escape_ascii().to_string();
    assert!(!sent.contains("secret") && !sent.contains("corporate_sso"), "{sent}");
    let stop = driver.client_says(&frame(3, b"secret"));
    let denied = CloseReason::LoginDenied(Denial::PasswordExposed);
    assert!(matches!(stop, Stop::Close(reason) if reason == denied), "unasked: {stop:?}");
}

#[test]
fn a_password_said_to_another_plugin_is_said_again_to_the_one_that_the_server_wants() {
    for plugin in [&b"mysql_clear_password"[..], b"dialog"] {
        let mut driver = exposed();
        driver.client_says(&answered(2, CAPS | SSL, plugin, b"token\0"));
        driver.server_says(&switch(2, b"sha256_password"));
        assert_eq!(driver.shown(), switch(3, b"sha256_password"), "the client is told");
        driver.client_says(&frame(4, b"secret\0"));
        let stop = driver.server_says(&frame(4, b"\x01PEM"));
        let Stop::Crypt(Crypt::Seal(sealing)) = stop else { panic!("{stop:?}") };
        assert_eq!(sealing.masked.bytes(), masked(b"secret\0"));
    }
}
