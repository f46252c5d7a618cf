//! The primary's name leads to another server, and nothing of the one of before breaks.

use std::net::SocketAddr;
use std::time::Duration;

use integration::scenario::{numbers, wait_until};
use integration::server::Flavour;
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::SOON;

/// A name: whoever connects from now on comes to where it leads then.
struct Name {
    address: SocketAddr,
    leads_to: watch::Sender<SocketAddr>,
    _accepting: JoinSet<()>,
}

impl Name {
    async fn of(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (leads_to, to) = watch::channel(server);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let to = *to.borrow();
                open.spawn(async move {
                    let mut server = TcpStream::connect(to).await.unwrap();
                    tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
                });
            }
        });
        Self { address, leads_to, _accepting: accepting }
    }
}

#[tokio::test]
async fn behind_a_switchover_the_probes_go_where_the_clients_go() {
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        let servers = Topology::start(TopologyOptions::new(flavour, 1)).await.unwrap();
        let (old, new) = (&servers.primary, servers.replicas.first().unwrap().server());
        let name = Name::of(old.addr()).await;
        let again = Name::of(new.addr()).await;
        let config = Config::in_front_of(name.address, vec![new.addr(), again.address]).unwrap();
        let sluice = SluiceProcess::start(&config).await.unwrap();
        super::wait_for_state(&sluice, &new.addr().to_string(), "counted").await;

        super::wait_for_state(&sluice, &again.address.to_string(), "unreachable").await;
        let page = sluice.http_get("/plain").await.unwrap().body;
        assert!(page.contains("it is the same server as"), "{page}");

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
        super::wait_for_state(&sluice, &new.addr().to_string(), "unreachable").await;
        let page = sluice.http_get("/plain").await.unwrap().body;
        assert!(page.contains("it is the primary itself"), "{page}");
        let shut = |metrics: &Metrics| !super::is_open(metrics);
        sluice.wait_for_metrics("no replica, no lag", SOON, shut).await.unwrap();
        let log = sluice.log().unwrap();
        for lags in ["a gate shuts: the signal is at or over", "lag counts again"] {
            assert!(!log.contains(lags), "behind what is written to itself: {log}");
        }

        // What has been written to the old one it shows, and it replicates from nobody.
        let opened = log.matches("a gate opens").count();
        let (listed, old) = (format!("{}, {}", new.addr(), again.address), old.addr().to_string());
        sluice.write_config(&config.render().replace(&listed, &old)).unwrap();
        super::wait_for_state(&sluice, &old, "receiver_stopped").await;
        let is_told = || async {
            let ready = sluice.http_get("/readyz").await?.body;
            Ok(ready.contains(&format!("{old}: it is not a replica")))
        };
        wait_until("it is told", SOON, is_told).await.unwrap();
        let page = sluice.http_get("/plain").await.unwrap().body;
        assert!(page.contains("Or make it a replica again"), "{page}");
        let log = sluice.log().unwrap();
        assert_eq!(log.matches("a gate opens").count(), opened, "{log}");
    }
}
