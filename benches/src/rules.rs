//! Files with many rules, of every kind.

use std::fmt::Write as _;
use std::sync::Arc;

use policy::{ClusterPolicy, UnixTime};

use crate::Result;

/// When the benchmarks take place.
pub const NOW: UnixTime = UnixTime(1_800_000_000);

/// A policy with `count` rules: apps, users, tags, attributes, schemas, networks and combinations in turn,
/// then one without a condition. Nothing of `app` matches any but the last, unless it says `app=job-N`.
///
/// # Errors
/// The faults of the file, if it has any.
pub fn policy(count: usize) -> Result<Arc<ClusterPolicy>> {
    let mut text = "version: 1\nadmin: { listen: 127.0.0.1:9307 }\nclusters:\n  main:\n    listen: 127.0.0.1:3307\n    \
         primary: 127.0.0.1:3306\n    replicas: [127.0.0.1:3316]\n    \
         probe: { user: sluice, password_env: P }\n    signals: { lag: { threshold: 1s } }\n\
         identity: { claims: [{ user: \"*\", apps: [\"*\"] }] }\nrules:\n"
        .to_owned();
    for index in 1..count {
        let network = (index / 256, index % 256);
        let condition = match index % 8 {
            0 | 1 => format!("app: job-{index}"),
            2 => format!("user: user-{index}"),
            3 => format!("tag: {{ controller: c{index} }}"),
            4 => format!("attribute: {{ program_name: p{index} }}"),
            5 => format!("schema: s{index}, statements: write"),
            6 => format!("client: 10.{}.{}.0/24", network.0, network.1),
            _ => format!("app: [etl-{index}, batch-{index}], user: user-{index}"),
        };
        writeln!(
            text,
            "  - {{ name: r{index}, match: {{ {condition} }}, ratio: 0.5, permanent: true }}"
        )?;
    }
    text.push_str("  - { name: rest, gate: none, permanent: true }\n");
    load(&text)
}

/// A policy whose rules look at digests and tables, and ask for what `sbtest1` is written.
///
/// # Errors
/// The faults of the file, if it has any.
pub fn shaped() -> Result<Arc<ClusterPolicy>> {
    load(
        "version: 1\nclusters:\n  main:\n    listen: 127.0.0.1:3307\n    primary: 127.0.0.1:3306\n    \
         replicas: [127.0.0.1:3316]\n    probe: { user: sluice }\nrules:\n  \
         - { name: digest, match: { digest: DELETE FROM t WHERE i = ? }, permanent: true }\n  \
         - { name: table, match: { table: [sbtest1, \"tmp_*\"] }, permanent: true }\n",
    )
}

/// A policy with the guards of the shipped file: two for everybody, the others for one user.
///
/// # Errors
/// The faults of the file, if it has any.
pub fn guarded() -> Result<Arc<ClusterPolicy>> {
    load(
        "version: 1\nclusters:\n  main: { listen: 127.0.0.1:3307, primary: 127.0.0.1:3306 }\n\
         guards:\n  - { name: whole-tables, where_required: deny, no_cross_join: warn }\n  \
         - { name: huge-texts, match: { user: shop }, mode: warn, max_in_list: 5000, \
         max_statement_bytes: 1048576, require_tag: [controller] }\n",
    )
}

fn load(text: &str) -> Result<Arc<ClusterPolicy>> {
    let config = policy::load(text).map_err(|faults| {
        faults.iter().take(3).map(|fault| format!("{fault:?}\n")).collect::<String>()
    })?;
    Ok(Arc::clone(config.clusters.first().ok_or("no cluster")?))
}
