//! A proxy that Sluice is measured against: its process and its file.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use integration::ports::{free_port, loopback};

use crate::Result;

/// A running peer in front of one server. Dropping kills it; it also ends with this process.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    file: PathBuf,
    addr: SocketAddr,
}

impl Peer {
    /// HAProxy in TCP mode with so many threads; `None` is what it does unless told: one for each core.
    ///
    /// # Errors
    /// When it is not installed or does not listen within seconds.
    pub fn haproxy(server: SocketAddr, threads: Option<u32>) -> Result<Self> {
        let addr = loopback(free_port()?);
        let threads = threads.map(|count| format!("  nbthread {count}\n")).unwrap_or_default();
        let text = format!(
            "global\n  maxconn 5000\n{threads}defaults\n  mode tcp\n  timeout connect 5s\n  \
             timeout client 1h\n  timeout server 1h\nlisten mysql\n  bind {addr}\n  server one {server}\n"
        );
        Self::start(Path::new("haproxy"), &["-db", "-f"], addr, &text)
    }

    /// MySQL Router's classic protocol: passed through, or with the client's TLS ended at it and the server's
    /// leg in the clear.
    ///
    /// # Errors
    /// When it is not installed or does not listen within seconds.
    pub fn router(server: SocketAddr, client_tls: Option<ServerCertificate<'_>>) -> Result<Self> {
        let home = integration::server::binaries::cache_dir()?.join("mysql-router-9");
        let addr = loopback(free_port()?);
        let tls = match client_tls {
            None => "client_ssl_mode=PASSTHROUGH\nserver_ssl_mode=AS_CLIENT\n".to_owned(),
            Some(ServerCertificate { cert, key }) => format!(
                "client_ssl_mode=PREFERRED\nclient_ssl_cert={}\nclient_ssl_key={}\nserver_ssl_mode=DISABLED\n",
                cert.display(),
                key.display()
            ),
        };
        let text = format!(
            "[DEFAULT]\nplugin_folder={plugins}\nlogging_folder=\nruntime_folder={tmp}\ndata_folder={tmp}\n\
             max_total_connections=5000\n[logger]\nlevel=ERROR\n[routing:mysql]\nbind_address={ip}\n\
             bind_port={port}\ndestinations={server}\nrouting_strategy=first-available\nprotocol=classic\n\
             max_connections=4000\n{tls}",
            plugins = home.join("usr/lib/mysqlrouter/plugin").display(),
            tmp = std::env::temp_dir().display(),
            ip = addr.ip(),
            port = addr.port(),
        );
        Self::start(&home.join("run/mysqlrouter"), &["-c"], addr, &text)
    }

    fn start(program: &Path, arguments: &[&str], addr: SocketAddr, text: &str) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let file = std::env::temp_dir().join(format!("sluice-bench-{name}-{}.cfg", addr.port()));
        fs::write(&file, text)?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(program)
            .args(arguments)
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut peer = Self { child, file, addr };
        peer.wait_until_up(&name)?;
        Ok(peer)
    }

    /// Where clients connect.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_up(&mut self, name: &str) -> Result<()> {
        let started = Instant::now();
        while std::net::TcpStream::connect(self.addr).is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{name} ended: {status}").into());
            }
            if started.elapsed() > START_LIMIT {
                return Err(format!("{name} does not listen").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself: then wait only reaps it.
        self.child.kill().ok();
        self.child.wait().ok();
        fs::remove_file(&self.file).ok();
    }
}

/// What a peer shows its clients.
#[derive(Debug, Clone, Copy)]
pub struct ServerCertificate<'p> {
    /// The certificate, in PEM.
    pub cert: &'p Path,
    /// Its key.
    pub key: &'p Path,
}

const START_LIMIT: Duration = Duration::from_secs(10);
