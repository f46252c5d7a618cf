use super::*;

const PROBE: &str = "sluice";
const HERE: &str = "10.0.0.1";
const THERE: &str = "10.0.0.9";

fn bypass(yaml: &str) -> Bypass {
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: db:1, \
         probe: {{ user: sluice }}, bypass: {{ {yaml} }} }} }}\nrules: []\n"
    );
    policy::load(&text).unwrap().clusters[0].bypass.clone()
}

fn session(id: u64, user: &str, host: &str) -> Session {
    let command = "Sleep".to_owned();
    Session { id, user: user.to_owned(), host: host.to_owned(), command, thread: Some(id) }
}

/// A Sluice at `HERE`: connection 1 is its probe's, 2 is relayed.
struct Scene {
    ledger: Ledger,
    own: Own,
    bypass: Bypass,
    rows: HashMap<u64, u64>,
    all: u64,
    now: MonoTime,
}

impl Scene {
    fn new() -> Self {
        Self::with(&bypass("interval: 5s"))
    }

    fn with(bypass: &Bypass) -> Self {
        let own = Own { relayed: [2].into(), links: [1].into(), forgets: false };
        let bypass = bypass.clone();
        let rows = HashMap::new();
        Self { ledger: Ledger::default(), own, bypass, rows, all: 0, now: MonoTime::ZERO }
    }

    /// A look at a server with Sluice's own sessions and these, each of which has changed ten rows
    /// more, and somebody else ten.
    fn look(&mut self, others: &[Session]) -> BypassReading {
        let own = [session(1, PROBE, HERE), session(2, "app", HERE)];
        let sessions = [&own, others].concat();
        let Self { ledger, own, bypass, rows, all, now } = self;
        *now = now.saturating_add(Duration::from_secs(5));
        let is_first = ledger.is_empty();
        let around: Vec<Session> =
            ledger.sort(&sessions, own, (PROBE, bypass), *now).into_iter().cloned().collect();
        *all += 10 * (u64::try_from(others.len()).unwrap() + 1);
        ledger.note_rows(Some(*all));
        for other in others {
            *rows.entry(other.id).or_default() += 10;
        }
        for session in &around {
            let work = Work { rows: rows.get(&session.id).copied(), in_transaction: false };
            ledger.note_work(session, work, is_first);
        }
        ledger.reading(None)
    }
}

fn named(reading: &BypassReading) -> Vec<(&str, u64)> {
    reading.users.iter().map(|user| (&*user.user, user.sessions)).collect()
}

#[test]
fn a_session_that_goes_around_and_writes_is_named_at_the_second_look() {
    let mut scene = Scene::new();
    scene.look(&[]);
    let direct = [session(7, "etl", HERE), session(8, "etl", THERE)];
    assert_eq!(named(&scene.look(&direct)), []);
    let reading = scene.look(&direct);
    assert_eq!((named(&reading), reading.unknown), (vec![("etl", 2)], 0));
    let etl = &reading.users[0];
    assert_eq!(etl.hosts, [HERE, THERE]);
    // 40 of 60 rows that were changed between the looks.
    assert!(etl.share.is_some_and(|share| (share - 40.0 / 60.0).abs() < 0.01), "{:?}", etl.share);
    assert_eq!(named(&scene.look(&[])), [], "it is gone");
}

#[test]
fn whoever_writes_nothing_is_not_named() {
    let mut scene = Scene::new();
    scene.look(&[]);
    let reads = [session(7, "reports", THERE)];
    let sessions = [session(1, PROBE, HERE), reads[0].clone()];
    for _ in 0..3 {
        let Scene { ledger, own, bypass, now, .. } = &mut scene;
        let around = ledger.sort(&sessions, own, (PROBE, bypass), *now);
        assert_eq!(around, [&reads[0]]);
        ledger.note_work(&reads[0], Work { rows: Some(0), in_transaction: false }, false);
    }
    assert_eq!(named(&scene.ledger.reading(None)), []);
    let in_transaction = Work { rows: None, in_transaction: true };
    scene.ledger.note_work(&reads[0], in_transaction, false);
    assert_eq!(named(&scene.ledger.reading(None)), [("reports", 1)]);
}

#[test]
fn what_sluice_has_relayed_stays_its_own_for_as_long_as_the_server_is_at_it() {
    let mut scene = Scene::new();
    scene.look(&[]);
    let left = [session(7, "app", HERE)];
    scene.own.relayed.insert(7);
    scene.look(&left);
    scene.own.relayed.remove(&7);
    for _ in 0..3 {
        let reading = scene.look(&left);
        assert_eq!((named(&reading), reading.unknown), (vec![], 0));
    }
    // The server has given the id to another.
    scene.look(&[]);
    scene.look(&left);
    assert_eq!(named(&scene.look(&left)), [("app", 1)]);
}

#[test]
fn what_another_sluice_may_have_relayed_is_unknown() {
    let mut scene = Scene::new();
    let theirs = [session(20, PROBE, THERE), session(21, "app", THERE)];
    for _ in 0..3 {
        let reading = scene.look(&theirs);
        assert_eq!((named(&reading), reading.unknown), (vec![], 1));
    }
    // It has crashed, and what it relayed runs on.
    let orphans = [session(21, "app", THERE), session(22, "app", THERE)];
    scene.look(&orphans);
    let reading = scene.look(&orphans);
    assert_eq!((named(&reading), reading.unknown), (vec![], 2));
    scene.now = scene.now.saturating_add(SLUICE_REMEMBERED);
    scene.look(&orphans);
    let later = [orphans[0].clone(), session(23, "app", THERE)];
    scene.look(&later);
    let reading = scene.look(&later);
    assert_eq!((named(&reading), reading.unknown), (vec![("app", 1)], 1));
}

#[test]
fn what_a_predecessor_may_have_relayed_is_unknown() {
    let mut scene = Scene::new();
    let before = [session(5, "app", HERE), session(6, "etl", THERE)];
    scene.look(&before);
    let reading = scene.look(&before);
    assert_eq!((named(&reading), reading.unknown), (vec![("etl", 1)], 1));
}

#[test]
fn nobody_is_named_for_what_sluice_has_forgotten() {
    let mut scene = Scene::new();
    scene.look(&[]);
    scene.own.forgets = true;
    let perhaps = [session(7, "app", HERE)];
    scene.look(&perhaps);
    scene.own.forgets = false;
    let reading = scene.look(&perhaps);
    assert_eq!((named(&reading), reading.unknown), (vec![], 1));
}

#[test]
fn who_is_meant_to_go_around_is_not_named() {
    let mut scene = Scene::with(&bypass("ignore_users: [backup-*], sluices: [10.0.0.9]"));
    scene.look(&[]);
    let mut others = [
        session(7, "backup-nightly", HERE),
        session(8, "system user", HERE),
        session(9, "app", THERE),
        session(10, "owner", HERE),
    ];
    others[3].command = "Connect".to_owned();
    scene.look(&others);
    let reading = scene.look(&others);
    assert_eq!((named(&reading), reading.unknown), (vec![], 1));
}
