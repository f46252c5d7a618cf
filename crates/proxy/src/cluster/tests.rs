use admission::Sample;
use policy::UnixTime;
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
        written: None,
        gate,
        terms,
        arrived: cluster.now(),
        since: cluster.now(),
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
const GATED_OTHERWISE: &str = "  - { name: other, max_delay: 3s, permanent: true }\n";
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
async fn whoever_waits_is_listed_once_however_many_there_are() {
    let cluster =
        cluster("  - { name: r, hold: true, max_queue: 10000, max_delay: 3s, permanent: true }\n");
    let waiters: Vec<Waiter> =
        (0..1_000).map(|n: u32| queued(&cluster, n.to_string().as_bytes())).collect();
    let address = "10.0.0.7:4711".into();
    waiters[999].introduce(ClientName { user: (*b"u").into(), address, connection_id: 7 });
    let listed = cluster.waiters();
    let apps: Vec<String> =
        listed.iter().map(|listed| String::from_utf8_lossy(listed.app()).into_owned()).collect();
    assert_eq!(apps, (0..1_000).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(listed[999].client().map(|client| client.connection_id), Some(7));
    assert_eq!(listed[0].client(), None, "it has not said yet who it is");
    let (throttled, all) = cluster.throttled(&listed);
    assert_eq!((throttled.len(), all), (THROTTLED_MAX, 1_000));
    assert!(throttled.iter().all(|throttled| throttled.since.is_some()));
    drop(waiters);
    assert!(cluster.waiters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_was_refused_is_held_up_until_it_stops_asking() {
    let cluster = cluster("  - { name: r, hold: true, max_delay: 3s, permanent: true }\n");
    let driver = tokio::spawn(cluster.clone().drive());
    let mut waiter = queued(&cluster, b"etl");
    let throttled = cluster.throttled(&cluster.waiters());
    assert_eq!(throttled.1, 1);
    assert_eq!(throttled.0[0].waiting.map(|waiting| waiting.depth), Some(1));
    let began = throttled.0[0].since.unwrap();
    assert!(matches!(waiter.settled().await, Settled::Refused(_)));
    drop(waiter);
    let refused = &cluster.throttled(&cluster.waiters()).0[0];
    assert_eq!((&*refused.app, refused.since), (&b"etl"[..], Some(began)));
    assert!(refused.waiting.is_none());
    // Whom a rule that was lifted has refused is held by nothing.
    cluster.apply(policy(GATED_OTHERWISE));
    assert_eq!(cluster.throttled(&cluster.waiters()).1, 0);
    cluster.apply(policy(HELD));
    assert_eq!(cluster.throttled(&cluster.waiters()).1, 1);
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    assert_eq!(cluster.throttled(&cluster.waiters()).1, 0);
    driver.abort();
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

/// Time read the policy, an edit came in force, and time gave the controller the policy of before: a
/// threshold of the edit did not hold until the next one.
#[tokio::test]
async fn time_puts_no_rules_in_force_while_an_edit_does() {
    let cluster = cluster("  - { name: r, expires_at: 1970-01-01T12:00:00Z }\n");
    let mut rule_clock = RuleClock::new(&cluster.policy(), UnixTime(0));
    let changing = cluster.changing.lock();
    let passing = std::thread::spawn({
        let cluster = cluster.clone();
        move || cluster.follow_rule_clock(&mut rule_clock, UnixTime(24 * 3_600))
    });
    std::thread::sleep(Duration::from_millis(50));
    assert!(!passing.is_finished(), "it has not waited for the edit");
    drop(changing);
    passing.join().unwrap();
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

#[tokio::test(start_paused = true)]
async fn a_check_of_an_app_that_a_latency_protects_is_not_held_by_it_nor_is_its_statement() {
    let text = "
version: 1
clusters:
  a:
    listen: 127.0.0.1:1
    primary: db:1
    signals: { web_p99: { latency: { app: web }, threshold: 20ms, on_no_data: closed } }
    default_gate: [web_p99]
rules: [{ name: r, permanent: true }]
";
    let policy = policy::load(text).unwrap().clusters[0].clone();
    let cluster = Cluster::new(policy, Clock::start(), 7);
    let latency = cluster.policy().signals[0].key;
    cluster.control(|controller, now| {
        controller.handle_sample(now, latency, Sample::Value(60.0));
    });
    let outcome = checked(&cluster, b"etl").await;
    let CheckOutcome::Refused(refusal) = outcome else { panic!("it slows web down") };
    assert_eq!(refusal.reason, admission::Reason::GateClosed);
    assert_eq!(checked(&cluster, b"web").await, CheckOutcome::Allowed);
}

async fn checked(cluster: &Arc<Cluster>, app: &[u8]) -> CheckOutcome {
    let purpose = admission::Purpose::Write { rows: Some(1) };
    cluster.check(&check::Check { app, purpose, signals: &[] }).await.outcome
}

const MINUTE: Duration = Duration::from_secs(60);

/// With a lag and load that were well, and nobody for a minute.
async fn hibernating(rules: &str) -> (Arc<Cluster>, [admission::SignalKey; 2]) {
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: db:1, replicas: [db:2], probe: {{ user: sluice, password_env: X }}, \
         signals: {{ load: {{ query: SELECT 1, threshold: 10 }} }}, default_gate: [lag, load] }} }}
rules:\n{rules}"
    );
    let policy = policy::load(&text).unwrap().clusters[0].clone();
    let cluster = Cluster::new(policy, Clock::start(), 7);
    let signals = ["lag", "load"].map(|name| {
        let policy = cluster.policy();
        policy.signals.iter().find(|signal| &*signal.name == name).unwrap().key
    });
    let since = cluster.now();
    tokio::time::advance(MINUTE).await;
    for key in signals {
        tell(&cluster, key, 0.0, Duration::ZERO);
    }
    let mut tempo = cluster.tempo();
    cluster.hibernate(MINUTE * 2, since);
    assert!(!tempo.has_changed().unwrap(), "a minute is not two");
    cluster.hibernate(MINUTE, since);
    assert_eq!(*tempo.borrow_and_update(), crate::probe::Tempo::Hibernating);
    (cluster, signals)
}

/// A probe's answer to what it asked so long ago.
fn tell(cluster: &Arc<Cluster>, key: admission::SignalKey, value: f64, asked_ago: Duration) {
    cluster.control(|controller, now| {
        let asked_at = now.saturating_sub(asked_ago);
        controller.handle_answer(now, asked_at, key, Sample::Value(value));
    });
}

#[tokio::test(start_paused = true)]
async fn the_first_for_a_minute_wakes_the_probes_and_waits_for_what_they_are_told_then() {
    let (cluster, [lag, load]) = hibernating(GATED).await;
    let tempo = cluster.tempo();
    let mut waiter = queued(&cluster, b"etl");
    assert_eq!(*tempo.borrow(), crate::probe::Tempo::Awake);
    let second = Duration::from_secs(1);
    tokio::time::advance(second / 10).await;
    tell(&cluster, lag, 0.0, Duration::ZERO);
    tell(&cluster, load, 0.0, second);
    assert!(tokio::time::timeout(Duration::ZERO, waiter.settled()).await.is_err());
    tell(&cluster, load, 0.0, Duration::ZERO);
    assert!(matches!(waiter.settled().await, Settled::Admitted(_)));
    // Somebody has just been there.
    cluster.hibernate(MINUTE, MonoTime::ZERO);
    assert_eq!(*tempo.borrow(), crate::probe::Tempo::Awake);
}

#[tokio::test(start_paused = true)]
async fn the_first_check_for_a_minute_waits_for_a_moment_and_is_told_what_is_so_then() {
    let (cluster, [lag, load]) = hibernating(GATED).await;
    let tempo = cluster.tempo();
    let began = Instant::now();
    let probes = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(*tempo.borrow(), crate::probe::Tempo::Awake);
        tell(&cluster, load, 99.0, Duration::ZERO);
        tell(&cluster, lag, 0.0, Duration::ZERO);
    };
    let (outcome, ()) = tokio::join!(checked(&cluster, b"etl"), probes);
    let CheckOutcome::Refused(refusal) = outcome else { panic!("the load is high: {outcome:?}") };
    assert_eq!(refusal.reason, admission::Reason::GateClosed);
    assert!(began.elapsed() < Duration::from_millis(150), "{:?}", began.elapsed());

    let (cluster, _) = hibernating(GATED).await;
    let began = Instant::now();
    let outcome = checked(&cluster, b"etl").await;
    let CheckOutcome::Refused(refusal) = outcome else { panic!("nobody answers: {outcome:?}") };
    assert_eq!(refusal.reason, admission::Reason::NoData);
    assert_eq!(began.elapsed(), Duration::from_millis(500));

    let (cluster, _) = hibernating(HELD).await;
    let began = Instant::now();
    assert!(matches!(checked(&cluster, b"etl").await, CheckOutcome::Refused(_)));
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(*cluster.tempo().borrow(), crate::probe::Tempo::Hibernating);
}

/// The wall clock stands beside the runtime's: here it stands still while that goes on.
#[tokio::test(start_paused = true)]
async fn what_is_in_quarantine_is_shown_by_the_wall_clock_as_it_goes_now() {
    let cluster = cluster(&watching("60s"));
    let likeness = policy::Likeness { by: policy::WatchBy::Digest, hash: 7 };
    let lasts = Duration::from_secs(60);
    let action = policy::RunawayAction::Kill;
    let caught = Caught { likeness, action, app: b"etl", lasts };
    let policy = cluster.policy();
    let entry = cluster.quarantine(policy.rule(0).unwrap(), &caught).unwrap();
    tokio::time::advance(Duration::from_secs(20)).await;
    let wall = cluster.clock().unix_seconds();
    let QuarantineTimes { since, until, left } = cluster.times_of(&entry);
    assert_eq!(left, Duration::from_secs(40));
    assert!(
        (wall - 20..=wall - 19).contains(&since.0) && (wall + 40..=wall + 41).contains(&until.0)
    );
    tokio::time::advance(Duration::from_secs(41)).await;
    assert_eq!(cluster.times_of(&entry).left, Duration::ZERO);
    assert!(!cluster.policy().quarantine.may_hold(cluster.now()));
}

/// A rule that watches for so long.
fn watching(lasts: &str) -> String {
    format!(
        "  - {{ name: slow, gate: none, permanent: true, runaway: {{ elapsed: 1s, \
         action: deprioritise, watch: {{ by: digest, for: {lasts} }} }} }}\n"
    )
}

/// With `kill` saved again, what `log` had freed was refused again.
#[tokio::test(start_paused = true)]
async fn an_edit_that_ends_a_watch_frees_for_good_and_one_of_its_time_is_for_what_stands() {
    let cluster = cluster(&watching("60s"));
    let likeness = policy::Likeness { by: policy::WatchBy::Digest, hash: 7 };
    let (action, lasts) = (policy::RunawayAction::Kill, Duration::from_secs(60));
    let watched = cluster.policy();
    let rule = watched.rule(0).unwrap();
    let caught = || cluster.quarantine(rule, &Caught { likeness, action, app: b"etl", lasts });
    let left = || {
        let entries = cluster.quarantined();
        entries.first().map(|entry| cluster.times_of(entry).left.as_secs())
    };
    let slow = watching("60s");
    for free in [
        slow.replace("deprioritise", "log"),
        slow.replace("action: deprioritise, watch: { by: digest, for: 60s }", "action: log"),
        slow.replace("digest", "text"),
        slow.replace("slow", "other"),
    ] {
        caught().unwrap();
        cluster.apply(policy(&free));
        assert_eq!(left(), None, "{free}");
        assert_eq!(caught(), None, "it began under the file before: {free}");
        cluster.apply(policy(&watching("60s")));
        assert_eq!(left(), None, "{free}");
    }
    caught().unwrap();
    tokio::time::advance(Duration::from_secs(20)).await;
    for (saved, left_s) in [("60s", 40), ("30s", 10), ("10m", 580), ("25s", 5)] {
        cluster.apply(policy(&watching(saved)));
        assert_eq!(left(), Some(left_s), "{saved}");
    }
    let actions: Vec<_> = cluster.quarantined().iter().map(|entry| entry.action).collect();
    assert_eq!(actions, [policy::RunawayAction::Deprioritise], "its rule's, whatever was done");
    cluster.apply(policy(&watching("20s")));
    cluster.apply(policy(&watching("60s")));
    assert_eq!(left(), None, "what is free is not caught again");
}
