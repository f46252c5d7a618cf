use std::collections::HashMap;
use std::time::Instant;

use admission::{BudgetKey, BudgetNews, BudgetUse};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::telemetry::TelemetryConfig;

/// A Sluice in front of `primary`, on a port of its own, with one thread that relays.
fn start(primary: &str) -> Server {
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: \"127.0.0.1:0\", primary: \"{primary}\", \
         connect_timeout: 1s }} }}\n\
         rules: []\n"
    );
    let config = policy::load(&text).unwrap();
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    Server::start(&config, &telemetry, Threads::up_to(1), &mut Inherited::default()).unwrap()
}

async fn connect(server: &Server) -> TcpStream {
    let Listen::Tcp(address) = &server.addresses()[0] else { panic!("it listens on a port") };
    TcpStream::connect(address).await.unwrap()
}

/// A server that accepts and says nothing, as a frozen one does.
async fn silent_primary() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

async fn drain(mut server: Server, timeout: Duration) -> Drained {
    server.stop_accepting(Leaving::Closed).await;
    let (_patience, told) = watch::channel(Patience::WithTransactions);
    server.drain(timeout, told).await
}

async fn told(client: &mut TcpStream) -> u16 {
    let mut packet = Vec::new();
    client.read_to_end(&mut packet).await.unwrap();
    assert_eq!(packet[4], 0xff, "an ERR packet: {packet:?}");
    u16::from_le_bytes([packet[5], packet[6]])
}

#[tokio::test]
async fn a_client_is_told_that_there_is_no_primary_and_nobody_is_left_to_drain() {
    let (listener, address) = silent_primary().await;
    drop(listener);
    let server = start(&address);
    let mut client = connect(&server).await;
    assert_eq!(told(&mut client).await, 1053);
    drop(client);
    let since = Instant::now();
    assert_eq!(drain(server, Duration::from_secs(600)).await, Drained::Empty);
    assert!(since.elapsed() < Duration::from_secs(60), "nobody is waited for");
}

#[tokio::test]
async fn a_drain_waits_its_time_for_who_is_there_and_then_tells_them() {
    let (_primary, address) = silent_primary().await;
    let server = start(&address);
    let mut client = connect(&server).await;
    let cluster = server.clusters()[0].clone();
    while cluster.registry.is_empty() {
        tokio::task::yield_now().await;
    }
    let Listen::Tcp(listens_on) = server.addresses()[0].clone() else { panic!("a port") };
    let since = Instant::now();
    let timeout = Duration::from_millis(300);
    let drain = drain(server, timeout);
    let (errno, drained) = tokio::join!(told(&mut client), drain);
    assert_eq!((errno, drained), (1053, Drained::Cut { sessions: 1 }));
    assert!(since.elapsed() >= timeout, "{:?}", since.elapsed());
    assert!(cluster.registry.is_empty());
    assert!(TcpStream::connect(listens_on).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_drain_that_is_hurried_does_not_wait_its_time() {
    let (_primary, address) = silent_primary().await;
    let mut server = start(&address);
    let mut client = connect(&server).await;
    while server.connected() == 0 {
        tokio::task::yield_now().await;
    }
    server.stop_accepting(Leaving::Closed).await;
    let (patience, told_by) = watch::channel(Patience::WithWaiters);
    let drain = tokio::spawn(server.drain(Duration::from_secs(600), told_by));
    patience.send_replace(Patience::WithTransactions);
    tokio::task::yield_now().await;
    assert!(!drain.is_finished(), "somebody logs in");
    patience.send_replace(Patience::None);
    assert_eq!(told(&mut client).await, 1053);
    assert_eq!(drain.await.unwrap(), Drained::Cut { sessions: 1 });
}

#[tokio::test]
async fn who_connected_before_a_drain_is_served_though_nobody_had_accepted() {
    let (primary, address) = silent_primary().await;
    let server = start(&address);
    let clients = [connect(&server).await, connect(&server).await];
    let drain = tokio::spawn(drain(server, Duration::from_secs(600)));
    let mut reached = Vec::new();
    for _ in &clients {
        reached.push(primary.accept().await.unwrap());
    }
    assert!(!drain.is_finished());
    drop((clients, reached));
    drain.await.unwrap();
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_with_its_cluster() {
    let (_taken, address) = silent_primary().await;
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: \"{address}\", primary: db:1 }} }}\nrules: []\n"
    );
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    let config = policy::load(&text).unwrap();
    let error = Server::start(&config, &telemetry, Threads::up_to(1), &mut Inherited::default())
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains("cluster a"), "{error}");
}

/// The server goes on with a statement though its session has gone: its place went with the process.
#[tokio::test]
async fn a_drain_waits_for_what_budgets_count_while_the_process_behind_is_told() {
    let (_primary, address) = silent_primary().await;
    let mut server = start(&address);
    let cluster = server.clusters()[0].clone();
    let few = BudgetUse { budget: BudgetKey(1), instance: 0 };
    let before = |count| {
        let there = HashMap::from([(few, count)]);
        cluster.note_budget_news(BudgetNews { there, ..BudgetNews::default() });
        cluster.neighbours.set_before(count > 0);
    };
    before(1);
    cluster.begin_to_tell();
    server.stop_accepting(Leaving::ToSuccessor).await;
    let (_patience, told_by) = watch::channel(Patience::WithWaiters);
    let drain = tokio::spawn(server.drain(Duration::from_secs(600), told_by));
    tokio::time::sleep(DRAIN_POLL * 5).await;
    assert!(!drain.is_finished());
    before(0);
    assert_eq!(drain.await.unwrap(), Drained::Empty);
}

#[tokio::test]
async fn what_nobody_is_told_of_holds_up_no_drain_and_nothing_does_for_longer_than_its_time() {
    for (is_told, at_least) in [(false, Duration::ZERO), (true, Duration::from_millis(300))] {
        let (_primary, address) = silent_primary().await;
        let server = start(&address);
        let cluster = server.clusters()[0].clone();
        cluster.neighbours.set_before(true);
        if is_told {
            cluster.begin_to_tell();
        }
        let since = Instant::now();
        assert_eq!(drain(server, Duration::from_millis(300)).await, Drained::Empty);
        let took = since.elapsed();
        assert!(took >= at_least && (is_told || took < Duration::from_millis(300)), "{took:?}");
    }
}

/// Without a file for a client each listener had twenty lines a second.
#[tokio::test]
async fn clients_that_cannot_be_accepted_have_some_lines_in_the_log() {
    let (_primary, address) = silent_primary().await;
    let server = start(&address);
    let cluster = server.clusters[0].clone();
    let acceptor = Acceptor {
        listener: server.sockets[0].clone(),
        origin: Origin::Predecessor,
        shared: Shared {
            cluster: cluster.clone(),
            telemetry: Telemetry::new(TelemetryConfig { max_apps: 10 }),
        },
        workers: server.workers.clone(),
        told: server.accepting.subscribe(),
    };
    for _ in 0..12 {
        assert!(acceptor.let_in(Err(io::ErrorKind::OutOfMemory.into())).await);
    }
    let further = cluster.turned_away.unaccepted.lock().again(cluster.now());
    assert_eq!(further, None, "ten of twelve were told");
    drop(acceptor);
    drain(server, Duration::ZERO).await;
}
