use super::*;
use crate::catalogue::Kind;
use crate::{By, Change, Ending, Filter, Group, ViewRow, compare, name_hash};

const START: u64 = 1_700_000_000_000 / 600_000 * 600_000;

fn record(digest: u64, app: &[u8]) -> Record {
    let record =
        Record { digest: Some(digest), server_ns: 2_000_000, rows_sent: 3, ..Record::default() };
    record.of(app, b"shop", b"root")
}

fn insights() -> Insights {
    let mut insights = Insights::new(1_000, 7, Time(START));
    for name in [&b"etl"[..], b"web", b"shop", b"root"] {
        insights.learn(Learned::Name { hash: name_hash(name), name: name.into() });
    }
    let (text, tables) = (b"SELECT ? FROM t".as_slice().into(), b"\0t\0crm\0u\0".as_slice().into());
    insights.learn(Learned::Digest {
        hash: 1,
        text,
        tables,
        all_tables: true,
        kind: Kind::default(),
        sample: None,
    });
    insights
}

fn look(by: By, window_s: u64) -> Look {
    Look { tag: String::new(), by, window_s, ago_s: 0, filter: Filter::default() }
}

fn sorted(view: View) -> Vec<ViewRow> {
    let mut rows = view.rows;
    rows.sort_by(|a, b| a.group.cmp(&b.group));
    rows
}

#[test]
fn rows_are_by_digest_app_and_schema_with_the_text_and_the_tables() {
    let mut insights = insights();
    insights.observe(&record(1, b"etl"));
    insights.observe(&record(1, b"web"));
    insights.observe(&Record { ending: Ending::Failed(1062), ..record(1, b"web") });
    insights.observe(&Record { ending: Ending::Refused(3), ..record(1, b"web") });
    let rows = sorted(insights.look(&look(By::Digest, 600)));
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (row.group.app.as_deref().unwrap(), row.stats.count, row.stats.errors.sum()))
        .collect();
    assert_eq!(shown, [("etl", 1, 0), ("web", 2, 1)]);
    let web = &rows[1];
    assert_eq!(web.text.as_deref(), Some("SELECT ? FROM t"));
    assert_eq!(web.tables, ["crm.u", "shop.t"]);
    assert_eq!((web.stats.refused.sum(), web.stats.rows_sent), (1, 6));
}

#[test]
fn the_same_by_app_user_and_table() {
    let mut insights = insights();
    insights.observe(&record(1, b"etl"));
    insights.observe(&record(1, b"web"));
    insights.observe(&record(2, b"web"));
    insights.learn(Learned::Digest {
        hash: 3,
        text: b"SET NAMES utf8mb4".as_slice().into(),
        tables: Box::default(),
        all_tables: true,
        kind: Kind::default(),
        sample: None,
    });
    insights.observe(&record(3, b"web"));
    let by = |by: By| -> Vec<(Option<String>, u64)> {
        let rows = sorted(insights.look(&look(by, 600))).into_iter();
        rows.map(|row| {
            let Group { app, user, table, .. } = row.group;
            (app.or(user).or(table), row.stats.count)
        })
        .collect()
    };
    let named = |name: &str, count: u64| (Some(name.to_owned()), count);
    assert_eq!(by(By::App), [named("etl", 1), named("web", 3)]);
    assert_eq!(by(By::User), [named("root", 4)]);
    let (unknown, without) = ((None, 1), named("", 1));
    assert_eq!(by(By::Table), [unknown, without, named("crm.u", 2), named("shop.t", 2)]);
}

#[test]
fn a_filter_is_for_the_total_too() {
    let mut insights = insights();
    insights.observe(&record(1, b"etl"));
    insights.observe(&record(1, b"web"));
    let filter = Filter { app: Some("web".to_owned()), ..Filter::default() };
    let view = insights.look(&Look { filter, ..look(By::Digest, 600) });
    assert_eq!((view.rows.len(), view.total.count), (1, 1));
}

#[test]
fn minutes_stay_for_an_hour_and_ten_minutes_for_a_day() {
    let mut insights = insights();
    for minute in 0..(26 * 60) {
        insights.advance(Time(START + minute * 60_000 + 30_000));
        insights.observe(&record(1, b"etl"));
    }
    let count = |window_s: u64| insights.look(&look(By::App, window_s)).total.count;
    assert_eq!(count(0), 1, "the minute that counts");
    assert_eq!(count(600), 11, "it began within the eleventh minute back");
    assert_eq!(count(3_600), 61);
    let day = count(86_400);
    assert!((1_440..=1_460).contains(&day), "{day}");
}

#[test]
fn a_window_that_is_compared_with_ends_where_the_other_one_begins() {
    let mut insights = insights();
    for minute in 0..(26 * 60) {
        insights.advance(Time(START + minute * 60_000 + 30_000));
        insights.observe(&record(1, b"etl"));
    }
    for (window_s, counts) in [(0, [1, 1]), (30, [1, 1]), (60, [2, 1]), (600, [11, 10])] {
        let now = insights.look(&look(By::App, window_s));
        let ago_s = window_s.max(1);
        let before = insights.look(&Look { ago_s, ..look(By::App, window_s) });
        assert_eq!(before.to, now.from, "{window_s} s");
        assert_eq!([now.total.count, before.total.count], counts, "{window_s} s");
    }
    // Ten minutes do not end with each minute: there may be a gap, and no statement is in both.
    for window_s in [2_400, 3_600, 36_000] {
        let now = insights.look(&look(By::App, window_s));
        let before = insights.look(&Look { ago_s: window_s, ..look(By::App, window_s) });
        assert!(before.to <= now.from, "{window_s} s");
        let lengths = [&before, &now].map(|view| view.to.0 - view.from.0);
        let counts = [&before, &now].map(|view| view.total.count * 60_000);
        for (count, length) in counts.into_iter().zip(lengths) {
            assert!(count.abs_diff(length) <= 60_000, "{window_s} s: {count} in {length} ms");
        }
    }
}

/// A window of many digests has more numbers than one row.
#[test]
fn errors_of_many_digests_are_told_by_their_numbers() {
    let mut insights = insights();
    for (minute, errno) in (0_u64..).zip(1_000_u16..1_040) {
        insights.advance(Time(START + minute * 10_000));
        insights
            .observe(&Record { ending: Ending::Failed(errno), ..record(u64::from(errno), b"web") });
    }
    for _ in 0..100 {
        insights.observe(&Record { ending: Ending::Failed(4_091), ..record(1, b"web") });
    }
    for window_s in [3_600, 86_400] {
        let view = insights.look(&look(By::App, window_s));
        for errors in [&view.total.errors, &view.rows[0].stats.errors] {
            let by_number: Vec<_> = errors.iter().collect();
            let rare = (1_000_u16..1_040).map(|errno| (errno, 1));
            let all: Vec<_> = rare.chain([(4_091, 100)]).collect();
            assert_eq!((by_number, errors.others()), (all, 0), "{window_s} s");
        }
    }
}

/// Ten minutes beside the ten before, of which Sluice has seen the last minute and a half.
#[test]
fn what_goes_on_as_before_has_not_grown_because_nobody_counted_earlier() {
    let changes = |started: u64, began: u64| -> Vec<Change> {
        let mut insights = Insights::new(1_000, 7, Time(started));
        for at in (started..START + 1_200_000).step_by(1_000) {
            insights.advance(Time(at));
            if at >= began {
                insights.observe(&record(1, b"web"));
            }
        }
        let before = insights.look(&Look { ago_s: 600, ..look(By::App, 600) });
        let compared = compare(&before, insights.look(&look(By::App, 600)));
        compared.into_iter().map(|row| row.change).collect()
    };
    let late = START + 510_000;
    assert_eq!(changes(late, late), [Change::Same]);
    assert_eq!(changes(START, late), [Change::Grown], "it was counted, and was not there");
}

#[test]
fn a_clock_that_is_put_back_loses_nothing() {
    let mut insights = insights();
    insights.advance(Time(START + 120_000));
    insights.observe(&record(1, b"etl"));
    insights.advance(Time(START));
    insights.observe(&record(1, b"etl"));
    assert_eq!(insights.look(&look(By::App, 60)).total.count, 2);
    insights.advance(Time(START + 86_400_000 * 30));
    insights.observe(&record(1, b"etl"));
    assert_eq!(insights.look(&look(By::App, 86_400)).total.count, 1, "a month later");
}

#[test]
fn a_million_digests_take_no_more_memory_than_some_thousands_and_totals_are_exact() {
    let mut insights = insights();
    let mut sizes = Vec::new();
    let mut told_again = 0;
    for n in 0..1_000_000_u64 {
        if n % 10_000 == 0 {
            insights.advance(Time(START + n / 10_000 * 60_000));
        }
        let hash = 1_000 + n * 0x9E37_79B9;
        let text = format!("SELECT c{n} FROM t WHERE a = ? AND b = ? AND c IN ( ... )");
        let text = text.into_bytes().into();
        let tables = b"\0t\0".as_slice().into();
        insights.learn(Learned::Digest {
            hash,
            text,
            tables,
            all_tables: true,
            kind: Kind::default(),
            sample: None,
        });
        told_again += u32::from(insights.tidy());
        insights.observe(&record(hash, b"etl"));
        insights.observe(&record(1, b"web"));
        if n % 100_000 == 99_999 {
            sizes.push((insights.windows.keys().count(), insights.catalogue.bytes()));
        }
    }
    for (rows, bytes) in sizes {
        assert!(rows < 3_000 && bytes <= 12 << 20, "{rows} rows, {bytes} bytes");
    }
    assert!(told_again > 0, "texts that nothing refers to are forgotten");
    let view = insights.look(&look(By::Digest, 3_000));
    let rows = view.rows.iter().map(|row| row.stats.count).sum::<u64>();
    assert_eq!((view.total.count, rows), (2 * 51 * 10_000, 2 * 51 * 10_000));
    let web = view.rows.iter().find(|row| row.group.app.as_deref() == Some("web")).unwrap();
    assert_eq!(web.stats.count, 51 * 10_000, "what is frequent has its row all the time");
    let apps = sorted(insights.look(&look(By::App, 3_000)));
    let counts: Vec<_> = apps.iter().map(|row| (row.group.other, row.stats.count)).collect();
    assert_eq!(counts, [(false, 51 * 10_000), (false, 51 * 10_000)], "apps are whole");
}

#[test]
fn rows_by_tag_are_of_its_values_and_a_filter_takes_one_of_them() {
    let mut insights = insights();
    for (hash, value) in [(11, "acme"), (12, "other")] {
        let pairs = format!("tenant\0{value}\0route\0/\0").into_bytes().into();
        insights.learn(Learned::Tags { hash, pairs });
    }
    for tags in [11, 11, 12, 0, 99] {
        insights.observe(&Record { tags, ..record(1, b"web") });
    }
    let of = |tag: &str| Look { tag: tag.to_owned(), ..look(By::Tag, 600) };
    let counts = |look: &Look| -> Vec<(bool, Option<String>, u64)> {
        let rows = sorted(insights.look(look)).into_iter();
        rows.map(|row| (row.group.other, row.group.tag, row.stats.count)).collect()
    };
    let value = |value: &str| Some(value.to_owned());
    // What has a value that is not known is not what has none.
    let expected = [
        (false, value(""), 1),
        (false, value("acme"), 2),
        (false, value("other"), 1),
        (true, None, 1),
    ];
    assert_eq!(counts(&of("tenant")), expected);
    let filter = Filter { tag: Some(("tenant".into(), "acme".into())), ..Filter::default() };
    let rows = sorted(insights.look(&Look { filter, ..look(By::Digest, 600) }));
    assert_eq!((rows.len(), rows[0].stats.count), (1, 2));
    assert_eq!(rows[0].senders[0].tags[0], ("tenant".to_owned(), "acme".to_owned()));
}
