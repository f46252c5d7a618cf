use super::*;

fn at(millis: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_millis(millis))
}

fn note(flood: &mut Flood, now: u64, app: &str, worth: Worth) -> Noted {
    let cluster: Arc<str> = "main".into();
    let app = app.as_bytes();
    flood.note(
        at(now),
        Whose { kind: Kind::Refused, cluster: &cluster, rule: "r", guard: None, app },
        worth,
    )
}

fn refused(reason: Reason) -> Worth {
    Worth { reason: Some(reason), waited: Duration::ZERO, trace: None }
}

/// How many of so many have a line of their own.
fn lines(flood: &mut Flood, now: u64, app: &str, count: u64) -> u64 {
    let has_line =
        |flood: &mut Flood| note(flood, now, app, refused(Reason::Hold)) == Noted::HasLine;
    let lines = (0..count).filter(|_| has_line(flood)).count();
    lines.try_into().unwrap()
}

#[test]
fn a_few_have_a_line_each_and_nothing_else() {
    let mut flood = Flood::default();
    assert_eq!(lines(&mut flood, 0, "etl", 5), 5);
    assert!(flood.due(at(1_000)).is_empty());
    assert!(flood.is_empty(), "nothing is remembered of what is told");
}

#[test]
fn beyond_those_they_are_counted_and_the_sum_is_told_after_a_second() {
    let mut flood = Flood::default();
    assert_eq!(lines(&mut flood, 0, "etl", 1_000), 5);
    assert_eq!(note(&mut flood, 400, "etl", refused(Reason::QueueFull)), Noted::Counted);
    assert_eq!(lines(&mut flood, 400, "web", 1), 1, "another app has lines of its own");
    assert!(flood.due(at(999)).is_empty());
    let sums = flood.due(at(1_000));
    let [sum] = &*sums else { panic!("{sums:?}") };
    assert_eq!(sum.untold, 996);
    assert_eq!(sum.by_reason, [(Reason::Hold, 995), (Reason::QueueFull, 1)]);
    assert_eq!(&*sum.of.as_ref().unwrap().app, b"etl");
}

#[test]
fn who_spins_for_a_minute_leaves_six_lines_in_ten_seconds_and_no_count_is_lost() {
    let mut flood = Flood::default();
    let (mut told, mut sums, mut counted) = (0, 0, 0);
    for now in (0..60_000).step_by(10) {
        told += lines(&mut flood, now, "etl", 2);
        for sum in flood.due(at(now)) {
            sums += 1;
            counted += sum.untold;
        }
    }
    assert!((35..=41).contains(&told) && (6..=8).contains(&sums), "{told} and {sums} in a minute");
    counted += flood.rest().iter().map(|sum| sum.untold).sum::<u64>();
    assert_eq!(told + counted, 12_000);
    assert!(flood.is_empty());
}

#[test]
fn it_is_over_after_a_period_without_a_sum() {
    let mut flood = Flood::default();
    lines(&mut flood, 0, "etl", 6);
    assert_eq!(flood.due(at(1_000)).len(), 1);
    assert_eq!(lines(&mut flood, 2_000, "etl", 5), 5);
    assert!(flood.due(at(11_000)).is_empty());
    assert!(flood.is_empty());
    assert_eq!(lines(&mut flood, 11_000, "etl", 6), 5);
    assert_eq!(flood.due(at(12_000)).len(), 1, "a first period is a second again");
}

#[test]
fn names_without_end_are_counted_together_and_take_no_memory() {
    let mut flood = Flood::default();
    let told: u64 = (0..100_000).map(|app| lines(&mut flood, 0, &format!("app{app}"), 1)).sum();
    assert!(told <= u64::from(LINES_PER_SECOND_MAX), "{told} lines in a second");
    assert!(flood.pairs.len() <= PAIRS_MAX + 1);
    let mut untold = 0;
    let mut beyond = 0;
    for second in 1..30 {
        let sums = flood.due(at(second * 1_000));
        assert!(sums.len() <= usize::try_from(LINES_PER_SECOND_MAX).unwrap());
        beyond += sums.iter().filter(|sum| sum.of.is_none()).count();
        untold += sums.iter().map(|sum| sum.untold).sum::<u64>();
    }
    assert_eq!((told + untold, beyond), (100_000, 1));
    assert!(flood.is_empty());
}

#[test]
fn a_sum_names_its_longest_wait_and_a_trace() {
    let trace = |digit: u8| {
        let digits = digit.to_string().repeat(32);
        TraceId::of_traceparent(format!("00-{digits}-{}-01", "1".repeat(16)).as_bytes())
    };
    let mut flood = Flood::default();
    lines(&mut flood, 0, "etl", 5);
    for (waited, trace) in [(3, None), (1, trace(1)), (2, trace(2)), (1, trace(3))] {
        let waited = Duration::from_secs(waited);
        let _noted = note(&mut flood, 0, "etl", Worth { reason: None, waited, trace });
    }
    let sums = flood.due(at(1_000));
    let [sum] = &*sums else { panic!("{sums:?}") };
    assert_eq!((sum.untold, sum.longest, sum.trace), (4, Duration::from_secs(3), trace(2)));
    assert!(sum.by_reason.is_empty());
}
