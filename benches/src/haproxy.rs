//! HAProxy in TCP mode: the peer that Sluice is measured against.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use integration::ports::{free_port, loopback};

use crate::Result;

/// A running HAProxy in front of one server. Dropping kills it; it also ends with this process.
#[derive(Debug)]
pub struct HaProxy {
    child: Child,
    file: PathBuf,
    addr: SocketAddr,
}

impl HaProxy {
    /// Starts it with so many threads; `None` is what it does unless told: one for each core.
    ///
    /// # Errors
    /// When it is not installed or does not listen within seconds.
    pub fn start(server: SocketAddr, threads: Option<u32>) -> Result<Self> {
        let addr = loopback(free_port()?);
        let threads = threads.map(|count| format!("  nbthread {count}\n")).unwrap_or_default();
        let file = std::env::temp_dir().join(format!("sluice-bench-haproxy-{}.cfg", addr.port()));
        let text = format!(
            "global\n  maxconn 5000\n{threads}defaults\n  mode tcp\n  timeout connect 5s\n  \
             timeout client 1h\n  timeout server 1h\nlisten mysql\n  bind {addr}\n  server one {server}\n"
        );
        fs::write(&file, text)?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "haproxy", "-db", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start haproxy: {error}"))?;
        let mut haproxy = Self { child, file, addr };
        haproxy.wait_until_up()?;
        Ok(haproxy)
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

    fn wait_until_up(&mut self) -> Result<()> {
        let started = Instant::now();
        while std::net::TcpStream::connect(self.addr).is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("haproxy ended: {status}").into());
            }
            if started.elapsed() > START_LIMIT {
                return Err("haproxy does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        // It may have ended by itself: then wait only reaps it.
        self.child.kill().ok();
        self.child.wait().ok();
        fs::remove_file(&self.file).ok();
    }
}

const START_LIMIT: Duration = Duration::from_secs(10);
