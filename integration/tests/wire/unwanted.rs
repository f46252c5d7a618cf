//! Clients that connect and do not log in: a server counts them by address, and that is Sluice's.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::net::SocketAddr;

use integration::ports::loopback;
use integration::raw::{Login, RawConn, framed};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};
use tokio::net::{TcpListener, TcpSocket};

#[tokio::test]
async fn who_leaves_without_a_login_has_nobody_locked_out_of_mysql() {
    nobody_is_locked_out(Flavour::MySql, Vec::new()).await;
}

#[tokio::test]
async fn who_leaves_without_a_login_has_nobody_locked_out_of_mariadb() {
    // It asks for the password of users that it does not have by plugins of those that it has.
    let users = (0..9).map(|number| {
        format!("CREATE USER ed{number} IDENTIFIED VIA ed25519 USING PASSWORD('ed')")
    });
    let plugin = "INSTALL SONAME 'auth_ed25519'".to_owned();
    nobody_is_locked_out(Flavour::MariaDb, [plugin].into_iter().chain(users).collect()).await;
}

async fn nobody_is_locked_out(flavour: Flavour, first: Vec<String>) {
    let mut options = TopologyOptions::new(flavour, 0);
    // Servers that look up no names count nobody. Of few errors probes without TLS would use up some.
    options.extra_args =
        ["--skip-name-resolve=OFF", "--max-connect-errors=20"].map(String::from).to_vec();
    let servers = Topology::start(options).await.unwrap();
    for statement in &first {
        servers.primary.run_sql(&[statement]).await.unwrap();
    }
    let elsewhere = from_another_address(servers.primary.addr()).await;
    let config = Config::in_front_of(elsewhere, Vec::new()).unwrap();
    let sluice =
        SluiceProcess::start(&config.cluster("client_tls: { mode: disabled }")).await.unwrap();
    let addr = sluice.listen_addr();
    for turn in 0..200 {
        let mut conn = RawConn::connect(addr).await.unwrap();
        let greeting = conn.read_packet().await.unwrap();
        assert_eq!(greeting.payload.first(), Some(&10), "{turn}: {:?}", greeting.err());
        if turn % 2 > 0 {
            conn.send_bytes(&framed(1, b"no login")).await.unwrap();
            assert_eq!(conn.read_packet().await.unwrap().err().map(|(errno, _)| errno), Some(1043));
        }
    }
    RawConn::open(addr, &Login::new("app")).await.unwrap();
}

/// The same server, to which whoever comes through here is from 127.0.0.2: whoever is from 127.0.0.1
/// is never locked out.
async fn from_another_address(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
            let mut server = socket.connect(server).await.unwrap();
            tokio::spawn(async move {
                drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
            });
        }
    });
    addr
}
