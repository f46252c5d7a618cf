use policy::UnixTime;

use super::*;
use crate::cluster::{ChainEnd, Chains, ClientName, GuardStop};

fn at(seconds: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
}

/// A statement of an app that was refused.
fn chain(app: &str, id: u32, now: u64) -> Chain {
    let user = b"u".as_slice().into();
    Chain {
        id,
        seq: 0,
        at: at(now),
        at_unix: UnixTime(0),
        cluster: "main".into(),
        app: app.as_bytes().into(),
        source: None,
        client: ClientName { user, address: "10.0.0.7:4711".into(), connection_id: 1 },
        class: None,
        rule: None,
        budget: None,
        budget_reason: None,
        stop: None,
        check_interval: Duration::ZERO,
        ratio: 0.0,
        end: ChainEnd::Refused {
            reason: Reason::Ratio,
            signal: None,
            limit: None,
            retry_after: Duration::ZERO,
        },
        waited: Duration::ZERO,
        signals: Vec::new(),
        line: None,
    }
}

fn guarded(check: &'static str) -> Option<Stop> {
    let (advice, reason) = (String::new(), String::new());
    Some(Stop::Guard(GuardStop { guard: "g".into(), check, offset: 0, advice, reason }))
}

#[test]
fn what_goes_on_is_one_row_for_each_who_and_by_what() {
    let book = RefusedBook::default();
    for id in 1..=5 {
        book.note(&Arc::new(chain("etl", id, 10 + u64::from(id))), Reason::Ratio);
    }
    let budget = Some("reports".into());
    book.note(&Arc::new(Chain { budget, ..chain("etl", 6, 20) }), Reason::BudgetRate);
    for check in ["where_required", "max_in_list", "max_in_list"] {
        book.note(&Arc::new(Chain { stop: guarded(check), ..chain("etl", 7, 21) }), Reason::Guard);
    }
    let rows = book.rows(at(30));
    let told: Vec<_> =
        rows.iter().map(|row| (row.count, row.since, row.last, row.last_id)).collect();
    assert_eq!(told[0], (5, at(11), at(15), 5));
    assert_eq!(rows[1].by, RefusedBy::Guard("g".into(), "max_in_list"));
    assert_eq!(rows[1].count, 2);
    assert_eq!(
        (&rows[2].by, rows[2].reason),
        (&RefusedBy::Budget("reports".into()), Reason::BudgetRate)
    );
    assert_eq!(rows.len(), 4);
}

#[test]
fn what_has_ceased_is_gone_and_begins_anew() {
    let book = RefusedBook::default();
    book.note(&Arc::new(chain("etl", 1, 0)), Reason::Hold);
    book.note(&Arc::new(chain("etl", 2, 599)), Reason::Hold);
    assert_eq!(book.rows(at(1_198)).first().map(|row| (row.count, row.since)), Some((2, at(0))));
    // Nobody has looked meanwhile.
    book.note(&Arc::new(chain("etl", 3, 1_199)), Reason::Hold);
    assert_eq!(
        book.rows(at(1_200)).first().map(|row| (row.count, row.since)),
        Some((1, at(1_199)))
    );
    assert_eq!(book.rows(at(1_799)), []);
}

#[test]
fn whoever_changes_its_name_each_time_pushes_nobody_out_who_goes_on() {
    let book = RefusedBook::default();
    for n in 0..5_000 {
        book.note(&Arc::new(chain(&format!("app{n}"), n, u64::from(n) / 100)), Reason::Deny);
        book.note(&Arc::new(chain("steady", n, u64::from(n) / 100)), Reason::Deny);
    }
    let rows = book.rows(at(60));
    assert_eq!(rows.len(), ROWS_MAX);
    assert_eq!((&*rows[0].app, rows[0].count), (b"steady".as_slice(), 5_000));
}

/// Nothing was known of an app once another had been refused a thousand times.
#[test]
fn the_last_refusal_of_an_app_stays_whatever_another_one_does() {
    let chains = Chains::default();
    chains.note(chain("quiet", 1, 0));
    chains.note(chain("quiet", 2, 1));
    (3..3_000).for_each(|id| chains.note(chain("spins", id, 2)));
    let of_quiet = chains.of(|chain| *chain.app == *b"quiet");
    assert_eq!(of_quiet.map(|chain| chain.map(|chain| chain.id)), [Some(2), None, None]);
    assert_eq!(chains.find(2).map(|chain| chain.id), Some(2), "the status shows its id");
    assert!(chains.find(1).is_none());
    let written = chains.since(0, 10);
    assert!(written.iter().any(|chain| chain.id == 2), "it is written, too");
    assert!(written.is_sorted_by(|a, b| a.seq < b.seq), "each once");
    assert!(chains.since(2, 10).iter().all(|chain| chain.id != 2), "once");
}

/// Of a client that gave up at a shut gate nothing was known.
#[test]
fn whoever_left_while_it_waited_is_told_beside_the_longest_wait_and_is_not_refused() {
    let chains = Chains::default();
    let left = ChainEnd::Left { reason: Reason::NoData, signal: None, limit: None };
    for (id, end, seconds) in [
        (1, left, 5),
        (2, ChainEnd::Admitted(None), 9),
        (3, left, 2),
        (4, ChainEnd::Admitted(None), 3),
    ] {
        let waited = Duration::from_secs(seconds);
        assert!(chains.is_worth(waited));
        chains.note(Chain { end, waited, ..chain("etl", id, u64::from(id)) });
    }
    let of_etl = chains.of(|chain| *chain.app == *b"etl");
    assert_eq!(of_etl.map(|chain| chain.map(|chain| chain.id)), [None, Some(2), Some(3)]);
    assert_eq!(chains.refused(at(5)), []);
    assert_eq!(chains.since(0, 10).len(), 4, "all are written");
}
