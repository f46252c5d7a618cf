//! A server that tells a client, in the OK of its login, to connect elsewhere.
//!
//! MariaDB reports the session's `redirect_url` among the session changes; its clients go there
//! when it is not empty. Azure writes `Location: mysql://…` into the OK's text. Either would take
//! the client past a proxy.

use crate::capability::{CLIENT_SESSION_TRACK, Capabilities};
use crate::lenenc::{Reader, put_lenenc_bytes};
use crate::status::{SERVER_SESSION_STATE_CHANGED, StatusFlags};

/// Appends an OK packet's payload to `out` without what sends the client elsewhere. False, and
/// nothing appended, when nothing does.
pub fn put_without_redirect(payload: &[u8], caps: Capabilities, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let redirects = put(payload, caps, out).unwrap_or_default();
    if !redirects {
        out.truncate(start);
    }
    redirects
}

fn put(payload: &[u8], caps: Capabilities, out: &mut Vec<u8>) -> Option<bool> {
    let mut reader = Reader::new(payload);
    reader.u8()?;
    reader.lenenc_int()?;
    reader.lenenc_int()?;
    let numbers = payload.get(..payload.len().saturating_sub(reader.rest().len()))?;
    let mut status = reader.u16()?;
    let warnings = reader.u16()?;
    if !caps.has(CLIENT_SESSION_TRACK) {
        // The text is all of the rest, and goes.
        out.extend_from_slice(numbers);
        out.extend_from_slice(&status.to_le_bytes());
        out.extend_from_slice(&warnings.to_le_bytes());
        return Some(is_location(reader.rest()));
    }
    let info = reader.lenenc_bytes_cut().unwrap_or_default();
    let located = is_location(info);
    let mut kept = Vec::new();
    let mut named = false;
    let has_changes = StatusFlags(status).has(SERVER_SESSION_STATE_CHANGED);
    if has_changes {
        let mut changes = Reader::new(reader.lenenc_bytes_cut().unwrap_or_default());
        while let Some(kind) = changes.u8() {
            let Some(entry) = changes.lenenc_bytes_cut() else {
                // A client has read what stands before it by now.
                kept.push(kind);
                kept.extend_from_slice(changes.rest());
                break;
            };
            let mut entry_kept = Vec::new();
            if kind == SESSION_TRACK_SYSTEM_VARIABLES {
                named |= put_variables(entry, &mut entry_kept);
            } else {
                entry_kept.extend_from_slice(entry);
            }
            if entry_kept.is_empty() && !entry.is_empty() {
                continue;
            }
            kept.push(kind);
            put_lenenc_bytes(&mut kept, &entry_kept);
        }
    }
    if kept.is_empty() {
        status &= !SERVER_SESSION_STATE_CHANGED;
    }
    out.extend_from_slice(numbers);
    out.extend_from_slice(&status.to_le_bytes());
    out.extend_from_slice(&warnings.to_le_bytes());
    put_lenenc_bytes(out, if located { &[] } else { info });
    if !kept.is_empty() {
        put_lenenc_bytes(out, &kept);
    }
    Some(located || named)
}

/// Appends the variables of an entry but for a `redirect_url` that goes somewhere; tells whether
/// there was one.
fn put_variables(entry: &[u8], kept: &mut Vec<u8>) -> bool {
    let mut reader = Reader::new(entry);
    let mut named = false;
    let mut rest = entry;
    while let Some((name, value)) = reader.lenenc_bytes().zip(reader.lenenc_bytes()) {
        if name.eq_ignore_ascii_case(REDIRECT_URL) && !value.is_empty() {
            named = true;
        } else {
            put_lenenc_bytes(kept, name);
            put_lenenc_bytes(kept, value);
        }
        rest = reader.rest();
    }
    kept.extend_from_slice(rest);
    named
}

fn is_location(info: &[u8]) -> bool {
    info.get(..LOCATION.len()).is_some_and(|start| start.eq_ignore_ascii_case(LOCATION))
}

const REDIRECT_URL: &[u8] = b"redirect_url";
const LOCATION: &[u8] = b"Location: mysql://";
const SESSION_TRACK_SYSTEM_VARIABLES: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{OkPacket, SessionChange};

    const TRACKING: Capabilities = Capabilities { base: CLIENT_SESSION_TRACK, mariadb: 0 };

    /// An OK with this text and these session changes.
    fn ok(info: &[u8], changes: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x00\x00\xfc\x00\x01\x02\x40\x01\x00".to_vec();
        put_lenenc_bytes(&mut bytes, info);
        put_lenenc_bytes(&mut bytes, changes);
        bytes
    }

    fn variable(name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut pair = Vec::new();
        put_lenenc_bytes(&mut pair, name);
        put_lenenc_bytes(&mut pair, value);
        pair
    }

    fn entry(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut entry = vec![kind];
        put_lenenc_bytes(&mut entry, content);
        entry
    }

    fn stripped(payload: &[u8], caps: Capabilities) -> Option<Vec<u8>> {
        let mut out = b"head".to_vec();
        let redirects = put_without_redirect(payload, caps, &mut out);
        let rest = out.strip_prefix(b"head").expect("what was there stays").to_vec();
        assert!(redirects || rest.is_empty());
        redirects.then_some(rest)
    }

    #[test]
    fn a_redirect_url_goes_and_its_neighbours_stay() {
        let variables =
            [variable(b"autocommit", b"ON"), variable(b"redirect_url", b"mysql://db2:3306")];
        let changes = [entry(0, &variables.concat()), entry(1, b"\x04shop")].concat();
        let stripped = stripped(&ok(b"", &changes), TRACKING).unwrap();
        let ok = OkPacket::parse(&stripped, TRACKING).unwrap();
        assert_eq!((ok.last_insert_id, ok.status, ok.warnings), (256, 0x4002, 1));
        let autocommit = SessionChange::SystemVariable { name: b"autocommit", value: b"ON" };
        let changes: Vec<_> = ok.session_changes.iter().collect();
        assert_eq!(changes, [autocommit, SessionChange::Schema(b"shop")]);
    }

    #[test]
    fn a_redirect_url_goes_though_what_follows_cannot_be_read() {
        let redirect = entry(0, &variable(b"redirect_url", b"mysql://db2:3306"));
        let stripped =
            stripped(&ok(b"", &[&redirect, &b"\x01\xff\x04shop"[..]].concat()), TRACKING);
        let stripped = stripped.expect("a client reads as far as the redirection");
        assert!(stripped.ends_with(b"\x07\x01\xff\x04shop"), "{}", stripped.escape_ascii());
    }

    #[test]
    fn a_redirect_url_alone_takes_the_flag_with_it() {
        let changes = entry(0, &variable(b"redirect_url", b"mysql://db2"));
        let stripped = stripped(&ok(b"hello", &changes), TRACKING).unwrap();
        assert_eq!(stripped, b"\x00\x00\xfc\x00\x01\x02\x00\x01\x00\x05hello");
    }

    #[test]
    fn a_location_in_the_text_goes() {
        let text = b"Location: mysql://[db2]:3306/?user=a&ttl=60\n";
        let tracked = stripped(&ok(text, &entry(1, b"\x04shop")), TRACKING).unwrap();
        assert_eq!(tracked, b"\x00\x00\xfc\x00\x01\x02\x40\x01\x00\x00\x07\x01\x05\x04shop");
        let plain = [&b"\x00\x00\x00\x02\x00\x00\x00"[..], text].concat();
        assert_eq!(stripped(&plain, Capabilities::default()).unwrap(), plain[..7]);
    }

    #[test]
    fn an_ok_that_sends_nobody_elsewhere_is_left_alone() {
        let nowhere = entry(0, &variable(b"redirect_url", b""));
        for changes in [&b""[..], &nowhere, &entry(1, b"\x04shop"), b"\x00\xfe", b"\x00\xff"] {
            assert_eq!(stripped(&ok(b"Records: 1", changes), TRACKING), None);
        }
        assert_eq!(stripped(b"\x00\x00\x00\x02\x00\x00\x00ok", Capabilities::default()), None);
        assert_eq!(stripped(b"", TRACKING), None);
        assert_eq!(stripped(b"\x00\x00", TRACKING), None);
    }
}
