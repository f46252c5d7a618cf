//! Query attributes, and how long a bound parameter is.
//!
//! Manual: `page_protocol_com_query`, `page_protocol_com_stmt_execute`. Sizes follow the server's
//! own reader (`parse_query_bind_params`), and what it would read in a doubtful way is not read
//! here at all: a text that server and relay place differently could hide a statement.

use super::attribute_text::AttributeText;
use crate::lenenc::Reader;

/// Query attributes as they lie in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueryAttributes<'a> {
    /// Statement parameters in front of the attributes, which share their NULL bitmap.
    skip: usize,
    nulls: &'a [u8],
    types: &'a [u8],
    values: &'a [u8],
    count: usize,
}

impl<'a> QueryAttributes<'a> {
    /// Name and value of each attribute, in the client's order. The value is there for strings and
    /// for integers, as the server's `mysql_query_attribute_string` shows them; NULL has none, and
    /// neither have types with more than one way to write a value.
    #[must_use]
    pub fn iter(&self) -> QueryAttributesIter<'a> {
        QueryAttributesIter {
            index: 0,
            attributes: *self,
            types: Reader::new(self.types),
            values: Reader::new(self.values),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count <= self.skip
    }

    /// Reads the attributes in front of a COM_QUERY's text and leaves `reader` at the text.
    pub(super) fn take_from_query(reader: &mut Reader<'a>) -> Option<Self> {
        let count = parameter_count(reader)?;
        if reader.lenenc_int()? != 1 {
            return None;
        }
        if count == 0 {
            return Some(Self::default());
        }
        let nulls = reader.bytes(null_bitmap_len(count))?;
        if reader.u8()? == 0 {
            return None;
        }
        let types = reader.rest();
        skip_types(reader, count, TypeNames::Sent)?;
        let values = reader.rest();
        let attributes = Self { skip: 0, nulls, types, values, count };
        let mut walk = attributes.iter();
        for _ in 0..count {
            walk.step()?;
        }
        *reader = walk.values;
        Some(attributes)
    }

    /// The attributes behind the first `skip` parameters of an EXECUTE.
    pub(super) fn of_execute(parts: ExecuteParts<'a>, skip: usize) -> Self {
        let ExecuteParts { nulls, types, values, count } = parts;
        Self { skip, nulls, types, values, count }
    }
}

impl<'a> IntoIterator for QueryAttributes<'a> {
    type Item = (&'a [u8], Option<AttributeText<'a>>);
    type IntoIter = QueryAttributesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &QueryAttributes<'a> {
    type Item = (&'a [u8], Option<AttributeText<'a>>);
    type IntoIter = QueryAttributesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Where the parameters of an EXECUTE lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExecuteParts<'a> {
    pub(super) nulls: &'a [u8],
    pub(super) types: &'a [u8],
    pub(super) values: &'a [u8],
    pub(super) count: usize,
}

/// Iterator over [`QueryAttributes`].
#[derive(Debug, Clone)]
pub struct QueryAttributesIter<'a> {
    index: usize,
    attributes: QueryAttributes<'a>,
    types: Reader<'a>,
    values: Reader<'a>,
}

impl<'a> QueryAttributesIter<'a> {
    /// The next parameter, be it the statement's or an attribute.
    fn step(&mut self) -> Option<(&'a [u8], Option<AttributeText<'a>>)> {
        if self.index >= self.attributes.count {
            return None;
        }
        let code = self.types.u16()?;
        let name = self.types.lenenc_bytes()?;
        let value = if is_null(self.attributes.nulls, self.index) {
            None
        } else {
            let (kind, value) = take_value(&mut self.values, code & TYPE_MASK)?;
            match kind {
                ValueKind::Text => Some(AttributeText::of_bytes(value)),
                ValueKind::Integer => AttributeText::of_integer(value, code & UNSIGNED_FLAG != 0),
                ValueKind::Other => None,
            }
        };
        self.index = self.index.checked_add(1)?;
        Some((name, value))
    }
}

impl<'a> Iterator for QueryAttributesIter<'a> {
    type Item = (&'a [u8], Option<AttributeText<'a>>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.index < self.attributes.skip {
            self.step()?;
        }
        self.step()
    }
}

/// Whether each type in a type block is followed by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeNames {
    Sent,
    Absent,
}

/// Steps over the types, and names, of `count` parameters.
pub(super) fn skip_types(reader: &mut Reader<'_>, count: usize, names: TypeNames) -> Option<()> {
    match names {
        TypeNames::Absent => {
            reader.bytes(count.checked_mul(2)?)?;
        }
        TypeNames::Sent => {
            for _ in 0..count {
                reader.u16()?;
                reader.lenenc_bytes()?;
            }
        }
    }
    Some(())
}

/// A count of parameters, refused above the server's limit.
pub(super) fn parameter_count(reader: &mut Reader<'_>) -> Option<usize> {
    let count = usize::from(u16::try_from(reader.lenenc_int()?).ok()?);
    Some(count)
}

/// Length in bytes of the NULL bitmap of `count` parameters.
pub(super) fn null_bitmap_len(count: usize) -> usize {
    count.div_ceil(8)
}

fn is_null(nulls: &[u8], index: usize) -> bool {
    let byte = nulls.get(index >> 3).copied().unwrap_or_default();
    let mask = 1_u8.rotate_left(u32::try_from(index & 7).unwrap_or_default());
    byte & mask != 0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Text,
    Integer,
    Other,
}

/// Takes one value. `None` when it ends too early, and for types that no client binds and that
/// servers size in different ways (YEAR, INT24, BOOL, NULL without its bit).
fn take_value<'a>(values: &mut Reader<'a>, code: u16) -> Option<(ValueKind, &'a [u8])> {
    let value = match code {
        MYSQL_TYPE_TINY => (ValueKind::Integer, values.bytes(1)?),
        MYSQL_TYPE_SHORT => (ValueKind::Integer, values.bytes(2)?),
        MYSQL_TYPE_LONG => (ValueKind::Integer, values.bytes(4)?),
        MYSQL_TYPE_LONGLONG => (ValueKind::Integer, values.bytes(8)?),
        MYSQL_TYPE_FLOAT => (ValueKind::Other, values.bytes(4)?),
        MYSQL_TYPE_DOUBLE => (ValueKind::Other, values.bytes(8)?),
        MYSQL_TYPE_DECIMAL | MYSQL_TYPE_TIMESTAMP | MYSQL_TYPE_DATE | MYSQL_TYPE_TIME
        | MYSQL_TYPE_DATETIME | MYSQL_TYPE_NEWDECIMAL => (ValueKind::Other, values.lenenc_bytes()?),
        MYSQL_TYPE_VARCHAR | MYSQL_TYPE_BIT | MYSQL_TYPE_VECTOR
        | MYSQL_TYPE_JSON
        // ENUM, SET, the four BLOBs, VAR_STRING, STRING, GEOMETRY.
        | MYSQL_TYPE_ENUM..=MYSQL_TYPE_GEOMETRY => (ValueKind::Text, values.lenenc_bytes()?),
        _ => return None,
    };
    Some(value)
}

/// The high bit says that a number is unsigned.
const UNSIGNED_FLAG: u16 = 0x8000;
const TYPE_MASK: u16 = 0x7fff;

const MYSQL_TYPE_DECIMAL: u16 = 0;
const MYSQL_TYPE_TINY: u16 = 1;
const MYSQL_TYPE_SHORT: u16 = 2;
const MYSQL_TYPE_LONG: u16 = 3;
const MYSQL_TYPE_FLOAT: u16 = 4;
const MYSQL_TYPE_DOUBLE: u16 = 5;
const MYSQL_TYPE_TIMESTAMP: u16 = 7;
const MYSQL_TYPE_LONGLONG: u16 = 8;
const MYSQL_TYPE_DATE: u16 = 10;
const MYSQL_TYPE_TIME: u16 = 11;
const MYSQL_TYPE_DATETIME: u16 = 12;
const MYSQL_TYPE_VARCHAR: u16 = 15;
const MYSQL_TYPE_BIT: u16 = 16;
const MYSQL_TYPE_VECTOR: u16 = 242;
const MYSQL_TYPE_JSON: u16 = 245;
const MYSQL_TYPE_NEWDECIMAL: u16 = 246;
const MYSQL_TYPE_ENUM: u16 = 247;
const MYSQL_TYPE_GEOMETRY: u16 = 255;
