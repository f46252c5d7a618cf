//! Which server the primary's name leads to.
//!
//! Sluice's own connections stay open. Behind a planned switchover the name (in DNS, of a virtual address, of a proxy
//! in front) leads clients to another server, while the one of before goes on answering: heartbeats, signals and
//! runtime rules would stay there, and tell nothing of the server that is written to. So a new connection is made every
//! few seconds, and asked who it has come to. So are the replicas: one that is the primary by now is no replica.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::ProbeTarget;
use super::answer::text;
use super::logging::{BINLOG_FORMAT, Logging};
use super::replica::note_no_replicas;
use super::source::SourceIdentity;
use crate::board::ProbeError;
use crate::link::Link;

/// How often it is looked: a login, a question and a goodbye.
const INTERVAL: Duration = Duration::from_secs(5);

/// What tells servers apart, and as what one logs. Every account may read these. The first is MySQL's; a server that
/// was cloned with its `auto.cnf` has that of another one.
const QUESTION: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
    ('server_uuid', 'server_id', 'hostname', 'port', 'datadir', 'binlog_format')";

/// How soon it is looked again at the start, and where another server was found.
const SOON: Duration = Duration::from_millis(300);

/// So many new connections in a row have to come to the other server.
const IN_A_ROW: u32 = 3;

/// So many where the name has led to and fro before.
const IN_A_ROW_OF_A_FLAPPING: u32 = 20;

/// Whether the primary is another server. A name that leads to one of several servers moves nothing, or once.
#[derive(Debug, Default)]
struct Doubt {
    /// The other server, and how many connections in a row have come to it.
    other: String,
    others: u32,
    /// It was another, and the one of before again.
    flaps: bool,
}

impl Doubt {
    /// A connection has come to the server that is known.
    fn note_same(&mut self) {
        self.flaps |= self.others > 0;
        self.others = 0;
    }

    /// A connection has come to this other one. Whether it is the primary now.
    fn is_over(&mut self, other: &str) -> bool {
        if self.others > 0 && self.other != other {
            self.flaps = true;
            self.others = 0;
        }
        other.clone_into(&mut self.other);
        self.others = self.others.saturating_add(1);
        if self.others < if self.flaps { IN_A_ROW_OF_A_FLAPPING } else { IN_A_ROW } {
            return false;
        }
        self.others = 0;
        true
    }
}

/// Who a server is.
#[derive(Debug, Clone)]
pub(crate) struct ServerIdentity {
    /// What no other server has.
    pub(crate) name: String,
    /// The server as its replicas know it.
    pub(crate) source: SourceIdentity,
    /// What heartbeats are in its log.
    pub(crate) logging: Logging,
}

/// Runs until it is dropped. Tells `moved` when the primary is another server than before: all that is connected to it
/// begins again.
pub(super) async fn watch(target: ProbeTarget, moved: watch::Sender<()>) {
    let mut known: Option<String> = None;
    let mut doubt = Doubt::default();
    let mut link = target.link(super::PROBE_TIMEOUT);
    // Who would kill waits for as many.
    let mut first_looks = 0..IN_A_ROW;
    loop {
        if known.is_some() {
            let is_soon = doubt.others > 0 || first_looks.next().is_some();
            tokio::time::sleep(if is_soon { SOON } else { INTERVAL }).await;
        }
        // Whoever does not answer here does not answer the other probes, which say so.
        let Ok(Some(found)) = ask_anew(&target, &mut link).await else {
            tokio::time::sleep(super::PROBE_TIMEOUT).await;
            continue;
        };
        let Some(before) = known.as_ref().filter(|known| **known != found.name) else {
            doubt.note_same();
            known = Some(found.name.clone());
            target.site.cluster.probes.note_primary(found);
            continue;
        };
        if !doubt.is_over(&found.name) {
            continue;
        }
        tracing::warn!(
            cluster = %target.site.cluster.name, server = %target.server, before, now = found.name,
            "the primary's name leads to another server now: probes, heartbeats and runtime rules \
             go there"
        );
        let cluster = &target.site.cluster;
        known = Some(found.name.clone());
        cluster.probes.note_primary(found);
        cluster.probes.primary_moved();
        target.account.tries_tls_at(&target.server);
        note_no_replicas(&target.site);
        cluster.explainer.primary_moved();
        moved.send_replace(());
    }
}

/// Tells whether a replica of the file is the primary, until it is dropped; once, that its name leads to several
/// servers: each of its probes has a connection of its own.
pub(super) async fn watch_replica(target: ProbeTarget) {
    let board = &target.site.cluster.probes;
    let mut link = target.link(super::PROBE_TIMEOUT);
    let mut before: Option<String> = None;
    let mut told = false;
    let mut first_looks = 0..IN_A_ROW;
    loop {
        if let Ok(Some(found)) = identify(&mut link).await {
            let is_another = before.as_ref().is_some_and(|before| *before != found.name);
            if is_another && !std::mem::replace(&mut told, true) {
                tracing::warn!(
                    cluster = %target.site.cluster.name, server = %target.server, before,
                    now = found.name,
                    "a replica's name leads to another server than before; where it leads to several \
                     in turns, each of its probes may be at another one: name each replica by an \
                     address of its own"
                );
            }
            before = Some(found.name.clone());
            board.replica_is(&target.server, &found.name, target.site.cluster.now());
            board.note_replica(&target.server, found.name);
        }
        let is_anew = first_looks.next().is_some();
        if is_anew {
            link.close().await;
        }
        tokio::time::sleep(if is_anew { SOON } else { INTERVAL }).await;
    }
}

/// Who a new connection comes to, which is noted; none if that cannot be told.
async fn ask_anew(
    target: &ProbeTarget,
    link: &mut Link,
) -> Result<Option<ServerIdentity>, ProbeError> {
    let began = Instant::now();
    let found = identify(link).await;
    if let Ok(Some(found)) = &found {
        let sightings = &target.site.cluster.probes.sightings;
        sightings.note(&target.server, &found.name, began, Instant::now());
    }
    link.close().await;
    found
}

/// Who the server is; none if that cannot be told.
pub(crate) async fn identify(link: &mut Link) -> Result<Option<ServerIdentity>, ProbeError> {
    let mut told = Vec::new();
    for row in link.rows(QUESTION).await? {
        let (Some(name), Some(value)) =
            (row.as_ref(0).and_then(text), row.as_ref(1).and_then(text))
        else {
            return Ok(None);
        };
        told.push((name.to_ascii_lowercase(), value));
    }
    Ok(ServerIdentity::of(told))
}

impl ServerIdentity {
    /// By these variables.
    fn of(mut told: Vec<(String, String)>) -> Option<Self> {
        let find = |name| told.iter().find(|(is, _)| is == name).map(|(_, value)| value.clone());
        let source = SourceIdentity { uuid: find("server_uuid"), server_id: find("server_id") };
        let logging = Logging::of(find(BINLOG_FORMAT).as_deref());
        // Both may be set while the server runs; where there is a uuid the number is not needed.
        told.retain(|(name, _)| {
            name != BINLOG_FORMAT && (source.uuid.is_none() || name != "server_id")
        });
        told.sort_unstable();
        let told: Vec<String> =
            told.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!told.is_empty()).then(|| Self { name: told.join(" "), source, logging })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its lag did not count, for it was said to be the other one.
    #[test]
    fn servers_that_were_cloned_with_their_uuid_are_two() {
        let of = |port: &str, server_id: &str, uuid: Option<&str>| {
            let uuid = uuid.map(|uuid| ("server_uuid", uuid));
            let told = uuid.into_iter().chain([("port", port), ("server_id", server_id)]);
            ServerIdentity::of(told.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()).unwrap()
        };
        let (one, twin) = (of("1", "7", Some("u")), of("2", "7", Some("u")));
        assert_ne!(one.name, twin.name);
        assert_eq!(one.source, twin.source);
        assert_eq!(one.name, of("1", "8", Some("u")).name, "its number was set anew");
        assert_ne!(of("1", "7", None).name, of("1", "8", None).name, "MariaDB");
    }

    #[test]
    fn how_it_logs_is_known_and_makes_it_no_other_server() {
        let of = |format: &str| {
            let told = [("port", "1"), ("binlog_format", format)];
            ServerIdentity::of(told.map(|(a, b)| (a.to_owned(), b.to_owned())).into()).unwrap()
        };
        let (rows, mixed) = (of("ROW"), of("MIXED"));
        assert_eq!((rows.logging, mixed.logging), (Logging::Rows, Logging::Statements));
        assert_eq!(rows.name, mixed.name);
    }

    #[test]
    fn a_name_that_leads_to_another_server_has_moved_and_one_that_leads_to_both_has_not() {
        let mut doubt = Doubt::default();
        assert_eq!([(); 4].map(|()| doubt.is_over("b")), [false, false, true, false]);

        let mut doubt = Doubt::default();
        for run in [1, 2, 2, 5, 12] {
            assert!(!(0..run).any(|_| doubt.is_over("b")), "{run}");
            doubt.note_same();
        }
        assert!(!(0..30).any(|n| doubt.is_over(["b", "c"][n % 2])), "to a third");
        assert!((0..20).any(|_| doubt.is_over("b")), "it has moved for good");
    }
}
