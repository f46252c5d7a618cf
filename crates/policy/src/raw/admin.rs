//! `admin`, as it is written.

use super::fields::{Fields, FromNode, Maybe, Spanned};
use super::node::Node;
use crate::fault::{Faults, Place};

/// `admin`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Admin {
    pub(crate) listen: Maybe<String>,
    pub(crate) tls: Maybe<AdminTls>,
    pub(crate) token_env: Maybe<String>,
    pub(crate) token_file: Maybe<String>,
    pub(crate) tokens: Maybe<Vec<Spanned<Token>>>,
    pub(crate) loopback_changes: Maybe<bool>,
    pub(crate) legacy_get: Maybe<bool>,
    pub(crate) hosts: Maybe<Vec<Spanned<String>>>,
}

/// `admin.tls`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AdminTls {
    pub(crate) cert: Maybe<String>,
    pub(crate) key: Maybe<String>,
}

/// One of `admin.tokens`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) name: Maybe<String>,
    pub(crate) token_env: Maybe<String>,
    pub(crate) token_file: Maybe<String>,
}

impl FromNode for Admin {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let admin = Self {
            listen: fields.take_address("listen"),
            tls: fields.take("tls"),
            token_env: fields.take("token_env"),
            token_file: fields.take("token_file"),
            tokens: fields.take("tokens"),
            loopback_changes: fields.take("loopback_changes"),
            legacy_get: fields.take("legacy_get"),
            hosts: fields.take("hosts"),
        };
        fields.secret("token");
        fields.finish();
        Some(admin)
    }
}

impl FromNode for AdminTls {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let tls = Self { cert: fields.require("cert"), key: fields.require("key") };
        fields.finish();
        Some(tls)
    }
}

impl FromNode for Token {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let token = Self {
            name: fields.require("name"),
            token_env: fields.take("token_env"),
            token_file: fields.take("token_file"),
        };
        fields.secret("token");
        fields.finish();
        Some(token)
    }
}
