//! `history`.

use std::time::Duration;

use super::fields::{Fields, FromNode, Maybe};
use super::node::Node;
use super::size::Size;
use crate::fault::{Faults, Place};

/// `history`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct History {
    pub(crate) enabled: Maybe<bool>,
    pub(crate) max_age: Maybe<Duration>,
    pub(crate) max_size: Maybe<Size>,
}

impl FromNode for History {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let history = Self {
            enabled: fields.take("enabled"),
            max_age: fields.take("max_age"),
            max_size: fields.take("max_size"),
        };
        fields.finish();
        Some(history)
    }
}
