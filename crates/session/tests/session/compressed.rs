//! Compression: what is offered to the client, what the server is told, and what either leg changes to.

use session::{CloseReason, Compression, Denial, Side};
use wire::compress::Algorithm;
use wire::handshake::{ServerHello, parse_server_hello};

use crate::driver::*;

const CAPS: u32 = 0x0108_8200;
const ZLIB: u32 = 1 << 5;
const ZSTD: u32 = 1 << 26;
const SSL: u32 = 0x800;

/// A response under this sequence id; with zstd it ends with a level.
fn responding(sequence: u8, caps: u32, level: Option<u8>) -> Vec<u8> {
    let mut payload = (caps | 1).to_le_bytes().to_vec();
    payload.extend([0, 0, 0, 1, 255]);
    payload.extend([0; 23]);
    payload.extend(b"app\0\0mysql_native_password\0");
    payload.extend(level);
    frame(sequence, &payload)
}

struct Outcome {
    offered: u32,
    /// The server's copy of the response.
    sent: Vec<u8>,
    client: Option<Compression>,
    backend: Option<Compression>,
}

/// A login in the clear. `server` and `client` are flags beside the usual.
fn login(keys: &str, server: u32, (client, level): (u32, Option<u8>)) -> Outcome {
    let mut driver = Driver::with_cluster(&format!("client_tls: {{ mode: disabled }}\n{keys}"));
    driver.backend.extend(greeting(CAPS | server));
    driver.run();
    let offered = driver.to_client.clone();
    driver.client.extend(responding(1, CAPS | client, level));
    driver.run();
    let offered = match parse_server_hello(offered.get(4..).unwrap_or_default()) {
        Ok(ServerHello::Greeting(greeting)) => greeting.capabilities.base,
        Ok(ServerHello::Error(_)) | Err(_) => 0,
    };
    let session = &driver.session;
    Outcome {
        offered: offered & (ZLIB | ZSTD),
        client: session.compression(Side::Client),
        backend: session.compression(Side::Backend),
        sent: driver.to_backend,
    }
}

fn with(algorithm: Algorithm, level: u8) -> Option<Compression> {
    Some(Compression { algorithm, level })
}

const LEVELS: &str = "    compression_level: { zlib: 4, zstd: 5 }\n";

#[test]
fn either_leg_is_agreed_on_by_itself() {
    let zlib = with(Algorithm::Zlib, 4);
    let zstd = with(Algorithm::Zstd, 5);
    let (plain, asks_zlib, asks_zstd) = ((0, None), (ZLIB, None), (ZSTD, Some(9)));
    let both = (ZLIB | ZSTD, Some(9));
    for (backend, server, client, expected) in [
        ("off", ZLIB | ZSTD, asks_zlib, (zlib, None)),
        ("off", 0, asks_zstd, (zstd, None)),
        ("off", 0, both, (zlib, None)),
        ("as_client", ZLIB | ZSTD, plain, (None, None)),
        ("as_client", ZLIB | ZSTD, asks_zlib, (zlib, zlib)),
        ("as_client", ZLIB | ZSTD, asks_zstd, (zstd, zstd)),
        ("as_client", ZLIB, asks_zstd, (zstd, None)),
        ("as_client", ZLIB | ZSTD, both, (zlib, zlib)),
        ("zlib", ZLIB, plain, (None, zlib)),
        ("zlib", ZLIB | ZSTD, asks_zstd, (zstd, zlib)),
        ("zlib", 0, asks_zlib, (zlib, None)),
        ("zstd", ZLIB | ZSTD, plain, (None, zstd)),
        ("zstd", ZLIB | ZSTD, asks_zlib, (zlib, zstd)),
        ("zstd", ZSTD, asks_zstd, (zstd, zstd)),
        ("zstd", ZLIB, asks_zstd, (zstd, None)),
    ] {
        let keys = format!("{LEVELS}    backend_compression: {backend}");
        let login = login(&keys, server, client);
        let case = format!("{backend} {server:x} {client:x?}");
        assert_eq!(login.offered, ZLIB | ZSTD, "{case}");
        assert_eq!((login.client, login.backend), expected, "{case}");
        let (bit, level) = match expected.1 {
            None => (0, None),
            Some(backend) if backend.algorithm == Algorithm::Zlib => (ZLIB, None),
            Some(_) => (ZSTD, Some(5)),
        };
        assert_eq!(login.sent, responding(1, CAPS | bit, level), "{case}");
    }
}

#[test]
fn the_lower_level_of_zstd_counts() {
    for (level, expected) in [(1, 1), (5, 5), (22, 5)] {
        let login = login(LEVELS, 0, (ZSTD, Some(level)));
        assert_eq!(login.client, with(Algorithm::Zstd, expected));
    }
}

#[test]
fn what_is_not_offered_is_not_agreed_on_and_its_level_is_left_out() {
    let keys = "    client_compression: { algorithms: [uncompressed, zlib] }";
    let login = login(keys, ZLIB | ZSTD, (ZSTD, Some(3)));
    assert_eq!(login.offered, ZLIB);
    assert_eq!((login.client, login.backend), (None, None));
    assert_eq!(login.sent, responding(1, CAPS, None));
}

#[test]
fn a_response_whose_end_nobody_knows_is_not_followed_by_a_level() {
    const ATTRIBUTES: u32 = 1 << 20;
    // Attributes that are cut short, and attributes that the server knows nothing of.
    for (server, client, tail) in
        [(ATTRIBUTES, ATTRIBUTES, &b"\x09\x01a"[..]), (0, ATTRIBUTES, b"\0")]
    {
        let keys = "backend_compression: zstd";
        let mut driver = Driver::with_cluster(keys);
        driver.backend.extend(greeting(CAPS | ZSTD | server));
        driver.run();
        let mut response = responding(1, CAPS | client, None);
        response.extend(tail);
        response[0] = u8::try_from(response.len() - 4).unwrap();
        driver.client.extend(response);
        driver.run();
        assert_eq!(driver.session.compression(Side::Backend), None);
        assert!(driver.to_backend.ends_with(tail));
    }
}

#[test]
fn a_client_that_does_not_compress_is_refused_where_it_must() {
    for (client, level, denial, errno) in [
        (0, None, Denial::Uncompressed, 3922_u16),
        (ZSTD, Some(0), Denial::CompressionLevel, 3923),
        (ZSTD, Some(23), Denial::CompressionLevel, 3923),
        (ZSTD, None, Denial::CompressionLevel, 3923),
    ] {
        let mut driver = Driver::with_cluster("client_compression: { algorithms: [zstd] }");
        driver.backend.extend(greeting(CAPS));
        driver.run();
        driver.to_client.clear();
        driver.client.extend(responding(1, CAPS | client, level));
        let stop = driver.run();
        assert!(
            matches!(stop, Stop::Close(CloseReason::LoginDenied(why)) if why == denial),
            "{stop:?}"
        );
        assert_eq!(driver.to_client[3], 2);
        assert_eq!(driver.to_client[5..7], errno.to_le_bytes());
        assert!(driver.to_backend.is_empty());
    }
}

#[test]
fn the_request_for_tls_says_the_same_as_the_response_inside() {
    let keys = "backend_tls: { mode: required }\n    backend_compression: zstd";
    let mut driver = Driver::with_cluster(keys);
    driver.backend.extend(greeting(CAPS | ZSTD | SSL));
    driver.run();
    driver.client.extend(responding(1, CAPS | ZLIB, None));
    assert!(matches!(driver.run(), Stop::StartTls(Side::Backend)));
    assert_eq!(driver.to_backend[4..8], (CAPS | ZSTD | SSL | 1).to_le_bytes());
    driver.to_backend.clear();
    driver.session.handle_encrypted(Side::Backend);
    driver.run();
    assert_eq!(driver.to_backend, responding(2, CAPS | ZSTD | SSL, Some(3)));
}

#[test]
fn a_file_is_awaited_between_its_request_and_its_end() {
    let mut driver = Driver::logged_in(UNGATED, 0);
    driver.query("LOAD DATA LOCAL INFILE 'f' INTO TABLE t");
    assert!(!driver.session.awaits_file());
    driver.backend.extend(frame(1, b"\xfbf"));
    driver.run();
    assert!(driver.session.awaits_file());
    driver.client.extend([frame(2, b"1\n"), frame(3, b"")].concat());
    driver.run();
    assert!(!driver.session.awaits_file());
}
