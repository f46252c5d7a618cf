//! `replicas` of a cluster.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use super::checks::{duration, name, server};
use super::limits;
use crate::fault::Faults;
use crate::network::UNIX_PREFIX;
use crate::raw::{self, Maybe, Spanned};
use crate::replica::{ReplicaBook, ReplicaTerms};

/// Where a server listens that is named without its port (manual: Server System Variables, `port`).
const MYSQL_PORT: i128 = 3306;

pub(super) fn compile(
    replicas: Maybe<Vec<Spanned<raw::Replica>>>,
    faults: &mut Faults,
) -> (Vec<Arc<str>>, ReplicaBook) {
    let Some(Spanned { value: list, place }) = replicas else { return Default::default() };
    if list.len() > limits::REPLICAS_MAX {
        faults.add(&place, format!("more than {} replicas", limits::REPLICAS_MAX));
    }
    let mut addresses: Vec<Arc<str>> = Vec::new();
    let mut book = ReplicaBook::default();
    let mut groups: BTreeMap<Arc<str>, Duration> = BTreeMap::new();
    for Spanned { value: replica, place } in list {
        let (address, own) = match replica {
            raw::Replica::Address(value) => (Spanned { value, place: place.clone() }, None),
            raw::Replica::Own(mut own) => {
                // That it is missing has been said.
                let Some(host) = own.host.take() else { continue };
                (with_port(host, own.port.take(), faults), Some(own))
            }
        };
        let address = server(&address, faults);
        if addresses.contains(&address) {
            faults.add(&place, "the replica is there twice");
        }
        if let Some(own) = own {
            book.insert(address.clone(), terms(own, &mut groups, faults));
        }
        addresses.push(address);
    }
    book.share_in_groups();
    (addresses, book)
}

fn terms(
    raw: raw::OwnReplica,
    groups: &mut BTreeMap<Arc<str>, Duration>,
    faults: &mut Faults,
) -> ReplicaTerms {
    let raw::OwnReplica { host: _, port: _, group, threshold } = raw;
    if let Some(group) = &group {
        name(&group.value, &group.place, faults);
    }
    let group: Option<Arc<str>> = group.map(|group| group.value.into());
    let threshold = threshold.map(|threshold| {
        let place = threshold.place.clone();
        let own = duration(Some(threshold), limits::LAG_THRESHOLD, faults);
        if let Some(group) = &group
            && let Some(other) = groups.insert(group.clone(), own)
            && other != own
        {
            let message = format!(
                "the replicas of a group have one threshold, and `{group}` has {} already; give \
                 this one another group, or none",
                limits::show(other)
            );
            faults.add(&place, message);
        }
        own
    });
    ReplicaTerms { group, threshold }
}

/// The address as one text. What is not well-formed, whoever reads it says.
fn with_port(host: Spanned<String>, port: Maybe<i128>, faults: &mut Faults) -> Spanned<String> {
    let Spanned { value: host, place } = host;
    let is_v6 = host.parse::<Ipv6Addr>().is_ok() || host.ends_with(']');
    let has_port =
        host.starts_with(UNIX_PREFIX) || (host.contains(':') && !is_v6) || host.contains("]:");
    let port = match port {
        Some(port) if has_port => {
            faults.add(&port.place, "`host` names the port, or a socket, already");
            return Spanned { value: host, place };
        }
        Some(port) => {
            if u16::try_from(port.value).is_ok_and(|port| port != 0) {
                port.value
            } else {
                faults.add(&port.place, "must be from 1 to 65535");
                MYSQL_PORT
            }
        }
        None if has_port => return Spanned { value: host, place },
        None => MYSQL_PORT,
    };
    let value = match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    };
    Spanned { value, place }
}
