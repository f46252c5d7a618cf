//! Whom a rule matches.
//!
//! Conditions are ANDed, the values of one are ORed. The app is matched by its levels: a value without `:`
//! matches an app that has it as one of its levels, a value with `:` matches the whole app. The same holds
//! for prefixes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sql::{Class, ClassSet};

use crate::evaluate::Facts;
use crate::shape::{Caution, ShapeNeeds, TablePatterns};

/// Whom a rule matches. Empty: everybody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    pub(crate) app: Option<Patterns>,
    pub(crate) user: Option<Patterns>,
    pub(crate) schema: Option<Patterns>,
    /// By key, each key once.
    pub(crate) tags: Vec<(Box<[u8]>, Patterns)>,
    /// By key, each key once.
    pub(crate) attributes: Vec<(Box<[u8]>, Patterns)>,
    pub(crate) client: Option<Vec<Cidr>>,
    pub(crate) statements: Option<ClassSet>,
    /// Hashes of digest texts, ascending.
    pub(crate) digests: Option<Vec<u64>>,
    pub(crate) tables: Option<TablePatterns>,
}

/// Values of one condition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patterns {
    /// Sorted.
    pub(crate) exact: Vec<Box<[u8]>>,
    pub(crate) prefixes: Vec<Box<[u8]>>,
    /// `*`: any value, but there must be one.
    pub(crate) present: bool,
}

impl Patterns {
    /// Adds `*`, `prefix*` or a value.
    pub(crate) fn add(&mut self, pattern: &str) {
        match pattern.strip_suffix('*') {
            Some("") => self.present = true,
            Some(prefix) => self.prefixes.push(prefix.as_bytes().into()),
            None => {
                let value: Box<[u8]> = pattern.as_bytes().into();
                if let Err(at) = self.exact.binary_search(&value) {
                    self.exact.insert(at, value);
                }
            }
        }
    }

    /// Whether `value` is one of them. An empty value is an absent one.
    pub(crate) fn matches(&self, value: &[u8]) -> bool {
        if value.is_empty() {
            return false;
        }
        self.present
            || self.exact.binary_search_by(|exact| (**exact).cmp(value)).is_ok()
            || self.prefixes.iter().any(|prefix| value.starts_with(prefix))
    }

    /// Whether the whole app, or one of its levels, is one of them.
    pub(crate) fn matches_app(&self, app: &[u8]) -> bool {
        self.matches(app) || app.split(|byte| *byte == b':').any(|level| self.matches(level))
    }
}

/// Addresses that share their first bits. IPv4 is kept in its IPv6-mapped form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    /// The bits behind the prefix are zero.
    pub(crate) network: u128,
    /// 0 to 128.
    pub(crate) prefix_len: u32,
}

impl Cidr {
    /// An address, or an address and a prefix length: `10.0.0.0/8`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let (bits, family_bits) = match address {
            IpAddr::V4(address) => (mapped(address), 96),
            IpAddr::V6(address) => (address.to_bits(), 0),
        };
        let prefix_len = match len {
            Some(len) => len.checked_add(family_bits)?,
            None => 128,
        };
        (prefix_len <= 128).then(|| Self { network: bits & mask(prefix_len), prefix_len })
    }

    /// Whether the address is among them.
    pub(crate) fn contains(self, address: u128) -> bool {
        address & mask(self.prefix_len) == self.network
    }
}

/// The address as [`Cidr`] compares it.
pub(crate) fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => mapped(address),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The first `prefix_len` bits.
pub(crate) fn mask(prefix_len: u32) -> u128 {
    u128::MAX.checked_shl(128_u32.saturating_sub(prefix_len)).unwrap_or(0)
}

fn mapped(address: Ipv4Addr) -> u128 {
    Ipv6Addr::to_bits(address.to_ipv6_mapped())
}

impl Condition {
    /// Whether all of it holds, for a rule that is as cautious as it must be.
    pub(crate) fn matches(&self, facts: &Facts<'_>, caution: Caution) -> bool {
        self.allows_class(facts.class)
            && self.is_from(facts)
            && self.digests.as_ref().is_none_or(|digests| {
                facts.shape.digest.is_some_and(|digest| digests.binary_search(&digest).is_ok())
            })
            && self.tables.as_ref().is_none_or(|tables| facts.shape.tables.matches(tables, caution))
    }

    /// Whether what it says of who asks holds.
    pub(crate) fn is_from(&self, facts: &Facts<'_>) -> bool {
        let identity = facts.identity;
        let session = facts.session;
        self.app.as_ref().is_none_or(|app| app.matches_app(identity.app))
            && self.user.as_ref().is_none_or(|user| user.matches(session.user()))
            && self.schema.as_ref().is_none_or(|schema| schema.matches(session.schema()))
            && self
                .tags
                .iter()
                .all(|(key, values)| identity.tag(key).is_some_and(|value| values.matches(value)))
            && self.attributes.iter().all(|(key, values)| {
                session.attribute(key).is_some_and(|value| values.matches(value))
            })
            && self.client.as_ref().is_none_or(|networks| {
                session
                    .client_bits()
                    .is_some_and(|address| networks.iter().any(|network| network.contains(address)))
            })
    }

    /// What it looks at in the text itself.
    pub(crate) fn needs(&self) -> ShapeNeeds {
        ShapeNeeds { digest: self.digests.is_some(), tables: self.tables.is_some() }
    }

    /// Whether statements of this class can match.
    pub(crate) fn allows_class(&self, class: Class) -> bool {
        self.statements.is_none_or(|classes| classes.contains(class))
    }
}
