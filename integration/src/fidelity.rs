//! What a client sees through Sluice is what it sees without.
//!
//! A corpus of statements and commands runs over a raw connection, and every packet that comes back
//! is kept with its header. Two runs are equal or Sluice has changed something. Statements are chosen
//! so that their answers do not depend on the connection or the time. Normalised is only what differs
//! between any two connections: the nonce in COM_CHANGE_USER's authentication switch, and the ids of
//! prepared statements (MariaDB counts them for the whole server) in COM_STMT_PREPARE_OK and in
//! error messages; and the sequence ids inside a compressed leg, which follow the places at which a server
//! happens to flush. (The numbers of compressed packets, which count there, are checked by the client itself.)
//!
//! The corpus is in `corpus/`, its format in [`corpus`].

use std::net::SocketAddr;

use crate::error::{HarnessError, Result};
use crate::raw::{Compress, Login, Packet, RawConn, Tls, capability};
use crate::server::{Flavour, Server};

pub use corpus::{Corpus, Expected, Step, Verb, read_all};

pub mod corpus;
mod run;

/// What one step of a corpus got back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// `file:line` of the step.
    pub place: String,
    /// The line as written.
    pub source: String,
    /// Everything the server sent for it.
    pub packets: Vec<Packet>,
}

/// A client of some kind: what it says it can do.
#[derive(Debug, Clone)]
pub struct Profile {
    /// For messages.
    pub name: &'static str,
    /// How it logs in.
    pub login: Login,
}

/// The kinds of clients that a server's corpus is run as: both EOF styles, and every capability that
/// changes how a result set or a command looks; and one in TLS, which is nothing to be seen of.
#[must_use]
pub fn profiles(flavour: Flavour) -> Vec<Profile> {
    let app = || Login::new("app").attribute("program_name", "fidelity");
    let mut all = vec![
        Profile { name: "usual", login: app() },
        Profile { name: "TLS", login: app().tls(Tls::Newest) },
        Profile { name: "old EOF", login: app().without(capability::DEPRECATE_EOF) },
        Profile {
            name: "old and plain",
            login: app().without(
                capability::DEPRECATE_EOF
                    | capability::SESSION_TRACK
                    | capability::CONNECT_ATTRS
                    | capability::PS_MULTI_RESULTS,
            ),
        },
    ];
    match flavour {
        Flavour::MySql => {
            let with = capability::QUERY_ATTRIBUTES | capability::OPTIONAL_METADATA;
            all.push(Profile { name: "attributes", login: app().with(with) });
            let login = app().with(with).without(capability::DEPRECATE_EOF);
            all.push(Profile { name: "attributes, old EOF", login });
        }
        Flavour::MariaDb => {
            let with = capability::MARIADB_CACHE_METADATA
                | capability::MARIADB_EXTENDED_METADATA
                | capability::MARIADB_BULK
                | capability::MARIADB_PROGRESS;
            all.push(Profile { name: "extended", login: app().with_mariadb(with) });
            let login = app().with_mariadb(with).without(capability::DEPRECATE_EOF);
            all.push(Profile { name: "extended, old EOF", login });
        }
    }
    all
}

/// A kind of client, and what Sluice's leg behind it is compressed with.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The client.
    pub profile: Profile,
    /// `backend_compression`.
    pub backend: &'static str,
}

/// Compression on either leg, with and without TLS, in both EOF styles: each kind of leg meets each other one, though
/// not in every style.
#[must_use]
pub fn compressed_pairs(flavour: Flavour) -> Vec<Pair> {
    let app = || Login::new("app").attribute("program_name", "fidelity");
    let old = || app().without(capability::DEPRECATE_EOF);
    let zlib = |login: Login| login.compress(Compress::Zlib);
    let zstd = |login: Login| login.compress(Compress::Zstd(3));
    let tls = |login: Login| login.tls(Tls::Newest);
    let pair = |name, login, backend| Pair { profile: Profile { name, login }, backend };
    match flavour {
        Flavour::MySql => vec![
            pair("zlib", zlib(app()), "off"),
            pair("zstd, TLS, old EOF", tls(zstd(old())), "off"),
            pair("old EOF to zlib", old(), "zlib"),
            pair("zlib, TLS to zlib", tls(zlib(app())), "zlib"),
            pair("zstd to zlib", zstd(app()), "zlib"),
            pair("TLS to zstd", tls(app()), "zstd"),
            pair("zlib, old EOF to zstd", zlib(old()), "zstd"),
            pair("zstd, TLS to zstd", tls(zstd(app())), "zstd"),
        ],
        Flavour::MariaDb => vec![
            pair("zlib, old EOF", zlib(old()), "off"),
            pair("zlib, TLS", tls(zlib(app())), "off"),
            pair("TLS to zlib", tls(app()), "zlib"),
            pair("zlib to zlib", zlib(app()), "zlib"),
            pair("zlib, TLS, old EOF to zlib", tls(zlib(old())), "zlib"),
        ],
    }
}

/// The pairs that the corpus of long payloads is run on: each algorithm once, on both legs.
#[must_use]
pub fn long_pairs(flavour: Flavour) -> Vec<Pair> {
    let same = |pair: &Pair| match pair.profile.login.compress {
        Compress::Never => false,
        Compress::Zlib => pair.backend == "zlib",
        Compress::Zstd(_) => pair.backend == "zstd",
    };
    let mut pairs: Vec<Pair> = compressed_pairs(flavour).into_iter().filter(same).collect();
    pairs.dedup_by_key(|pair| pair.backend);
    pairs
}

/// The kinds of clients that one corpus is worth running as: how long payloads are cut into packets
/// depends on nothing but their length, so the corpus of long ones is left to two.
#[must_use]
pub fn profiles_for(corpus: &Corpus, flavour: Flavour) -> Vec<Profile> {
    let mut all = profiles(flavour);
    if corpus.name == "big" {
        all.truncate(2);
    }
    all
}

/// Options that the corpus needs of a server.
pub const SERVER_ARGS: [&str; 1] = ["--log-bin-trust-function-creators=ON"];

/// Empties the schema `test`, so that each run starts from the same.
///
/// # Errors
/// When a statement fails.
pub async fn reset_schema(server: &Server) -> Result<()> {
    let mut conn = server.admin().await?;
    for sql in ["DROP DATABASE test", "CREATE DATABASE test"] {
        mysql_async::prelude::Queryable::query_drop(&mut conn, sql).await?;
    }
    conn.disconnect().await?;
    Ok(())
}

/// Runs a corpus at an address on a connection of its own. The first record is the login.
///
/// # Errors
/// When the connection fails or a packet does not come.
pub async fn run(addr: SocketAddr, corpus: &Corpus, profile: &Profile) -> Result<Vec<Record>> {
    let mut conn = RawConn::open(addr, &profile.login).await?;
    // The greeting differs by design: connection id, nonce, masked capabilities.
    let login = conn.login_packets().iter().skip(1).cloned().collect();
    let mut records =
        vec![Record { place: corpus.name.clone(), source: "the login".into(), packets: login }];
    let compressed = profile.login.compress != Compress::Never;
    let mut session = run::Session::new(&mut conn, &profile.login);
    for step in &corpus.steps {
        let place = format!("{}:{}", corpus.name, step.line);
        let mut packets = session.run(step).await.map_err(|e| {
            HarnessError::Malformed(format!("{place} ({}): {}: {e}", profile.name, step.source))
        })?;
        if compressed {
            packets.iter_mut().for_each(|packet| packet.seq = 0);
        }
        records.push(Record { place, source: step.source.clone(), packets });
    }
    conn.quit().await?;
    Ok(records)
}

/// Says every way in which two runs of one corpus differ. Empty when they do not.
#[must_use]
pub fn differences(direct: &[Record], through: &[Record]) -> Vec<String> {
    let mut all = Vec::new();
    if direct.len() != through.len() {
        all.push(format!("{} records against {}", direct.len(), through.len()));
    }
    for (a, b) in direct.iter().zip(through) {
        if a == b {
            continue;
        }
        let at = a.packets.iter().zip(&b.packets).position(|(a, b)| a != b);
        let at = at.unwrap_or_else(|| a.packets.len().min(b.packets.len()));
        all.push(format!(
            "{} {:.120}\n  {} packets, {} through Sluice; packet {at}:\n  direct  {:?}\n  through {:?}",
            a.place,
            a.source,
            a.packets.len(),
            b.packets.len(),
            a.packets.get(at),
            b.packets.get(at),
        ));
    }
    all
}

/// Says every step whose outcome is not what the corpus expects of this server: a corpus that only
/// collects errors would prove little.
#[must_use]
pub fn surprises(flavour: Flavour, corpus: &Corpus, records: &[Record]) -> Vec<String> {
    let steps = corpus.steps.iter().zip(records.iter().skip(1));
    steps
        .filter_map(|(step, record)| {
            let err = record.packets.last().and_then(Packet::err);
            let as_expected = match step.expected {
                Expected::Success => err.is_none(),
                Expected::SuccessOn(only) => only != flavour || err.is_none(),
                Expected::Error => err.is_some(),
                Expected::Either => true,
            };
            (!as_expected).then(|| format!("{} {:.120}: {err:?}", record.place, record.source))
        })
        .collect()
}

#[cfg(test)]
mod tests;
