//! `--throttle-http`: HEAD, each 100 ms; only 200 lets it run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Shared;
use crate::error::Result;

/// Asks for as long as it lives. No answer within a second throttles as well.
pub(super) async fn ask((addr, path): (SocketAddr, String), shared: Arc<Shared>) -> Result<()> {
    loop {
        let answer = tokio::time::timeout(LIMIT, head(addr, &path)).await;
        let may_run = matches!(answer, Ok(Some(200)));
        shared.is_throttled.store(!may_run, Ordering::Relaxed);
        tokio::time::sleep(EACH).await;
    }
}

async fn head(addr: SocketAddr, path: &str) -> Option<u16> {
    status(addr, ("HEAD", path)).await
}

/// What is answered to a request.
pub(super) async fn status(addr: SocketAddr, (method, path): (&str, &str)) -> Option<u16> {
    let mut stream = TcpStream::connect(addr).await.ok()?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {addr}\r\nUser-Agent: gh-ost/1.1.10\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

const EACH: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(1);
