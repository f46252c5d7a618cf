//! Just enough HTTP to ask the admin side.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::{HarnessError, Result};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// The header lines, as sent.
    pub headers: Vec<String>,
    /// The body.
    pub body: String,
}

impl HttpResponse {
    /// The answer to a GET at any address.
    ///
    /// # Errors
    /// When nobody answers, or not with HTTP.
    pub async fn of(addr: SocketAddr, path: &str) -> Result<Self> {
        request(addr, "GET", path).await
    }
}

/// One request on a connection of its own. HTTP/1.0, so that the body ends with the connection.
pub(super) async fn request(addr: SocketAddr, method: &str, path: &str) -> Result<HttpResponse> {
    let exchange = async {
        let mut stream = TcpStream::connect(addr).await?;
        let head = format!("{method} {path} HTTP/1.0\r\nHost: {addr}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(answer)
    };
    let answer = match tokio::time::timeout(LIMIT, exchange).await {
        Ok(answer) => answer.map_err(HarnessError::io(format!("{method} {path}")))?,
        Err(_) => {
            return Err(HarnessError::TimedOut { what: format!("{method} {path}"), after: LIMIT });
        }
    };
    parse(&String::from_utf8_lossy(&answer))
}

fn parse(answer: &str) -> Result<HttpResponse> {
    let malformed = || HarnessError::Malformed(format!("HTTP answer: {answer:.200}"));
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(malformed)?;
    let mut lines = head.split("\r\n");
    let status_line = lines.next().ok_or_else(malformed)?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok(HttpResponse {
        status: status.ok_or_else(malformed)?,
        headers: lines.map(str::to_owned).collect(),
        body: body.to_owned(),
    })
}

const LIMIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_headers_and_body_are_taken_apart() {
        let response = parse("HTTP/1.0 503 Service Unavailable\r\nx: y\r\n\r\nno backend").unwrap();
        assert_eq!(response.status, 503);
        assert_eq!(response.headers, ["x: y"]);
        assert_eq!(response.body, "no backend");
        assert!(parse("SSH-2.0").is_err());
    }
}
