//! What clients cost that do nothing.

use integration::certificates::Certificates;
use integration::footprint::{Footprint, descriptors_max};
use integration::raw::{Login, Param, RawConn, Tls};
use integration::scenario::wait_for_sum;
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};

use super::{CLIENT_KIB, nothing_is_left, once};

const IDLE: usize = 2_000;
const WAVE: usize = 50;

/// What a client may cost that has only logged in.
const FRESH_CLIENT_KIB: u64 = 8;

/// What an idle client may cost in TLS, on both legs: each has its buffers and its state.
const TLS_CLIENT_KIB: u64 = 34;

/// What a thread keeps for all of its clients it keeps from the first of them: none joins while they are counted.
const ALL_THREADS: [&str; 2] = ["--worker-full", "0"];

/// Each statement meets all of it.
const RULES: &str = "- name: everything\n  gate: none\n  permanent: true\n  \
                     runaway: { elapsed: 1m, rows_sent: 1000000, action: kill, watch: { by: digest, for: 10m } }";
const EVERYTHING: &str = "
insights: { enabled: true, sample_text: true, tags: [controller] }
budgets:
  - { name: at-once, max_concurrency: 1000 }
  - { name: of-each, per: user, share: 100, burst: 100s }
guards:
  - { name: lists, max_in_list: 5000, max_statement_bytes: 1MiB }
";

#[tokio::test]
async fn two_thousand_idle_clients_cost_what_is_promised_and_leave_nothing() {
    let world = World::new(Flavour::MariaDb, Vec::new(), Config::new).await;
    // The limit of this process must leave some for servers and pipes.
    let count = IDLE.min(descriptors_max().unwrap().saturating_sub(200));
    if count < IDLE {
        eprintln!("only {count} clients: the limit of open files is too low for {IDLE}");
    }
    let crowd = world.crowd(count, &Login::new("web"), Work::None).await;
    crowd.costs_less_than(FRESH_CLIENT_KIB);
    assert!(crowd.full.descriptors >= 2 * count, "{:?}", crowd.full);
    let Crowd { mut clients, before, .. } = crowd;
    for client in clients.iter_mut().step_by(97) {
        client.query("SELECT 1").await.unwrap().accepted().unwrap();
    }
    drop(clients);
    nothing_is_left(&world.sluice, before).await;
}

#[tokio::test]
async fn clients_that_have_worked_cost_no_more_when_they_are_idle_with_everything_on() {
    let certificates = Certificates::new().unwrap();
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        let world = World::new(flavour, certificates.server_args().unwrap(), |servers| {
            let mut config = Config::new(servers)?.rules(RULES);
            config.top = EVERYTHING.to_owned();
            Ok(config)
        });
        let world = world.await;
        // What the first of them need is kept for all.
        world.crowd(WAVE, &login(), Work::Everyday).await;
        let crowd = world.crowd(IDLE / 2, &login(), Work::Everyday).await;
        let in_tls = world.crowd(IDLE / 4, &login().tls(Tls::Newest), Work::Everyday).await;
        crowd.costs_less_than(CLIENT_KIB);
        in_tls.costs_less_than(TLS_CLIENT_KIB);
    }
}

/// What drivers say of themselves.
fn login() -> Login {
    [
        ("_client_name", "libmysql"),
        ("_client_version", "9.7.0"),
        ("_os", "Linux"),
        ("_pid", "123456"),
        ("_platform", "x86_64"),
        ("program_name", "/usr/bin/worker"),
    ]
    .iter()
    .fold(Login::new("web"), |login, (key, value)| login.attribute(key, value))
}

/// What a client does before it is idle.
#[derive(Clone, Copy)]
enum Work {
    None,
    Everyday,
}

struct World {
    _servers: Topology,
    sluice: SluiceProcess,
}

struct Crowd {
    clients: Vec<RawConn>,
    before: Footprint,
    full: Footprint,
}

impl World {
    async fn new(
        flavour: Flavour,
        mut extra_args: Vec<String>,
        config: impl FnOnce(&Topology) -> integration::error::Result<Config>,
    ) -> Self {
        let mut options = TopologyOptions::new(flavour, 0);
        extra_args.extend(["--max-connections=2600", "--thread-stack=192K"].map(String::from));
        options.extra_args = extra_args;
        let servers = Topology::start(options).await.unwrap();
        let config = config(&servers).unwrap();
        let addresses = (config.listen, config.admin);
        let mut sluice =
            SluiceProcess::spawn_with(&config.render(), addresses, &[], &ALL_THREADS).unwrap();
        sluice.wait_until_ready().await.unwrap();
        once(&sluice).await.unwrap();
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
        Self { _servers: servers, sluice }
    }

    /// So many clients that stay.
    async fn crowd(&self, count: usize, login: &Login, work: Work) -> Crowd {
        let before = Footprint::of(&self.sluice).unwrap();
        let mut clients = Vec::with_capacity(count);
        while clients.len() < count {
            let wave: Vec<_> = (0..WAVE.min(count.saturating_sub(clients.len())))
                .map(|_| {
                    let (listen, login) = (self.sluice.listen_addr(), login.clone());
                    tokio::spawn(async move {
                        let mut client = RawConn::open(listen, &login).await.unwrap();
                        work.done_by(&mut client).await.unwrap();
                        client
                    })
                })
                .collect();
            for client in wave {
                clients.push(client.await.unwrap());
            }
        }
        let full = Footprint::of(&self.sluice).unwrap();
        let grown = full.rss_kib.saturating_sub(before.rss_kib) * 1024;
        eprintln!("{count} idle clients: {} B each", grown / u64::try_from(count).unwrap());
        Crowd { clients, before, full }
    }
}

impl Crowd {
    fn costs_less_than(&self, client_kib: u64) {
        let grown_kib = self.full.rss_kib.saturating_sub(self.before.rss_kib);
        let count = u64::try_from(self.clients.len()).unwrap();
        assert!(grown_kib < count * client_kib, "{grown_kib} KiB for {count} clients");
    }
}

impl Work {
    async fn done_by(self, client: &mut RawConn) -> integration::error::Result<()> {
        match self {
            Self::None => return Ok(()),
            Self::Everyday => {}
        }
        for sql in [
            "SET NAMES utf8mb4",
            "SELECT REPEAT('x', 10000)",
            "BEGIN",
            "SELECT 1 + 1 /* controller='carts' */",
            "SELECT CONCAT('a', 'b'), 17",
            "SELECT 'of another kind' FROM DUAL WHERE 1 = 1",
            "SELECT 1 AS one, 2 AS two",
            "COMMIT",
        ] {
            client.query(sql).await?.accepted()?;
        }
        let statement = client.prepare("SELECT ? + 1").await?;
        client.execute(&statement, &[Param::int(1)]).await?.accepted()?;
        client.close_statement(statement.id).await
    }
}
