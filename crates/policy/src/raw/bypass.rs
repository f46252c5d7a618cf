//! `bypass` of a cluster.

use std::time::Duration;

use super::fields::{Fields, FromNode, Maybe, OneOrMany};
use super::node::Node;
use crate::fault::{Faults, Place};

/// `bypass`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Bypass {
    pub(crate) watch: Maybe<bool>,
    pub(crate) interval: Maybe<Duration>,
    pub(crate) ignore_users: Maybe<OneOrMany<String>>,
    pub(crate) sluices: Maybe<OneOrMany<String>>,
}

impl FromNode for Bypass {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let bypass = Self {
            watch: fields.take("watch"),
            interval: fields.take("interval"),
            ignore_users: fields.take("ignore_users"),
            sluices: fields.take("sluices"),
        };
        fields.finish();
        Some(bypass)
    }
}
