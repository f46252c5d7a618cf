//! What a client sees through Sluice is what it sees without, byte for byte.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::net::SocketAddr;

use integration::certificates::Certificates;
use integration::client;
use integration::fidelity::{
    Corpus, Pair, Profile, Record, SERVER_ARGS, compressed_pairs, differences, long_pairs,
    profiles_for, read_all, reset_schema, run, surprises,
};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};

#[tokio::test]
async fn the_corpus_gives_the_same_bytes_through_sluice_as_direct_on_mysql() {
    assert_same_bytes_through_sluice(Flavour::MySql).await;
}

#[tokio::test]
async fn the_corpus_gives_the_same_bytes_through_sluice_as_direct_on_mariadb() {
    assert_same_bytes_through_sluice(Flavour::MariaDb).await;
}

#[tokio::test]
async fn the_corpus_gives_the_same_bytes_compressed_on_mysql() {
    assert_same_bytes_compressed(Flavour::MySql).await;
}

#[tokio::test]
async fn the_corpus_gives_the_same_bytes_compressed_on_mariadb() {
    assert_same_bytes_compressed(Flavour::MariaDb).await;
}

/// Rows and commands of 16 MiB − 1, of more, and whose second frame begins with what would mean something.
#[tokio::test]
async fn long_payloads_are_the_same_bytes_compressed_on_mysql() {
    assert_same_long_payloads(Flavour::MySql).await;
}

#[tokio::test]
async fn long_payloads_are_the_same_bytes_compressed_on_mariadb() {
    assert_same_long_payloads(Flavour::MariaDb).await;
}

/// Without this, a difference through Sluice could be the server's own, and a statement that always
/// fails would be compared with itself.
#[tokio::test]
async fn the_corpus_gives_the_same_bytes_twice_and_what_it_expects_on_mysql() {
    assert_corpus_is_sound(Flavour::MySql).await;
}

#[tokio::test]
async fn the_corpus_gives_the_same_bytes_twice_and_what_it_expects_on_mariadb() {
    assert_corpus_is_sound(Flavour::MariaDb).await;
}

async fn assert_same_bytes_through_sluice(flavour: Flavour) {
    let certificates = Certificates::new().unwrap();
    let servers = topology(flavour, &certificates).await;
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    let mut faults = Vec::new();
    for (corpus, profile) in runs(flavour) {
        let direct = records(&servers, servers.primary.addr(), &corpus, &profile).await;
        let through = records(&servers, sluice.listen_addr(), &corpus, &profile).await;
        faults.extend(named(&profile, differences(&direct, &through)));
    }
    assert_none(&faults);
}

/// The client speaks to the server as it does to Sluice, so that packets are compared as they are seen behind
/// its decompression; the numbers of compressed packets are held by the client itself.
async fn assert_same_bytes_compressed(flavour: Flavour) {
    let certificates = Certificates::new().unwrap();
    let servers = topology(flavour, &certificates).await;
    let pairs = compressed_pairs(flavour);
    let mut faults = Vec::new();
    for backend in ["off", "zlib", "zstd"] {
        let keys = format!("backend_compression: {backend}");
        let config = Config::new(&servers).unwrap().cluster(&keys);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        for Pair { profile, .. } in pairs.iter().filter(|pair| pair.backend == backend) {
            for corpus in read_all().unwrap() {
                // Long payloads have a test of their own, and take most of the time.
                if corpus.name == "big" {
                    continue;
                }
                let direct = records(&servers, servers.primary.addr(), &corpus, profile).await;
                let through = records(&servers, sluice.listen_addr(), &corpus, profile).await;
                faults.extend(named(profile, differences(&direct, &through)));
            }
        }
    }
    assert_none(&faults);
}

async fn assert_same_long_payloads(flavour: Flavour) {
    let certificates = Certificates::new().unwrap();
    let servers = topology(flavour, &certificates).await;
    let corpus = read_all().unwrap().into_iter().find(|corpus| corpus.name == "big").unwrap();
    let mut faults = Vec::new();
    let pairs = long_pairs(flavour);
    assert!(!pairs.is_empty());
    for Pair { profile, backend } in pairs {
        let keys = format!("backend_compression: {backend}");
        let config = Config::new(&servers).unwrap().cluster(&keys);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let direct = records(&servers, servers.primary.addr(), &corpus, &profile).await;
        let through = records(&servers, sluice.listen_addr(), &corpus, &profile).await;
        faults.extend(named(&profile, surprises(flavour, &corpus, &through)));
        faults.extend(named(&profile, differences(&direct, &through)));
    }
    assert_none(&faults);
}

async fn assert_corpus_is_sound(flavour: Flavour) {
    let certificates = Certificates::new().unwrap();
    let servers = topology(flavour, &certificates).await;
    let mut faults = Vec::new();
    for (corpus, profile) in runs(flavour) {
        let first = records(&servers, servers.primary.addr(), &corpus, &profile).await;
        faults.extend(named(&profile, surprises(flavour, &corpus, &first)));
        // Long payloads are as deterministic as short ones, and take most of the time.
        if corpus.name != "big" {
            let second = records(&servers, servers.primary.addr(), &corpus, &profile).await;
            faults.extend(named(&profile, differences(&first, &second)));
        }
    }
    assert_none(&faults);
}

async fn topology(flavour: Flavour, certificates: &Certificates) -> Topology {
    let mut extra_args = SERVER_ARGS.map(String::from).to_vec();
    // MariaDB 10.11 makes none for itself.
    extra_args.extend(certificates.server_args().unwrap());
    let options = TopologyOptions { extra_args, ..TopologyOptions::new(flavour, 0) };
    let servers = Topology::start(options).await.unwrap();
    // The first login of an account takes more packets than the ones after it.
    for user in ["app", "etl"] {
        client::connect(servers.primary.addr(), user).await.unwrap().disconnect().await.unwrap();
    }
    servers
}

fn runs(flavour: Flavour) -> Vec<(Corpus, Profile)> {
    let corpora = read_all().unwrap().into_iter();
    corpora
        .flat_map(|corpus| {
            let profiles = profiles_for(&corpus, flavour).into_iter();
            profiles.map(move |profile| (corpus.clone(), profile))
        })
        .collect()
}

async fn records(
    servers: &Topology,
    addr: SocketAddr,
    corpus: &Corpus,
    profile: &Profile,
) -> Vec<Record> {
    reset_schema(&servers.primary).await.unwrap();
    let way = if addr == servers.primary.addr() { "direct" } else { "through Sluice" };
    run(addr, corpus, profile).await.unwrap_or_else(|e| panic!("{way}: {e}"))
}

fn named(profile: &Profile, faults: Vec<String>) -> impl Iterator<Item = String> {
    faults.into_iter().map(|fault| format!("({}) {fault}", profile.name))
}

fn assert_none(faults: &[String]) {
    let shown: Vec<&str> = faults.iter().take(SHOWN_FAULTS).map(String::as_str).collect();
    assert!(faults.is_empty(), "{} faults, first:\n{}", faults.len(), shown.join("\n"));
}

const SHOWN_FAULTS: usize = 50;
