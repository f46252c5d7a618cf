//! What a server says between two commands, though nobody has asked: its last word is relayed. Anything else would be
//! taken for the answer to what comes next, which may be a password, and ends the connection.

use std::net::SocketAddr;
use std::time::Duration;

use integration::ports::loopback;
use integration::raw::{Login, RawConn, framed};
use integration::scenario::wait_for_sum;
use integration::sluice::{Config, SluiceProcess};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{MYSQL, OK, SOON, serves};

/// Asks for the password in the clear.
const SWITCH: &[u8] = b"\xfemysql_clear_password\0";
const SHUTDOWN: &[u8] = b"\xff\x1d\x04#08S01Server shutdown in progress";
const INACTIVE: &[u8] =
    b"\xff\xbf\x0f#HY000The client was disconnected by the server because of inactivity.";

#[tokio::test]
async fn what_is_no_last_word_is_not_relayed_and_ends_the_connection() {
    let mut errors = 0.0;
    let sluices = [When::AtOnce, When::Later].map(sluice);
    for sluice in sluices {
        let (sluice, mut says) = sluice.await;
        for unasked in [
            framed(0, OK),
            framed(1, OK),
            framed(1, SWITCH),
            framed(0, &[&[0x01, 0x04][..], &[b'k'; 300]].concat()),
            framed(1, b"\xfb/etc/passwd"),
            framed(1, &[0xfe, 0, 0, 2, 0]),
            framed(1, &[1]),
            framed(0, &[]),
        ] {
            says.set(&unasked);
            assert_eq!(heard(&sluice).await, b"", "{}", unasked.escape_ascii());
            errors += 1.0;
            let protocol = [("kind", "protocol")];
            let name = "sluice_backend_errors_total";
            wait_for_sum(&sluice, name, &protocol, errors).await.unwrap();
        }
        errors = 0.0;
    }
}

#[tokio::test]
async fn the_last_word_of_a_server_is_relayed_and_nothing_behind_it() {
    for when in [When::AtOnce, When::Later] {
        let (sluice, mut says) = sluice(when).await;
        for word in [SHUTDOWN, INACTIVE, &[&INACTIVE[..9], &[b'x'; 3_000]].concat()] {
            let word = framed(0, word);
            says.set(&word);
            assert!(heard(&sluice).await == word, "{}", word.escape_ascii());
            // A client whose next command is COM_CHANGE_USER would read this as its answer.
            says.set(&[&word[..], &framed(1, SWITCH)].concat());
            assert!(heard(&sluice).await == word, "{}", word.escape_ascii());
        }
    }
}

/// A header that is cut off says nothing yet: the client is not forgotten over it.
#[tokio::test]
async fn a_client_is_served_or_ended_when_its_server_has_begun_to_say_something() {
    let (sluice, mut says) = sluice(When::Later).await;
    for begun in [&[1_u8][..], &[7, 0, 0, 1], &framed(1, SHUTDOWN)[..20]] {
        says.set(begun);
        let mut conn = RawConn::open(sluice.listen_addr(), &Login::new("web")).await.unwrap();
        tokio::time::sleep(LATER * 2).await;
        conn.stream().shutdown().await.unwrap();
        conn.set_read_limit(SOON);
        let ended = conn.read_to_end().await;
        assert!(ended.is_ok(), "{}: {ended:?}", begun.escape_ascii());
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    }
}

/// What a client hears after its login, without saying anything, until the connection ends.
async fn heard(sluice: &SluiceProcess) -> Vec<u8> {
    let mut conn = RawConn::open(sluice.listen_addr(), &Login::new("web")).await.unwrap();
    conn.set_read_limit(SOON);
    conn.read_to_end().await.unwrap()
}

/// Sluice in front of a server that says something else to each client.
async fn sluice(when: When) -> (SluiceProcess, Says) {
    let servers = MYSQL.get().await.unwrap();
    let (says, said) = tokio::sync::watch::channel(Vec::new());
    let server = talkative_server(servers.primary.addr(), when, said).await;
    let config = Config::in_front_of(server, Vec::new()).unwrap().signals("");
    let mut sluice =
        SluiceProcess::spawn(&config.render(), config.listen, config.admin, &[]).unwrap();
    serves(&mut sluice).await;
    wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    (sluice, Says(says))
}

/// What the server says to the next client.
struct Says(tokio::sync::watch::Sender<Vec<u8>>);

impl Says {
    fn set(&mut self, bytes: &[u8]) {
        self.0.send_replace(bytes.to_vec());
    }
}

/// When a server says what nobody has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// With its answer to the login.
    AtOnce,
    /// When the client knows that it is in.
    Later,
}

const LATER: Duration = Duration::from_millis(100);

async fn talkative_server(
    real: SocketAddr,
    when: When,
    said: tokio::sync::watch::Receiver<Vec<u8>>,
) -> SocketAddr {
    let greeting = RawConn::connect(real).await.unwrap().read_packet().await.unwrap();
    let greeting = framed(greeting.seq, &greeting.payload);
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let unasked = said.borrow().clone();
            tokio::spawn(talk(stream, greeting.clone(), when, unasked));
        }
    });
    addr
}

/// Lets everybody in, says what nobody has asked for, and closes behind a last word.
async fn talk(
    mut stream: TcpStream,
    greeting: Vec<u8>,
    when: When,
    unasked: Vec<u8>,
) -> std::io::Result<()> {
    stream.write_all(&greeting).await?;
    let mut response = [0; 4_096];
    if stream.read(&mut response).await? == 0 {
        return Ok(());
    }
    match when {
        When::AtOnce => stream.write_all(&[&framed(2, OK), &unasked[..]].concat()).await?,
        When::Later => {
            stream.write_all(&framed(2, OK)).await?;
            tokio::time::sleep(LATER).await;
            stream.write_all(&unasked).await?;
        }
    }
    if unasked.get(4) == Some(&0xff) && unasked.len() > 30 {
        stream.shutdown().await?;
    }
    while stream.read(&mut response).await? > 0 {}
    Ok(())
}
