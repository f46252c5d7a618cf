//! File descriptors: each client needs two sockets, and shells start programs with room for a
//! thousand.

use policy::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For listeners, probes, the admin port, the log and threads.
const OTHERS: u64 = 400;

/// Raises this process's limit of open files as far as it may, and says so where that is not enough
/// for the `max_connections` of all clusters: clients that come then are accepted late, or told
/// that the server cannot be connected to.
pub fn raise_limit(config: &Config) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
    let clients: u64 =
        config.clusters.iter().map(|cluster| u64::from(cluster.network.connections_max)).sum();
    let needed = clients.saturating_mul(2).saturating_add(OTHERS);
    // None is no limit.
    if let Some(limit) = maximum
        && limit < needed
    {
        tracing::warn!(limit, needed, before = ?current, "{}", too_low(needed));
    }
}

/// How the limit is raised.
fn too_low(needed: u64) -> String {
    format!(
        "the limit of open files is too low for max_connections of all clusters: raise it \
         (LimitNOFILE={needed} in the unit of systemd, `ulimit -n {needed}` as root in the shell \
         that starts it, --ulimit nofile={needed} for a container), or lower max_connections"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warning_says_how_the_limit_is_raised() {
        let told = too_low(20_100);
        assert!(told.contains("LimitNOFILE=20100") && told.contains("ulimit -n 20100"), "{told}");
    }
}
