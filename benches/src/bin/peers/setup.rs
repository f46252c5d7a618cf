//! The servers and proxies of a comparison.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use benches::peer::{Peer, ServerCertificate};
use benches::shipped::{QUIET, SHIPPED_REPLICAS, our_file, shipped, start_sluice, with_everything};
use benches::{Result, sysbench};
use integration::certificates::{Certificates, Issued};
use integration::ports::{free_port, loopback};
use integration::server::Flavour;
use integration::sluice::SluiceProcess;
use integration::topology::{Topology, TopologyOptions};

/// Everything that runs. Dropping stops it.
pub(crate) struct Setup {
    topology: Topology,
    haproxy_one: Peer,
    haproxy: Peer,
    router: Peer,
    router_tls: Peer,
    sluice: SluiceProcess,
    /// Ends the clients' TLS; the server's leg is in the clear.
    sluice_tls: SluiceProcess,
    /// Another build of Sluice, where `SLUICE_BEFORE_BIN` names one.
    sluice_before: Option<SluiceProcess>,
    /// sysbench's certificates.
    client: ClientFolder,
    /// Their files are the servers' and the proxies' too.
    _certificates: Certificates,
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
        let certificates = Certificates::new()?;
        let mut extra_args = certificates.server_args()?;
        extra_args.push("--max-connections=5000".into());
        let topology = Topology::start(TopologyOptions {
            extra_args,
            ..TopologyOptions::new(Flavour::MySql, SHIPPED_REPLICAS.len())
        })
        .await?;
        let primary = topology.primary.addr();
        let proxy = certificates.issue("proxy", &["127.0.0.1"])?;
        let Issued { cert, key } = &proxy;
        let legs = format!(
            "    client_tls:\n      cert: {}\n      key: {}\n    backend_tls:\n      mode: disabled\n",
            cert.display(),
            key.display()
        );
        Ok(Self {
            haproxy_one: Peer::haproxy(primary, Some(1))?,
            haproxy: Peer::haproxy(primary, None)?,
            router: Peer::router(primary, None)?,
            router_tls: Peer::router(primary, Some(ServerCertificate { cert, key }))?,
            sluice: start_sluice(&topology, Ok).await?,
            sluice_tls: start_sluice(&topology, |yaml| Ok(with_legs(&yaml, &legs))).await?,
            sluice_before: start_before(&topology).await?,
            client: ClientFolder::new(&certificates)?,
            topology,
            _certificates: certificates,
        })
    }

    /// Makes the tables, not through a proxy.
    pub(crate) fn prepare(&self) -> Result<()> {
        sysbench::prepare(self.topology.primary.addr())
    }

    /// In the clear, in the order they are run in each round; the direct way is first, Sluice last.
    pub(crate) fn targets(&self) -> Result<Vec<Target>> {
        Ok(vec![
            self.direct(),
            of_peer("HAProxy, 1 thread", &self.haproxy_one),
            of_peer("HAProxy, as shipped", &self.haproxy),
            of_peer("MySQL Router", &self.router),
            of_sluice(&self.sluice)?,
        ])
    }

    /// What the web application reads.
    pub(crate) async fn fill_web(&self) -> Result<()> {
        benches::web::fill(&self.topology.primary).await
    }

    /// The clients' leg in TLS, the server's in the clear.
    pub(crate) fn tls_targets(&self) -> Result<Vec<Target>> {
        let router = of_peer("MySQL Router", &self.router_tls);
        Ok(vec![self.direct(), router, of_sluice(&self.sluice_tls)?])
    }

    /// In the clear: direct, the other build, this one. None where no other build is named.
    pub(crate) fn before_targets(&self) -> Result<Option<Vec<Target>>> {
        let Some(before) = &self.sluice_before else { return Ok(None) };
        let before = Target { name: "Sluice before", ..of_sluice(before)? };
        Ok(Some(vec![self.direct(), before, of_sluice(&self.sluice)?]))
    }

    /// Another Sluice, in the clear, that does not count what statements cost.
    pub(crate) async fn start_without_insights(&self) -> Result<SluiceProcess> {
        start_sluice(&self.topology, |yaml| {
            let without = yaml.replace(INSIGHTS_ON, INSIGHTS_OFF);
            if without == yaml {
                return Err(format!("the shipped file does not say {INSIGHTS_ON:?}").into());
            }
            Ok(without)
        })
        .await
    }

    /// In the clear: direct, without insights, with them.
    pub(crate) fn insights_targets(&self, without: &SluiceProcess) -> Result<Vec<Target>> {
        let without = Target { name: "Sluice, no insights", ..of_sluice(without)? };
        Ok(vec![self.direct(), without, of_sluice(&self.sluice)?])
    }

    /// Another Sluice, in the clear, where every statement of the load meets two budgets, a rule with `runaway` and
    /// its `watch`, and guards; insights are on in the shipped file.
    pub(crate) async fn start_with_everything(&self) -> Result<SluiceProcess> {
        start_sluice(&self.topology, with_everything).await
    }

    /// In the clear: direct, HAProxy, the shipped file, everything on. `idle` leaves the direct way out by itself.
    pub(crate) fn everything_targets(&self, with_all: &SluiceProcess) -> Result<Vec<Target>> {
        let shipped = Target { name: "Sluice, shipped file", ..of_sluice(&self.sluice)? };
        let all = Target { name: "Sluice, everything", ..of_sluice(with_all)? };
        Ok(vec![self.direct(), of_peer("HAProxy, as shipped", &self.haproxy), shipped, all])
    }

    /// sysbench's certificates.
    pub(crate) fn client_folder(&self) -> &Path {
        &self.client.0
    }

    fn direct(&self) -> Target {
        Target { name: "direct", addr: self.topology.primary.addr(), pid: None }
    }
}

fn of_peer(name: &'static str, peer: &Peer) -> Target {
    Target { name, addr: peer.addr(), pid: Some(peer.pid()) }
}

fn of_sluice(sluice: &SluiceProcess) -> Result<Target> {
    let pid = sluice.pid().ok_or("Sluice has ended")?;
    Ok(Target { name: "Sluice", addr: sluice.listen_addr(), pid: Some(pid) })
}

/// A folder with the three files that sysbench looks for. Gone with its owner.
struct ClientFolder(PathBuf);

impl ClientFolder {
    fn new(certificates: &Certificates) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("sluice-bench-tls-{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        let folder = Self(dir);
        let Issued { cert, key } = certificates.issue("client", &["client"])?;
        let files =
            [(certificates.ca(), "cacert.pem"), (cert, "client-cert.pem"), (key, "client-key.pem")];
        for (from, to) in files {
            std::fs::copy(from, folder.0.join(to))?;
        }
        Ok(folder)
    }
}

impl Drop for ClientFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The build that `SLUICE_BEFORE_BIN` names, on the file that `SLUICE_BEFORE_CONFIG` names: its own, since it may
/// not know all keys of ours.
async fn start_before(topology: &Topology) -> Result<Option<SluiceProcess>> {
    let Some(program) = std::env::var_os("SLUICE_BEFORE_BIN") else { return Ok(None) };
    let file = std::env::var_os("SLUICE_BEFORE_CONFIG").map_or_else(our_file, PathBuf::from);
    let listen = loopback(free_port()?);
    let admin = loopback(free_port()?);
    let yaml = shipped(&file, topology, listen, admin)?;
    let program = Path::new(&program);
    let mut sluice = SluiceProcess::spawn_binary(program, &yaml, (listen, admin), &QUIET, &[])?;
    sluice.wait_until_ready().await?;
    Ok(Some(sluice))
}

/// The file with `legs` in place of its `client_tls` and `backend_tls`.
fn with_legs(yaml: &str, legs: &str) -> String {
    let mut within = false;
    let mut text = String::new();
    for line in yaml.lines() {
        let depth = line.len().saturating_sub(line.trim_start().len());
        within = (within && depth > KEY_DEPTH)
            || line.starts_with("    client_tls:")
            || line.starts_with("    backend_tls:");
        if line.starts_with("    client_tls:") {
            text.push_str(legs);
        }
        if !within {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// How far the keys of a cluster are indented.
const KEY_DEPTH: usize = 4;

const INSIGHTS_ON: &str = "insights: { enabled: true,";
const INSIGHTS_OFF: &str = "insights: { enabled: false,";
