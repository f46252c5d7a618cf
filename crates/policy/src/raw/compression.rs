//! `client_compression` and `compression_level` of a cluster, as they are written.

use super::fields::{Fields, FromNode, Maybe, Spanned};
use super::node::Node;
use crate::fault::{Faults, Place};

/// `client_compression`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientCompression {
    pub(crate) algorithms: Maybe<Vec<Spanned<String>>>,
}

/// `compression_level`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CompressionLevel {
    pub(crate) zlib: Maybe<i128>,
    pub(crate) zstd: Maybe<i128>,
}

impl FromNode for ClientCompression {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let compression = Self { algorithms: fields.take("algorithms") };
        fields.finish();
        Some(compression)
    }
}

impl FromNode for CompressionLevel {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let level = Self { zlib: fields.take("zlib"), zstd: fields.take("zstd") };
        fields.finish();
        Some(level)
    }
}
