//! Sizes in bytes.

use super::fields::{FromNode, expected};
use super::node::{Node, Value};
use crate::fault::{Faults, Place};

/// A size in bytes: `64MiB`, or the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromNode for Size {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let read = match &node.value {
            Value::Text(text) => parse_size(text),
            Value::Integer(bytes) => u64::try_from(*bytes).ok(),
            Value::Nothing
            | Value::Flag(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Mapping(_) => None,
        };
        if read.is_none() {
            let what = "a size with its unit, like 512KiB, 64MiB or 1GiB, or a number of bytes";
            expected(what, &node, place, faults);
        }
        read.map(Self)
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(unit_at)?;
    let unit: u64 = match unit.trim_start() {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}
