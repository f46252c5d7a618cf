//! One of `guards`, as it is written.

use std::time::Duration;

use super::fields::{Fields, FromNode, Maybe, OneOrMany, Spanned};
use super::node::{Node, Value};
use super::rule::{ErrorProfile, Match, Schedule};
use super::size::Size;
use crate::fault::{Faults, Place};

/// One of `guards`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Guard {
    pub(crate) name: Maybe<String>,
    pub(crate) conditions: Maybe<Match>,
    pub(crate) mode: Maybe<String>,
    pub(crate) where_required: Maybe<String>,
    pub(crate) limit_counts: Maybe<bool>,
    pub(crate) constant_counts: Maybe<bool>,
    pub(crate) no_cross_join: Maybe<String>,
    pub(crate) max_in_list: Maybe<OrOff<i128>>,
    pub(crate) max_statement_bytes: Maybe<OrOff<Size>>,
    pub(crate) require_tag: Maybe<OrOff<OneOrMany<String>>>,
    pub(crate) no_ddl_hours: Maybe<OrOff<OneOrMany<Schedule>>>,
    pub(crate) max_rows_expected: Maybe<OrOff<i128>>,
    pub(crate) explain_timeout: Maybe<Duration>,
    pub(crate) error: Maybe<ErrorProfile>,
    pub(crate) reason: Maybe<String>,
}

impl Guard {
    /// Whether it says nothing of any check, not even `off`.
    pub(crate) fn names_no_check(&self) -> bool {
        self.where_required.is_none()
            && self.no_cross_join.is_none()
            && self.max_in_list.is_none()
            && self.max_statement_bytes.is_none()
            && self.require_tag.is_none()
            && self.no_ddl_hours.is_none()
            && self.max_rows_expected.is_none()
    }
}

impl FromNode for Guard {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let guard = Self {
            name: fields.require("name"),
            conditions: fields.take("match"),
            mode: fields.take_switch("mode"),
            where_required: fields.take_switch("where_required"),
            limit_counts: fields.take("limit_counts"),
            constant_counts: fields.take("constant_counts"),
            no_cross_join: fields.take_switch("no_cross_join"),
            max_in_list: fields.take("max_in_list"),
            max_statement_bytes: fields.take("max_statement_bytes"),
            require_tag: fields.take("require_tag"),
            no_ddl_hours: fields.take("no_ddl_hours"),
            max_rows_expected: fields.take("max_rows_expected"),
            explain_timeout: fields.take("explain_timeout"),
            error: fields.take("error"),
            reason: fields.take("reason"),
        };
        fields.finish();
        Some(guard)
    }
}

/// What a check goes by, or `off`. The words for how far it goes are those of the guard's `mode`, and
/// would be taken for a tag.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OrOff<T> {
    /// It is not looked at.
    Off,
    /// It is, by this.
    On(T),
}

impl<T> OrOff<T> {
    /// Whether it is `off`.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }
}

impl<T: FromNode> FromNode for OrOff<T> {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let word = match &node.value {
            Value::Text(text) => text.as_str(),
            // What programs that write YAML 1.1 make of it.
            Value::Flag(false) => "off",
            Value::Nothing
            | Value::Flag(true)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Mapping(_) => "",
        };
        match word {
            "off" => Some(Self::Off),
            "warn" | "deny" => {
                let message = format!(
                    "says by what is checked, or `off`: how far the guard goes is its `mode: {word}`"
                );
                faults.add(place, message);
                None
            }
            _ => T::from_node(node, place, faults).map(Self::On),
        }
    }
}

/// The value of a check that is not off.
pub(crate) fn on<T>(check: Maybe<OrOff<T>>) -> Maybe<T> {
    let Spanned { value, place } = check?;
    match value {
        OrOff::Off => None,
        OrOff::On(value) => Some(Spanned { value, place }),
    }
}
