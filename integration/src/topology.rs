//! A primary and its replicas, linked by GTID.

use std::time::Duration;

use crate::error::{HarnessError, Result};
use crate::replica::Replica;
use crate::server::{Access, Flavour, PerformanceSchema, Server, ServerOptions};

/// What to start.
#[derive(Debug, Clone)]
pub struct TopologyOptions {
    /// Which servers.
    pub flavour: Flavour,
    /// How many replicas.
    pub replicas: usize,
    /// On every server. Off by default: it costs MySQL 250 MB each.
    pub performance_schema: PerformanceSchema,
    /// More options for every server.
    pub extra_args: Vec<String>,
    /// More options for replicas only.
    pub replica_args: Vec<String>,
}

impl TopologyOptions {
    /// Defaults for a flavour and a number of replicas.
    #[must_use]
    pub fn new(flavour: Flavour, replicas: usize) -> Self {
        Self {
            flavour,
            replicas,
            performance_schema: PerformanceSchema::default(),
            extra_args: Vec::new(),
            replica_args: Vec::new(),
        }
    }
}

/// Running servers. Each test owns its own; dropping kills them and removes their data.
///
/// Accounts: `admin` (everything), `repl`, `sluice` (the probe, exactly its rights), and `app`,
/// `etl`, `ddl`, `web` with all rights on `test`; the password is the name, of `sluice` it is
/// [`crate::client::PROBE_PASSWORD`]. Schemas: `test`, `sluice`.
#[derive(Debug)]
pub struct Topology {
    /// The server that takes writes.
    pub primary: Server,
    /// Its replicas, applying when [`Topology::start`] returns.
    pub replicas: Vec<Replica>,
}

impl Topology {
    /// MySQL with replicas.
    ///
    /// # Errors
    /// When a server does not start or a link does not come up.
    pub async fn mysql(replicas: usize) -> Result<Self> {
        Self::start(TopologyOptions::new(Flavour::MySql, replicas)).await
    }

    /// MariaDB with replicas.
    ///
    /// # Errors
    /// When a server does not start or a link does not come up.
    pub async fn mariadb(replicas: usize) -> Result<Self> {
        Self::start(TopologyOptions::new(Flavour::MariaDb, replicas)).await
    }

    /// Starts all servers at once and links them.
    ///
    /// # Errors
    /// When a server does not start or a link does not come up.
    pub async fn start(options: TopologyOptions) -> Result<Self> {
        let mut starting = Vec::with_capacity(options.replicas);
        for index in 0..options.replicas {
            starting.push(tokio::spawn(Server::start(replica_options(&options, index)?)));
        }
        let primary = Server::start(primary_options(&options)).await?;
        let mut replicas = Vec::with_capacity(options.replicas);
        for start in starting {
            let server = start
                .await
                .map_err(|e| HarnessError::Malformed(format!("a start failed: {e}")))??;
            replicas.push(Replica::link(server, &primary).await?);
        }
        let topology = Self { primary, replicas };
        topology.wait_in_sync(SYNC_LIMIT).await?;
        Ok(topology)
    }

    /// Waits until every replica has applied what the primary has committed by now.
    ///
    /// # Errors
    /// When one has not within `limit`.
    pub async fn wait_in_sync(&self, limit: Duration) -> Result<()> {
        for replica in &self.replicas {
            replica.wait_for(&self.primary, limit).await?;
        }
        Ok(())
    }
}

fn primary_options(options: &TopologyOptions) -> ServerOptions {
    ServerOptions {
        name: "primary".into(),
        performance_schema: options.performance_schema,
        extra_args: options.extra_args.clone(),
        ..ServerOptions::new(options.flavour)
    }
}

fn replica_options(options: &TopologyOptions, index: usize) -> Result<ServerOptions> {
    let server_id = u32::try_from(index)
        .ok()
        .and_then(|index| index.checked_add(2))
        .ok_or_else(|| HarnessError::Malformed("too many replicas".into()))?;
    Ok(ServerOptions {
        name: format!("replica{}", index.saturating_add(1)),
        server_id,
        performance_schema: options.performance_schema,
        access: Access::ReadOnly,
        extra_args: [options.extra_args.clone(), options.replica_args.clone()].concat(),
        ..ServerOptions::new(options.flavour)
    })
}

const SYNC_LIMIT: Duration = Duration::from_secs(60);
