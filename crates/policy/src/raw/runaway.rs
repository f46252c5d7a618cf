//! `runaway` of a rule, as it is written.

use std::time::Duration;

use super::fields::{Fields, FromNode, Maybe};
use super::node::Node;
use super::size::Size;
use crate::fault::{Faults, Place};

/// `runaway` of a rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Runaway {
    pub(crate) elapsed: Maybe<Duration>,
    pub(crate) bytes_sent: Maybe<Size>,
    pub(crate) rows_sent: Maybe<i128>,
    pub(crate) action: Maybe<String>,
    pub(crate) watch: Maybe<Watch>,
}

/// `runaway.watch`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Watch {
    pub(crate) by: Maybe<String>,
    pub(crate) lasts: Maybe<Duration>,
}

impl FromNode for Runaway {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let runaway = Self {
            elapsed: fields.take("elapsed"),
            bytes_sent: fields.take("bytes_sent"),
            rows_sent: fields.take("rows_sent"),
            action: fields.take_word("action"),
            watch: fields.take("watch"),
        };
        fields.finish();
        Some(runaway)
    }
}

impl FromNode for Watch {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let watch = Self { by: fields.take_word("by"), lasts: fields.require("for") };
        fields.finish();
        Some(watch)
    }
}
