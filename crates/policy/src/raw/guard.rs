//! One of `guards`, as it is written.

use std::time::Duration;

use super::fields::{Fields, FromNode, Maybe, OneOrMany};
use super::node::Node;
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
    pub(crate) max_in_list: Maybe<i128>,
    pub(crate) max_statement_bytes: Maybe<Size>,
    pub(crate) require_tag: Maybe<OneOrMany<String>>,
    pub(crate) no_ddl_hours: Maybe<OneOrMany<Schedule>>,
    pub(crate) max_rows_expected: Maybe<i128>,
    pub(crate) explain_timeout: Maybe<Duration>,
    pub(crate) error: Maybe<ErrorProfile>,
    pub(crate) reason: Maybe<String>,
}

impl FromNode for Guard {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let guard = Self {
            name: fields.require("name"),
            conditions: fields.take("match"),
            mode: fields.take("mode"),
            where_required: fields.take("where_required"),
            limit_counts: fields.take("limit_counts"),
            constant_counts: fields.take("constant_counts"),
            no_cross_join: fields.take("no_cross_join"),
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
