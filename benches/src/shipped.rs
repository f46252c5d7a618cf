//! Sluice on the file that it ships with, and on one that looks at every statement.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use integration::ports::{free_port, loopback};
use integration::sluice::SluiceProcess;
use integration::topology::Topology;

use crate::Result;

/// The file of the repository, with this machine's addresses in place of its own, and changed like this.
///
/// # Errors
/// When the file is not what is known of it, or Sluice does not start.
pub async fn start_sluice(
    topology: &Topology,
    change: impl FnOnce(String) -> Result<String>,
) -> Result<SluiceProcess> {
    let listen = loopback(free_port()?);
    let admin = loopback(free_port()?);
    let yaml = change(shipped(&our_file(), topology, listen, admin)?)?;
    let mut sluice = SluiceProcess::spawn(&yaml, listen, admin, &QUIET)?;
    sluice.wait_until_ready().await?;
    Ok(sluice)
}

/// The shipped file.
#[must_use]
pub fn our_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../proxy-config.yaml")
}

/// A shipped file, with this machine's addresses in place of its own.
///
/// # Errors
/// When it names others than are known of it.
pub fn shipped(
    path: &Path,
    topology: &Topology,
    listen: SocketAddr,
    admin: SocketAddr,
) -> Result<String> {
    let mut yaml = std::fs::read_to_string(path)?;
    let replicas = SHIPPED_REPLICAS.into_iter().zip(topology.replicas.iter().map(|r| r.addr()));
    let ours = [
        (SHIPPED_LISTEN, listen),
        (SHIPPED_ADMIN, admin),
        (SHIPPED_PRIMARY, topology.primary.addr()),
    ];
    for (shipped, here) in ours.into_iter().chain(replicas) {
        if !yaml.contains(shipped) {
            return Err(format!("{} does not name {shipped}", path.display()).into());
        }
        yaml = yaml.replace(shipped, &here.to_string());
    }
    Ok(yaml)
}

/// A text of the shipped file, where every statement that no other rule is about meets two budgets, guards, and a rule
/// with `runaway` and its `watch`.
///
/// # Errors
/// When it is not what is known of it.
pub fn with_everything(yaml: String) -> Result<String> {
    let mut text = yaml;
    for (shipped, ours) in EVERYTHING {
        if !text.contains(shipped) {
            return Err(format!("the shipped file does not say {shipped:?}").into());
        }
        text = text.replace(shipped, ours);
    }
    Ok(text)
}

/// Debugging output would be part of what is measured.
pub const QUIET: [(&str, &str); 1] = [("RUST_LOG", "info")];

/// What stands in the shipped file, and what else is to stand there. The rule is the last, whose statements the
/// load's are; nothing of the load comes near to these limits.
const EVERYTHING: [(&str, &str); 3] = [
    (
        "  - name: everything-else\n    gate: none\n",
        "  - name: everything-else\n    gate: none\n    runaway: { elapsed: 1m, rows_sent: 1000000, bytes_sent: 1GiB, \
         action: kill, watch: { by: digest, for: 10m } }\n",
    ),
    ("guards:\n", "guards:\n  - { name: lists, max_in_list: 5000, max_statement_bytes: 1MiB }\n"),
    (
        "budgets:\n",
        "budgets:\n  - { name: at-once, max_concurrency: 1000 }\n  - { name: of-each, per: user, share: 100, burst: 100s }\n",
    ),
];

const SHIPPED_LISTEN: &str = "127.0.0.1:3307";
const SHIPPED_ADMIN: &str = "127.0.0.1:9307";
const SHIPPED_PRIMARY: &str = "127.0.0.1:3306";
/// Its replicas' addresses.
pub const SHIPPED_REPLICAS: [&str; 2] = ["127.0.0.1:3316", "127.0.0.1:3326"];
