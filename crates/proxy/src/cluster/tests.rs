use admission::Sample;
use tokio::time::Instant;

use super::*;

fn policy(rules: &str) -> Arc<ClusterPolicy> {
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: db:1 }} }}\nrules:\n{rules}"
    );
    policy::load(&text).unwrap().clusters[0].clone()
}

fn cluster(rules: &str) -> Arc<Cluster> {
    Cluster::new(policy(rules), Clock::start(), 7)
}

/// What the cluster's only rule has an app asked.
fn request(cluster: &Arc<Cluster>, app: &[u8]) -> Request {
    let policy = cluster.policy();
    let rule = policy.rule(0).unwrap();
    let policy::Action::Throttle { terms, gate, .. } = rule.action else { panic!("it throttles") };
    Request {
        rule: rule.key,
        identity: policy::identity_key(rule, app),
        app: policy::app_key(rule, app),
        digest: None,
        gate,
        terms,
        arrived: cluster.now(),
    }
}

fn queued(cluster: &Arc<Cluster>, app: &[u8]) -> Waiter {
    match ask(cluster, &request(cluster, app), app) {
        Judgement::Queued(waiter) => waiter,
        other => panic!("it waits, not {other:?}"),
    }
}

fn show_lag(cluster: &Arc<Cluster>, seconds: f64) {
    let lag = cluster.policy().signals[0].key;
    cluster.control(|controller, now| {
        controller.handle_sample(now, lag, Sample::Value(seconds));
    });
}

const HELD: &str = "  - { name: r, hold: true, max_delay: 3s, permanent: true }\n";
const GATED: &str = "  - { name: r, max_delay: 3s, permanent: true }\n";
const OPEN: &str = "  - { name: r, gate: none, max_delay: 3s, permanent: true }\n";

#[tokio::test(start_paused = true)]
async fn who_waits_is_listed_by_app_until_the_wait_is_given_up() {
    let cluster = cluster(HELD);
    let first = queued(&cluster, b"etl");
    let second = queued(&cluster, b"web");
    let mut apps: Vec<_> = cluster.waiting().into_iter().map(|(_, app)| app).collect();
    apps.sort();
    assert_eq!(apps, [Box::from(*b"etl"), Box::from(*b"web")]);
    drop(first);
    assert_eq!(cluster.waiting().len(), 1);
    drop(second);
    assert_eq!(cluster.waiting().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_deadline_by_the_driver_alone() {
    let cluster = cluster(HELD);
    let driver = tokio::spawn(cluster.clone().drive());
    let since = Instant::now();
    let mut waiter = queued(&cluster, b"etl");
    let Settled::Refused(refusal) = waiter.settled().await else { panic!("nobody lifts it") };
    assert_eq!(since.elapsed().as_secs(), 3);
    assert_eq!(refusal.waited.as_secs(), 3);
    assert_eq!(cluster.waiting().len(), 0);
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_judged_again_when_the_rules_change() {
    let cluster = cluster(HELD);
    let mut waiter = queued(&cluster, b"etl");
    let known = cluster.policy();
    assert!(cluster.newer_policy(&known).is_none());
    cluster.apply(policy(OPEN));
    assert!(matches!(waiter.settled().await, Settled::JudgeAgain));
    assert!(cluster.newer_policy(&known).is_some());
    let now = ask(&cluster, &request(&cluster, b"etl"), b"etl");
    assert!(matches!(now, Judgement::Admitted(_)), "{now:?}");
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_opens_lets_in_who_waits_and_an_answer_that_nobody_takes_is_given_back() {
    let cluster = cluster(GATED);
    let driver = tokio::spawn(cluster.clone().drive());
    show_lag(&cluster, 60.0);
    let mut stays = queued(&cluster, b"etl");
    let leaves = queued(&cluster, b"etl");
    show_lag(&cluster, 0.0);
    let Settled::Admitted(permit) = stays.settled().await else { panic!("the gate is open") };
    assert!(permit.reason().is_none(), "it has won its check");
    drop((permit, leaves, stays));
    assert_eq!(cluster.waiting().len(), 0);
    let gatekeeper = cluster.gatekeeper.lock();
    assert!(gatekeeper.waiters.is_empty());
    drop(gatekeeper);
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_every_wait_and_lets_nobody_begin_one() {
    let cluster = cluster(HELD);
    let mut waiter = queued(&cluster, b"etl");
    cluster.control(|controller, now| controller.shutdown(now));
    let Settled::Refused(refusal) = waiter.settled().await else { panic!("it is over") };
    assert_eq!(refusal.reason, admission::Reason::Shutdown);
    let late = ask(&cluster, &request(&cluster, b"web"), b"web");
    assert!(matches!(late, Judgement::Refused(_)), "{late:?}");
}
