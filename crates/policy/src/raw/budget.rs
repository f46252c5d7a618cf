//! One of `budgets`, as it is written.

use std::time::Duration;

use super::fields::{Fields, FromNode, Maybe};
use super::node::Node;
use super::{Level, Match};
use crate::fault::{Faults, Place};

/// One of `budgets`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Budget {
    pub(crate) name: Maybe<String>,
    pub(crate) conditions: Maybe<Match>,
    pub(crate) max_concurrency: Maybe<i128>,
    pub(crate) rate: Maybe<f64>,
    pub(crate) rows_per_s: Maybe<f64>,
    pub(crate) share: Maybe<f64>,
    pub(crate) burst: Maybe<Level>,
    pub(crate) max_query_cost: Maybe<Level>,
    pub(crate) per: Maybe<String>,
    pub(crate) on_exceeded: Maybe<String>,
    pub(crate) max_delay: Maybe<Duration>,
    pub(crate) mode: Maybe<String>,
    pub(crate) reason: Maybe<String>,
}

impl FromNode for Budget {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let budget = Self {
            name: fields.require("name"),
            conditions: fields.take("match"),
            max_concurrency: fields.take("max_concurrency"),
            rate: fields.take("rate"),
            rows_per_s: fields.take("rows_per_s"),
            share: fields.take("share"),
            burst: fields.take("burst"),
            max_query_cost: fields.take("max_query_cost"),
            per: fields.take_word("per"),
            on_exceeded: fields.take_word("on_exceeded"),
            max_delay: fields.take("max_delay"),
            mode: fields.take_word("mode"),
            reason: fields.take("reason"),
        };
        fields.finish();
        Some(budget)
    }
}
