//! One database server on a free port of the loopback, with data of its own.
//!
//! A start copies an initialised data directory (the template, made once per version and kept in
//! the cache folder) and runs the server on the copy: about a second instead of five.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use mysql_async::prelude::{FromRow, Queryable};
use tokio::io::AsyncReadExt;

use crate::client;
use crate::error::{HarnessError, Result};
use crate::ports::{free_port, loopback};
use crate::supervised::Supervised;

pub mod binaries;
mod command;
mod template;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Oracle MySQL 9.
    MySql,
    /// MariaDB 10.11 or later.
    MariaDb,
}

/// Whether `performance_schema` is on. It costs MySQL 250 MB; `session_connect_attrs` needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PerformanceSchema {
    /// Not loaded.
    #[default]
    Off,
    /// Loaded, with its default instruments.
    On,
}

/// Whether the server accepts writes of ordinary accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// A primary, or a server of its own.
    #[default]
    ReadWrite,
    /// A replica: `read_only=ON`.
    ReadOnly,
}

/// How to start a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Which server.
    pub flavour: Flavour,
    /// Part of the folder's name and of messages.
    pub name: String,
    /// `server_id`; different for each server of a topology.
    pub server_id: u32,
    /// Off by default.
    pub performance_schema: PerformanceSchema,
    /// Read and write by default.
    pub access: Access,
    /// More command-line options; they come last, so they win.
    pub extra_args: Vec<String>,
}

impl ServerOptions {
    /// A writable server with server id 1.
    #[must_use]
    pub fn new(flavour: Flavour) -> Self {
        Self {
            flavour,
            name: "server".into(),
            server_id: 1,
            performance_schema: PerformanceSchema::default(),
            access: Access::default(),
            extra_args: Vec::new(),
        }
    }
}

/// A running server. Dropping kills it and removes its data.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    port: u16,
    process: Supervised,
}

impl Server {
    /// Starts a server and waits until the administrator can log in.
    ///
    /// # Errors
    /// When the server is not installed, does not come up, or no port is free.
    pub async fn start(options: ServerOptions) -> Result<Self> {
        let process = Supervised::new(&options.name)?;
        let template = template::for_flavour(options.flavour).await?;
        template::copy(&template, &process.dir().join("data")).await?;
        let mut server = Self { options, port: 0, process };
        for _ in 0..PORT_TRIES {
            server.port = free_port()?;
            match server.run().await {
                Err(HarnessError::NotStarted { log_tail, .. }) if port_was_taken(&log_tail) => {}
                other => return other.map(|()| server),
            }
        }
        Err(HarnessError::TimedOut { what: "a free port".into(), after: START_LIMIT })
    }

    /// Where clients connect.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Which server this is.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        self.options.flavour
    }

    /// The process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.pid()
    }

    /// The folder of data and logs; gone with the server.
    #[must_use]
    pub fn dir(&self) -> &std::path::Path {
        self.process.dir()
    }

    /// A connection of the administrator, schema `test`.
    ///
    /// # Errors
    /// When the server does not let it in.
    pub async fn admin(&self) -> Result<mysql_async::Conn> {
        client::connect(self.addr(), "admin").await
    }

    /// Runs statements, one after the other, on one connection of the administrator.
    ///
    /// # Errors
    /// The first statement that fails.
    pub async fn run_sql(&self, statements: &[&str]) -> Result<()> {
        let mut conn = self.admin().await?;
        for statement in statements {
            conn.query_drop(*statement).await?;
        }
        conn.disconnect().await?;
        Ok(())
    }

    /// The first row of a query by the administrator.
    ///
    /// # Errors
    /// When the query fails.
    pub async fn query_first<T: FromRow + Send + 'static>(&self, sql: &str) -> Result<Option<T>> {
        let mut conn = self.admin().await?;
        let row = conn.query_first(sql).await?;
        conn.disconnect().await?;
        Ok(row)
    }

    /// All rows of a query by the administrator.
    ///
    /// # Errors
    /// When the query fails.
    pub async fn query<T: FromRow + Send + 'static>(&self, sql: &str) -> Result<Vec<T>> {
        let mut conn = self.admin().await?;
        let rows = conn.query(sql).await?;
        conn.disconnect().await?;
        Ok(rows)
    }

    /// Stops the process where it is (SIGSTOP): it keeps its sockets and answers nothing.
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&self) -> Result<()> {
        self.process.signal("STOP")
    }

    /// Ends [`Server::freeze`].
    ///
    /// # Errors
    /// When it does not run.
    pub fn thaw(&self) -> Result<()> {
        self.process.signal("CONT")
    }

    /// Kills the process as a crash would; the data stays for [`Server::revive`].
    pub fn crash(&mut self) {
        self.process.kill();
    }

    /// Shuts the server down in order; the data stays for [`Server::revive`].
    ///
    /// # Errors
    /// When it does not end in time; it is killed then.
    pub async fn shut_down(&mut self) -> Result<()> {
        self.process.terminate(STOP_LIMIT).await.map(drop)
    }

    /// Starts the server again on the same port and data.
    ///
    /// # Errors
    /// When it does not come up.
    pub async fn revive(&mut self) -> Result<()> {
        self.run().await
    }

    async fn run(&mut self) -> Result<()> {
        let mut command = self.command()?;
        self.process.spawn(&mut command)?;
        self.wait_until_up().await
    }

    fn command(&self) -> Result<Command> {
        command::server(&self.options, self.process.dir(), self.port)
    }

    async fn wait_until_up(&mut self) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < START_LIMIT {
            if self.process.exited().is_some() {
                return Err(self.not_started());
            }
            if greets(self.addr()).await && self.is_ours().await? {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        Err(HarnessError::TimedOut {
            what: format!("{} on port {} answers", self.options.name, self.port),
            after: START_LIMIT,
        })
    }

    /// Another program may have taken the port first: the data directory tells.
    async fn is_ours(&self) -> Result<bool> {
        let Ok(Some(datadir)) = self.query_first::<String>("SELECT @@datadir").await else {
            return Ok(false);
        };
        let ours = self.process.dir().join("data");
        let ours = ours.canonicalize().map_err(HarnessError::io("cannot find the data"))?;
        Ok(std::path::Path::new(&datadir).canonicalize().is_ok_and(|theirs| theirs == ours))
    }

    fn not_started(&self) -> HarnessError {
        let output = Supervised::tail(&self.process.output_path());
        let log = Supervised::tail(&self.process.dir().join("error.log"));
        HarnessError::NotStarted {
            what: format!("{} ({:?})", self.options.name, self.options.flavour),
            log_tail: format!("{output}\n{log}"),
        }
    }
}

const PORT_TRIES: usize = 5;
const POLL: Duration = Duration::from_millis(20);
/// Far more than a start takes: the machine may be busy.
const START_LIMIT: Duration = Duration::from_secs(90);
const STOP_LIMIT: Duration = Duration::from_secs(60);

fn port_was_taken(log_tail: &str) -> bool {
    log_tail.contains("Address already in use") || log_tail.contains("Bind on TCP/IP port")
}

/// Whether something sends a first byte: cheaper than a login, and not logged as an abort.
async fn greets(addr: SocketAddr) -> bool {
    let read = async {
        let mut stream = tokio::net::TcpStream::connect(addr).await?;
        stream.read_u8().await
    };
    matches!(tokio::time::timeout(Duration::from_secs(1), read).await, Ok(Ok(_)))
}
