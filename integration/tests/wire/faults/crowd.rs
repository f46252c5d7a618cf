//! Clients in crowds: most do their work, some leave in the middle of their login, some while their statement
//! waits, some wait and are refused.

use std::time::{Duration, Instant};

use integration::error::{HarnessError, Result};
use integration::footprint::Footprint;
use integration::raw::{Login, RawConn};
use integration::scenario::Refused;
use integration::sluice::SluiceProcess;
use tokio::task::JoinSet;

use super::SOON;

/// The rules that make some wait.
pub(crate) const RULES: &str = "\
- { name: waits, match: { app: leaves }, hold: true, max_delay: 60s, permanent: true }
- { name: refused, match: { app: refused }, hold: true, max_delay: 500ms, permanent: true }
- { name: everything, gate: none, permanent: true }";

/// The accounts, which no other test of this file uses.
const WORKER: &str = "ddl";
const OTHER: &str = "etl";

/// What came, and how much of Sluice they had at once.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// Those that logged in, ran a statement and quit.
    pub(crate) served: u32,
    /// Those whose statement waited and was refused.
    pub(crate) refused: u32,
    /// Those that left while their statement waited.
    pub(crate) left_waiting: u32,
    /// Those that left before they had logged in.
    pub(crate) left_early: u32,
    /// What was not as it should be.
    pub(crate) failures: Vec<String>,
    /// Most descriptors seen, once a second.
    pub(crate) descriptors_max: usize,
}

/// What one client does.
#[derive(Debug, Clone, Copy)]
enum Visit {
    Works,
    IsRefused,
    LeavesWaiting,
    LeavesAtOnce,
    LeavesGreeted,
    LeavesInItsResponse,
}

impl Visit {
    /// Fifteen of twenty work.
    fn of(number: u32) -> Self {
        match number % 20 {
            1 => Self::LeavesAtOnce,
            5 => Self::LeavesGreeted,
            9 => Self::LeavesInItsResponse,
            13 => Self::LeavesWaiting,
            17 => Self::IsRefused,
            _ => Self::Works,
        }
    }

    async fn make(self, sluice: std::net::SocketAddr) -> Result<Self> {
        match self {
            Self::Works => {
                let mut conn = RawConn::open(sluice, &Login::new(WORKER)).await?;
                conn.query("SELECT 1").await?.accepted()?;
                conn.quit().await?;
            }
            Self::IsRefused => {
                let login = Login::new(OTHER).attribute("sluice_app", "refused");
                let mut conn = RawConn::open(sluice, &login).await?;
                let answer = conn.query("INSERT INTO nowhere VALUES (1)").await?;
                if Refused::of(&answer).is_none_or(|refused| refused.reason() != Some("hold")) {
                    return Err(HarnessError::Protocol(format!("no refusal: {answer:?}")));
                }
                conn.query("SELECT 1").await?.accepted()?;
                conn.quit().await?;
            }
            Self::LeavesWaiting => {
                let login = Login::new(OTHER).attribute("sluice_app", "leaves");
                let mut conn = RawConn::open(sluice, &login).await?;
                let insert = conn.query_payload(b"INSERT INTO nowhere VALUES (1)", &[]);
                conn.send_command(&insert).await?;
                tokio::time::sleep(PATIENCE).await;
            }
            Self::LeavesAtOnce => drop(RawConn::connect(sluice).await?),
            Self::LeavesGreeted => {
                RawConn::connect(sluice).await?.read_packet().await?;
            }
            Self::LeavesInItsResponse => {
                let mut conn = RawConn::connect(sluice).await?;
                conn.read_packet().await?;
                conn.send_bytes(&HALF_A_RESPONSE).await?;
                conn.stream().set_zero_linger().unwrap();
            }
        }
        Ok(self)
    }
}

impl Crowd {
    /// So many clients, each when it is due, whatever became of the others.
    pub(crate) async fn visit(sluice: &SluiceProcess, per_second: u32, seconds: u32) -> Self {
        let mut crowd = Self::default();
        let mut every = tokio::time::interval(Duration::from_secs(1) / per_second);
        let mut visits = JoinSet::new();
        let started = Instant::now();
        for number in 0..per_second * seconds {
            every.tick().await;
            let visit = Visit::of(number).make(sluice.listen_addr());
            visits.spawn(tokio::time::timeout(SOON, visit));
            while let Some(visit) = visits.try_join_next() {
                crowd.note(visit.unwrap());
            }
            if number % per_second == 0 {
                let now = Footprint::of(sluice).unwrap().descriptors;
                crowd.descriptors_max = crowd.descriptors_max.max(now);
            }
        }
        while let Some(visit) = visits.join_next().await {
            crowd.note(visit.unwrap());
        }
        eprintln!("{crowd:?} in {:?}", started.elapsed());
        crowd
    }

    fn note(&mut self, visit: std::result::Result<Result<Visit>, tokio::time::error::Elapsed>) {
        let counted = match visit {
            Ok(Ok(Visit::Works)) => &mut self.served,
            Ok(Ok(Visit::IsRefused)) => &mut self.refused,
            Ok(Ok(Visit::LeavesWaiting)) => &mut self.left_waiting,
            Ok(Ok(Visit::LeavesAtOnce | Visit::LeavesGreeted | Visit::LeavesInItsResponse)) => {
                &mut self.left_early
            }
            Ok(Err(error)) => return self.failures.push(error.to_string()),
            Err(_) => return self.failures.push("neither answered nor closed".into()),
        };
        *counted += 1;
    }
}

/// How long one waits for its answer before it leaves.
const PATIENCE: Duration = Duration::from_millis(200);

/// The head of a response of 100 bytes, and few of them.
const HALF_A_RESPONSE: [u8; 8] = [100, 0, 0, 1, 0x85, 0xa6, 0xff, 0x00];
