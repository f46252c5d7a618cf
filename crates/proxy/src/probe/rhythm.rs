//! How often servers are asked: often while somebody may be gated, seldom while nobody is.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::Cluster;

/// Nobody gated for this long: nobody needs a fresh value soon.
const HIBERNATES_AFTER: Duration = Duration::from_secs(60);

/// How often it is looked whether somebody is gated again.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The pace of all probes of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tempo {
    /// The intervals of the file.
    Awake,
    /// Slow. See [`super`] for what that may cost the first statement.
    Hibernating,
}

/// Keeps the tempo of a cluster. Runs until nobody listens.
pub(super) async fn keep_tempo(cluster: Arc<Cluster>, tempo: watch::Sender<Tempo>) {
    let started = cluster.now();
    while !tempo.is_closed() {
        let quiet = cluster.control(|controller, now| {
            now.saturating_since(controller.last_gated_request().unwrap_or(started))
        });
        let now = if quiet < HIBERNATES_AFTER { Tempo::Awake } else { Tempo::Hibernating };
        tempo.send_if_modified(|tempo| std::mem::replace(tempo, now) != now);
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// The beat of one probe: a period after another, from begin to begin; a probe that took longer
/// than its period is followed by the next at once, and what was missed is not made up for.
pub(super) struct Rhythm {
    tempo: watch::Receiver<Tempo>,
    awake: Duration,
    hibernating: Duration,
    /// When the last period began; `None` before the first.
    began: Option<Instant>,
}

impl Rhythm {
    pub(super) fn new(
        tempo: watch::Receiver<Tempo>,
        awake: Duration,
        hibernating: Duration,
    ) -> Self {
        Self { tempo, awake, hibernating: hibernating.max(awake), began: None }
    }

    /// Waits for the next beat. The first is at once, and so is one that is overdue when the tempo
    /// rises.
    ///
    /// # Cancellation
    /// Safe.
    pub(super) async fn beat(&mut self) {
        while let Some(began) = self.began {
            let period = match *self.tempo.borrow_and_update() {
                Tempo::Awake => self.awake,
                Tempo::Hibernating => self.hibernating,
            };
            tokio::select! {
                () = tokio::time::sleep_until(began + period) => break,
                changed = self.tempo.changed() => match changed {
                    Ok(()) => {}
                    // The probes are being stopped.
                    Err(_) => return tokio::time::sleep_until(began + period).await,
                },
            }
        }
        self.began = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_hibernates_is_due_at_once_when_somebody_is_gated() {
        let (tempo, listener) = watch::channel(Tempo::Hibernating);
        let ms = Duration::from_millis;
        let mut rhythm = Rhythm::new(listener, ms(100), ms(1_000));
        let start = Instant::now();
        rhythm.beat().await;
        assert_eq!(start.elapsed(), ms(0));
        rhythm.beat().await;
        assert_eq!(start.elapsed(), ms(1_000));
        let wakes = async {
            tokio::time::sleep(ms(300)).await;
            tempo.send(Tempo::Awake).unwrap();
        };
        tokio::join!(rhythm.beat(), wakes);
        assert_eq!(start.elapsed(), ms(1_300));
        rhythm.beat().await;
        assert_eq!(start.elapsed(), ms(1_400));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_probe_is_followed_by_one_and_not_by_all_it_missed() {
        let (_tempo, listener) = watch::channel(Tempo::Awake);
        let ms = Duration::from_millis;
        let mut rhythm = Rhythm::new(listener, ms(100), ms(1_000));
        let start = Instant::now();
        rhythm.beat().await;
        tokio::time::sleep(ms(550)).await;
        rhythm.beat().await;
        assert_eq!(start.elapsed(), ms(550));
        rhythm.beat().await;
        assert_eq!(start.elapsed(), ms(650));
    }
}
