//! The value of a response that holds no more than one, such as what GET_LOCK() returned.

use crate::lenenc::Reader;
use crate::packet::OK_HEADER;

use super::captured::Packet;

/// What is known of the only value so far.
///
/// ```text
/// Awaited ─ one column ─▶ Column ─ definition ─▶ Column ─ one row ─▶ Seen ─ end ─▶ only()
///    └───────────────────────┴─ another result, column or row ─────────┴──▶ Spoilt
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueWatch {
    Off,
    Awaited(RowFormat),
    /// A result set of one column is under way. `integer` is what its definition said, if it was
    /// sent.
    Column {
        format: RowFormat,
        integer: Option<Integer>,
    },
    Seen(OnlyValue),
    Spoilt,
}

/// The only column of the only row of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnlyValue {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
}

/// How the rows of a response are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFormat {
    Text,
    Binary,
}

/// A column of integers, as binary rows hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Integer {
    width: Width,
    unsigned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl ValueWatch {
    pub(super) fn start(format: RowFormat) -> Self {
        Self::Awaited(format)
    }

    pub(super) fn is_on(self) -> bool {
        self != Self::Off
    }

    /// The value, once the response is over.
    pub(super) fn only(self) -> Option<OnlyValue> {
        match self {
            Self::Seen(value) => Some(value),
            Self::Off | Self::Awaited(_) | Self::Column { .. } | Self::Spoilt => None,
        }
    }

    /// A result set begins.
    pub(super) fn result_set(&mut self, columns: u64) {
        *self = match *self {
            Self::Off => Self::Off,
            Self::Awaited(format) if columns == 1 => Self::Column { format, integer: None },
            Self::Awaited(_) | Self::Column { .. } | Self::Seen(_) | Self::Spoilt => Self::Spoilt,
        };
    }

    /// A result without rows, or whose rows come later.
    pub(super) fn other_result(&mut self) {
        if self.is_on() {
            *self = Self::Spoilt;
        }
    }

    /// A column's definition.
    pub(super) fn definition(&mut self, packet: Packet<'_>) {
        if let Self::Column { integer, .. } = self {
            *integer = packet.whole().and_then(Integer::of_definition);
        }
    }

    /// A row.
    pub(super) fn row(&mut self, packet: Packet<'_>) {
        *self = match *self {
            Self::Off => Self::Off,
            Self::Column { format, integer } => {
                let value = packet.whole().and_then(|row| match (format, row) {
                    (RowFormat::Text, [NULL]) | (RowFormat::Binary, [OK_HEADER, FIRST_IS_NULL]) => {
                        Some(OnlyValue::Null)
                    }
                    (RowFormat::Text, _) => text_value(row).map(OnlyValue::Integer),
                    (RowFormat::Binary, _) => integer?.binary_value(row).map(OnlyValue::Integer),
                });
                value.map_or(Self::Spoilt, Self::Seen)
            }
            Self::Awaited(_) | Self::Seen(_) | Self::Spoilt => Self::Spoilt,
        };
    }
}

impl Integer {
    /// Reads the fixed fields behind the names, which end a definition in every dialect:
    /// `0c charset:u16 length:u32 type:u8 flags:u16 decimals:u8 0:u16`.
    fn of_definition(definition: &[u8]) -> Option<Self> {
        let mut fields = Reader::new(definition.last_chunk::<FIXED_FIELDS_LEN>()?);
        if fields.u8()? != FIXED_FIELDS_FOLLOW {
            return None;
        }
        fields.bytes(6)?;
        let width = match fields.u8()? {
            MYSQL_TYPE_TINY => Width::One,
            MYSQL_TYPE_SHORT | MYSQL_TYPE_YEAR => Width::Two,
            MYSQL_TYPE_LONG | MYSQL_TYPE_INT24 => Width::Four,
            MYSQL_TYPE_LONGLONG => Width::Eight,
            _ => return None,
        };
        Some(Self { width, unsigned: fields.u16()? & UNSIGNED_FLAG != 0 })
    }

    /// `00`, a NULL bitmap of one byte, the value.
    fn binary_value(self, row: &[u8]) -> Option<i64> {
        let value = row.strip_prefix(&[OK_HEADER, NOTHING_IS_NULL])?;
        match (self.width, self.unsigned) {
            (Width::One, false) => Some(i8::from_le_bytes(value.try_into().ok()?).into()),
            (Width::One, true) => Some(u8::from_le_bytes(value.try_into().ok()?).into()),
            (Width::Two, false) => Some(i16::from_le_bytes(value.try_into().ok()?).into()),
            (Width::Two, true) => Some(u16::from_le_bytes(value.try_into().ok()?).into()),
            (Width::Four, false) => Some(i32::from_le_bytes(value.try_into().ok()?).into()),
            (Width::Four, true) => Some(u32::from_le_bytes(value.try_into().ok()?).into()),
            (Width::Eight, false) => Some(i64::from_le_bytes(value.try_into().ok()?)),
            (Width::Eight, true) => u64::from_le_bytes(value.try_into().ok()?).try_into().ok(),
        }
    }
}

/// One string that is the whole row, of digits with at most a minus before them.
fn text_value(row: &[u8]) -> Option<i64> {
    let mut reader = Reader::new(row);
    let text = reader.lenenc_bytes()?;
    if !reader.is_empty() || text.starts_with(b"+") {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// From the byte that says how long they are to the end.
const FIXED_FIELDS_LEN: usize = 13;
/// Length of the fixed fields, as the definition itself says it.
const FIXED_FIELDS_FOLLOW: u8 = 0x0c;
const NOTHING_IS_NULL: u8 = 0;
/// In the bitmap of a binary row, whose first two bits stand for nothing.
const FIRST_IS_NULL: u8 = 0x04;
/// In place of a length, in a row of text.
const NULL: u8 = 0xfb;
const UNSIGNED_FLAG: u16 = 0x20;
const MYSQL_TYPE_TINY: u8 = 0x01;
const MYSQL_TYPE_SHORT: u8 = 0x02;
const MYSQL_TYPE_LONG: u8 = 0x03;
const MYSQL_TYPE_LONGLONG: u8 = 0x08;
const MYSQL_TYPE_INT24: u8 = 0x09;
const MYSQL_TYPE_YEAR: u8 = 0x0d;
