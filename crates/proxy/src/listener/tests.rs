use std::future::poll_fn;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener as StdUnixListener;

use super::*;

/// A folder that is gone with its owner.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("sluice-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder");
        Self(dir)
    }

    fn socket(&self) -> (PathBuf, Listen) {
        let path = self.0.join("mysql.sock");
        (path.clone(), Listen::Unix(path))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[tokio::test]
async fn a_socket_has_its_mode_and_is_gone_with_its_listener() {
    let dir = Dir::new("mode");
    let (path, listen) = dir.socket();
    let listener = Listener::bind(&listen, 0o640).expect("bound");
    let mode = fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
    assert_eq!(listener.listens_on().expect("an address"), listen);
    drop(listener);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_one_that_is_answered_on_is_not() {
    let dir = Dir::new("stale");
    let (path, listen) = dir.socket();
    let other = StdUnixListener::bind(&path).expect("another process");
    let error = Listener::bind(&listen, 0o777).expect_err("it is answered on");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    drop(other);
    assert!(path.exists(), "nobody removes it");
    drop(Listener::bind(&listen, 0o777).expect("stale"));
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let dir = Dir::new("file");
    let (path, listen) = dir.socket();
    fs::write(&path, "precious").expect("written");
    let error = Listener::bind(&listen, 0o777).expect_err("it is no socket");
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "precious");
}

#[tokio::test]
async fn a_socket_that_a_successor_has_is_not_removed() {
    let dir = Dir::new("left");
    let (path, listen) = dir.socket();
    let listener = Listener::bind(&listen, 0o777).expect("bound");
    listener.leave_to_successor();
    drop(listener);
    assert!(path.exists());
    // And neither is one that somebody else has put there.
    let listener = Listener::bind(&listen, 0o777).expect("bound");
    fs::remove_file(&path).expect("removed");
    let other = StdUnixListener::bind(&path).expect("another process");
    drop(listener);
    assert!(path.exists());
    drop(other);
}

#[tokio::test]
async fn an_ipv4_client_of_an_ipv6_listener_is_called_by_its_ipv4_address() {
    let listen = Listen::Tcp("[::]:0".parse().expect("an address"));
    let listener = Listener::bind(&listen, 0o777).expect("bound");
    let Listen::Tcp(bound) = listener.listens_on().expect("an address") else {
        panic!("it is of the network")
    };
    for host in ["127.0.0.1", "::1"] {
        for at_once in [false, true] {
            let address = SocketAddr::new(host.parse().expect("an address"), bound.port());
            let client = std::net::TcpStream::connect(address).expect("connected");
            let accepted = if at_once {
                // Connected means that it is in the queue.
                listener.accept_now()
            } else {
                poll_fn(|cx| listener.poll_accept(cx)).await
            };
            let (_, peer) = accepted.expect("accepted");
            let called = client.local_addr().expect("an address").to_string();
            assert_eq!(peer.to_string(), called);
        }
    }
}
