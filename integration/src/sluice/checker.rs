//! A client of the cooperative door, on a connection that stays.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::{HarnessError, Result};

/// Asks by HEAD, as gh-ost and the plugins of other tools do.
#[derive(Debug)]
pub struct Checker {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Checker {
    /// A client that asks for this path again and again.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn connect(admin: SocketAddr, path: &str) -> Result<Self> {
        let what = format!("cannot connect to {admin}");
        let stream = TcpStream::connect(admin).await.map_err(HarnessError::io(what))?;
        stream.set_nodelay(true).map_err(HarnessError::io("cannot set TCP_NODELAY"))?;
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: {admin}\r\nUser-Agent: check\r\n\r\n");
        Ok(Self { stream, request: request.into_bytes(), answer: Vec::new() })
    }

    /// Asks once, and gives the status.
    ///
    /// # Errors
    /// When there is no answer in time, or none that is HTTP.
    pub async fn ask(&mut self) -> Result<u16> {
        match tokio::time::timeout(LIMIT, self.exchange()).await {
            Ok(answered) => answered.map_err(HarnessError::io("the check"))?,
            Err(_) => {
                return Err(HarnessError::TimedOut { what: "the check".into(), after: LIMIT });
            }
        }
        let answer = String::from_utf8_lossy(&self.answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.ok_or_else(|| HarnessError::Malformed(format!("HTTP answer: {answer:.200}")))
    }

    /// The answer to HEAD ends with its head.
    async fn exchange(&mut self) -> std::io::Result<()> {
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        while !self.answer.ends_with(b"\r\n\r\n") {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}

/// More than any answer takes.
const LIMIT: Duration = Duration::from_secs(10);
