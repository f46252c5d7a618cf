use tokio::sync::Notify;

use super::*;
use crate::clock::Clock;

fn config(more: &str) -> policy::Config {
    let text = format!(
        "version: 1\nclusters:\n  main:\n    listen: 127.0.0.1:0\n    primary: 127.0.0.1:1\n\
         {more}"
    );
    policy::load(&text).unwrap()
}

pub(super) fn cluster(more: &str) -> Arc<Cluster> {
    Cluster::new(config(more).clusters[0].clone(), Clock::start(), 7)
}

pub(super) const WITH_REPLICA: &str = "    replicas: [127.0.0.1:2]
    probe: { user: sluice }
    signals: { threads_running: { threshold: 500, on: replicas } }
";

/// A probe of a replica.
pub(super) fn target(cluster: &Arc<Cluster>) -> ProbeTarget {
    let policy = cluster.policy();
    let probe = policy.probe.clone().unwrap();
    ProbeTarget {
        server: policy.replicas[0].clone(),
        account: ProbeAccount::of(&probe, &policy.backend_tls, &cluster.probes.own_links),
        probe,
        moves: None,
        site: Arc::new(Site {
            lag: Lag::of(&policy).unwrap(),
            policy,
            neighbours: Arc::new([]),
            tempo: cluster.tempo(),
            cluster: cluster.clone(),
        }),
    }
}

/// What it had asked of a replica counted for `stale_after` behind the edit that took that out.
#[tokio::test]
async fn an_answer_that_comes_behind_an_edit_counts_no_more() {
    let cluster = cluster(WITH_REPLICA);
    let answer = Arc::new(Notify::new());
    let mut probes = Probes::default();
    let answered = answer.clone();
    probes.keep(target(&cluster), move |target| {
        let answered = answered.clone();
        async move {
            let signals = signals::wanted(&target.site.policy, Scope::Replicas);
            loop {
                answered.notified().await;
                let board = &target.site.cluster.probes;
                let now = target.site.cluster.now();
                board.measured(&signals[0], &target.server, Some((900.0, now)), now);
            }
        }
    });
    let measured = || cluster.probes.values(cluster.now()).len();
    let run = async || {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    };
    run().await;
    answer.notify_one();
    run().await;
    assert_eq!(measured(), 1);

    let neighbours: Arc<[Arc<Cluster>]> = [cluster.clone()].into();
    answer.notify_one();
    probes.follow(&cluster, &config("").clusters[0], &neighbours);
    run().await;
    assert_eq!(measured(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_starts_again() {
    let cluster = cluster(WITH_REPLICA);
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let mut probes = Probes::default();
    probes.keep(target(&cluster), move |_| {
        started.send(()).unwrap();
        async { assert_eq!(1, 2, "an answer that makes no sense") }
    });
    for _ in 0..3 {
        starts.recv().await.unwrap();
    }
}
