//! Brackets with nothing but values in them: the rows of an INSERT, the list of an IN.

use super::key::Extent;
use super::pieces::{Quoting, behind_number, literal_len};

/// How a bracket of values ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Closed,
    /// With the front of a text that goes on.
    Cut,
}

/// Numbers one behind the other from which on it is tried whether many follow.
const MANY: u32 = 8;

/// What stands behind a bracket, inside of which `text` begins, if there is a value in it, and nothing
/// but values, commas and white space. NULL is one, and a sign belongs to its number.
pub(super) fn skip_values(
    text: &[u8],
    quoting: Quoting,
    extent: Extent,
) -> Option<(Values, &[u8])> {
    let mut rest = text;
    let mut has_values = false;
    let mut numbers = 0_u32;
    // A value may begin here: behind the bracket, or a comma.
    let mut separated = true;
    loop {
        let Some((byte, behind)) = rest.split_first() else {
            let is_cut = has_values && extent == Extent::Front;
            return is_cut.then_some((Values::Cut, &[]));
        };
        rest = match *byte {
            b',' => {
                separated = true;
                behind.strip_prefix(b" ").unwrap_or(behind)
            }
            b' ' | b'\n' | b'\t' | b'\r' => behind,
            b'0'..=b'9' => {
                (has_values, separated) = (true, false);
                numbers = numbers.wrapping_add(1);
                if numbers.is_multiple_of(MANY) {
                    rest = behind_numbers(rest);
                }
                behind_number(rest)?
            }
            b'"' if quoting.names_in_quotes => return None,
            quote @ (b'\'' | b'"') => {
                (has_values, separated, numbers) = (true, false, 0);
                match (literal_len(rest, quote, quoting), extent) {
                    (Some(len), _) => rest.get(len..)?,
                    (None, Extent::Front) => &[],
                    (None, Extent::Whole) => return None,
                }
            }
            b')' if has_values => return Some((Values::Closed, behind)),
            b'-' if separated && behind.first().is_some_and(u8::is_ascii_digit) => behind,
            b'N' | b'n' if separated => {
                (has_values, separated) = (true, false);
                behind_null(rest)?
            }
            _ => return None,
        };
    }
}

/// Of a list of numbers the last one of those that can be passed at a glance.
fn behind_numbers(text: &[u8]) -> &[u8] {
    let is_list = |byte: u8| byte.is_ascii_digit() | (byte == b',') | (byte == b' ');
    let (chunks, _) = text.as_chunks::<16>();
    let all = |chunk: &&[u8; 16]| chunk.iter().fold(true, |all, byte| all & is_list(*byte));
    let len = chunks.iter().take_while(all).count().saturating_mul(16);
    let list = text.get(..len).unwrap_or_default();
    // Behind a comma, a number or white space begins, or something else that is looked at then.
    let last = list.iter().rposition(|byte| !byte.is_ascii_digit());
    let number = last.map_or(text, |last| text.get(last.saturating_add(1)..).unwrap_or_default());
    if number.first().is_some_and(u8::is_ascii_digit) { number } else { text }
}

/// What stands behind a NULL that is a value for certain.
fn behind_null(text: &[u8]) -> Option<&[u8]> {
    let (word, behind) = text.split_at_checked(4)?;
    let ends = matches!(behind.first(), Some(b',' | b' ' | b')' | b'\n' | b'\t' | b'\r'));
    (ends && word.eq_ignore_ascii_case(b"NULL")).then_some(behind)
}
