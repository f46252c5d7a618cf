//! `sluice top`: a running Sluice, watched.

mod course;
mod plain;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use self::course::Watched;
use self::table::{Order, Sorting};
use super::door;
use super::http::Door;
use super::status::{look, style};
use crate::cli::Top;

pub(crate) fn run(top: &Top) -> ExitCode {
    let door = match door::door(&top.asked) {
        Ok(door) => door,
        Err(message) => {
            drop(writeln!(io::stderr(), "{message}"));
            return ExitCode::from(2);
        }
    };
    told(plainly(top, &door))
}

fn told(ended: Result<(), String>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            drop(writeln!(io::stderr(), "{message}"));
            ExitCode::FAILURE
        }
    }
}

/// Look by look as text, until the time is over or nobody reads.
fn plainly(top: &Top, door: &Door) -> Result<(), String> {
    let began = Instant::now();
    let every = Duration::from_secs(top.every);
    let order = if top.reverse { Order::Reversed } else { Order::Natural };
    let sorting = Sorting { column: top.sort, order };
    let mut watched = Watched::default();
    for looks in 0_u32.. {
        let answer = look(door, 0).map(|(_, status)| status);
        if looks == 0 {
            let status = answer.as_ref().map_err(Clone::clone)?;
            known(top.cluster.as_deref(), status)?;
        }
        watched.take(began.elapsed().as_secs_f64(), answer);
        let text = plain::look(&watched, top.cluster.as_deref(), sorting, style());
        let mut out = io::stdout();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            return Ok(());
        }
        let next = began + every.saturating_mul(looks.saturating_add(1));
        let end = top.seconds.map(|seconds| began + Duration::from_secs(seconds));
        if let Some(end) = end.filter(|end| *end < next) {
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
            break;
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    watched.lost.map_or(Ok(()), Err)
}

/// A cluster that is asked for has to be there.
fn known(cluster: Option<&str>, status: &admin::status::Status) -> Result<(), String> {
    let names: Vec<&str> = status.clusters.iter().map(|cluster| &*cluster.cluster).collect();
    match cluster {
        Some(cluster) if !names.contains(&cluster) => {
            Err(format!("there is no cluster {cluster:?}; the clusters are {}", names.join(", ")))
        }
        Some(_) | None => Ok(()),
    }
}
