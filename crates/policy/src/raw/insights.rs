//! `insights`.

use super::fields::{Fields, FromNode, Maybe, OneOrMany};
use super::node::Node;
use crate::fault::{Faults, Place};

/// `insights`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Insights {
    pub(crate) enabled: Maybe<bool>,
    pub(crate) max_digests: Maybe<i128>,
    pub(crate) sample_text: Maybe<bool>,
    pub(crate) tags: Maybe<OneOrMany<String>>,
}

impl FromNode for Insights {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let insights = Self {
            enabled: fields.take("enabled"),
            max_digests: fields.take("max_digests"),
            sample_text: fields.take("sample_text"),
            tags: fields.take("tags"),
        };
        fields.finish();
        Some(insights)
    }
}
