use admission::lag::StoppedThread;

use super::*;

fn at(seconds: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
}

fn limits() -> LagConfig {
    LagConfig {
        replicas: Vec::new(),
        thresholds: BTreeMap::new(),
        ignore_slowest: 0,
        min_replicas: 1,
        stale_after: Duration::from_secs(600),
        caught_up_below: Duration::from_secs(1),
        writer_stale_after: Duration::from_secs(600),
    }
}

fn stopped() -> ReplicationStatus {
    let how = StoppedReplication::new(StoppedThread::Applier, String::new(), 1062, "it is there");
    ReplicationStatus::Stopped(how)
}

#[test]
fn a_stop_is_a_cause_if_it_lasted_and_the_replica_counted() {
    let board = ProbeBoard::default();
    let servers: [Arc<str>; 2] = ["counted".into(), "restored".into()];
    board.configure((&servers, &ReplicaBook::default()), &limits(), PrimaryProbing::Probed, at(0));
    board.heartbeat_committed(1, at(0));
    board.on_replica("counted", |lag, key| lag.handle_replica_shows(at(0), key, Some(1)));
    board.on_replica("restored", |lag, key| lag.handle_replica_shows(at(0), key, None));
    board.heartbeat_committed(2, at(9));
    for server in &servers {
        board.replication_said(server, stopped(), at(10), at(10));
    }
    let cause = |now, since| board.stopped_since(at(now), at(since), Duration::from_secs(5));
    assert_eq!(cause(12, 0), None, "in passing");
    let named = cause(20, 0).unwrap();
    assert!(named.starts_with("replica counted: the applier"), "{named}");
    // It goes on, whatever else is said of it.
    board.replication_said(&servers[0], stopped(), at(25), at(25));
    board.replication_said(&servers[0], ReplicationStatus::Runs, at(30), at(30));
    let named = cause(60, 0).unwrap();
    assert!(named.starts_with("replica counted, until 30 s ago: "), "{named}");
    assert_eq!(cause(60, 28), None, "that had begun later");
}

#[test]
fn what_keeps_a_lag_is_known_of_the_replica_and_of_the_cluster() {
    let board = ProbeBoard::default();
    let servers: [Arc<str>; 2] = ["r1".into(), "r2".into()];
    board.configure((&servers, &ReplicaBook::default()), &limits(), PrimaryProbing::Probed, at(0));
    board.heartbeat_committed(1, at(0));
    board.on_replica("r1", |lag, key| lag.handle_replica_shows(at(0), key, Some(1)));
    assert_eq!(board.hindrance_of("r1", at(1)), None, "it only lags");
    board.replication_said(&servers[0], stopped(), at(1), at(1));
    let told = board.hindrance_of("r1", at(9)).unwrap();
    assert!(told.why.contains("is stopped: error 1062: it is there"), "{told:?}");
    assert!(told.advice.contains("START REPLICA"), "{told:?}");
    // Of the cluster only who is left out counts.
    assert_eq!(board.lag_hindrance(at(9)), None);
    let refused = ProbeError::Refused { code: 1045, message: "no".to_owned() };
    board.replica_said(&servers[1], Some(&refused));
    let told = board.lag_hindrance(at(9)).unwrap();
    assert_eq!(told.why, "r2: it refuses its probe: error 1045: no");
    assert!(told.advice.contains("password"), "{told:?}");
}

/// What holds its replication holds the reading of its heartbeats too, which was all that was told.
#[test]
fn a_replica_that_is_held_says_so_while_its_probe_waits() {
    let board = ProbeBoard::default();
    let replica: Arc<str> = "r".into();
    let limits = LagConfig { stale_after: Duration::from_secs(3), ..limits() };
    let replicas = (&[replica.clone()][..], &ReplicaBook::default());
    board.configure(replicas, &limits, PrimaryProbing::Probed, at(0));
    board.heartbeat_committed(1, at(0));
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(0), key, Some(1)));
    board.heartbeat_committed(2, at(1));
    board.on_replica("r", |lag, key| lag.handle_replica_asked(at(1), key));
    board.on_replica("r", |lag, key| lag.handle_replica_unreachable(at(6), key));
    board.replica_said(&replica, Some(&ProbeError::TimedOut));
    let state = "Waiting for table metadata lock";
    board.replication_said(&replica, ReplicationStatus::Held(state), at(6), at(6));
    let held = format!("its replication is held: {state}");
    let told = |now| {
        let reading = board.replicas(at(now)).remove(0);
        (reading.view.state, reading.is_held(), reading.trouble(), reading.advice())
    };
    let silent = (ReplicaState::Unreachable, false, Some("no answer in time".to_owned()), "");
    assert_eq!(told(6), silent);
    board.on_replica("r", |lag, key| lag.handle_replica_heard(at(7), key));
    let (state, is_held, trouble, advice) = told(7);
    assert_eq!((state, is_held, trouble.as_ref()), (ReplicaState::Counted, true, Some(&held)));
    assert!(advice.contains("end the session that holds the lock"), "{advice}");
    assert_eq!(board.hindrance_of("r", at(7)).unwrap().why, held);
    // Of all that count nobody shows a heartbeat.
    assert_eq!(board.why_no_lag(at(7)).unwrap().why, format!("r: {held}"));
}

/// A board with one replica, which shows the first heartbeat.
fn with_a_replica_that_shows() -> (ProbeBoard, Arc<str>) {
    let board = ProbeBoard::default();
    let replica: Arc<str> = "r".into();
    let replicas = (&[replica.clone()][..], &ReplicaBook::default());
    board.configure(replicas, &limits(), PrimaryProbing::Probed, at(0));
    board.heartbeat_committed(1, at(0));
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(0), key, Some(1)));
    (board, replica)
}

/// The gate shut, and no cause was named.
#[test]
fn a_replica_that_heartbeats_pass_by_says_so_once_its_lag_is_at_its_threshold() {
    let (board, replica) = with_a_replica_that_shows();
    board.heartbeat_committed(2, at(1));
    let told = |status: ReplicationStatus, now| {
        board.on_replica("r", |lag, key| lag.handle_replica_shows(at(now), key, Some(1)));
        board.replication_said(&replica, status, at(now), at(now));
        let reading = board.replicas(at(now)).remove(0);
        let hindrance = board.hindrance_of("r", at(now));
        let why = hindrance.as_ref().map(|hindrance| hindrance.why.clone());
        assert_eq!((&why, why.is_some()), (&reading.trouble(), reading.is_passed_by()));
        assert_eq!(hindrance.map_or("", |it| it.advice), reading.advice());
        (why.unwrap_or_default(), reading.advice())
    };
    let filter = ReplicationStatus::LeavesOut("Replicate_Ignore_DB");
    assert_eq!(told(filter.clone(), 1), (String::new(), ""), "it may be another one's");
    let (why, advice) = told(filter, 2);
    assert_eq!(why, "a filter there leaves out the heartbeats (Replicate_Ignore_DB)");
    assert!(advice.contains("CHANGE REPLICATION FILTER"), "{advice}");
    assert_eq!(told(ReplicationStatus::AllApplied, 3), (String::new(), ""), "as of a second ago");
    let (why, advice) = told(ReplicationStatus::AllApplied, 4);
    assert!(why.contains("Seconds_Behind_Source is 0"), "{why}");
    assert!(advice.contains("binlog-ignore-db"), "{advice}");
    // Behind a pause of Sluice that answer is as old as the pause.
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(14), key, Some(1)));
    assert!(board.hindrance_of("r", at(14)).is_some(), "the lag was there before");
    board.heartbeat_committed(3, at(14));
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(14), key, Some(2)));
    board.replication_said(&replica, ReplicationStatus::AllApplied, at(14), at(14));
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(24), key, Some(2)));
    assert_eq!(board.hindrance_of("r", at(24)), None);
    // A STOP REPLICA that waits for a transaction keeps it from saying so any longer.
    board.replication_unsaid(&replica);
    assert_eq!(board.hindrance_of("r", at(5)), None, "as of before");
    assert_eq!(told(ReplicationStatus::Runs, 9), (String::new(), ""), "it only lags");
}

/// It was said to show no heartbeats, of which it showed the newest.
#[test]
fn a_replica_whose_heartbeats_overtake_what_waits_there_says_that() {
    let (board, replica) = with_a_replica_that_shows();
    board.order_said(&replica, CommitOrder::ByGtid);
    board.overtaken_said(&replica, true);
    assert!(board.is_overtaken(&replica));
    board.heartbeat_committed(2, at(1));
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(3), key, Some(1)));
    board.replication_said(&replica, ReplicationStatus::Overtaken, at(3), at(3));
    assert_eq!(board.hindrance_of("r", at(3)), None, "it may be at it");
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(9), key, Some(1)));
    board.replication_said(&replica, ReplicationStatus::Overtaken, at(9), at(9));
    let told = board.hindrance_of("r", at(9)).unwrap();
    assert!(told.why.contains("has not executed all GTIDs of before them"), "{told:?}");
    assert!(told.advice.contains("gtid_slave_pos"), "{told:?}");
    let reading = board.replicas(at(9)).remove(0);
    assert!(!reading.is_passed_by());
    assert_eq!(reading.trouble(), Some(told.why));
    // A STOP REPLICA that waits keeps it from saying so any longer.
    board.replication_unsaid(&replica);
    assert_eq!(board.hindrance_of("r", at(9)), None);
}

/// Its lag grew without end, and nobody said that it is to be taken out of the file.
#[test]
fn a_server_that_replicates_from_nobody_is_stopped_once_it_lags() {
    let (board, replica) = with_a_replica_that_shows();
    let detached = || ReplicationStatus::Stopped(StoppedReplication::detached());
    let state = |now| board.replicas(at(now)).remove(0).view.state;
    board.replication_said(&replica, detached(), at(1), at(1));
    assert_eq!(state(1), ReplicaState::Counted, "it shows all that there is: a member of Galera");
    board.heartbeat_committed(2, at(2));
    board.replication_said(&replica, detached(), at(4), at(4));
    assert_eq!(state(4), ReplicaState::ReceiverStopped);
    let told = board.hindrance_of("r", at(4)).unwrap();
    assert!(told.why.contains("it is not a replica"), "{told:?}");
    assert!(told.advice.contains("take it out of the cluster's replicas"), "{told:?}");
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(5), key, Some(2)));
    board.replication_said(&replica, detached(), at(5), at(5));
    assert_eq!(state(5), ReplicaState::Counted);
    // One that is new here, and shows what was written to it when it was the primary.
    let old: Arc<str> = "old".into();
    let listed = (&[old.clone()][..], &ReplicaBook::default());
    board.configure(listed, &limits(), PrimaryProbing::Probed, at(6));
    board.on_replica("old", |lag, key| lag.handle_replica_shows(at(6), key, Some(2)));
    board.replication_said(&old, detached(), at(6), at(6));
    assert_eq!(state(6), ReplicaState::NeverCaughtUp);
    let told = board.why_no_lag(at(6)).unwrap();
    assert!(told.why.contains("old: it is not a replica"), "{told:?}");
    assert!(told.advice.contains("make it a replica again"), "{told:?}");
}

/// `cause` was empty, and nothing said what kept the lag from being known.
#[test]
fn a_replica_that_is_left_out_says_why_and_what_ends_it() {
    let board = ProbeBoard::default();
    let servers: [Arc<str>; 2] = ["delayed".into(), "filtered".into()];
    board.configure((&servers, &ReplicaBook::default()), &limits(), PrimaryProbing::Probed, at(0));
    let told =
        |now| board.why_no_lag(at(now)).unwrap_or(Hindrance { why: String::new(), advice: "" });
    board.heartbeat_committed(1, at(0));
    for server in &servers {
        board.on_replica(server, |lag, key| lag.handle_replica_shows(at(5), key, None));
        board.replication_said(server, ReplicationStatus::Runs, at(5), at(5));
    }
    board.delay_said(&servers[0], Duration::from_secs(60));
    let delay = |lag: &mut LagTracker, key| lag.handle_replica_delayed_on_purpose(at(5), key, true);
    board.on_replica("delayed", delay);
    let Hindrance { why, advice } = told(6);
    let wanted = "filtered: it has shown no heartbeat since Sluice looks, and 1 more";
    assert_eq!(why, wanted);
    assert!(advice.contains("replicate-ignore-db"), "{advice}");
    let readings = board.replicas(at(6));
    let troubles: Vec<_> = readings.iter().filter_map(ReplicaReading::trouble).collect();
    assert_eq!(
        troubles,
        [
            "it stays 60 s behind on purpose (SOURCE_DELAY)",
            "it has shown no heartbeat since Sluice looks",
        ]
    );
    assert!(readings.iter().all(|reading| !reading.advice().is_empty()), "{readings:?}");
    // It gets through, and is far behind.
    board.heartbeat_committed(2, at(7));
    board.on_replica("filtered", |lag, key| lag.handle_replica_shows(at(20), key, Some(1)));
    let wanted =
        "filtered: it is catching up: its lag has not been below 1 s since it appeared, and 1 more";
    assert_eq!(told(20).why, wanted);
    board.on_replica("filtered", |lag, key| lag.handle_replica_shows(at(21), key, Some(2)));
    assert_eq!(told(21).why, "", "it counts");
    // The last one there is.
    board.configure(
        (&servers[..1], &ReplicaBook::default()),
        &limits(),
        PrimaryProbing::Probed,
        at(22),
    );
    assert!(told(22).why.starts_with("delayed: it stays 60 s behind"), "{:?}", told(22));
    board.replication_said(
        &servers[0],
        ReplicationStatus::Untold(ProbeError::Unusable("no".into())),
        at(23),
        at(23),
    );
    assert_eq!(told(23).why, "delayed: no");
}

#[test]
fn whoever_has_had_a_word_from_the_server_has_reached_it() {
    let refused = ProbeError::Refused { code: 1045, message: String::new() };
    let unencrypted = ProbeError::Unencrypted("invalid peer certificate".to_owned());
    for error in [refused, unencrypted, ProbeError::Unusable(String::new())] {
        assert_eq!(error.contact(), Contact::Reached, "{error:?}");
    }
    assert_eq!(ProbeError::NoPassword(String::new()).contact(), Contact::NotTried);
    for error in [ProbeError::TimedOut, ProbeError::Lost("refused".to_owned())] {
        assert_eq!(error.contact(), Contact::Failed(error.to_string()));
    }
}

#[test]
fn only_a_start_waits_for_the_first_answer_of_a_probe() {
    let board = ProbeBoard::default();
    board.configure((&[], &ReplicaBook::default()), &limits(), PrimaryProbing::Probed, at(0));
    assert_eq!(board.reachability(at(1)), Reachability::Awaited);
    assert_eq!(board.reachability(at(7)), Reachability::Unknown);
    let asked = ProbeBoard::default();
    asked.configure((&[], &ReplicaBook::default()), &limits(), PrimaryProbing::Probed, at(0));
    asked.primary_contact(Contact::Reached, at(1));
    assert_eq!(asked.reachability(at(1)), Reachability::Awaited, "its settings are to come");
    asked.note_settings_asked();
    assert_eq!(asked.reachability(at(1)), Reachability::Reached(Duration::ZERO));
    let added = ProbeBoard::default();
    added.configure((&[], &ReplicaBook::default()), &limits(), PrimaryProbing::NotProbed, at(0));
    added.configure((&[], &ReplicaBook::default()), &limits(), PrimaryProbing::Probed, at(100));
    assert_eq!(added.reachability(at(101)), Reachability::Unknown);
}

/// Replicas that no heartbeat reaches were shown as broken, without a word of the primary.
#[test]
fn replicas_without_data_say_that_the_primary_is_silent() {
    let board = ProbeBoard::default();
    let limits = LagConfig {
        stale_after: Duration::from_secs(3),
        writer_stale_after: Duration::from_secs(2),
        ..limits()
    };
    let replicas = ["r".into()];
    board.configure((&replicas, &ReplicaBook::default()), &limits, PrimaryProbing::Probed, at(0));
    let seq = board.next_seq();
    board.heartbeat_committed(seq, at(0));
    board.primary_said(Ok(()), at(0));
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(0), key, Some(seq)));
    let told = |now: u64| {
        let shows = |lag: &mut LagTracker, key| lag.handle_replica_shows(at(now), key, Some(seq));
        board.on_replica("r", shows);
        board.replicas(at(now)).first().and_then(ReplicaReading::trouble)
    };
    assert_eq!(told(1), None);
    let silent = |seconds: u64| {
        Some(format!("no heartbeat is written: the primary has not answered for {seconds} s"))
    };
    assert_eq!(told(4), silent(4));
    board.primary_said(Err(&ProbeError::TimedOut), at(5));
    assert_eq!(told(60), silent(60));
    board.primary_said(Err(&ProbeError::Lost("connection refused".to_owned())), at(61));
    assert_eq!(told(62), silent(62).map(|text| text + " (connection refused)"));
    let message = "--read-only".to_owned();
    board.primary_said(Err(&ProbeError::Refused { code: 1290, message }), at(63));
    let refused = "no heartbeat is written: the primary refuses its probe: error 1290: --read-only";
    assert_eq!(told(64).as_deref(), Some(refused));
    board.primary_said(Ok(()), at(65));
    assert_eq!(told(65), None);
}

/// Behind a SIGSTOP of Sluice the log said that the primary had not answered for as long.
#[test]
fn a_primary_is_not_silent_for_a_time_in_which_this_process_did_not_run() {
    let board = ProbeBoard::default();
    let limits = LagConfig { stale_after: Duration::from_secs(3), ..limits() };
    let replicas = ["r".into()];
    board.configure((&replicas, &ReplicaBook::default()), &limits, PrimaryProbing::Probed, at(0));
    let seq = board.next_seq();
    board.heartbeat_committed(seq, at(9));
    board.primary_said(Ok(()), at(9));
    board.on_replica("r", |lag, key| lag.handle_replica_shows(at(9), key, Some(seq)));
    assert_eq!(board.standstills.look(at(9)), None);
    let why = |now: u64| board.lag_hindrance(at(now)).map(|told| told.why);
    let paused = "no heartbeat was written while this process did not run, for 10.9 s".to_owned();
    assert_eq!(why(20), Some(paused.clone()), "it is not looked at yet");
    assert!(matches!(board.primary(at(20), LATELY), PrimaryState::Answers(_)));
    assert!(board.standstills.look(at(20)).is_some());
    for tenth in 1..=30 {
        let then = at(20).saturating_add(Duration::from_millis(tenth * 100));
        assert_eq!(board.standstills.look(then), None);
    }
    assert_eq!(why(21), Some(paused.clone()), "not heard yet");
    board.primary_said(Ok(()), at(21));
    assert_eq!(why(21), Some(paused), "the first heartbeat is on its way");
    assert_eq!(why(22), None);
    let silent = "no heartbeat is written: the primary has not answered for 2 s";
    assert_eq!(why(23).as_deref(), Some(silent));
}

/// It had never caught up under its other name, and the gate opened.
#[test]
fn a_lagging_replica_that_an_edit_renames_or_takes_out_for_a_while_still_counts() {
    let board = ProbeBoard::default();
    let [old, new]: [Arc<str>; 2] = ["127.0.0.1:3306".into(), "localhost:3306".into()];
    let in_file = |server: &Arc<str>, now| {
        let servers = [server.clone()];
        let of_file = (&servers[..], &ReplicaBook::default());
        board.configure(of_file, &limits(), PrimaryProbing::Probed, at(now));
    };
    let shows = |server: &str, now| {
        board.on_replica(server, |lag, key| lag.handle_replica_shows(at(now), key, Some(1)));
    };
    let lag = |now| board.lag(at(now)).and_then(|lag| lag.value);
    in_file(&old, 0);
    board.replica_is(&old, "uuid", at(0));
    board.note_replica(&old, "uuid".to_owned());
    board.heartbeat_committed(1, at(0));
    shows(&old, 0);
    board.heartbeat_committed(2, at(10));
    in_file(&new, 14);
    shows(&new, 15);
    assert_eq!(lag(15), None, "it is not known yet who that is");
    board.replica_is(&new, "uuid", at(15));
    board.note_replica(&new, "uuid".to_owned());
    shows(&new, 16);
    assert_eq!(lag(16), Some(6.0));
    let other: Arc<str> = "other:3306".into();
    in_file(&other, 17);
    board.replica_is(&other, "another", at(17));
    shows(&other, 17);
    assert_eq!(lag(17), None, "another server is not that one");
    in_file(&new, 19);
    shows(&new, 20);
    assert_eq!(lag(20), Some(10.0), "it was put back");
}
