use std::collections::BTreeSet;

use super::*;
use crate::load;

/// The keys that the reader knows where `text` has the key `zzz`, as its fault says.
fn known_to_the_reader(text: &str) -> BTreeSet<String> {
    let faults = load(text).expect_err("zzz is not known");
    let fault = faults.iter().find(|fault| fault.path.ends_with("zzz")).expect("its fault");
    let (_, keys) = fault.message.split_once("known here: ").expect("the known keys");
    keys.split(", ").map(str::to_owned).collect()
}

fn documented(title: &str) -> BTreeSet<String> {
    let section = SECTIONS.iter().find(|section| section.title == title).expect(title);
    section.keys.iter().map(|key| key.name.to_owned()).collect()
}

#[test]
fn every_key_that_the_reader_knows_is_documented_and_no_other() {
    let sections = [
        ("The file", "zzz: 1"),
        ("`admin`", "admin: {zzz: 1}"),
        ("`admin.tls`", "admin: {tls: {zzz: 1}}"),
        ("`admin.tokens[]`", "admin: {tokens: [{zzz: 1}]}"),
        ("`metrics`", "metrics: {zzz: 1}"),
        ("`starvation`", "starvation: {zzz: 1}"),
        ("`insights`", "insights: {zzz: 1}"),
        ("`history`", "history: {zzz: 1}"),
        ("`clusters.NAME`", "clusters: {a: {zzz: 1}}"),
        ("`clusters.NAME.replicas[]`", "clusters: {a: {replicas: [{zzz: 1}]}}"),
        ("`clusters.NAME.client_tls`", "clusters: {a: {client_tls: {zzz: 1}}}"),
        ("`clusters.NAME.backend_tls`", "clusters: {a: {backend_tls: {zzz: 1}}}"),
        ("`clusters.NAME.client_compression`", "clusters: {a: {client_compression: {zzz: 1}}}"),
        ("`clusters.NAME.compression_level`", "clusters: {a: {compression_level: {zzz: 1}}}"),
        ("`clusters.NAME.keepalive`", "clusters: {a: {keepalive: {zzz: 1}}}"),
        ("`clusters.NAME.proxy_protocol`", "clusters: {a: {proxy_protocol: {zzz: 1}}}"),
        ("`clusters.NAME.bypass`", "clusters: {a: {bypass: {zzz: 1}}}"),
        ("`clusters.NAME.probe`", "clusters: {a: {probe: {zzz: 1}}}"),
        ("`clusters.NAME.signals.NAME`", "clusters: {a: {signals: {b: {zzz: 1}}}}"),
        (
            "`clusters.NAME.signals.NAME.latency`",
            "clusters: {a: {signals: {b: {latency: {zzz: 1}}}}}",
        ),
        ("`identity`", "identity: {zzz: 1}"),
        ("`identity.claims[]`", "identity: {claims: [{zzz: 1}]}"),
        ("`budgets[]`", "budgets: [{zzz: 1}]"),
        ("`rules[]`", "rules: [{zzz: 1}]"),
        ("`guards[]`", "guards: [{zzz: 1}]"),
        ("`rules[].runaway`", "rules: [{runaway: {zzz: 1}}]"),
        ("`rules[].runaway.watch`", "rules: [{runaway: {watch: {zzz: 1}}}]"),
        ("`rules[].schedule`", "rules: [{schedule: {zzz: 1}}]"),
        ("`rules[].match`", "rules: [{match: {zzz: 1}}]"),
        ("`rules[].error`", "rules: [{error: {zzz: 1}}]"),
    ];
    assert_eq!(sections.len(), SECTIONS.len());
    for (title, text) in sections {
        assert_eq!(documented(title), known_to_the_reader(text), "{title}");
    }
}

#[test]
fn the_reference_in_the_documentation_is_this_one() {
    let written = include_str!("../../../../docs/CONFIG.md");
    assert!(
        written == config_reference(),
        "run: cargo run -p policy --example config_reference > docs/CONFIG.md"
    );
}
