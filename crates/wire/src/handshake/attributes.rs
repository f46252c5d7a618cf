//! Connection attributes.

use crate::lenenc::Reader;

/// Most bytes of connection attributes that are looked at: the servers' own limit.
pub const ATTRIBUTES_LEN_MAX: usize = 64 * 1024;

/// Connection attributes as they lie in the packet: name and value in turn. Reading ends at the
/// first pair that cannot be read. A name may come twice; which one counts is the reader's
/// business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// Reads the field `string<lenenc>` that holds the attributes; empty when it is not there.
    pub(super) fn take(reader: &mut Reader<'a>) -> Self {
        let bytes = reader.lenenc_bytes_cut().unwrap_or_default();
        Self { bytes: bytes.get(..ATTRIBUTES_LEN_MAX).unwrap_or(bytes) }
    }

    /// The pairs in the client's order.
    #[must_use]
    pub fn iter(&self) -> AttributesIter<'a> {
        AttributesIter { reader: Reader::new(self.bytes) }
    }
}

impl<'a> IntoIterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = AttributesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = AttributesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over [`Attributes`].
#[derive(Debug, Clone)]
pub struct AttributesIter<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for AttributesIter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.reader.lenenc_bytes();
        let value = self.reader.lenenc_bytes();
        let pair = name.zip(value);
        if pair.is_none() {
            self.reader = Reader::default();
        }
        pair
    }
}
