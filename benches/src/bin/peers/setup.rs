//! The servers and proxies of a comparison.

use std::net::SocketAddr;
use std::path::Path;

use benches::haproxy::HaProxy;
use benches::{Result, sysbench};
use integration::ports::{free_port, loopback};
use integration::server::Flavour;
use integration::sluice::SluiceProcess;
use integration::topology::{Topology, TopologyOptions};

/// Everything that runs. Dropping stops it.
pub(crate) struct Setup {
    topology: Topology,
    haproxy_one: HaProxy,
    haproxy: HaProxy,
    sluice: SluiceProcess,
}

/// One way to the server.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) addr: SocketAddr,
    /// The proxy's process; the direct way has none.
    pub(crate) pid: Option<u32>,
}

impl Setup {
    pub(crate) async fn start() -> Result<Self> {
        let topology = Topology::start(TopologyOptions {
            extra_args: vec!["--max-connections=5000".into()],
            ..TopologyOptions::new(Flavour::MySql, SHIPPED_REPLICAS.len())
        })
        .await?;
        let haproxy_one = HaProxy::start(topology.primary.addr(), Some(1))?;
        let haproxy = HaProxy::start(topology.primary.addr(), None)?;
        let sluice = start_sluice(&topology).await?;
        Ok(Self { topology, haproxy_one, haproxy, sluice })
    }

    /// Makes the tables, not through a proxy.
    pub(crate) fn prepare(&self) -> Result<()> {
        sysbench::prepare(self.topology.primary.addr())
    }

    /// In the order they are run in each round; the direct way is first.
    pub(crate) fn targets(&self) -> Result<Vec<Target>> {
        let proxy = |name, addr, pid| Target { name, addr, pid: Some(pid) };
        let sluice = self.sluice.pid().ok_or("Sluice has ended")?;
        Ok(vec![
            Target { name: "direct", addr: self.topology.primary.addr(), pid: None },
            proxy("HAProxy, 1 thread", self.haproxy_one.addr(), self.haproxy_one.pid()),
            proxy("HAProxy, as shipped", self.haproxy.addr(), self.haproxy.pid()),
            proxy("Sluice", self.sluice.listen_addr(), sluice),
        ])
    }
}

/// The file of the repository, with this machine's addresses in place of its own.
async fn start_sluice(topology: &Topology) -> Result<SluiceProcess> {
    let listen = loopback(free_port()?);
    let admin = loopback(free_port()?);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proxy-config.yaml");
    let mut yaml = std::fs::read_to_string(&path)?;
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
    let mut sluice = SluiceProcess::spawn(&yaml, listen, admin, &[("RUST_LOG", "info")])?;
    sluice.wait_until_ready().await?;
    Ok(sluice)
}

const SHIPPED_LISTEN: &str = "127.0.0.1:3307";
const SHIPPED_ADMIN: &str = "127.0.0.1:9307";
const SHIPPED_PRIMARY: &str = "127.0.0.1:3306";
const SHIPPED_REPLICAS: [&str; 2] = ["127.0.0.1:3316", "127.0.0.1:3326"];
