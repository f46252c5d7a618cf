//! One weather in one way.

use std::path::Path;
use std::time::{Duration, Instant};

use benches::Result;
use benches::watch::{Said, Watch};
use benches::way::Way;
use integration::lag_meter::{LagMeter, LagSeries};
use tokio::time::{sleep, sleep_until};

use crate::figures::{Figures, Met, between, split};
use crate::load::{Load, Sessions};
use crate::sluice::Sluice;
use crate::stage::Stage;
use crate::weathers::{Eager, Price, Turn, Weather};

/// What was seen of one way.
pub(crate) struct Seen {
    pub(crate) figures: Figures,
    /// All of it, from before the first statement.
    pub(crate) lag: LagSeries,
    /// Moments in it: counting begins, and what happens then.
    pub(crate) moments: Vec<Duration>,
    pub(crate) said: Vec<Said>,
}

/// Runs a weather in this way; what Sluice logs is left in the folder.
pub(crate) async fn run(weather: &Weather, way: Way, folder: &Path) -> Result<Seen> {
    let mut stage = Stage::start(weather).await?;
    let capacity = Capacity::of(&mut stage, weather).await?;
    let mut sluice = Sluice::start(&stage.servers, weather, way).await?;
    let primary = stage.servers.primary.addr();
    let through = sluice.as_ref().map_or(primary, Sluice::listen);
    let watch = Watch::start(sluice.as_ref().map(Sluice::admin));
    let mut meter = LagMeter::start(&stage.servers.primary, stage.replica()?.server()).await?;
    let began = Instant::now();

    let mut beside = Beside::start(through, weather).await?;
    let mut job = Sessions::start(through, job(weather, &capacity)).await?;
    sleep(weather.warm_up).await;

    let applied = stage.applied(weather).await?;
    let from = Instant::now();
    drop((job.take()?, beside.take(weather.warm_up)?));
    let moments = turn(weather, &stage, sluice.as_mut()).await?;
    sleep_until((from + weather.measured).into()).await;
    let time = from.elapsed();
    let job = Met::of(&job.take()?, time);
    let beside = beside.alone.take().zip(beside.take(time)?);
    let applied = stage.applied(weather).await?.saturating_sub(applied);
    let lag = meter.take().await?;

    if let Some(sluice) = &sluice {
        sluice.keep_log(&folder.join(format!("{}-{}.log", weather.name, way.as_str())))?;
    }
    let since = |at: Instant| at.saturating_duration_since(began);
    let counted = between(&lag, since(from), since(from) + time);
    let capacity_per_s = capacity.counted_per_s;
    // The second is the kill.
    let lost = moments.get(1).map(|killed| split(&job.lost, *killed));
    let figures = Figures { way, lag: counted, time, capacity_per_s, applied, job, lost, beside };
    let moments = [from].into_iter().chain(moments).map(since).collect();
    Ok(Seen { figures, lag, moments, said: watch.stop().await })
}

/// Rows a second that the replica applies of the job.
struct Capacity {
    /// When the job begins.
    first_per_s: f64,
    /// While it is counted.
    counted_per_s: f64,
}

impl Capacity {
    async fn of(stage: &mut Stage, weather: &Weather) -> Result<Self> {
        let counted_per_s = match dearer(weather) {
            Some(price) => Some(stage.capacity(weather, price).await?),
            None => None,
        };
        let first_per_s = stage.capacity(weather, weather.price).await?;
        Ok(Self { first_per_s, counted_per_s: counted_per_s.unwrap_or(first_per_s) })
    }
}

/// Who writes little, if anybody does.
struct Beside {
    sessions: Option<Sessions>,
    alone: Option<Met>,
}

impl Beside {
    /// Begins, and lets it be alone for its time.
    async fn start(through: std::net::SocketAddr, weather: &Weather) -> Result<Self> {
        let Some(load) = weather.beside else {
            return Ok(Self { sessions: None, alone: None });
        };
        let sessions = Some(Sessions::start(through, load).await?);
        let mut beside = Self { sessions, alone: None };
        sleep(weather.alone).await;
        beside.alone = beside.take(weather.alone)?;
        Ok(beside)
    }

    fn take(&mut self, time: Duration) -> Result<Option<Met>> {
        let events = self.sessions.as_mut().map(Sessions::take).transpose()?;
        Ok(events.map(|events| Met::of(&events, time)))
    }
}

/// What the job does, now that it is known what the replica can.
fn job(weather: &Weather, capacity: &Capacity) -> Load {
    match weather.eager {
        Eager::Always => weather.job,
        Eager::ThreeQuarters => {
            let at_once = weather.job.sessions.saturating_mul(weather.job.rows_at_once());
            let every_s = f64::from(at_once) / (0.75 * capacity.first_per_s);
            Load { thinks: Duration::from_secs_f64(every_s), ..weather.job }
        }
    }
}

/// Lets happen what happens while it is counted, and says when.
async fn turn(
    weather: &Weather,
    stage: &Stage,
    sluice: Option<&mut Sluice>,
) -> Result<Vec<Instant>> {
    match (weather.turn, sluice) {
        (Turn::Slower(_), _) => {
            if let Some(price) = dearer(weather) {
                stage.price(price.wait).await?;
            }
            Ok(Vec::new())
        }
        (Turn::Restarts, Some(sluice)) => {
            sleep(weather.measured / 5).await;
            let taken_over = Instant::now();
            sluice.take_over().await?;
            sleep(weather.measured * 2 / 5).await;
            let killed = Instant::now();
            sluice.kill_and_start().await?;
            Ok(vec![taken_over, killed])
        }
        (Turn::None, _) | (Turn::Restarts, None) => Ok(Vec::new()),
    }
}

fn dearer(weather: &Weather) -> Option<Price> {
    match weather.turn {
        Turn::Slower(times) => Some(Price { wait: weather.price.wait * times, ..weather.price }),
        Turn::None | Turn::Restarts => None,
    }
}
