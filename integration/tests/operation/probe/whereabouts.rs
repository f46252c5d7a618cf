//! The primary's name leads to another server, and nothing of the one of before breaks; or connections
//! are lost on the way to it, and neither end is told.

use std::net::SocketAddr;
use std::time::Duration;

use integration::scenario::{numbers, wait_until};
use integration::server::Flavour;
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};
use tokio::io::{copy, copy_bidirectional, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::SOON;

/// A name: whoever connects from now on comes to where it leads then.
struct Name {
    address: SocketAddr,
    leads_to: watch::Sender<SocketAddr>,
    loses: watch::Sender<()>,
    /// How many of the connections that were lost the server has ended.
    ended: watch::Sender<u32>,
    _accepting: JoinSet<()>,
}

impl Name {
    async fn of(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (leads_to, to) = watch::channel(server);
        let (loses, losing) = watch::channel(());
        let ended = watch::Sender::new(0);
        let counted = ended.clone();
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let to = *to.borrow();
                open.spawn(relay(client, to, losing.clone(), counted.clone()));
            }
        });
        Self { address, leads_to, loses, ended, _accepting: accepting }
    }

    /// What is sent on the connections that are open comes to nobody from now on, not even their end.
    fn loses_all(&self) {
        self.loses.send_replace(());
    }
}

async fn relay(
    mut client: TcpStream,
    to: SocketAddr,
    mut losing: watch::Receiver<()>,
    ended: watch::Sender<u32>,
) {
    losing.mark_unchanged();
    let mut server = TcpStream::connect(to).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => return,
        changed = losing.changed() => if changed.is_err() { return },
    }
    let server_ends = async {
        copy(&mut server, &mut sink()).await.ok();
        ended.send_modify(|ended| *ended += 1);
    };
    let mut nobody = sink();
    tokio::join!(copy(&mut client, &mut nobody), server_ends).0.ok();
}

/// The second loss within a quarter of an hour was never healed, as the first had no answer yet.
async fn lost_connections_are_made_anew(
    servers: &Topology,
    sluice: &SluiceProcess,
    [primary, replica]: [&Name; 2],
) {
    let beats = "SELECT seq FROM sluice.heartbeat";
    for _ in 0..2 {
        primary.loses_all();
        replica.loses_all();
        super::wait_for_signal(sluice, "lag", 0.0).await.unwrap();
        let before = numbers(&servers.primary, beats).await.unwrap();
        let written = || async { Ok(numbers(&servers.primary, beats).await? > before) };
        wait_until("heartbeats are written again", SOON, written).await.unwrap();
        super::wait_for_signal(sluice, "lag", 1.0).await.unwrap();
        super::wait_for_state(sluice, &replica.address.to_string(), "counted").await;
    }
    for name in [primary, replica] {
        let ended = || async { Ok(*name.ended.borrow() > 0) };
        wait_until("an idle session is ended", SOON, ended).await.unwrap();
    }
}

/// Heartbeats were read at one of them and its replication was asked for at another, and nothing said so.
async fn a_name_of_several_servers_is_told(primary: SocketAddr, replica: SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = listener.local_addr().unwrap();
    let mut accepting = JoinSet::new();
    accepting.spawn(async move {
        let mut open = JoinSet::new();
        for to in [replica, primary].into_iter().cycle() {
            let (mut client, _) = listener.accept().await.unwrap();
            open.spawn(async move {
                let mut server = TcpStream::connect(to).await.unwrap();
                copy_bidirectional(&mut client, &mut server).await.ok();
            });
        }
    });
    let config = Config::in_front_of(primary, vec![name]).unwrap();
    let sluice = SluiceProcess::spawn(&config.render(), config.listen, config.admin, &[]).unwrap();
    let told = ["WARN", "a replica's name leads to another server", &name.to_string()];
    super::wait_for_line(&sluice, &told).await;
}

#[tokio::test]
async fn behind_a_switchover_the_probes_go_where_the_clients_go() {
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        let servers = Topology::start(TopologyOptions::new(flavour, 1)).await.unwrap();
        let (old, new) = (&servers.primary, servers.replicas.first().unwrap().server());
        a_name_of_several_servers_is_told(old.addr(), new.addr()).await;
        let name = Name::of(old.addr()).await;
        let (to_new, again) = (Name::of(new.addr()).await, Name::of(new.addr()).await);
        let replicas = vec![to_new.address, again.address];
        let config = Config::in_front_of(name.address, replicas).unwrap();
        let sluice = SluiceProcess::start(&config).await.unwrap();
        super::wait_for_state(&sluice, &to_new.address.to_string(), "counted").await;

        super::wait_for_state(&sluice, &again.address.to_string(), "unreachable").await;
        let page = sluice.http_get("/plain").await.unwrap().body;
        assert!(page.contains("it is the same server as"), "{page}");
        lost_connections_are_made_anew(&servers, &sluice, [&name, &to_new]).await;

        let promotes: &[&str] = match flavour {
            Flavour::MySql => {
                &["STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL super_read_only = 0"]
            }
            Flavour::MariaDb => &["STOP SLAVE", "RESET SLAVE ALL"],
        };
        old.run_sql(&["SET GLOBAL read_only = 1"]).await.unwrap();
        servers.wait_in_sync(SOON).await.unwrap();
        new.run_sql(promotes).await.unwrap();
        new.run_sql(&["SET GLOBAL read_only = 0"]).await.unwrap();
        name.leads_to.send_replace(new.addr());

        let beats = "SELECT seq FROM sluice.heartbeat";
        let before = numbers(new, beats).await.unwrap();
        let written = || async { Ok(numbers(new, beats).await? > before) };
        wait_until("heartbeats are written there", SOON, written).await.unwrap();
        super::wait_for_log(&sluice, "leads to another server now").await;
        old.run_sql(&["SET GLOBAL read_only = 0"]).await.unwrap();
        let last = numbers(old, beats).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(numbers(old, beats).await.unwrap(), last, "where no client writes");

        // It shows what is written to it at once, which is no replica's lag.
        super::wait_for_state(&sluice, &to_new.address.to_string(), "unreachable").await;
        let page = sluice.http_get("/plain").await.unwrap().body;
        assert!(page.contains("it is the primary itself"), "{page}");
        let shut = |metrics: &Metrics| !super::is_open(metrics);
        sluice.wait_for_metrics("no replica, no lag", SOON, shut).await.unwrap();
        let log = sluice.log().unwrap();
        let log = log.split("leads to another server now").last().unwrap();
        for lags in ["a gate shuts: the signal is at or over", "lag counts again"] {
            assert!(!log.contains(lags), "behind what is written to itself: {log}");
        }

        // What has been written to the old one it shows, and it replicates from nobody.
        let opened = || sluice.log().unwrap().matches("a gate opens").count();
        let before = opened();
        let listed = format!("{}, {}", to_new.address, again.address);
        let old = old.addr().to_string();
        let edited = config.render().replace(&listed, &old);
        assert_ne!(edited, config.render());
        sluice.write_config(&edited).unwrap();
        super::wait_for_state(&sluice, &old, "receiver_stopped").await;
        let is_told = || async {
            let ready = sluice.http_get("/readyz").await?.body;
            Ok(ready.contains(&format!("{old}: it is not a replica")))
        };
        wait_until("it is told", SOON, is_told).await.unwrap();
        let page = sluice.http_get("/plain").await.unwrap().body;
        assert!(page.contains("Or make it a replica again"), "{page}");
        assert_eq!(opened(), before, "{}", sluice.log().unwrap());
    }
}
