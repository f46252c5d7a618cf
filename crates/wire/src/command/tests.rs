//! Commands, as drivers send them.

use super::*;
use crate::capability::{CLIENT_QUERY_ATTRIBUTES, Capabilities};
use crate::error::ProtocolError;
use crate::frame::{FrameHeader, MAX_PAYLOAD_LEN, split_frame};

const PLAIN: Capabilities = Capabilities { base: 0, mariadb: 0 };
const ATTRIBUTES: Capabilities = Capabilities { base: CLIENT_QUERY_ATTRIBUTES, mariadb: 0 };

fn query(payload: &[u8], caps: Capabilities) -> Query<'_> {
    match parse_command(payload, caps).unwrap() {
        Command::Query(query) => query,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_flag_of_an_execute_asks_for_a_cursor() {
    for flags in 0..=u8::MAX {
        let payload = [&b"\x17\x01\0\0\0"[..], &[flags], b"\x01\0\0\0"].concat();
        let asked = if flags % 2 == 1 { Cursor::Asked } else { Cursor::NotAsked };
        let Command::Execute(execute) = parse_command(&payload, PLAIN).unwrap() else {
            panic!("it is an EXECUTE")
        };
        assert_eq!(execute.cursor(1), asked, "{flags}");
        assert_eq!(execute.cursor(0), Cursor::NotAsked, "it writes its rows itself");
    }
}

#[test]
fn every_command_byte_has_its_command_and_answer() {
    let table: &[(u8, Command<'_>, Expect)] = &[
        (COM_SLEEP, Command::Other(0x00), Expect::OnePacket),
        (COM_QUIT, Command::Quit, Expect::Nothing),
        (COM_INIT_DB, Command::InitDb(b"\x01\0\0\0\0\0\0\0\0"), Expect::OnePacket),
        (COM_FIELD_LIST, Command::FieldList, Expect::FieldList),
        (COM_CREATE_DB, Command::Other(0x05), Expect::OnePacket),
        (COM_DROP_DB, Command::Other(0x06), Expect::OnePacket),
        (COM_REFRESH, Command::Refresh, Expect::OnePacket),
        (COM_SHUTDOWN, Command::Shutdown, Expect::OnePacket),
        (COM_STATISTICS, Command::Statistics, Expect::Statistics),
        (COM_PROCESS_INFO, Command::ProcessInfo, Expect::ProcessInfo),
        (COM_CONNECT, Command::Other(0x0b), Expect::OnePacket),
        (COM_PROCESS_KILL, Command::ProcessKill { connection_id: 1 }, Expect::OnePacket),
        (COM_DEBUG, Command::Debug, Expect::Eof),
        (COM_PING, Command::Ping, Expect::OnePacket),
        (COM_TIME, Command::Other(0x0f), Expect::OnePacket),
        (COM_DELAYED_INSERT, Command::Other(0x10), Expect::OnePacket),
        (COM_CHANGE_USER, Command::ChangeUser, Expect::Auth),
        (COM_BINLOG_DUMP, Command::BinlogDump, Expect::BinlogStream),
        (COM_TABLE_DUMP, Command::TableDump, Expect::BinlogStream),
        (COM_CONNECT_OUT, Command::Other(0x14), Expect::OnePacket),
        (COM_REGISTER_SLAVE, Command::RegisterReplica, Expect::OnePacket),
        (COM_STMT_PREPARE, Command::Prepare(b"\x01\0\0\0\0\0\0\0\0"), Expect::Prepare),
        (
            COM_STMT_EXECUTE,
            Command::Execute(Execute { statement_id: 1, flags: 0, body: b"" }),
            Expect::Execution(Cursor::NotAsked),
        ),
        (COM_STMT_SEND_LONG_DATA, Command::SendLongData { statement_id: 1 }, Expect::Nothing),
        (COM_STMT_CLOSE, Command::CloseStatement { statement_id: 1 }, Expect::Nothing),
        (COM_STMT_RESET, Command::ResetStatement { statement_id: 1 }, Expect::OnePacket),
        (COM_SET_OPTION, Command::SetOption(Some(1)), Expect::Eof),
        (COM_STMT_FETCH, Command::Fetch { statement_id: 1 }, Expect::Fetch),
        (COM_DAEMON, Command::Other(0x1d), Expect::OnePacket),
        (COM_BINLOG_DUMP_GTID, Command::BinlogDumpGtid, Expect::BinlogStream),
        (COM_RESET_CONNECTION, Command::ResetConnection, Expect::OnePacket),
        (COM_CLONE, Command::Clone, Expect::Opaque),
        (
            COM_SUBSCRIBE_GROUP_REPLICATION_STREAM,
            Command::SubscribeGroupReplication,
            Expect::Opaque,
        ),
        (
            COM_STMT_BULK_EXECUTE,
            Command::BulkExecute { statement_id: 1 },
            Expect::Execution(Cursor::NotAsked),
        ),
        (COM_SLAVE_WORKER, Command::Other(0xfb), Expect::OnePacket),
        (COM_SLAVE_IO, Command::Other(0xfc), Expect::OnePacket),
        (COM_SLAVE_SQL, Command::Other(0xfd), Expect::OnePacket),
        (COM_MULTI, Command::Other(0xfe), Expect::OnePacket),
        (0xff, Command::Other(0xff), Expect::OnePacket),
    ];
    for (code, command, expect) in table {
        let payload = [&[*code][..], b"\x01\0\0\0\0\0\0\0\0"].concat();
        let parsed = parse_command(&payload, ATTRIBUTES).unwrap();
        assert_eq!(parsed, *command);
        assert_eq!(parsed.expect(), *expect, "{command:?}");
    }
    assert_eq!(parse_command(b"", PLAIN), Ok(Command::Empty));
    assert_eq!(Command::Empty.expect(), Expect::OnePacket);
}

#[test]
fn a_command_too_short_to_name_its_statement_is_refused() {
    for code in [0x0c, 0x17, 0x18, 0x19, 0x1a, 0x1c, 0xfa] {
        let payload = [code, 1, 0, 0];
        let error = ProtocolError::CommandTruncated { command: code };
        assert_eq!(parse_command(&payload, PLAIN), Err(error));
    }
    let without_iterations = b"\x17\x01\0\0\0\0\x01\0\0";
    assert!(parse_command(without_iterations, PLAIN).is_err());
    assert_eq!(parse_command(b"\x1b\x01", PLAIN), Ok(Command::SetOption(None)));
}

#[test]
fn a_text_is_everything_behind_the_command_byte() {
    assert_eq!(query(b"\x03SELECT 1", PLAIN).text, b"SELECT 1");
    assert_eq!(query(b"\x03", PLAIN).text, b"");
    assert!(query(b"\x03\x00\x01", PLAIN).attributes.is_empty());
}

#[test]
fn a_text_is_found_behind_its_attributes() {
    assert_eq!(query(b"\x03\x00\x01SELECT 1", ATTRIBUTES).text, b"SELECT 1");
    let mut payload = b"\x03\x05\x01\x04\x01".to_vec();
    payload.extend_from_slice(b"\xfe\x00\x03app"); // STRING
    payload.extend_from_slice(b"\x08\x80\x01n"); // unsigned LONGLONG
    payload.extend_from_slice(b"\xfe\x00\x04none"); // NULL
    payload.extend_from_slice(b"\x0c\x00\x02at"); // DATETIME
    payload.extend_from_slice(b"\xfd\x00\x01c"); // VAR_STRING
    payload.extend_from_slice(b"\x05a:b:c");
    payload.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    payload.extend_from_slice(b"\x04\xda\x07\x0a\x11");
    payload.extend_from_slice(b"\x01x");
    payload.extend_from_slice(b"DELETE FROM t");
    let query = query(&payload, ATTRIBUTES);
    assert_eq!(query.text, b"DELETE FROM t");
    let shown: Vec<_> = query.attributes.iter().collect();
    let attributes: Vec<_> = texts(&shown).collect();
    assert_eq!(
        attributes,
        [
            (&b"app"[..], Some(&b"a:b:c"[..])),
            (b"n", Some(b"578437695752307201")),
            (b"none", None),
            (b"at", None),
            (b"c", Some(b"x")),
        ]
    );
}

fn texts<'a>(
    attributes: &'a [(&'a [u8], Option<AttributeText<'a>>)],
) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
    attributes.iter().map(|(name, value)| (*name, value.as_ref().map(AttributeText::as_bytes)))
}

#[test]
fn every_bound_type_has_its_length() {
    let sizes: &[(u8, &[u8])] = &[
        (0, b"\x031.5"),
        (1, b"a"),
        (2, b"ab"),
        (3, b"abcd"),
        (4, b"abcd"),
        (5, b"abcdefgh"),
        (7, b"\x00"),
        (8, b"abcdefgh"),
        (10, b"\x04abcd"),
        (11, b"\x08abcdefgh"),
        (12, b"\x07abcdefg"),
        (15, b"\x01a"),
        (16, b"\x01a"),
        (242, b"\x04abcd"),
        (245, b"\x02{}"),
        (246, b"\x031.5"),
        (249, b"\x01a"),
        (252, b"\xfc\x01\x00a"),
        (254, b"\x00"),
        (255, b"\x01a"),
    ];
    for (code, value) in sizes {
        let mut payload = b"\x03\x01\x01\x00\x01".to_vec();
        payload.extend_from_slice(&[*code, 0, 1, b'k']);
        payload.extend_from_slice(value);
        payload.extend_from_slice(b"TEXT");
        assert_eq!(query(&payload, ATTRIBUTES).text, b"TEXT", "type {code}");
    }
}

#[test]
fn attributes_that_cannot_be_sized_hide_no_text() {
    let malformed: &[&[u8]] = &[
        b"\x03",
        b"\x03SELECT 1",
        b"\x03\x00",
        b"\x03\x00\x02SELECT 1",
        b"\x03\xfb\x01SELECT 1",
        b"\x03\xfd\x00\x00\x01\x01SELECT 1",
        b"\x03\x01\x01\x00\x00\xfe\x00\x01k\x01vSELECT 1",
        b"\x03\x01\x01\x00\x01\xfe\x00\x01k\x20vSELECT 1",
        b"\x03\x01\x01\x00\x01\xfe\x00\x01k\xfbvSELECT 1",
        b"\x03\x01\x01\x00\x01\x0d\x00\x01k\x01\x01SELECT 1",
        b"\x03\x01\x01\x00\x01\x06\x00\x01kSELECT 1",
        b"\x03\x01\x01\x00\x01\xfe\x01\x01k\x01vSELECT 1",
    ];
    for payload in malformed {
        assert_eq!(
            parse_command(payload, ATTRIBUTES),
            Err(ProtocolError::QueryAttributesMalformed),
            "{payload:02x?}"
        );
    }
}

#[test]
fn parameters_are_found_in_an_execute() {
    // Two parameters, LONG and VAR_STRING, the second one NULL.
    let payload = b"\x17\x07\0\0\0\0\x01\0\0\0\x02\x01\x03\0\xfd\0\x2a\0\0\0";
    let layout = execute_layout(payload, 2, PLAIN).unwrap();
    assert_eq!((layout.param_count, layout.bind_flag_offset), (2, 11));
    assert!(layout.types_sent && !layout.named);
    assert_eq!(payload[layout.type_block.clone()], *b"\x03\0\xfd\0");
    let again = b"\x17\x07\0\0\0\0\x01\0\0\0\x02\x00\x2a\0\0\0";
    let layout = execute_layout(again, 2, PLAIN).unwrap();
    assert!(!layout.types_sent && layout.type_block.is_empty());
}

#[test]
fn an_execute_without_parameters_has_no_layout() {
    let payload = b"\x17\x07\0\0\0\0\x01\0\0\0";
    assert_eq!(execute_layout(payload, 0, PLAIN), None);
    assert_eq!(execute_layout(payload, 0, ATTRIBUTES), None);
    assert_eq!(execute_layout(payload, 1, PLAIN), None, "ends before the bitmap");
    assert_eq!(execute_layout(b"\x17\x07\0\0\0\0\x01\0\0\0\0", 1, PLAIN), None, "no flag");
    assert_eq!(execute_layout(b"\x17\x07\0\0\0\x08\x01\0\0\0\0", 0, ATTRIBUTES), None);
    assert_eq!(execute_layout(b"\x03SELECT 1", 1, PLAIN), None);
}

#[test]
fn a_type_block_can_reach_past_a_prefix() {
    let prefix = b"\x17\x07\0\0\0\0\x01\0\0\0\0\x01\x03\0";
    let layout = execute_layout(prefix, 3, PLAIN).unwrap();
    assert_eq!(layout.type_block, 12..18);
    let named = b"\x17\x07\0\0\0\x08\x01\0\0\0\x03\0\x01\x03\0\0";
    assert_eq!(execute_layout(named, 3, ATTRIBUTES), None);
}

#[test]
fn query_attributes_of_an_execute_stand_behind_its_parameters() {
    let mut payload = b"\x17\x07\0\0\0\x08\x01\0\0\0\x02\0\x01".to_vec();
    payload.extend_from_slice(b"\x03\0\0\xfe\0\x03app");
    payload.extend_from_slice(b"\x2a\0\0\0\x03etl");
    let layout = execute_layout(&payload, 1, ATTRIBUTES).unwrap();
    assert!(layout.named);
    assert_eq!(payload[layout.type_block.clone()], *b"\x03\0\0\xfe\0\x03app");
    let attributes = execute_attributes(&payload, &layout, 1);
    let shown: Vec<_> = attributes.into_iter().collect();
    let pairs: Vec<_> = texts(&shown).collect();
    assert_eq!(pairs, [(&b"app"[..], Some(&b"etl"[..]))]);
    let own =
        execute_layout(b"\x17\x07\0\0\0\0\x01\0\0\0\x01\0\x01\x03\0\0\x2a\0\0\0", 1, ATTRIBUTES);
    assert_eq!(own.map(|layout| (layout.param_count, layout.type_block)), Some((1, 13..16)));
}

#[test]
fn remembered_types_are_put_behind_the_bind_flag() {
    let payload = b"\x17\x07\0\0\0\0\x01\0\0\0\0\0\x03abc";
    let layout = execute_layout(payload, 1, PLAIN).unwrap();
    let expected = b"\x12\0\0\x05\x17\x07\0\0\0\0\x01\0\0\0\0\x01\xfd\0\x03abc";
    let mut whole = Vec::new();
    splice_type_block(payload, &layout, b"\xfd\0", 5, &mut whole).unwrap();
    assert_eq!(whole, expected);

    let header = FrameHeader { payload_len: payload.len(), sequence: 5 };
    let mut head = Vec::new();
    let spliced = splice_head(header, &payload[..12], &layout, b"\xfd\0", &mut head);
    assert_eq!(spliced, Ok(SplicedHead::Written));
    head.extend_from_slice(&payload[layout.bind_flag_offset + 1..]);
    assert_eq!(head, expected);

    let (_, spliced, _) = split_frame(&whole).unwrap();
    let layout = execute_layout(spliced, 1, PLAIN).unwrap();
    assert_eq!(spliced[layout.type_block], *b"\xfd\0");
}

#[test]
fn remembered_types_keep_their_names() {
    let payload = b"\x17\x07\0\0\0\0\x01\0\0\0\x01\0\0\x03abc";
    let layout = execute_layout(payload, 1, ATTRIBUTES).unwrap();
    let mut out = Vec::new();
    splice_type_block(payload, &layout, b"\xfd\0\x01k", 0, &mut out).unwrap();
    assert_eq!(out, b"\x15\0\0\0\x17\x07\0\0\0\0\x01\0\0\0\x01\0\x01\xfd\0\x01k\x03abc");
}

#[test]
fn a_type_block_that_does_not_fit_is_not_written() {
    let payload = b"\x17\x07\0\0\0\0\x01\0\0\0\0\0\x03abc";
    let layout = execute_layout(payload, 1, PLAIN).unwrap();
    let mismatch = Err(ProtocolError::TypeBlockMismatch);
    let mut out = Vec::new();
    for block in [&b""[..], b"\xfd", b"\xfd\0\xfd\0"] {
        assert_eq!(splice_type_block(payload, &layout, block, 0, &mut out), mismatch);
    }
    let sent = execute_layout(b"\x17\x07\0\0\0\0\x01\0\0\0\0\x01\xfd\0\x03abc", 1, PLAIN).unwrap();
    assert_eq!(splice_type_block(payload, &sent, b"\xfd\0", 0, &mut out), mismatch);
    assert_eq!(splice_type_block(&payload[..11], &layout, b"\xfd\0", 0, &mut out), mismatch);
    assert!(out.is_empty());
}

#[test]
fn a_splice_across_16_mib_is_written_in_frames() {
    for (payload_len, frames) in [
        (MAX_PAYLOAD_LEN - 3, &[MAX_PAYLOAD_LEN - 1][..]),
        (MAX_PAYLOAD_LEN - 2, &[MAX_PAYLOAD_LEN, 0]),
        (MAX_PAYLOAD_LEN - 1, &[MAX_PAYLOAD_LEN, 1]),
        (MAX_PAYLOAD_LEN * 2 - 2, &[MAX_PAYLOAD_LEN, MAX_PAYLOAD_LEN, 0]),
    ] {
        let mut payload = b"\x17\x07\0\0\0\0\x01\0\0\0\0\0\xfd".to_vec();
        payload.resize(payload_len, b'x');
        let layout = execute_layout(&payload, 1, PLAIN).unwrap();
        let mut out = Vec::new();
        splice_type_block(&payload, &layout, b"\xfd\0", 255, &mut out).unwrap();
        let mut rest = &out[..];
        let mut joined = Vec::new();
        for (index, len) in frames.iter().enumerate() {
            let (header, part, after) = split_frame(rest).unwrap();
            assert_eq!(header.payload_len, *len);
            assert_eq!(usize::from(header.sequence), (255 + index) % 256);
            joined.extend_from_slice(part);
            rest = after;
        }
        assert!(rest.is_empty());
        assert_eq!(joined[..15], *b"\x17\x07\0\0\0\0\x01\0\0\0\0\x01\xfd\0\xfd");
        assert_eq!(joined[15..], payload[13..]);

        let header = FrameHeader { payload_len: payload_len.min(MAX_PAYLOAD_LEN), sequence: 0 };
        let mut head = Vec::new();
        let spliced = splice_head(header, &payload[..12], &layout, b"\xfd\0", &mut head).unwrap();
        assert_eq!(spliced == SplicedHead::Written, frames.len() == 1);
        assert_eq!(head.is_empty(), frames.len() > 1);
    }
}
