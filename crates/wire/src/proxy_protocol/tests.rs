use proptest::prelude::*;

use super::*;

fn network(source: &str, destination: &str) -> Proxied {
    Proxied::Network { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
}

/// Reads as the shell does: never more bytes than were asked for. Gives what came out and what is
/// left.
fn read_from(stream: &[u8]) -> (Result<Proxied, HeaderError>, &[u8]) {
    let mut taken = 0;
    loop {
        match decode(&stream[..taken]) {
            Ok(Decoded::Needs(more)) => {
                assert!(more > 0);
                taken = taken.saturating_add(more);
                assert!(taken <= stream.len(), "asks for bytes that do not belong to it");
            }
            Ok(Decoded::Done(proxied)) => return (Ok(proxied), &stream[taken..]),
            Err(error) => return (Err(error), &stream[taken..]),
        }
    }
}

fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend_from_slice(&[command, family]);
    bytes.extend_from_slice(&u16::try_from(body.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

const INET_BODY: [u8; 12] = [10, 1, 2, 3, 10, 9, 9, 9, 0x12, 0x34, 0x0c, 0xea];

#[test]
fn a_line_of_version_1_is_read_to_its_end_and_no_further() {
    let cases = [
        ("PROXY TCP4 10.1.2.3 10.9.9.9 4660 3306\r\n", network("10.1.2.3:4660", "10.9.9.9:3306")),
        ("PROXY TCP6 fd00::1 fd00::2 1 65535\r\n", network("[fd00::1]:1", "[fd00::2]:65535")),
        ("PROXY TCP6 ::ffff:1.2.3.4 ::1 1 2\r\n", network("1.2.3.4:1", "[::1]:2")),
        ("PROXY UNKNOWN\r\n", Proxied::Unknown),
        ("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", Proxied::Unknown),
    ];
    for (line, expected) in cases {
        let stream = format!("{line}\x01\r\nbehind it, with enough bytes to read too far\r\n");
        let (proxied, rest) = read_from(stream.as_bytes());
        assert_eq!(proxied, Ok(expected), "{line:?}");
        assert!(rest.starts_with(b"\x01\r\nbehind"), "{line:?} left {rest:?}");
    }
}

#[test]
fn a_line_that_is_not_of_version_1_is_refused() {
    let endless = format!("PROXY TCP4 {}", "1".repeat(200));
    let cases = [
        ("PROXY TCP4 10.1.2.3 10.9.9.9 4660\r\n          ", HeaderError::Malformed),
        ("PROXY TCP4 10.1.2.3 10.9.9.9 4660 3306 7\r\n", HeaderError::Malformed),
        ("PROXY TCP4 ::1 ::2 4660 3306\r\n", HeaderError::Malformed),
        ("PROXY TCP6 10.1.2.3 10.9.9.9 4660 3306\r\n", HeaderError::Malformed),
        ("PROXY TCP4 10.1.2.3 10.9.9.9 +1 3306\r\n", HeaderError::Malformed),
        ("PROXY TCP4 10.1.2.3 10.9.9.9 01 3306\r\n", HeaderError::Malformed),
        ("PROXY TCP4 10.1.2.3 10.9.9.9 65536 3306\r\n", HeaderError::Malformed),
        ("PROXY UDP4 10.1.2.3 10.9.9.9 1 2\r\n", HeaderError::Malformed),
        ("PROXY TCP4 10.1.2.3 10.9.9.9 1 2\n          ", HeaderError::Malformed),
        ("PROXY\tUNKNOWN\r\n", HeaderError::NoHeader),
        ("POST / HTTP/1.1\r\n", HeaderError::NoHeader),
        (&endless, HeaderError::Malformed),
    ];
    for (line, error) in cases {
        assert_eq!(read_from(line.as_bytes()).0, Err(error), "{line:?}");
    }
}

#[test]
fn a_header_of_version_2_gives_its_addresses_and_its_extensions_are_skipped() {
    let mut with_extensions = INET_BODY.to_vec();
    // An endpoint id of a cloud's load balancer: type, length, value.
    with_extensions.extend_from_slice(&[0xea, 0, 4, 1, b'v', b'p', b'c']);
    let expected = network("10.1.2.3:4660", "10.9.9.9:3306");
    for body in [&INET_BODY[..], &with_extensions] {
        let mut stream = v2(0x21, 0x11, body);
        stream.extend_from_slice(b"behind");
        assert_eq!(read_from(&stream), (Ok(expected), &b"behind"[..]));
    }
    let mut body = Ipv6Addr::LOCALHOST.octets().to_vec();
    body.extend_from_slice(&Ipv6Addr::UNSPECIFIED.octets());
    body.extend_from_slice(&[0, 1, 0, 2]);
    assert_eq!(read_from(&v2(0x21, 0x21, &body)).0, Ok(network("[::1]:1", "[::]:2")));
    assert_eq!(read_from(&v2(0x21, 0x31, &[b'/'; 216])).0, Ok(Proxied::Unix));
}

#[test]
fn a_proxy_that_speaks_for_itself_or_does_not_know_leaves_the_address_as_it_is() {
    // LOCAL ignores the family and whatever stands there.
    for (command, family, body) in
        [(0x20, 0x00, &b""[..]), (0x20, 0x11, &INET_BODY), (0x20, 0x99, b"xyz"), (0x21, 0x00, b"")]
    {
        assert_eq!(read_from(&v2(command, family, body)).0, Ok(Proxied::Unknown));
    }
}

#[test]
fn a_header_of_version_2_that_cannot_be_is_refused() {
    let mut long = SIGNATURE.to_vec();
    long.extend_from_slice(&[0x21, 0x11, 0x40, 0x01]);
    let cases = [
        (v2(0x11, 0x11, &INET_BODY), HeaderError::UnknownVersion),
        (v2(0x22, 0x11, &INET_BODY), HeaderError::UnknownCommand),
        (v2(0x21, 0x12, &INET_BODY), HeaderError::NoStream),
        (v2(0x21, 0x41, &INET_BODY), HeaderError::NoStream),
        (v2(0x21, 0x11, &INET_BODY[..11]), HeaderError::TooShort),
        (v2(0x21, 0x21, &[0; 35]), HeaderError::TooShort),
        (v2(0x21, 0x31, &[0; 215]), HeaderError::TooShort),
        (long, HeaderError::TooLong),
        (b"\r\n\r\nHELLO, this is no header".to_vec(), HeaderError::NoHeader),
        (b"\x20\0\0\x01 a client of MySQL".to_vec(), HeaderError::NoHeader),
    ];
    for (bytes, error) in cases {
        assert_eq!(read_from(&bytes).0, Err(error), "{bytes:?}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    let pairs = [
        ("10.1.2.3:4660", "10.9.9.9:3306", "10.1.2.3:4660", "10.9.9.9:3306"),
        ("[fd00::1]:1", "[fd00::2]:2", "[fd00::1]:1", "[fd00::2]:2"),
        ("[::ffff:10.1.2.3]:1", "10.9.9.9:2", "10.1.2.3:1", "10.9.9.9:2"),
        ("10.1.2.3:1", "[fd00::2]:2", "10.1.2.3:1", "[fd00::2]:2"),
    ];
    for (source, destination, source_read, destination_read) in pairs {
        let mut bytes = Vec::new();
        encode_v2(&mut bytes, Some((source.parse().unwrap(), destination.parse().unwrap())));
        assert_eq!(read_from(&bytes), (Ok(network(source_read, destination_read)), &b""[..]));
    }
    let mut bytes = Vec::new();
    encode_v2(&mut bytes, None);
    assert_eq!(read_from(&bytes), (Ok(Proxied::Unknown), &b""[..]));
}

/// Zeros of the client were its address.
#[test]
fn what_is_behind_a_header_is_no_part_of_it() {
    for (family, least) in [(0x11, 12), (0x21, 36), (0x31, 216)] {
        for len in 0..least {
            let header = v2(0x21, family, &vec![0; len]);
            for behind in [0, 1, 300] {
                let bytes = [&header[..], &vec![0; behind]].concat();
                assert_eq!(
                    decode(&bytes),
                    Err(HeaderError::TooShort),
                    "{family:#x} {len} {behind}"
                );
            }
        }
    }
    let long = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 92], b"\r\n"].concat();
    for len in V1_LEN_MAX..=long.len() {
        assert_eq!(
            decode(&long[..len]),
            Err(HeaderError::Malformed),
            "a line that is too long: {len}"
        );
    }
}

#[test]
fn a_client_of_mysql_is_not_mistaken_for_a_proxy() {
    assert!(is_header(b"PROXY TCP4 1.2.3.4"));
    assert!(is_header(&v2(0x20, 0, b"")));
    assert!(!is_header(b"PROX"));
    assert!(!is_header(b"\xa5\x00\x00\x01\x8d\xa6\xff\x01"));
}

/// Bytes that get past the first look: a signature or the start of a line, and whatever follows.
fn beginnings() -> impl Strategy<Value = Vec<u8>> {
    let rest = proptest::collection::vec(any::<u8>(), 0..300);
    let start = prop_oneof![
        Just(Vec::new()),
        Just(SIGNATURE.to_vec()),
        Just(v2(0x21, 0x11, b"")[..14].to_vec()),
        Just(V1_START.to_vec()),
        Just(b"PROXY TCP6 ".to_vec()),
        Just(b"PROXY UNKNOWN ".to_vec()),
        // Of which what follows says the length, which is a short one.
        Just(v2(0x21, 0x11, b"")[..15].to_vec()),
        Just(v2(0x21, 0x21, b"")[..15].to_vec()),
    ];
    (start, rest).prop_map(|(start, rest)| [start, rest].concat())
}

proptest! {
    #[test]
    fn whatever_comes_is_read_within_bounds_and_without_a_panic(bytes in beginnings()) {
        for len in 0..=bytes.len() {
            if let Ok(Decoded::Needs(more)) = decode(&bytes[..len]) {
                prop_assert!(more > 0);
                prop_assert!(len.saturating_add(more) <= V2_HEAD_LEN.saturating_add(V2_LEN_MAX));
            }
        }
    }

    #[test]
    fn what_was_decided_about_a_header_does_not_change_with_what_follows(bytes in beginnings()) {
        for len in 0..bytes.len() {
            match decode(&bytes[..len]) {
                Ok(Decoded::Done(proxied)) => {
                    prop_assert_eq!(decode(&bytes), Ok(Decoded::Done(proxied)));
                    break;
                }
                Err(error) => {
                    prop_assert_eq!(decode(&bytes), Err(error));
                    break;
                }
                Ok(Decoded::Needs(_)) => {}
            }
        }
    }
}
