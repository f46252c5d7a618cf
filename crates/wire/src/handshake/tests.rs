//! Handshake packets, as servers and drivers send them.

use super::*;
use crate::capability::{
    CLIENT_COMPRESS, CLIENT_CONNECT_ATTRS, CLIENT_CONNECT_WITH_DB,
    CLIENT_MULTI_FACTOR_AUTHENTICATION, CLIENT_MYSQL, CLIENT_PLUGIN_AUTH,
    CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA, CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION,
    CLIENT_SSL, Capabilities,
};
use crate::error::ProtocolError;

/// MySQL 9: all capabilities but those reserved, caching_sha2_password.
fn mysql_greeting() -> Vec<u8> {
    let mut bytes = b"\x0a9.7.4\0".to_vec();
    bytes.extend_from_slice(b"\x0b\0\0\0AbCdEfGh\0");
    bytes.extend_from_slice(b"\xff\xff\xff\x02\0\xff\xdf\x15");
    bytes.extend_from_slice(&[0; 10]);
    bytes.extend_from_slice(b"IjKlMnOpQrSt\0caching_sha2_password\0");
    bytes
}

/// MariaDB 10.11: bit 0 clear, extended word 0x1d.
fn mariadb_greeting() -> Vec<u8> {
    let mut bytes = b"\x0a5.5.5-10.11.19-MariaDB-log\0".to_vec();
    bytes.extend_from_slice(b"\x2a\0\0\0AbCdEfGh\0");
    bytes.extend_from_slice(b"\xfe\xff\x2d\x02\0\xff\x81\x15");
    bytes.extend_from_slice(&[0; 6]);
    bytes.extend_from_slice(b"\x1d\0\0\0IjKlMnOpQrSt\0mysql_native_password\0");
    bytes
}

fn greeting(payload: &[u8]) -> Greeting<'_> {
    match parse_server_hello(payload).expect("readable") {
        ServerHello::Greeting(greeting) => greeting,
        ServerHello::Error(error) => panic!("{error:?}"),
    }
}

fn response(payload: &[u8], server: Capabilities) -> HandshakeResponse<'_> {
    match parse_client_hello(payload, server).expect("readable") {
        ClientHello::Response(response) => response,
        ClientHello::SslRequest(caps) => panic!("{caps:?}"),
    }
}

const MYSQL: Capabilities = Capabilities { base: 0xdfff_ffff, mariadb: 0 };
const MARIADB: Capabilities = Capabilities { base: 0x81ff_fffe, mariadb: 0x1d };
const RESPONSE_CAPS: u32 = CLIENT_PROTOCOL_41
    | CLIENT_SECURE_CONNECTION
    | CLIENT_CONNECT_WITH_DB
    | CLIENT_PLUGIN_AUTH
    | CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
    | CLIENT_CONNECT_ATTRS;

fn fixed_part(base: u32, mariadb: u32) -> Vec<u8> {
    let mut bytes = base.to_le_bytes().to_vec();
    bytes.extend_from_slice(b"\0\0\0\x01\xff");
    bytes.extend_from_slice(&[0; 19]);
    bytes.extend_from_slice(&mariadb.to_le_bytes());
    bytes
}

#[test]
fn a_mysql_greeting_is_read() {
    let bytes = mysql_greeting();
    let greeting = greeting(&bytes);
    assert_eq!(greeting.server_version, b"9.7.4");
    assert_eq!(greeting.connection_id, 11);
    assert_eq!(greeting.capabilities, MYSQL);
    assert_eq!((greeting.charset, greeting.status), (0xff, 2));
    assert_eq!(greeting.auth_plugin, b"caching_sha2_password");
    assert_eq!(greeting.scramble.concat(), b"AbCdEfGhIjKlMnOpQrSt");
    assert!(!greeting.is_mariadb());
    assert_eq!((greeting.major_version(), greeting.minor_version()), (9, 7));
}

#[test]
fn a_mariadb_greeting_is_read() {
    let bytes = mariadb_greeting();
    let greeting = greeting(&bytes);
    assert_eq!(greeting.connection_id, 42);
    assert_eq!(greeting.capabilities, MARIADB);
    assert_eq!(greeting.auth_plugin, b"mysql_native_password");
    assert!(greeting.is_mariadb());
    assert_eq!((greeting.major_version(), greeting.minor_version()), (10, 11));
}

#[test]
fn an_odd_version_reads_as_zero() {
    let bytes = [&b"\x0aunknown\0"[..], &mysql_greeting()[7..]].concat();
    let greeting = greeting(&bytes);
    assert_eq!((greeting.major_version(), greeting.minor_version()), (0, 0));
}

#[test]
fn the_error_of_a_full_server_is_read() {
    let hello = parse_server_hello(b"\xff\x10\x04Too many connections").unwrap();
    let ServerHello::Error(error) = hello else { panic!("{hello:?}") };
    assert_eq!((error.code, error.sqlstate), (1040, None));
}

#[test]
fn what_is_no_greeting_is_refused() {
    for bytes in
        [&b""[..], b"\x09", b"\x0a9.7.4", b"\x0a9.7.4\0\x01\0\0\0AbCdEfGh\0\xff\xff\xff", b"\xff"]
    {
        assert_eq!(parse_server_hello(bytes), Err(ProtocolError::GreetingMalformed));
    }
}

#[test]
fn patching_a_greeting_changes_the_capabilities_only() {
    for original in [mysql_greeting(), mariadb_greeting()] {
        let mut patched = original.clone();
        let before = greeting(&original);
        patch_greeting(&mut patched, before.capabilities.followable()).unwrap();
        let after = greeting(&patched);
        assert_eq!(after.capabilities, before.capabilities.followable());
        assert_eq!(after.capabilities.is_mariadb_server(), before.is_mariadb());
        assert_eq!(Greeting { capabilities: before.capabilities, ..after }, before);
        patch_greeting(&mut patched, before.capabilities).unwrap();
        assert_eq!(patched, original);
    }
    assert!(patch_greeting(&mut [0x0a, b'9'], MYSQL).is_err());
}

#[test]
fn patching_a_mysql_greeting_leaves_the_filler_alone() {
    let mut patched = mysql_greeting();
    patch_greeting(&mut patched, Capabilities { base: 0, mariadb: u32::MAX }).unwrap();
    assert_eq!(greeting(&patched).capabilities, Capabilities { base: CLIENT_MYSQL, mariadb: 0 });
    assert_eq!(patched[7 + 21..7 + 31], [0; 10]);
}

#[test]
fn a_handshake_response_is_read() {
    let mut bytes = fixed_part(RESPONSE_CAPS | CLIENT_MYSQL, 0x1d);
    bytes.extend_from_slice(b"etl\0\x03abcshop\0caching_sha2_password\0");
    bytes.extend_from_slice(b"\x16\x0cprogram_name\x08loader.sh");
    let response = response(&bytes, MARIADB);
    assert_eq!(response.capabilities.mariadb, 0, "a client with bit 0 has no extended word");
    assert_eq!(response.max_packet_len, 0x0100_0000);
    assert_eq!(response.user, b"etl");
    assert_eq!(response.database, Some(&b"shop"[..]));
    assert_eq!(response.auth_plugin, Some(&b"caching_sha2_password"[..]));
    let attributes: Vec<_> = response.attributes.iter().collect();
    assert_eq!(attributes, [(&b"program_name"[..], &b"loader.s"[..])]);
}

#[test]
fn the_extended_word_counts_between_mariadb_and_its_client() {
    let bytes = fixed_part(RESPONSE_CAPS, 0x1d);
    assert_eq!(response(&bytes, MARIADB).capabilities.mariadb, 0x1d);
    assert_eq!(response(&bytes, MYSQL).capabilities.mariadb, 0);
}

#[test]
fn a_response_with_a_length_byte_is_read() {
    let caps = CLIENT_PROTOCOL_41 | CLIENT_SECURE_CONNECTION | CLIENT_CONNECT_WITH_DB | 1;
    let mut bytes = fixed_part(caps, 0);
    bytes.extend_from_slice(b"u\0\xfb");
    bytes.extend_from_slice(&[1; 0xfb]);
    bytes.extend_from_slice(b"db\0");
    assert_eq!(response(&bytes, MYSQL).database, Some(&b"db"[..]));
}

#[test]
fn a_field_that_cannot_be_read_leaves_the_rest_empty() {
    let mut whole = fixed_part(RESPONSE_CAPS | CLIENT_MYSQL, 0);
    whole.extend_from_slice(b"etl\0\x03abcshop\0plugin\0\x05\x01a\x01bX");
    for len in 32..whole.len() {
        let response = response(&whole[..len], MYSQL);
        let expected_user: &[u8] = if len < 36 { b"" } else { b"etl" };
        assert_eq!(response.user, expected_user, "{len}");
        assert_eq!(response.database.is_some(), len >= 45, "{len}");
        assert_eq!(response.auth_plugin.is_some(), len >= 52, "{len}");
    }
    let cut = response(&whole, MYSQL);
    assert_eq!(cut.attributes.iter().collect::<Vec<_>>(), [(&b"a"[..], &b"b"[..])]);
}

#[test]
fn attributes_are_looked_at_up_to_their_bound() {
    let mut bytes = fixed_part(CLIENT_PROTOCOL_41 | CLIENT_CONNECT_ATTRS | 1, 0);
    bytes.extend_from_slice(b"u\0\0\xfd\0\0\x02");
    bytes.resize(bytes.len() + 0x02_0000, 0);
    assert_eq!(response(&bytes, MYSQL).attributes.into_iter().count(), ATTRIBUTES_LEN_MAX / 2);
}

#[test]
fn a_short_or_ancient_response_is_refused() {
    let bytes = fixed_part(RESPONSE_CAPS, 0);
    assert_eq!(parse_client_hello(&bytes[..31], MYSQL), Err(ProtocolError::ClientHelloMalformed));
    assert_eq!(parse_client_hello(b"\0", MYSQL), Err(ProtocolError::ClientHelloMalformed));
    assert_eq!(
        parse_client_hello(b"\x05\x24\0\0\x01root\0", MYSQL),
        Err(ProtocolError::ClientTooOld)
    );
}

#[test]
fn a_request_for_tls_is_told_from_a_response() {
    let bytes = fixed_part(RESPONSE_CAPS | CLIENT_SSL, 0);
    let expected = Capabilities { base: RESPONSE_CAPS | CLIENT_SSL, mariadb: 0 };
    assert_eq!(parse_client_hello(&bytes, MYSQL), Ok(ClientHello::SslRequest(expected)));
    let longer = [&bytes[..], b"root\0"].concat();
    assert_eq!(response(&longer, MYSQL).user, b"root");
}

#[test]
fn patching_a_response_changes_the_capabilities_only() {
    let mut bytes = fixed_part(RESPONSE_CAPS | CLIENT_SSL | CLIENT_COMPRESS, 0x3f);
    bytes.extend_from_slice(b"etl\0\x03abcshop\0plugin\0");
    let sent = response(&bytes, MARIADB).capabilities;
    let agreed = sent.intersect(MARIADB.followable());
    let mut patched = bytes.clone();
    patch_client_hello(&mut patched, agreed).unwrap();
    assert_eq!(response(&patched, MARIADB).capabilities, agreed);
    assert_eq!(agreed.mariadb, 0x1d);
    assert_eq!(patched[4..28], bytes[4..28]);
    assert_eq!(patched[32..], bytes[32..]);
    assert!(patch_client_hello(&mut bytes[..31], agreed).is_err());
}

#[test]
fn a_mysql_client_of_mariadb_stays_one() {
    let mut bytes = fixed_part(RESPONSE_CAPS | CLIENT_MYSQL, 0);
    let sent = response(&bytes, MARIADB).capabilities;
    let agreed = sent.intersect(MARIADB.followable());
    assert!(!agreed.has(CLIENT_MYSQL));
    let original = bytes.clone();
    patch_client_hello(&mut bytes, agreed).unwrap();
    assert_eq!(bytes, original);
}

#[test]
fn a_change_of_user_is_read() {
    let caps = Capabilities { base: RESPONSE_CAPS, mariadb: 0 };
    let whole = b"\x11app\0\x02xyshop\0\xff\0caching_sha2_password\0\x04\x01k\x01v";
    let change = parse_change_user(whole, caps).unwrap();
    assert_eq!((change.user, change.database), (&b"app"[..], &b"shop"[..]));
    assert_eq!(change.charset, Some(255));
    assert_eq!(change.auth_plugin, Some(&b"caching_sha2_password"[..]));
    assert_eq!(change.attributes.iter().collect::<Vec<_>>(), [(&b"k"[..], &b"v"[..])]);
    for len in 5..whole.len() {
        assert_eq!(parse_change_user(&whole[..len], caps).unwrap().user, b"app");
    }
    for len in 0..5 {
        assert!(parse_change_user(&whole[..len], caps).is_err());
    }
    assert!(parse_change_user(b"\x03app\0", caps).is_err());
}

#[test]
fn authentication_goes_on_until_ok_or_err() {
    let reply = |bytes| auth_reply(bytes, Capabilities::default());
    assert_eq!(reply(b"\x00\0\0\x02\0\0\0"), AuthReply::Ok);
    assert_eq!(reply(b"\xff\x15\x04#28000no"), AuthReply::Err);
    assert_eq!(reply(b"\x01\x03"), AuthReply::MoreData(b"\x03"));
    for bytes in [&b""[..], b"\xfe", b"\x02x\0y", b"\x04Pw: "] {
        assert_eq!(reply(bytes), AuthReply::Other);
    }
}

#[test]
fn a_plugin_is_named_by_a_switch_and_by_a_next_factor() {
    let factors = Capabilities { base: CLIENT_MULTI_FACTOR_AUTHENTICATION, mariadb: 0 };
    let plugin = |data| AuthReply::Plugin { name: &b"sha256_password"[..], data };
    let switch = b"\xfesha256_password\0nonce\0";
    assert_eq!(auth_reply(switch, Capabilities::default()), plugin(&b"nonce"[..]));
    assert_eq!(auth_reply(b"\xfesha256_password\0", factors), plugin(&b""[..]));
    assert_eq!(auth_reply(b"\xfesha256_password", factors), plugin(&b""[..]));
    assert_eq!(auth_reply(b"\x02sha256_password\0nonce", factors), plugin(&b"nonce"[..]));
}

#[test]
fn a_response_without_its_answer_keeps_everything_else() {
    let caps = Capabilities { base: RESPONSE_CAPS, mariadb: 0 };
    let mut bytes = fixed_part(RESPONSE_CAPS, 0);
    bytes.extend_from_slice(b"etl\0\x07secret\0shop\0sha256_password\0\x04\x01k\x01v\x03");
    let mut out = Vec::new();
    assert!(put_unanswered_response(&bytes, caps, &mut out));
    let read = response(&out, MYSQL);
    assert_eq!((read.user, read.database), (&b"etl"[..], Some(&b"shop"[..])));
    assert_eq!((read.auth_response, read.auth_plugin), (&b""[..], Some(NO_PLUGIN)));
    assert_eq!(read.attributes.iter().count(), 1);
    assert!(out.ends_with(b"\x04\x01k\x01v\x03"));
    for len in 0..bytes.len() - 6 {
        let mut nothing = Vec::new();
        assert!(!put_unanswered_response(&bytes[..len], caps, &mut nothing), "{len}");
        assert!(nothing.is_empty());
    }
}

#[test]
fn a_change_of_user_without_its_answer_keeps_everything_else() {
    let caps = Capabilities { base: RESPONSE_CAPS, mariadb: 0 };
    let whole = b"\x11app\0\x07secret\0shop\0\xff\0sha256_password\0\x04\x01k\x01v";
    let mut out = Vec::new();
    assert!(put_unanswered_change_user(whole, caps, &mut out));
    let change = parse_change_user(&out, caps).unwrap();
    assert_eq!((change.user, change.database), (&b"app"[..], &b"shop"[..]));
    assert_eq!((change.auth_response, change.auth_plugin), (&b""[..], Some(NO_PLUGIN)));
    assert_eq!((change.charset, change.attributes.iter().count()), (Some(255), 1));
}

#[test]
fn what_follows_the_last_field_is_told_apart_from_fields_that_cannot_be_read() {
    let caps = CLIENT_PROTOCOL_41 | CLIENT_SECURE_CONNECTION | CLIENT_CONNECT_ATTRS;
    let with = |rest: &[u8]| [&fixed_part(caps, 0)[..], b"app\0\0", rest].concat();
    for (rest, tail) in [
        (&b"\x04\x01a\x01b"[..], Some(&b""[..])),
        (b"\x04\x01a\x01b\x03", Some(b"\x03")),
        (b"\0\x03", Some(b"\x03")),
        (b"\x05\x01a\x01b", None),
        (b"", None),
    ] {
        assert_eq!(response(&with(rest), MYSQL).tail, tail, "{rest:?}");
    }
}
