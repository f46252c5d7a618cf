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
