//! Connections that stay.

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::*;

const ASK: &[u8] = b"HEAD /check HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test]
async fn a_client_asks_again_and_again_on_one_connection() {
    let mut socket = connected().await;
    for _ in 0..1_000 {
        socket.write_all(ASK).await.unwrap();
        let answer = head(&mut socket).await;
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("close"), "{answer}");
    }
    socket.write_all(&ASK.repeat(3)).await.unwrap();
    for _ in 0..3 {
        assert!(head(&mut socket).await.starts_with("HTTP/1.1 200"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_next_request_ends() {
    let mut socket = connected().await;
    socket.write_all(ASK).await.unwrap();
    head(&mut socket).await;
    assert_ends_within(&mut socket, 28..32).await;
}

#[tokio::test(start_paused = true)]
async fn half_of_a_next_request_is_not_waited_for() {
    let mut socket = connected().await;
    socket.write_all(ASK).await.unwrap();
    head(&mut socket).await;
    socket.write_all(b"HEAD /che").await.unwrap();
    assert_ends_within(&mut socket, 4..7).await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_refused_at_its_bound() {
    let mut socket = connected().await;
    socket.write_all(b"GET /check HTTP/1.1\r\n").await.unwrap();
    let mut sent = 0;
    while sent < 10 * BUFFER_LEN_MAX && socket.write_all(&[b'x'; 1024]).await.is_ok() {
        sent += 1024;
    }
    let mut answer = Vec::new();
    // What was sent behind the bound may reset the connection before the answer is read.
    socket.read_to_end(&mut answer).await.ok();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{answer:?}");
}

async fn assert_ends_within(socket: &mut TcpStream, seconds: std::ops::Range<u64>) {
    let started = Instant::now();
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.ok();
    assert!(rest.is_empty(), "{rest:?}");
    assert!(seconds.contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

/// The head of one answer.
async fn head(socket: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(socket.read_u8().await.unwrap());
    }
    String::from_utf8(answer).unwrap()
}

async fn connected() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/check", get(|| async { "ok\n" }));
    tokio::spawn(
        async move { answer_all(&listener, &router, &Arc::new(DoorTls::new(None))).await },
    );
    TcpStream::connect(address).await.unwrap()
}
