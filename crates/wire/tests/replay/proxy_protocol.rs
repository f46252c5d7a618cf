//! Headers of the PROXY protocol, read as the listener reads them: exactly what is asked for.

use std::net::{IpAddr, SocketAddr};

use testkit::Input;
use wire::proxy_protocol::{
    Decoded, HeaderError, Proxied, V2_LEN_MAX, decode, encode_v2, is_header,
};

/// Reads any bytes as a header, and reads back headers that were written.
pub(crate) fn check(data: &[u8]) {
    any_bytes(data);
    let mut input = Input::new(data);
    let addresses = (input.u8() > 0).then(|| (address(&mut input), address(&mut input)));
    let mut header = Vec::new();
    encode_v2(&mut header, addresses);
    assert!(is_header(&header));
    let header_len = header.len();
    header.extend_from_slice(input.rest());
    let (read_len, decoded) = read(&header);
    assert_eq!(read_len, header_len, "to its last byte and no further");
    let expected = match addresses {
        None => Proxied::Unknown,
        Some((source, destination)) => Proxied::Network {
            source: (source.ip().to_canonical(), source.port()).into(),
            destination: (destination.ip().to_canonical(), destination.port()).into(),
        },
    };
    assert_eq!(decoded, Ok(Decoded::Done(expected)));
}

fn any_bytes(bytes: &[u8]) {
    let (read_len, decoded) = read(bytes);
    // More bytes change nothing of what was decided.
    if !matches!(decoded, Ok(Decoded::Needs(_))) {
        assert_eq!(decode(bytes.get(..read_len).unwrap_or_default()), decoded);
    }
    if let Ok(Decoded::Done(proxied)) = decoded {
        assert!(is_header(bytes), "what is no header says nothing");
        assert!(read_len <= V2_LEN_MAX + 16);
        if let Proxied::Network { source, destination } = proxied {
            assert_eq!(source.is_ipv4(), source.ip().to_canonical().is_ipv4());
            assert_eq!(destination.is_ipv4(), destination.ip().to_canonical().is_ipv4());
        }
    }
    for len in 0..read_len.min(bytes.len()) {
        let early = decode(bytes.get(..len).unwrap_or_default());
        match early {
            Ok(Decoded::Done(_)) => assert_eq!(decoded, early, "complete at {len} of {read_len}"),
            Ok(Decoded::Needs(more)) => {
                assert!(more > 0);
                // A header that is one never ends within what it was said to need.
                let is_one = matches!(decoded, Ok(Decoded::Done(_)));
                assert!(!is_one || len + more <= read_len, "{more} more at {len} of {read_len}");
            }
            Err(error) => assert_eq!(decoded, Err(error), "refused at {len}"),
        }
    }
}

/// Reads as much as is asked for, until there is an answer or nothing is left.
fn read(stream: &[u8]) -> (usize, Result<Decoded, HeaderError>) {
    let mut len = 0;
    loop {
        let decoded = decode(stream.get(..len).unwrap_or_default());
        match decoded {
            Ok(Decoded::Needs(more)) if len + more <= stream.len() => len += more,
            _ => return (len, decoded),
        }
    }
}

fn address(input: &mut Input<'_>) -> SocketAddr {
    let ip: IpAddr = match input.u8() % 2 {
        0 => input.u32().to_be_bytes().into(),
        _ => {
            let mut octets = [0; 16];
            for (to, from) in octets.iter_mut().zip(input.take(16)) {
                *to = *from;
            }
            octets.into()
        }
    };
    (ip, input.u16()).into()
}
