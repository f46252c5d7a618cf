use std::net::TcpListener as StdTcpListener;
use std::path::PathBuf;

use policy::Listen;

use super::*;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("sluice-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        Self(dir)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("takeover.sock")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn listener() -> (StdTcpListener, Listen) {
    let listener = StdTcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = Listen::Tcp(listener.local_addr().expect("its address"));
    (listener, listen)
}

fn offered(sockets: Vec<OwnedFd>) -> watch::Receiver<Offered> {
    watch::channel(Offered::Sockets(sockets)).1
}

#[tokio::test]
async fn the_sockets_are_the_same_ones_and_so_is_their_accept_queue() {
    let dir = Dir::new("same");
    let (listener, listen) = listener();
    let waiting = std::net::TcpStream::connect(listener.local_addr().expect("an address"));
    let offer = Offer::bind(&dir.socket(), &mut Inherited::default()).expect("an offer");
    let taken = tokio::spawn(offer.taken(offered(vec![listener.into()])));
    let (mut inherited, confirmation) =
        ask(&dir.socket()).await.expect("an answer").expect("somebody");
    let (socket, _) = inherited.take(&listen).expect("the listener");
    assert!(inherited.take(&listen).is_none(), "there is one");
    let next = Offer::bind(&dir.socket(), &mut inherited).expect("the socket of the offer too");
    assert!(inherited.left().is_empty());
    confirmation.confirm().await.expect("confirmed");
    taken.await.expect("taken");
    let (_, peer) = StdTcpListener::from(socket).accept().expect("who came before the takeover");
    assert_eq!(peer, waiting.expect("connected").local_addr().expect("its address"));
    // And the next one asks the new process.
    let (listener, _) = self::listener();
    let taken = tokio::spawn(next.taken(offered(vec![listener.into()])));
    let (_, confirmation) = ask(&dir.socket()).await.expect("an answer").expect("somebody");
    confirmation.confirm().await.expect("confirmed");
    taken.await.expect("taken");
}

#[tokio::test]
async fn a_new_process_that_fails_leaves_the_old_one_as_it_was() {
    let dir = Dir::new("fails");
    let (listener, _) = listener();
    let offer = Offer::bind(&dir.socket(), &mut Inherited::default()).expect("an offer");
    let taken = tokio::spawn(offer.taken(offered(vec![listener.into()])));
    drop(ask(&dir.socket()).await.expect("an answer").expect("somebody"));
    // Whoever asks next is answered.
    let (_, confirmation) = ask(&dir.socket()).await.expect("an answer").expect("somebody");
    assert!(!taken.is_finished());
    confirmation.confirm().await.expect("confirmed");
    taken.await.expect("taken");
}

#[tokio::test]
async fn where_nobody_answers_there_is_nothing_to_take() {
    let dir = Dir::new("nobody");
    assert!(ask(&dir.socket()).await.expect("no fault").is_none());
    drop(std::os::unix::net::UnixListener::bind(dir.socket()).expect("a stale socket"));
    assert!(ask(&dir.socket()).await.expect("no fault").is_none());
}

/// It was told that another version of this exchange is spoken.
#[tokio::test]
async fn who_asks_one_that_ends_before_its_answer_asks_again_and_finds_nobody() {
    let dir = Dir::new("ends");
    let path = dir.socket();
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let ends = std::thread::spawn(move || drop(listener.accept().expect("who asks")));
    assert!(ask(&path).await.expect("no fault").is_none());
    ends.join().expect("it has answered nothing");
}

/// Its files were removed under the new one, which could neither be reached nor be taken over from.
#[tokio::test]
async fn who_ends_before_the_next_one_serves_leaves_it_the_files_of_its_sockets() {
    let dir = Dir::new("early");
    let clients = Listen::Unix(dir.0.join("clients.sock"));
    let clients = std::sync::Arc::new(Listener::bind(&clients, 0o777).expect("bound"));
    let offer = Offer::bind(&dir.socket(), &mut Inherited::default()).expect("an offer");
    let offer = Offer { clients: vec![std::sync::Arc::downgrade(&clients)], ..offer };
    let socket = clients.as_fd().try_clone_to_owned().expect("a descriptor");
    let taken = tokio::spawn(offer.taken(offered(vec![socket])));
    let (mut inherited, confirmation) =
        ask(&dir.socket()).await.expect("an answer").expect("somebody");
    drop(clients);
    taken.abort();
    assert!(taken.await.is_err());
    let path = dir.0.join("clients.sock");
    assert!(path.exists() && dir.socket().exists());
    let next = Offer::bind(&dir.socket(), &mut inherited).expect("it can be asked in its turn");
    assert!(confirmation.confirm().await.is_err(), "nobody listens");
    drop((next, inherited));
    assert!(!dir.socket().exists(), "the last one removes it");
}

#[tokio::test]
async fn who_asks_while_the_listeners_close_waits_and_gets_what_is_left() {
    let dir = Dir::new("closing");
    let (clients, clients_listen) = listener();
    let (admin, admin_listen) = listener();
    let both = vec![clients.into(), admin.try_clone().expect("a descriptor").into()];
    let (offers, offered) = watch::channel(Offered::Sockets(both));
    let offer = Offer::bind(&dir.socket(), &mut Inherited::default()).expect("an offer");
    let taken = tokio::spawn(offer.taken(offered));
    offers.send_replace(Offered::NotNow);
    let path = dir.socket();
    let asks = tokio::spawn(async move { ask(&path).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!asks.is_finished());
    offers.send_replace(Offered::Sockets(vec![admin.into()]));
    let (mut inherited, confirmation) =
        asks.await.expect("no panic").expect("an answer").expect("somebody");
    assert!(inherited.take(&clients_listen).is_none(), "it is closed");
    assert!(inherited.take(&admin_listen).is_some());
    confirmation.confirm().await.expect("confirmed");
    taken.await.expect("taken");
}
