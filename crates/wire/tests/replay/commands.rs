//! Commands: any bytes as a command, and commands that were written as the manual says.

#![expect(clippy::expect_used, clippy::panic, reason = "a check fails by panicking")]

use testkit::Input;
use wire::ProtocolError;
use wire::capability::{CLIENT_QUERY_ATTRIBUTES, Capabilities};
use wire::command::{
    COM_QUERY, COM_STMT_EXECUTE, Command, Expect, PARAMETER_COUNT_AVAILABLE, Query,
    QueryAttributes, execute_attributes, execute_layout, parse_command, splice_head,
    splice_type_block,
};
use wire::frame::{FrameHeader, split_frame};

/// Reads what is there as a command, whole and cut, and reads back what was written.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.u8();
    let caps = Capabilities { base: input.u32(), mariadb: input.u32() };
    match kind % 4 {
        0 => any_bytes(input.rest(), caps),
        1 => any_execution(&mut input, caps),
        2 => written_query(&mut input),
        _ => written_execution(&mut input),
    }
}

/// The front of a command says what the whole of it says: it is decided by its front when it is
/// long.
fn any_bytes(payload: &[u8], caps: Capabilities) {
    let whole = parse_command(payload, caps);
    for len in 1..payload.len() {
        let front = parse_command(payload.get(..len).unwrap_or_default(), caps);
        match (front, whole) {
            (Ok(Command::Query(front)), Ok(Command::Query(whole))) => {
                assert!(whole.text.starts_with(front.text));
                assert!(front.attributes.iter().eq(whole.attributes.iter()));
            }
            (Ok(Command::Prepare(front)), Ok(Command::Prepare(whole)))
            | (Ok(Command::InitDb(front)), Ok(Command::InitDb(whole))) => {
                assert!(whole.starts_with(front));
            }
            (Ok(Command::Execute(front)), Ok(Command::Execute(whole))) => {
                assert_eq!(front.statement_id, whole.statement_id);
                assert!(whole.body.starts_with(front.body));
            }
            (Ok(Command::SetOption(None)), Ok(Command::SetOption(_))) => {}
            (Ok(front), _) => assert_eq!(Ok(front), whole, "at {len}"),
            (Err(ProtocolError::CommandTruncated { command }), _) => {
                assert_eq!(payload.first(), Some(&command));
                assert!(len <= 10, "the fixed part of a command is short");
            }
            (Err(error), _) => {
                assert_eq!(error, ProtocolError::QueryAttributesMalformed);
                assert_eq!(payload.first(), Some(&COM_QUERY));
            }
        }
    }
    if let Ok(Command::Query(query)) = whole {
        assert!(payload.ends_with(query.text));
        assert!(query.attributes.iter().count() <= payload.len());
    }
    if let Ok(command) = whole {
        assert_eq!(command.expect() == Expect::Prepare, payload.first() == Some(&0x16));
    }
}

/// Parameters are found within any EXECUTE, and a block of types that fits is put where it belongs.
fn any_execution(input: &mut Input<'_>, caps: Capabilities) {
    let num_params = u16::from(input.u8() % 24);
    let block = input.chunk();
    let payload = [&[COM_STMT_EXECUTE], input.rest()].concat();
    let Some(layout) = execute_layout(&payload, num_params, caps) else { return };
    assert!(layout.bind_flag_offset < payload.len());
    let attributes = execute_attributes(&payload, &layout, num_params);
    assert!(attributes.iter().count() <= payload.len());
    let header = FrameHeader { payload_len: payload.len(), sequence: 0 };
    let (mut whole, mut head) = (Vec::new(), Vec::new());
    let spliced = splice_type_block(&payload, &layout, block, 0, &mut whole);
    let spliced_head = splice_head(header, &payload, &layout, block, &mut head);
    assert_eq!(spliced.is_ok(), spliced_head.is_ok());
    if spliced.is_err() {
        assert!(whole.is_empty() && head.is_empty());
        return;
    }
    head.extend_from_slice(payload.get(layout.bind_flag_offset + 1..).unwrap_or_default());
    assert_eq!(head, whole);
    let (_, again, _) = split_frame(&whole).expect("one frame");
    let layout = execute_layout(again, num_params, caps).expect("it has types now");
    assert!(layout.types_sent);
    assert_eq!(again.get(layout.type_block), Some(block));
}

fn written_query(input: &mut Input<'_>) {
    let params = params(input);
    let text = input.rest();
    let mut payload = vec![COM_QUERY];
    put_lenenc(&mut payload, params.len());
    payload.push(1);
    if !params.is_empty() {
        put_params(&mut payload, &params, true);
    }
    payload.extend_from_slice(text);
    let command = parse_command(&payload, WITH_ATTRIBUTES).expect("it was written as it should be");
    let Command::Query(Query { text: found, attributes }) = command else {
        panic!("a COM_QUERY is {command:?}");
    };
    assert_eq!(found, text);
    assert!(texts(attributes).eq(params.iter().map(Param::as_attribute)));
    assert_eq!(attributes.is_empty(), params.is_empty());
}

/// Also without its types, which are then put back as after a refusal.
fn written_execution(input: &mut Input<'_>) {
    let own = usize::from(input.u8());
    let params = params(input);
    let own = own.min(params.len());
    let num_params = u16::try_from(own).expect("a byte");
    let mut front = vec![COM_STMT_EXECUTE, 1, 0, 0, 0, PARAMETER_COUNT_AVAILABLE, 1, 0, 0, 0];
    put_lenenc(&mut front, params.len());
    let mut payload = front.clone();
    if !params.is_empty() {
        put_params(&mut payload, &params, true);
    }
    let Some(layout) = execute_layout(&payload, num_params, WITH_ATTRIBUTES) else {
        assert!(params.is_empty());
        return;
    };
    assert_eq!((layout.param_count, layout.types_sent), (params.len(), true));
    let attributes = execute_attributes(&payload, &layout, num_params);
    assert!(texts(attributes).eq(params.iter().skip(own).map(Param::as_attribute)));
    let block = payload.get(layout.type_block).expect("the types are there").to_vec();
    let mut without = front;
    put_params(&mut without, &params, false);
    let layout = execute_layout(&without, num_params, WITH_ATTRIBUTES).expect("it has parameters");
    let mut spliced = Vec::new();
    splice_type_block(&without, &layout, &block, 0, &mut spliced).expect("the block fits");
    assert_eq!(split_frame(&spliced).map(|(_, again, _)| again), Some(&payload[..]));
}

fn texts(attributes: QueryAttributes<'_>) -> impl Iterator<Item = (&[u8], Option<Vec<u8>>)> {
    attributes.into_iter().map(|(name, value)| (name, value.map(|text| text.as_bytes().to_vec())))
}

/// A parameter as a client binds it.
struct Param<'a> {
    code: u16,
    name: &'a [u8],
    value: Option<&'a [u8]>,
}

impl<'a> Param<'a> {
    /// Strings are shown, and integers in digits; other values not.
    fn as_attribute(&self) -> (&'a [u8], Option<Vec<u8>>) {
        let text = self.value.and_then(|value| match self.code & 0x7fff {
            1..=3 | 8 => Some(self.digits(value)),
            0 | 4..=7 | 10..=12 | 246 => None,
            _ => Some(value.to_vec()),
        });
        (self.name, text)
    }

    fn digits(&self, value: &[u8]) -> Vec<u8> {
        let bytes = value.iter().zip(0_u32..);
        let unsigned = bytes.fold(0_i128, |sum, (byte, at)| sum + (i128::from(*byte) << (8 * at)));
        let bits = 8 * u32::try_from(value.len()).expect("eight at most");
        let is_negative = self.code & 0x8000 == 0 && unsigned >= 1 << (bits - 1);
        let number = if is_negative { unsigned - (1 << bits) } else { unsigned };
        number.to_string().into_bytes()
    }

    /// The width of types that have one.
    fn width(code: u16) -> Option<usize> {
        match code & 0x7fff {
            1 => Some(1),
            2 => Some(2),
            3 | 4 => Some(4),
            5 | 8 => Some(8),
            _ => None,
        }
    }
}

fn params<'a>(input: &mut Input<'a>) -> Vec<Param<'a>> {
    let count = input.u8() % 20;
    (0..count)
        .map_while(|_| {
            let code = input.choose(&CODES);
            let name = input.chunk();
            let is_null = input.u8() == 1;
            let value = match Param::width(code) {
                // The last of an input may be too short for its type.
                Some(width) => Some(input.take(width)).filter(|value| value.len() == width)?,
                None => input.chunk(),
            };
            Some(Param { code, name, value: (!is_null).then_some(value) })
        })
        .collect()
}

fn put_params(out: &mut Vec<u8>, params: &[Param<'_>], types_sent: bool) {
    for eight in params.chunks(8) {
        let nulls = eight.iter().enumerate().filter(|(_, param)| param.value.is_none());
        out.push(nulls.fold(0, |byte, (bit, _)| byte | 1 << bit));
    }
    out.push(u8::from(types_sent));
    for param in params.iter().filter(|_| types_sent) {
        out.extend_from_slice(&param.code.to_le_bytes());
        put_lenenc(out, param.name.len());
        out.extend_from_slice(param.name);
    }
    for param in params {
        let Some(value) = param.value else { continue };
        if Param::width(param.code).is_none() {
            put_lenenc(out, value.len());
        }
        out.extend_from_slice(value);
    }
}

fn put_lenenc(out: &mut Vec<u8>, value: usize) {
    let [a, b, c, ..] = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(a),
        0xfb..=0xffff => out.extend_from_slice(&[0xfc, a, b]),
        _ => out.extend_from_slice(&[0xfd, a, b, c]),
    }
}

const WITH_ATTRIBUTES: Capabilities = Capabilities { base: CLIENT_QUERY_ATTRIBUTES, mariadb: 0 };
/// Types of fixed width, signed and not; types with a length, shown and not.
const CODES: [u16; 14] = [1, 2, 3, 0x8003, 4, 5, 8, 0x8008, 7, 12, 246, 252, 253, 254];
