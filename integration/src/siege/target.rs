//! A server that nobody else uses, with a Sluice in front of it that denies.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::Queryable;

use crate::certificates::Certificates;
use crate::error::Result;
use crate::ports::{free_port, loopback};
use crate::raw::{Login, RawConn};
use crate::server::{Flavour, Server, ServerOptions};
use crate::siege::login;
use crate::siege::oracle::{self, Held, LogEnd, Marks, Moved};
use crate::siege::player::{self, Played};
use crate::siege::schema;
use crate::siege::sequence::{Leg, Sequence};
use crate::sluice::SluiceProcess;

/// The two, and the way to ask the server directly.
#[derive(Debug)]
pub struct Target {
    server: Server,
    sluice: SluiceProcess,
    listens: [SocketAddr; 4],
    /// Asks for the marks; never through Sluice.
    watch: RawConn,
    marks: Marks,
    log: LogEnd,
    /// Sessions when no attacker is there.
    alone: u64,
}

impl Target {
    /// Starts both.
    ///
    /// # Errors
    /// When one of them does not come up.
    pub async fn start(flavour: Flavour) -> Result<Self> {
        let certificates = Certificates::new()?;
        let mut options = ServerOptions::new(flavour);
        options.name = "besieged".into();
        options.extra_args = certificates.server_args()?;
        options.extra_args.extend(OPTIONS.map(str::to_owned));
        let server = Server::start(options).await?;
        let mut statements = vec![SILENT.to_owned()];
        statements.extend(schema::accounts(flavour));
        statements.extend(schema::statements(flavour).into_iter().map(str::to_owned));
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        server.run_sql(&statements).await?;
        let (sluice, listens) = front(&server).await?;
        let watch = watch(&server).await?;
        let mut target = Self {
            server,
            sluice,
            listens,
            watch,
            marks: Marks::default(),
            log: LogEnd::default(),
            alone: 1,
        };
        target.warm_up().await?;
        target.settle().await?;
        Ok(target)
    }

    /// Which server it is.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        self.server.flavour()
    }

    /// The Sluice in front.
    pub fn sluice(&mut self) -> &mut SluiceProcess {
        &mut self.sluice
    }

    /// The server behind.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Where a leg is listened for.
    #[must_use]
    pub fn addr(&self, leg: Leg) -> SocketAddr {
        let [plain, front, back, socket] = self.listens;
        match leg {
            Leg::Plain => plain,
            Leg::Front => front,
            Leg::Back => back,
            Leg::Socket => socket,
        }
    }

    /// Plays a sequence and says what has moved since the last time.
    ///
    /// # Errors
    /// When the server does not say.
    pub async fn attack(&mut self, sequence: &Sequence) -> Result<(Played, Moved)> {
        let played = player::play(self.addr(sequence.entry.leg), sequence, PATIENCE).await;
        if played.broken {
            self.wait_until_alone().await?;
        }
        let held = match login::account(&sequence.entry.user) {
            "ddlfree" => Held::AllButDefinitions,
            _ => Held::All,
        };
        let mut moved = self.moved(held).await?;
        if sequence.has_word(&["EXPLAIN", "DESC"]) {
            // The servers count what is explained as if it had been run.
            moved.ran.clear();
        }
        if sequence.has_word(&["INFORMATION_SCHEMA"]) && moved.transactions.is_empty() {
            // Its tables are filled as they are read.
            moved.rows.clear();
        }
        Ok((played, moved))
    }

    /// What has moved since the last time.
    ///
    /// # Errors
    /// When the server does not say.
    pub async fn moved(&mut self, held: Held) -> Result<Moved> {
        let flavour = self.flavour();
        let marks = oracle::marks(&mut self.watch, flavour).await?;
        if marks == self.marks {
            return Ok(Moved::default());
        }
        let moved = oracle::moved(&mut self.watch, (&self.marks, &self.log), &marks, held).await?;
        self.marks = marks;
        self.log = oracle::log_end(&mut self.watch, flavour).await?;
        Ok(moved)
    }

    /// Takes the server as it is now for the state that must not move.
    ///
    /// # Errors
    /// When it does not say what it is.
    pub async fn settle(&mut self) -> Result<()> {
        let flavour = self.flavour();
        self.marks = oracle::marks(&mut self.watch, flavour).await?;
        self.log = oracle::log_end(&mut self.watch, flavour).await?;
        Ok(())
    }

    /// After a failure: starts the server again if it has crashed, and asks it anew. Whether it had.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn recover(&mut self) -> Result<bool> {
        let crashed = self.server.admin().await.is_err();
        if crashed {
            self.revive().await?;
            // It has forgotten the passwords that it knew.
            self.warm_up().await?;
        }
        self.watch = watch(&self.server).await?;
        self.restore().await?;
        Ok(crashed)
    }

    /// Under much load a start can fail for a reason of the moment.
    async fn revive(&mut self) -> Result<()> {
        for _ in 1..STARTS {
            if self.server.revive().await.is_ok() {
                return Ok(());
            }
        }
        self.server.revive().await
    }

    /// Makes the schema anew, ends what attackers have left, and settles.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn restore(&mut self) -> Result<()> {
        let flavour = self.flavour();
        let mut admin = self.server.admin().await?;
        admin.query_drop(SILENT).await?;
        end_sessions(&mut admin).await?;
        for schema in admin.query::<String, _>("SHOW DATABASES").await? {
            if !KEPT.contains(&schema.as_str()) {
                admin.query_drop(format!("DROP DATABASE `{}`", schema.replace('`', "``"))).await?;
            }
        }
        admin.query_drop("CREATE DATABASE test").await?;
        // Only what attackers put there has no dot in its name.
        admin.query_drop("DELETE FROM sys.sys_config WHERE variable NOT LIKE '%.%'").await?;
        for statement in schema::statements(flavour) {
            admin.query_drop(statement).await?;
        }
        admin.disconnect().await?;
        self.settle().await
    }

    /// Makes the accounts anew.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn accounts(&mut self) -> Result<()> {
        let mut admin = self.server.admin().await?;
        admin.query_drop(SILENT).await?;
        for statement in schema::accounts(self.flavour()) {
            admin.query_drop(statement).await?;
        }
        admin.disconnect().await?;
        self.warm_up().await
    }

    /// One login of each account, so that the server knows their passwords in its cache.
    async fn warm_up(&mut self) -> Result<()> {
        for user in schema::ACCOUNTS {
            let mut login = Login::new(user).password(user);
            login.schema = "w".into();
            RawConn::open(self.server.addr(), &login).await?.quit().await?;
        }
        Ok(())
    }

    /// Waits until no session but ours is left: what an attacker who has left began is over then. A list of
    /// sessions would wait for one that is changing its user.
    pub(super) async fn wait_until_alone(&mut self) -> Result<()> {
        for round in 0..ALONE_ROUNDS {
            if self.connected().await? <= self.alone {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(2).saturating_mul(round)).await;
        }
        let mut admin = self.server.admin().await?;
        end_sessions(&mut admin).await?;
        admin.disconnect().await?;
        Ok(())
    }

    async fn connected(&mut self) -> Result<u64> {
        let sql = "SHOW GLOBAL STATUS LIKE 'Threads_connected'";
        let rows = self.watch.query(sql).await?.accepted()?.text_rows()?;
        let value = rows.into_iter().flatten().nth(1).flatten().unwrap_or_default();
        Ok(String::from_utf8_lossy(&value).parse().unwrap_or(0))
    }
}

async fn watch(server: &Server) -> Result<RawConn> {
    let mut watch = RawConn::open(server.addr(), &Login::new("admin")).await?;
    watch.set_read_limit(WATCH_LIMIT);
    Ok(watch)
}

async fn end_sessions(admin: &mut mysql_async::Conn) -> Result<()> {
    // The table of INFORMATION_SCHEMA is filled as it is read, which counts as rows written.
    for mut session in admin.query::<Row, _>("SHOW PROCESSLIST").await? {
        let (id, user): (Option<u64>, Option<String>) = (session.take("Id"), session.take("User"));
        if let (Some(id), Some(user)) = (id, user)
            && schema::ACCOUNTS.contains(&user.as_str())
        {
            // It may have ended by itself.
            admin.query_drop(format!("KILL {id}")).await.ok();
        }
    }
    let prepared: Vec<(i64, i64, i64, Vec<u8>)> = admin.query("XA RECOVER").await?;
    for (format, gtrid_len, _, data) in prepared {
        let (gtrid, bqual) = data.split_at(usize::try_from(gtrid_len).unwrap_or(0).min(data.len()));
        let sql = format!("XA ROLLBACK {},{},{format}", hex(gtrid), hex(bqual));
        admin.query_drop(sql).await.ok();
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::from("X'");
    bytes.iter().for_each(|byte| write!(out, "{byte:02x}").unwrap_or_default());
    out.push('\'');
    out
}

async fn front(server: &Server) -> Result<(SluiceProcess, [SocketAddr; 4])> {
    let mut listens = [loopback(0); 4];
    for listen in &mut listens {
        *listen = loopback(free_port()?);
    }
    let [plain, front, back, socket] = listens;
    let admin = loopback(free_port()?);
    let primary = server.addr();
    let path = server.dir().join("s.sock").display().to_string();
    let yaml = format!(
        "version: 1
admin: {{ listen: \"{admin}\" }}
clusters:
  plain: {{ listen: \"{plain}\", primary: \"{primary}\" }}
  front: {{ listen: \"{front}\", primary: \"{primary}\", backend_tls: {{ mode: disabled }} }}
  back: {{ listen: \"{back}\", primary: \"{primary}\", backend_tls: {{ mode: required }}, backend_compression: zlib }}
  socket: {{ listen: \"{socket}\", primary: \"unix:{path}\" }}
rules:
  - {{ name: besieged, match: {{ user: besieged }}, deny: true, statements: [locking_read, write, load, call, ddl, unknown], permanent: true }}
  - {{ name: sealed, match: {{ user: sealed }}, deny: true, statements: [read, locking_read, write, load, call, ddl, unknown], permanent: true }}
  - {{ name: ddlfree, match: {{ user: ddlfree }}, deny: true, statements: [write], permanent: true }}
  - {{ name: tagged-ok, match: {{ user: tagged, app: ok }}, gate: none, permanent: true }}
  - {{ name: tagged, match: {{ user: tagged }}, deny: true, statements: [locking_read, write, load, call, ddl, unknown], permanent: true }}
  - {{ name: reader, match: {{ user: reader }}, deny: true, statements: [write], permanent: true }}
  - {{ name: everything-else, gate: none, permanent: true }}
"
    );
    let mut sluice = SluiceProcess::spawn(&yaml, plain, admin, &[])?;
    sluice.wait_until_ready().await?;
    Ok((sluice, listens))
}

/// What the harness does is no transaction of the binary log.
const SILENT: &str = "SET sql_log_bin = 0, lock_wait_timeout = 20";
const KEPT: [&str; 5] = ["information_schema", "mysql", "performance_schema", "sys", "sluice"];
const OPTIONS: [&str; 7] = [
    "--log-bin-trust-function-creators=1",
    "--innodb-lock-wait-timeout=1",
    "--lock-wait-timeout=1",
    "--innodb-flush-log-at-trx-commit=0",
    "--event-scheduler=OFF",
    "--max-connect-errors=1000000000",
    "--wait-timeout=60",
];
/// How often a server that has crashed is started, at most.
const STARTS: u32 = 3;
/// The longest wait for a packet of an answer.
const PATIENCE: Duration = Duration::from_millis(500);
const WATCH_LIMIT: Duration = Duration::from_secs(60);
const ALONE_ROUNDS: u32 = 60;
