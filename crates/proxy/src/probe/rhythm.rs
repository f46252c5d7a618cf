//! How often servers are asked: often while somebody may be gated, seldom while nobody is.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::Cluster;

/// Nobody gated for this long: nobody needs a fresh value soon.
const HIBERNATES_AFTER: Duration = Duration::from_secs(60);

/// How often it is looked whether nobody is gated.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The pace of all probes of one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tempo {
    /// The intervals of the file.
    #[default]
    Awake,
    /// Slow. See [`super`] for what that costs the first statement.
    Hibernating,
}

/// Lets a cluster hibernate, until it is dropped. Whoever needs a signal wakes it.
pub(super) async fn watch_quiet(cluster: Arc<Cluster>) {
    let started = cluster.now();
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        cluster.hibernate(HIBERNATES_AFTER, started);
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

    /// Waits for the next beat. The first is at once, and so is the next when the tempo rises.
    ///
    /// # Cancellation
    /// Safe.
    pub(super) async fn beat(&mut self) {
        let mut changed = self.tempo.has_changed().unwrap_or(false);
        while let Some(began) = self.began {
            let period = match *self.tempo.borrow_and_update() {
                Tempo::Awake if changed && self.awake < self.hibernating => break,
                Tempo::Awake => self.awake,
                Tempo::Hibernating => self.hibernating,
            };
            tokio::select! {
                () = tokio::time::sleep_until(began + period) => break,
                told = self.tempo.changed() => match told {
                    Ok(()) => changed = true,
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
            tokio::time::sleep(ms(50)).await;
            tempo.send(Tempo::Awake).unwrap();
        };
        tokio::join!(rhythm.beat(), wakes);
        assert_eq!(start.elapsed(), ms(1_050));
        rhythm.beat().await;
        assert_eq!(start.elapsed(), ms(1_150));
        // It has asked already when somebody comes.
        tempo.send(Tempo::Hibernating).unwrap();
        tempo.send(Tempo::Awake).unwrap();
        rhythm.beat().await;
        rhythm.beat().await;
        assert_eq!(start.elapsed(), ms(1_250));
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
