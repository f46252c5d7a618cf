//! One of `replicas`.

use std::time::Duration;

use super::fields::{Fields, FromNode, Maybe, expected};
use super::node::{Node, Value};
use crate::fault::{Faults, Place};

/// A server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Replica {
    /// Where it is, and no more.
    Address(String),
    /// With what it has of its own.
    Own(OwnReplica),
}

/// A server with what it has of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OwnReplica {
    pub(crate) host: Maybe<String>,
    pub(crate) port: Maybe<i128>,
    pub(crate) group: Maybe<String>,
    pub(crate) threshold: Maybe<Duration>,
}

impl FromNode for Replica {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Text(address) => Some(Self::Address(address)),
            Value::Mapping(_) => {
                let mut fields = Fields::open(node, place, faults)?;
                let replica = OwnReplica {
                    host: fields.require_address("host"),
                    port: fields.take("port"),
                    group: fields.take("group"),
                    threshold: fields.take("threshold"),
                };
                fields.finish();
                Some(Self::Own(replica))
            }
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_) => {
                expected("host:port or {host: …, threshold: …}", &node, place, faults);
                None
            }
        }
    }
}
