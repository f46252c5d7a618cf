use std::future::poll_fn;
use std::time::Duration;

use session::Compression;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use wire::compress::Algorithm;

use super::*;

fn pair() -> (Stream, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (Stream::new(Socket::Unix(near)), far)
}

async fn fill(stream: &mut Stream) -> io::Result<usize> {
    poll_fn(|cx| stream.poll_fill(cx)).await
}

/// Whether the peer has hung up, as far as anybody can tell by now.
async fn has_hung_up(stream: &Stream) -> bool {
    tokio::time::timeout(Duration::from_millis(100), stream.hung_up()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_talks_has_not_hung_up_and_one_that_ended_has_before_it_is_read() {
    let (stream, mut far) = pair();
    far.write_all(b"not read").await.unwrap();
    assert!(!has_hung_up(&stream).await);
    drop(stream.look_for_peer());
    assert!(!stream.is_over().await, "it is there");
    far.shutdown().await.unwrap();
    assert!(has_hung_up(&stream).await);
    assert!(stream.is_over().await);
    assert_eq!(stream.bytes(), b"", "nothing was read for it");
}

#[tokio::test(start_paused = true)]
async fn a_side_that_sends_no_more_still_reads_what_the_peer_answers() {
    let (mut stream, mut far) = pair();
    stream.end_sending();
    let mut byte = [0];
    assert_eq!(far.read(&mut byte).await.unwrap(), 0, "the peer sees the end");
    assert!(stream.write(b"more").await.is_err());
    far.write_all(b"answer").await.unwrap();
    drop(far);
    fill(&mut stream).await.unwrap();
    assert_eq!(stream.bytes(), b"answer");
    assert_eq!(fill(&mut stream).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn reads_grow_with_what_comes_and_memory_goes_back_when_nothing_is_under_way() {
    let (mut stream, mut far) = pair();
    let sent = vec![7; 150_000];
    let copy = sent.clone();
    let writing = tokio::spawn(async move {
        far.write_all(&copy).await.unwrap();
        far
    });
    let mut got = 0;
    let mut longest = 0;
    while got < sent.len() {
        let len = fill(&mut stream).await.unwrap();
        assert!(stream.bytes().iter().all(|byte| *byte == 7));
        stream.consume(len);
        (got, longest) = (got + len, longest.max(len));
    }
    drop(writing.await.unwrap());
    assert_eq!(got, sent.len());
    assert!(longest > BUFFER_LEN && longest <= 2 * BUFFER_LEN_MAX, "{longest}");
    stream.rest();
    assert_eq!((stream.buffer.memory_len(), stream.read_len), (0, BUFFER_LEN));
}

#[tokio::test(start_paused = true)]
async fn who_waits_has_no_buffer_and_many_who_wait_share_one() {
    let mut sides: Vec<_> = std::iter::repeat_with(pair).take(20).collect();
    for (near, far) in &mut sides {
        far.write_all(b"half a packet").await.unwrap();
        fill(near).await.unwrap();
        assert_eq!(near.bytes(), b"half a packet");
        assert!(!is_ready(near).await);
        assert_eq!(near.bytes(), b"half a packet", "what waits for its rest keeps its place");
        near.consume(13);
        assert!(!is_ready(near).await);
        assert_eq!((near.buffer.memory_len(), spare::len()), (0, 1));
    }
    // Over and over through the same buffer: it is never too full to read on.
    let (near, far) = &mut sides[0];
    for length in (0..40).map(|n| 300 + n) {
        let sent = vec![u8::try_from(length % 251).unwrap(); length];
        far.write_all(&sent).await.unwrap();
        fill(near).await.unwrap();
        assert_eq!(near.bytes(), sent);
        near.consume(length);
        assert!(!is_ready(near).await);
        assert_eq!(spare::len(), 1);
    }
}

/// Whether there is anything to read, without waiting for it.
async fn is_ready(stream: &mut Stream) -> bool {
    poll_fn(|cx| std::task::Poll::Ready(stream.poll_fill(cx).is_ready())).await
}

#[tokio::test(start_paused = true)]
async fn a_long_write_waits_for_its_reader_and_arrives_whole() {
    let (mut stream, mut far) = pair();
    let sent: Vec<u8> = (0..u8::MAX).cycle().take(1_000_000).collect();
    let reading = tokio::spawn(async move {
        let mut got = Vec::new();
        far.read_to_end(&mut got).await.unwrap();
        got
    });
    stream.write(&sent).await.unwrap();
    stream.shutdown().await;
    assert_eq!(reading.await.unwrap(), sent);
}

#[tokio::test(start_paused = true)]
async fn compressed_sides_understand_each_other_and_what_was_read_ahead_is_compressed_too() {
    for algorithm in [Algorithm::Zlib, Algorithm::Zstd] {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut client, mut server) =
            (Stream::new(Socket::Unix(near)), Stream::new(Socket::Unix(far)));
        let codecs = Arc::default();
        let compression = Compression { algorithm, level: 3 };
        client.compress(Role::Client, compression, &codecs);
        let command = [&[200, 0, 0, 0, 3][..], &[b'x'; 199]].concat();
        client.write(&command).await.unwrap();
        fill(&mut server).await.unwrap();
        assert_ne!(server.bytes(), command, "it is compressed");
        server.compress(Role::Server, compression, &codecs);
        while server.bytes().len() < command.len() {
            assert_ne!(fill(&mut server).await.unwrap(), 0);
        }
        assert_eq!(server.bytes(), command);
        client.end_sending();
        assert!(has_hung_up(&server).await);
    }
}

/// What a cluster without files has: a certificate of its own, and no wish to verify the server's.
fn certificates() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let text = "version: 1\nclusters: { a: { listen: 127.0.0.1:1, primary: db:1 } }\nrules: []\n";
    let config = policy::load(text).unwrap();
    let store = crate::tls::TlsStore::new(&config.clusters[0]);
    (store.server_config().unwrap(), store.client_config().unwrap())
}

#[tokio::test]
async fn the_end_of_a_side_in_tls_is_seen_below_it() {
    let (near, far) = UnixStream::pair().unwrap();
    let (mut client, mut server) =
        (Stream::new(Socket::Unix(near)), Stream::new(Socket::Unix(far)));
    let (accept, connect) = certificates();
    let name = ServerName::try_from("localhost").unwrap();
    let (accepted, connected) =
        tokio::join!(server.accept_tls(accept), client.connect_tls(connect, name));
    accepted.unwrap();
    connected.unwrap();
    client.write(b"command").await.unwrap();
    fill(&mut server).await.unwrap();
    assert_eq!(server.bytes(), b"command");
    server.write(b"answer").await.unwrap();
    fill(&mut client).await.unwrap();
    assert_eq!(client.bytes(), b"answer");
    assert!(!has_hung_up(&server).await);
    client.end_sending();
    assert!(has_hung_up(&server).await);
    let end = fill(&mut server).await.unwrap_err();
    assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof, "without TLS's last word");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_fails_leaves_a_stream_that_is_closed() {
    let (mut stream, mut far) = pair();
    far.write_all(b"ahead of the handshake").await.unwrap();
    fill(&mut stream).await.unwrap();
    let (_, config) = certificates();
    let name = ServerName::try_from("localhost").unwrap();
    let early = stream.connect_tls(config.clone(), name.clone()).await.unwrap_err();
    assert_eq!(early.kind(), io::ErrorKind::InvalidData, "nobody may speak before it");
    stream.consume(usize::MAX);
    far.write_all(b"this is no TLS").await.unwrap();
    assert!(stream.connect_tls(config, name).await.is_err());
    assert_eq!(fill(&mut stream).await.unwrap(), 0);
    assert!(stream.write(b"x").await.is_err());
    assert!(has_hung_up(&stream).await);
}

/// Of a record nothing can be read before all of it is there, however long that takes.
#[tokio::test]
async fn what_has_come_of_a_record_of_tls_is_seen_below_it() {
    let ((mut client, mut client_far), (mut server, mut server_far)) = (pair(), pair());
    let (accept, connect) = certificates();
    let name = ServerName::try_from("localhost").unwrap();
    tokio::select! {
        done = async { tokio::join!(server.accept_tls(accept), client.connect_tls(connect, name)) } => {
            done.0.and(done.1).unwrap();
        }
        _ = tokio::io::copy_bidirectional(&mut client_far, &mut server_far) => panic!("cut off"),
    }
    client.write(&[7; 10_000]).await.unwrap();
    let mut record = vec![0; 20_000];
    let len = client_far.read(&mut record).await.unwrap();
    assert!(len > 10_000, "{len}");
    let before = server.received();
    server_far.write_all(&record[..5_000]).await.unwrap();
    let filled = tokio::time::timeout(Duration::from_millis(100), fill(&mut server)).await;
    assert!(filled.is_err(), "nothing can be read");
    assert_eq!(server.received() - before, 5_000);
    server_far.write_all(&record[5_000..len]).await.unwrap();
    while server.bytes().len() < 10_000 {
        fill(&mut server).await.unwrap();
    }
    assert_eq!(server.received() - before, u64::try_from(len).unwrap());
}
