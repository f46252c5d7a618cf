//! The probe of the primary: heartbeats where lag comes from them, else a sign of life.

use std::time::Duration;

use policy::LagSource;

use super::ProbeTarget;
use super::blocker::Lookout;
use super::gtids::GtidSet;
use super::health::{Health, Purpose};
use super::heartbeat::{Heartbeat, ask_if_writable};
use super::order::Settings;
use crate::board::ProbeError;
use crate::link::Link;

/// The longest a heartbeat may take. A commit may take long on a loaded primary, and one that is
/// given up is one that is not known to be committed; so it gets more time than a reading.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the primary is asked for a sign of life where it gets no heartbeats.
const PULSE_INTERVAL: Duration = Duration::from_secs(1);

/// Runs until it is dropped.
pub(super) async fn watch(target: ProbeTarget) {
    match target.probe.source {
        LagSource::Heartbeat if !target.site.policy.replicas.is_empty() => {
            write_heartbeats(target).await;
        }
        LagSource::Heartbeat | LagSource::ReplicaStatus | LagSource::Query(_) => {
            feel_pulse(target).await;
        }
    }
}

async fn write_heartbeats(target: ProbeTarget) {
    let board = &target.site.cluster.probes;
    let heartbeat = Heartbeat::new(&target.probe.heartbeat_table, board.instance());
    let mut link = target.link(HEARTBEAT_TIMEOUT);
    let mut health = target.health(Purpose::Heartbeat);
    let mut rhythm =
        target.site.rhythm(target.probe.heartbeat_interval, target.site.lag.limits.stale_after / 3);
    let mut lookout = Lookout::new(&target, link.connection_id());
    let mut cleaned = false;
    let mut order = Order::default();
    loop {
        rhythm.beat().await;
        let seq = board.next_seq();
        let mut written = ask_if_writable(&mut link).await;
        if written.is_err() {
            lookout.is_not_begun(&target);
        } else {
            target
                .site
                .cluster
                .control(|controller, now| controller.handle_heartbeat_begun(now, seq));
            written = lookout.during(&target, heartbeat.write(&mut link, seq)).await;
        }
        if written.is_ok() {
            board.heartbeat_committed(seq, target.site.cluster.now());
        }
        if !(matches!(written, Err(ProbeError::TimedOut)) && lookout.knows_why()) {
            note(&target, &mut health, &written);
        }
        if written.is_ok() && board.wants_executed() {
            order.note_executed(&target, &mut link, seq).await;
        }
        if let Err(error) = &written {
            lookout.until_free(&target, error).await;
        }
        if written.is_ok() && !std::mem::replace(&mut cleaned, true) {
            clean_up(&target, &heartbeat, &mut link).await;
        }
    }
}

/// Reads what the primary has executed, for replicas that do not keep its order.
#[derive(Default)]
struct Order {
    settings: Option<Settings>,
    /// It has been said that it cannot be read.
    told: bool,
}

impl Order {
    /// Without an answer those replicas acknowledge nothing by this heartbeat.
    async fn note_executed(&mut self, target: &ProbeTarget, link: &mut Link, seq: u64) {
        match self.executed(link).await {
            Ok(executed) => {
                self.told = false;
                target.site.cluster.probes.heartbeat_executed(seq, &executed);
            }
            Err(error) => {
                // It may be another server when it answers again.
                self.settings = None;
                if !std::mem::replace(&mut self.told, true) {
                    tracing::warn!(
                        cluster = %target.site.cluster.name, server = %target.server, %error,
                        "the GTIDs that the primary has executed cannot be read: the lag of \
                         replicas that do not keep its order grows until they can"
                    );
                }
            }
        }
    }

    async fn executed(&mut self, link: &mut Link) -> Result<GtidSet, ProbeError> {
        let settings = match self.settings.take() {
            Some(settings) => settings,
            None => Settings::ask(link).await?,
        };
        self.settings.insert(settings).written(link).await
    }
}

/// Rows of processes that are no more do no harm but to the reader's eye.
async fn clean_up(target: &ProbeTarget, heartbeat: &Heartbeat, link: &mut Link) {
    let cluster = &target.site.cluster.name;
    match heartbeat.forget_the_dead(link).await {
        Ok(0) => {}
        Ok(rows) => tracing::info!(%cluster, rows, "removed heartbeat rows older than a day"),
        Err(error) => tracing::info!(
            %cluster, %error,
            "heartbeat rows of former processes stay; they do no harm, and with DELETE on the \
             heartbeat's table they would be removed"
        ),
    }
}

async fn feel_pulse(target: ProbeTarget) {
    let mut link = target.link(super::PROBE_TIMEOUT);
    let mut health = target.health(Purpose::Pulse);
    let mut rhythm = target.site.rhythm(PULSE_INTERVAL, PULSE_INTERVAL);
    loop {
        rhythm.beat().await;
        let answer = link.first("SELECT 1").await.map(|_| ());
        note(&target, &mut health, &answer);
    }
}

fn note(target: &ProbeTarget, health: &mut Health, answer: &Result<(), ProbeError>) {
    health.note(answer);
    let cluster = &target.site.cluster;
    cluster.probes.primary_said(answer.as_ref().map(|&()| ()), cluster.now());
    target.note_contact(answer);
}
