//! One way for a while, with a Sluice that has just started.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use benches::Result;
use benches::process::be_nice;
use benches::stats::quantile;
use benches::web::Web;
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::Topology;

use crate::at_server;
use crate::distribution::Distribution;
use crate::jobs::{self, Jobs, Kind};

/// How the reports are held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Way {
    /// There are none.
    Undisturbed,
    /// One is in flight for this part of the time.
    Part(f64),
    /// So many are in flight, all the time.
    Limit(u32),
    /// By the app's latency.
    Protected,
    /// By the plain gate on the app's latency.
    Binary,
    /// Not at all, without Sluice for them and for the app.
    Direct,
}

impl Way {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Undisturbed => "undisturbed".to_owned(),
            Self::Part(part) => format!("1 for {part} of the time"),
            Self::Limit(count) => format!("{count} at once"),
            Self::Protected => "protected".to_owned(),
            Self::Binary => "binary".to_owned(),
            Self::Direct => "direct".to_owned(),
        }
    }

    fn rule(self) -> String {
        match self {
            Self::Undisturbed | Self::Direct => "gate: none".to_owned(),
            Self::Part(part) => format!("gate: none, speed: {part}"),
            Self::Limit(count) => format!("gate: none, max_in_flight: {count}"),
            Self::Protected | Self::Binary => "gate: web_p99".to_owned(),
        }
    }

    fn pacing(self) -> &'static str {
        match self {
            Self::Binary => "pacing: binary",
            Self::Undisturbed | Self::Part(_) | Self::Limit(_) | Self::Protected | Self::Direct => {
                "pacing: adaptive"
            }
        }
    }

    fn sessions(self, kind: Kind) -> u32 {
        match self {
            Self::Undisturbed => 0,
            Self::Part(_) => 1,
            Self::Limit(_) | Self::Protected | Self::Binary | Self::Direct => kind.sessions(),
        }
    }
}

/// What was measured in one block.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) way: Way,
    /// Of the app, as the server counts: from when it has read the statement.
    pub(crate) server: Distribution,
    pub(crate) web_per_s: f64,
    /// The same as Sluice sees it, if it was in between.
    pub(crate) sluice: Option<Distribution>,
    /// The client's p99, in seconds. It is niced.
    pub(crate) client_p99_s: f64,
    pub(crate) reports_per_s: f64,
    /// From the warm-up on.
    pub(crate) looks: Vec<Look>,
    /// For how long nothing was measured yet.
    pub(crate) warm_up: Duration,
}

impl Measured {
    /// The mean of what the signal said, in seconds.
    pub(crate) fn said_s(&self) -> f64 {
        mean(self.measured().filter_map(|look| look.value_s))
    }

    /// The same in the first half, before an app grows that does.
    pub(crate) fn said_at_first_s(&self) -> f64 {
        let whole = self.looks.last().map_or(self.warm_up, |look| look.at);
        let until = self.warm_up + whole.saturating_sub(self.warm_up) / 2;
        mean(self.measured().filter(|look| look.at < until).filter_map(|look| look.value_s))
    }

    /// The mean of the limit on reports in flight, if there was one.
    pub(crate) fn limit(&self) -> f64 {
        mean(self.measured().filter_map(|look| look.limit))
    }

    /// The part of the looks at which the gate was open.
    pub(crate) fn open(&self) -> f64 {
        mean(self.measured().map(|look| f64::from(u8::from(look.open))))
    }

    fn measured(&self) -> impl Iterator<Item = &Look> {
        self.looks.iter().filter(|look| look.at >= self.warm_up)
    }
}

/// What Sluice said at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Since the warm-up began.
    pub(crate) at: Duration,
    pub(crate) value_s: Option<f64>,
    pub(crate) limit: Option<f64>,
    pub(crate) in_flight: Option<f64>,
    open: bool,
}

/// Lets everybody work for the warm-up, and then measures for the time.
pub(crate) async fn block(
    servers: &Topology,
    kind: Kind,
    way: Way,
    (warm_up, time, threshold_s): (Duration, Duration, f64),
) -> Result<Measured> {
    let sluice = match way {
        Way::Direct => None,
        Way::Undisturbed | Way::Part(_) | Way::Limit(_) | Way::Protected | Way::Binary => {
            Some(SluiceProcess::start(&config(servers, way, threshold_s, time)?).await?)
        }
    };
    let addr = sluice.as_ref().map_or(servers.primary.addr(), SluiceProcess::listen_addr);
    let admin = sluice.as_ref().map(SluiceProcess::admin_addr);
    let mut webs = vec![Web::start(addr, kind.web()).await?];
    let mut jobs = Jobs::start(addr, kind, way.sessions(kind))?;
    be_nice("web", NICE)?;
    be_nice(jobs::THREAD, NICE)?;
    let (warmed, mut looks) = (Instant::now(), Vec::new());
    look(admin, (warmed, warm_up), &mut looks).await?;
    at_server::forget(&servers.primary).await?;
    take(&mut webs)?;
    jobs.take()?;
    let began = Instant::now();
    let warm_up = began.saturating_duration_since(warmed);
    if kind.web_doubles() {
        look(admin, (warmed, warm_up + time / 2), &mut looks).await?;
        webs.push(Web::start(addr, kind.web()).await?);
        be_nice("web", NICE)?;
    }
    look(admin, (warmed, warm_up + time), &mut looks).await?;
    let (took, reports) = (began.elapsed().as_secs_f64(), jobs.take()?);
    let sluice = match admin {
        Some(admin) => Some(seen(&Metrics::of(admin).await?)),
        None => None,
    };
    let (server, statements) = at_server::web(&servers.primary).await?;
    let mut client = take(&mut webs)?;
    client.sort_unstable_by(f64::total_cmp);
    Ok(Measured {
        way,
        server,
        web_per_s: f64::from(u32::try_from(statements)?) / took,
        sluice,
        client_p99_s: quantile(&client, 0.99),
        reports_per_s: f64::from(u32::try_from(reports)?) / took,
        looks,
        warm_up,
    })
}

fn config(servers: &Topology, way: Way, threshold_s: f64, time: Duration) -> Result<Config> {
    let micros = threshold_s * 1e6;
    let mut signals =
        format!("web_p99: {{ latency: {{ app: web, window: 5s }}, threshold: {micros:.0}us }}");
    for (name, percentile) in SEEN {
        let latency = format!("app: web, percentile: {percentile}, window: {}s", time.as_secs());
        write!(signals, "\n{name}: {{ latency: {{ {latency} }}, threshold: 1h }}")?;
    }
    let rule = way.rule();
    let rules = format!(
        "- {{ name: reports, match: {{ app: etl }}, statements: [read], {rule}, max_delay: 1h, \
         permanent: true }}\n- {{ name: everything-else, gate: none, permanent: true }}"
    );
    Ok(Config::new(servers)?.signals(&signals).cluster(way.pacing()).rules(&rules))
}

/// How long the app's statements took since the last call, in seconds.
fn take(webs: &mut [Web]) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    for web in webs {
        all.extend(web.take()?.iter().map(|seen| seen.took_s));
    }
    Ok(all)
}

/// Looks at what Sluice says until the time is over.
async fn look(
    admin: Option<SocketAddr>,
    (began, time): (Instant, Duration),
    looks: &mut Vec<Look>,
) -> Result<()> {
    let mut tick = tokio::time::interval(LOOK);
    while began.elapsed() < time {
        tick.tick().await;
        let Some(admin) = admin else { continue };
        let metrics = Metrics::of(admin).await?;
        let of = |name: &str| metrics.max(name, &[("signal", "web_p99")]);
        looks.push(Look {
            at: began.elapsed(),
            value_s: of("sluice_signal_value"),
            limit: of("sluice_in_flight_limit"),
            in_flight: of("sluice_in_flight"),
            open: of("sluice_gate_open").is_none_or(|open| open > 0.5),
        });
    }
    Ok(())
}

fn seen(metrics: &Metrics) -> Distribution {
    let percentiles = SEEN.into_iter().filter_map(|(name, percentile)| {
        Some((percentile, metrics.max("sluice_signal_value", &[("signal", name)])?))
    });
    Distribution::of_percentiles(&percentiles.collect::<Vec<_>>())
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// Of clients: what the server has to do comes first.
const NICE: u32 = 10;
const LOOK: Duration = Duration::from_millis(250);
/// Percentiles of a whole block, as Sluice sees them.
const SEEN: [(&str, f64); 10] = [
    ("seen_500", 0.5),
    ("seen_900", 0.9),
    ("seen_950", 0.95),
    ("seen_970", 0.97),
    ("seen_980", 0.98),
    ("seen_985", 0.985),
    ("seen_990", 0.99),
    ("seen_994", 0.994),
    ("seen_997", 0.997),
    ("seen_999", 0.999),
];
