//! `keepalive` and `proxy_protocol` of a cluster.

use std::time::Duration;

use super::fields::{Fields, FromNode, Maybe, OneOrMany};
use super::node::Node;
use crate::fault::{Faults, Place};

/// `keepalive`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Keepalive {
    pub(crate) idle: Maybe<Duration>,
    pub(crate) interval: Maybe<Duration>,
    pub(crate) count: Maybe<i128>,
    pub(crate) user_timeout: Maybe<Duration>,
}

/// `proxy_protocol`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ProxyProtocol {
    pub(crate) from: Maybe<OneOrMany<String>>,
    pub(crate) timeout: Maybe<Duration>,
    pub(crate) send: Maybe<String>,
}

impl FromNode for Keepalive {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let keepalive = Self {
            idle: fields.take("idle"),
            interval: fields.take("interval"),
            count: fields.take("count"),
            user_timeout: fields.take("user_timeout"),
        };
        fields.finish();
        Some(keepalive)
    }
}

impl FromNode for ProxyProtocol {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let proxy_protocol = Self {
            from: fields.take("from"),
            timeout: fields.take("timeout"),
            send: fields.take("send"),
        };
        fields.finish();
        Some(proxy_protocol)
    }
}
