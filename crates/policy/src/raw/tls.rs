//! `client_tls` and `backend_tls` of a cluster, as they are written.

use super::fields::{Fields, FromNode, Maybe};
use super::node::Node;
use crate::fault::{Faults, Place};

/// `client_tls`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientTls {
    pub(crate) mode: Maybe<String>,
    pub(crate) cert: Maybe<String>,
    pub(crate) key: Maybe<String>,
    pub(crate) client_ca: Maybe<String>,
    pub(crate) min_version: Maybe<String>,
}

/// `backend_tls`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BackendTls {
    pub(crate) mode: Maybe<String>,
    pub(crate) ca: Maybe<String>,
    pub(crate) cert: Maybe<String>,
    pub(crate) key: Maybe<String>,
    pub(crate) server_name: Maybe<String>,
}

impl FromNode for ClientTls {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let tls = Self {
            mode: fields.take("mode"),
            cert: fields.take("cert"),
            key: fields.take("key"),
            client_ca: fields.take("client_ca"),
            min_version: fields.take("min_version"),
        };
        fields.finish();
        Some(tls)
    }
}

impl FromNode for BackendTls {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let tls = Self {
            mode: fields.take("mode"),
            ca: fields.take("ca"),
            cert: fields.take("cert"),
            key: fields.take("key"),
            server_name: fields.take("server_name"),
        };
        fields.finish();
        Some(tls)
    }
}
