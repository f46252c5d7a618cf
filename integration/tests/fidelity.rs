//! What a client sees through Sluice is what it sees without, byte for byte.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::net::SocketAddr;

use integration::client;
use integration::fidelity::{
    SERVER_ARGS, differences, profiles, read_all, reset_schema, run, surprises,
};
use integration::server::Flavour;
use integration::topology::{Topology, TopologyOptions};

#[tokio::test]
async fn the_corpus_gives_the_same_bytes_twice_on_mysql() {
    let servers = topology(Flavour::MySql).await;
    assert_same_bytes(&servers, servers.primary.addr()).await;
}

#[tokio::test]
async fn the_corpus_gives_the_same_bytes_twice_on_mariadb() {
    let servers = topology(Flavour::MariaDb).await;
    assert_same_bytes(&servers, servers.primary.addr()).await;
}

async fn topology(flavour: Flavour) -> Topology {
    let options = TopologyOptions {
        extra_args: SERVER_ARGS.map(String::from).to_vec(),
        ..TopologyOptions::new(flavour, 0)
    };
    let servers = Topology::start(options).await.unwrap();
    // The first login of an account takes more packets than the ones after it.
    for user in ["app", "etl"] {
        client::connect(servers.primary.addr(), user).await.unwrap().disconnect().await.unwrap();
    }
    servers
}

async fn assert_same_bytes(servers: &Topology, other: SocketAddr) {
    let flavour = servers.primary.flavour();
    let mut faults = Vec::new();
    for corpus in read_all().unwrap() {
        for profile in profiles(flavour) {
            reset_schema(&servers.primary).await.unwrap();
            let direct = run(servers.primary.addr(), &corpus, &profile).await;
            let direct = direct.unwrap_or_else(|e| panic!("direct: {e}"));
            reset_schema(&servers.primary).await.unwrap();
            let through = run(other, &corpus, &profile).await;
            let through = through.unwrap_or_else(|e| panic!("through: {e}"));
            let found = differences(&direct, &through);
            let unexpected = surprises(flavour, &corpus, &direct);
            faults.extend(
                found.into_iter().chain(unexpected).map(|f| format!("({}) {f}", profile.name)),
            );
        }
    }
    let shown: Vec<&str> = faults.iter().take(SHOWN_FAULTS).map(String::as_str).collect();
    assert!(faults.is_empty(), "{} faults, first:\n{}", faults.len(), shown.join("\n"));
}

const SHOWN_FAULTS: usize = 50;
