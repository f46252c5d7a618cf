use super::*;

fn shown(sessions: &[(u64, bool)], others: bool) -> Shown {
    Shown { sessions: sessions.iter().copied().collect(), others }
}

fn birth() -> Birth {
    let now = Instant::now();
    Birth { address: "db:3306".into(), connected: now, answered: now }
}

/// Behind a switchover the new primary showed nothing under the id, and a connection at the old one was
/// closed under a statement that worked.
#[tokio::test(start_paused = true)]
async fn a_connection_is_not_judged_by_what_another_server_shows() {
    let claim = || Claim::Connection(oneshot::channel().0);
    let session = LostSession { remote: None, connection_id: 7, birth: birth() };
    for (is_at, fate) in [(IsAt::No, None), (IsAt::Yes, Some(Fate::Ended))] {
        let mut statement = Statement {
            claim: claim(),
            session: session.clone(),
            is_at,
            located: true,
            since: Instant::now(),
            watched: Watched::new(Instant::now(), IDLE_MIN),
        };
        for _ in 0..2 {
            statement.note(&shown(&[], true), Instant::now());
            tokio::time::advance(IDLE_MIN).await;
        }
        assert_eq!(statement.watched.fate(statement.since, Instant::now()), fate, "{is_at:?}");
    }
}

#[tokio::test]
async fn a_server_of_one_address_is_found_without_its_socket_and_one_of_several_is_not() {
    let there = Remote::Network("127.0.0.1:3306".parse().unwrap());
    assert_eq!(only_address("127.0.0.1:3306").await, Some(there));
    let there = Remote::Unix("unix:/run/mysql.sock".to_owned());
    assert_eq!(only_address("unix:/run/mysql.sock").await, Some(there));
    assert_eq!(the_only([1, 2].into_iter()), None);
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_the_server_shows_keeps_its_place_until_it_does_not() {
    let since = Instant::now();
    let mut watched = Watched::new(since, Duration::ZERO);
    for _ in 0..50 {
        tokio::time::advance(Duration::from_secs(60)).await;
        watched.note(7, &shown(&[(7, false)], true), Instant::now());
        assert_eq!(watched.fate(since, Instant::now()), None);
    }
    watched.note(7, &shown(&[(8, false)], true), Instant::now());
    assert_eq!(watched.fate(since, Instant::now()), Some(Fate::Ended));
}

#[tokio::test(start_paused = true)]
async fn who_is_shown_its_own_sessions_only_knows_nothing_of_others() {
    let since = Instant::now();
    let mut watched = Watched::new(since, Duration::ZERO);
    watched.note(7, &shown(&[], false), Instant::now());
    tokio::time::advance(UNHEARD_MAX - Duration::from_millis(1)).await;
    assert_eq!(watched.fate(since, Instant::now()), None);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(watched.fate(since, Instant::now()), Some(Fate::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_idle_twice_has_ended_its_statement() {
    let since = Instant::now();
    let mut watched = Watched::new(since, Duration::ZERO);
    let now = Instant::now();
    watched.note(7, &shown(&[(7, true)], true), now);
    assert_eq!(watched.fate(since, now), None, "it may not have begun");
    watched.note(7, &shown(&[(7, false)], true), now);
    watched.note(7, &shown(&[(7, true)], true), now);
    assert_eq!(watched.fate(since, now), None);
    watched.note(7, &shown(&[(7, true)], true), now);
    assert_eq!(watched.fate(since, now), Some(Fate::Ended));
}

/// What its server showed idle was ended at the second look, with its answer on a slow way.
#[tokio::test(start_paused = true)]
async fn a_connection_that_waits_has_its_session_idle_for_a_while() {
    let since = Instant::now();
    let mut watched = Watched::new(since, IDLE_MIN);
    let look = |watched: &mut Watched, shown: &Shown| {
        watched.note(7, shown, Instant::now());
        watched.fate(since, Instant::now())
    };
    let (idle, busy, gone) =
        (shown(&[(7, true)], true), shown(&[(7, false)], true), shown(&[], true));
    for quiet in [idle, gone] {
        for _ in 0..3 {
            assert_eq!(look(&mut watched, &quiet), None);
            tokio::time::advance(IDLE_MIN - Duration::from_millis(1)).await;
            assert_eq!(look(&mut watched, &quiet), None, "its answer may be under way");
            assert_eq!(look(&mut watched, &busy), None);
        }
        assert_eq!(look(&mut watched, &quiet), None);
        tokio::time::advance(IDLE_MIN).await;
        assert_eq!(look(&mut watched, &quiet), Some(Fate::Ended));
        watched = Watched::new(since, IDLE_MIN);
    }
    assert_eq!(look(&mut watched, &shown(&[], false)), Some(Fate::Unknown));
}

/// What a server showed that had been started since was another's session with the same id: its
/// place was taken for as long as that one stayed.
#[test]
fn a_session_older_than_its_server_has_ended_and_in_doubt_it_has_not() {
    const DAY_S: u64 = 86_400;
    let is_older = |age_ms, ended_for_s, uptime_s| {
        let session = LostSession { remote: None, connection_id: 7, birth: birth() };
        let ended = session.birth.answered + Duration::from_millis(age_ms);
        session.is_older(Duration::from_secs(uptime_s), ended + Duration::from_secs(ended_for_s))
    };
    assert!(is_older(5_900, 3, 7), "it was started since");
    assert!(!is_older(5_900, 3, 8), "a second is lost in rounding");
    assert!(!is_older(5_900, 3, 600));
    assert!(!is_older(0, 0, 0), "nobody had logged in");
    assert!(is_older(0, 3, 1), "it was started behind the end of the connection");
    let of_ten_days = 10 * DAY_S * 1_000;
    assert!(!is_older(of_ten_days, 0, 10 * DAY_S - 60), "the server's clock was set back");
    assert!(is_older(of_ten_days, 0, 9 * DAY_S));
}

#[tokio::test(start_paused = true)]
async fn what_is_there_for_ever_is_given_up_after_an_hour() {
    let since = Instant::now();
    let mut watched = Watched::new(since, Duration::ZERO);
    tokio::time::advance(KEPT_MAX).await;
    watched.note(7, &shown(&[(7, false)], true), Instant::now());
    assert_eq!(watched.fate(since, Instant::now()), Some(Fate::Expired));
}

/// The list grew as long as servers showed what stood on it: no more than this fitted into the channel
/// to it.
#[tokio::test(start_paused = true)]
async fn of_more_statements_than_the_list_has_room_for_the_places_are_free_at_once() {
    let file = "version: 1\nclusters: { a: { listen: 127.0.0.1:1, primary: \"unix:/none\" } }\n";
    let policy = policy::load(file).unwrap().clusters[0].clone();
    let cluster = Cluster::new(policy, crate::clock::Clock::start(), 7);
    let watching = cluster.clone();
    let watch = tokio::spawn(async move { watching.watch_left_behind().await });
    let birth = Birth { address: "unix:/none".into(), ..birth() };
    let lost = LostSession { remote: None, connection_id: 7, birth };
    for _ in 0..4 {
        for _ in 0..STATEMENTS_MAX / 2 {
            let asks = (None, admission::AppKey(7));
            let guard = cluster.count_for_budgets(&admission::BudgetSet::default(), asks);
            cluster.left_behind.add(guard, lost.clone());
        }
        tokio::time::sleep(2 * POLL).await;
    }
    assert_eq!(cluster.left_behind.len(), STATEMENTS_MAX);
    let unknown = cluster.left_behind.over().find(|(fate, _)| *fate == Fate::Unknown);
    let as_many = u64::try_from(STATEMENTS_MAX).unwrap();
    assert_eq!(unknown, Some((Fate::Unknown, as_many)));
    // Nobody says what became of the others. Each of them had a line of the log.
    tokio::time::sleep(UNHEARD_MAX).await;
    assert_eq!(cluster.left_behind.len(), 0);
    let told = cluster.turned_away.left_behind.lock().again(cluster.now());
    assert_eq!(told, None, "there is a line left");
    watch.abort();
}

/// Each waited for the names behind those before it: with a name server that does not answer, the last of
/// fifteen kept its place twice as long as nobody had heard of it.
#[tokio::test(start_paused = true)]
async fn a_server_that_many_have_lost_is_looked_up_once() {
    let of = |address: &str| Statement {
        claim: Claim::Connection(oneshot::channel().0),
        session: LostSession {
            remote: None,
            connection_id: 7,
            birth: Birth { address: address.into(), ..birth() },
        },
        is_at: IsAt::Unknown,
        located: false,
        since: Instant::now(),
        watched: Watched::new(Instant::now(), IDLE_MIN),
    };
    let mut left: Vec<Statement> = (0..50).map(|_| of("db:1")).chain([of("other:1")]).collect();
    let since = Instant::now();
    let there = |name: &str| Remote::Unix(name.to_owned());
    let find = async |name: &str| {
        tokio::time::sleep(ANSWER_TIMEOUT).await;
        (name == "db:1").then(|| there(name))
    };
    locate(&mut left, find).await;
    assert_eq!(since.elapsed(), 2 * ANSWER_TIMEOUT);
    let other = left.pop().unwrap();
    assert!(left.iter().all(|it| it.located && it.session.remote == Some(there("db:1"))));
    assert!(other.located && other.session.remote.is_none());
}
