use super::*;

fn runaway() -> Runaway {
    Runaway {
        elapsed: Some(Duration::from_secs(2)),
        bytes_sent: Some(100),
        rows_sent: Some(10),
        action: RunawayAction::Kill,
        watch: None,
    }
}

#[tokio::test(start_paused = true)]
async fn the_clock_begins_once_when_the_server_has_the_statement() {
    let mut allowance = Allowance::default();
    assert_eq!(allowance.due(), None);
    let began = Instant::now();
    allowance.begin(Some(runaway()), began);
    tokio::time::advance(Duration::from_secs(1)).await;
    allowance.begin(Some(runaway()), Instant::now());
    assert_eq!(allowance.due(), Some(began + Duration::from_secs(2)));
    assert_eq!(allowance.take(100, 10), None);
    assert_eq!(allowance.take(1, 10), Some(Excess::BytesSent));
    assert_eq!(allowance.take(1, 10), None);
    assert_eq!(allowance.take(1, 11), Some(Excess::RowsSent));
    assert_eq!(allowance.exceed(Excess::BytesSent), Excess::BytesSent);
    assert_eq!(allowance.take(1, 12), None);
    assert_eq!(allowance.due(), None);
    assert!(!allowance.leave_alone(Instant::now()) && allowance.leave_alone(Instant::now()));
    assert_eq!(allowance.exceed(Excess::Elapsed), Excess::BytesSent, "what it was at first");
    allowance.retry(Instant::now());
    assert_eq!(allowance.due(), Some(Instant::now() + RETRY));
    assert!(!allowance.note_not_killed() && allowance.note_not_killed(), "counted once");
    assert!(Excess::RowsSent.is_in_answer() && !Excess::Elapsed.is_in_answer());
    allowance.look_again(Instant::now());
    assert_eq!(allowance.due(), Some(Instant::now() + ENDED_POLL));
    assert_eq!(allowance.chase(), Chase::No);
    assert!(!allowance.note_killed(Instant::now()));
    assert_eq!(allowance.chase(), Chase::Yes, "what goes on");
    for _ in 1..CHASES {
        assert_eq!(allowance.due(), Some(Instant::now() + CHASE_AFTER));
        assert!(allowance.note_killed(Instant::now()), "and again, if it goes on");
    }
    assert!(allowance.note_killed(Instant::now()));
    assert_eq!(allowance.due(), Some(Instant::now() + RETRY));
    assert_eq!(allowance.end(Some(1317)), Leftover::Stale, "the last may have met nothing");
    assert_eq!(allowance.due(), None);
}

/// A client that took its answer slowly was counted as one whose statement was killed, and as one whose
/// statement was over.
#[tokio::test(start_paused = true)]
async fn what_was_killed_is_counted_as_nothing_else() {
    let mut allowance = Allowance::default();
    allowance.begin(Some(runaway()), Instant::now());
    assert!(!allowance.note_killed(Instant::now()));
    assert!(allowance.note_not_killed() && allowance.leave_alone(Instant::now()));
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_gives_more_spares_what_runs_until_that_is_used_up() {
    let (was, began) = (runaway(), Instant::now());
    let begun = || {
        let mut allowance = Allowance::default();
        allowance.begin(Some(was), began);
        allowance
    };
    tokio::time::advance(Duration::from_secs(2)).await;
    let longer = Runaway { elapsed: Some(Duration::from_secs(5)), ..was };
    let mut allowance = begun();
    assert!(!allowance.is_spared((Excess::Elapsed, 0), Some(was)), "another edit");
    assert!(allowance.is_spared((Excess::Elapsed, 0), Some(longer)));
    assert_eq!(allowance.due(), Some(began + Duration::from_secs(5)));
    assert_eq!(allowance.take(1, 11), Some(Excess::RowsSent), "its rows are as they were");
    let more = Runaway { rows_sent: Some(12), bytes_sent: Some(150), ..was };
    assert!(allowance.is_spared((Excess::RowsSent, 11), Some(more)));
    assert_eq!(allowance.take(1, 13), Some(Excess::RowsSent));
    assert!(!allowance.is_spared((Excess::RowsSent, 13), Some(more)));
    let mut allowance = begun();
    assert_eq!(allowance.take(101, 1), Some(Excess::BytesSent));
    assert!(!allowance.is_spared((Excess::BytesSent, 1), Some(was)));
    assert!(allowance.is_spared((Excess::BytesSent, 1), Some(more)));
    assert_eq!((allowance.take(49, 1), allowance.take(1, 1)), (None, Some(Excess::BytesSent)));
    assert!(!allowance.is_spared((Excess::BytesSent, 1), Some(more)), "once for one edit");
    let mut allowance = begun();
    assert!(allowance.is_spared((Excess::Elapsed, 0), None));
    assert_eq!((allowance.due(), allowance.take(1000, 1000)), (None, None), "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_gives_less_is_for_what_runs_too() {
    let (was, began) = (runaway(), Instant::now());
    let so_far = SoFar { rows: 5, worked: None };
    let begun = || {
        let mut allowance = Allowance::default();
        allowance.begin(Some(was), began);
        assert_eq!(allowance.take(50, 5), None);
        allowance
    };
    tokio::time::advance(Duration::from_secs(1)).await;
    let shorter = Runaway { elapsed: Some(Duration::from_millis(500)), ..was };
    let mut allowance = begun();
    assert_eq!(allowance.follow(Some(shorter), so_far), None);
    assert_eq!(allowance.due(), Some(began + Duration::from_millis(500)));
    assert_eq!(allowance.exceed(Excess::Elapsed), Excess::Elapsed);
    allowance.note_done(RunawayAction::Kill);
    assert_eq!((allowance.follow(Some(shorter), so_far), allowance.due()), (None, None));

    let fewer = Runaway { rows_sent: Some(4), ..was };
    assert_eq!(begun().follow(Some(fewer), so_far), Some(Excess::RowsSent));
    let less = Runaway { bytes_sent: Some(49), ..was };
    assert_eq!(begun().follow(Some(less), so_far), Some(Excess::BytesSent));
    let mut allowance = begun();
    assert_eq!(allowance.follow(Some(Runaway { bytes_sent: Some(60), ..was }), so_far), None);
    assert_eq!((allowance.take(10, 6), allowance.take(1, 6)), (None, Some(Excess::BytesSent)));
    let mut allowance = begun();
    assert_eq!((allowance.follow(None, so_far), allowance.due()), (None, None));
    assert_eq!(allowance.take(1000, 1000), None, "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn what_was_logged_ends_if_a_newer_file_says_so_and_is_not_logged_again() {
    let so_far = SoFar { rows: 0, worked: None };
    let logs = Runaway { action: RunawayAction::Log, ..runaway() };
    let mut allowance = Allowance::default();
    allowance.begin(Some(logs), Instant::now());
    tokio::time::advance(Duration::from_secs(3)).await;
    allowance.exceed(Excess::Elapsed);
    allowance.note_done(RunawayAction::Log);
    let shorter = Runaway { elapsed: Some(Duration::from_secs(1)), ..logs };
    assert_eq!((allowance.follow(Some(shorter), so_far), allowance.due()), (None, None));
    assert_eq!(allowance.follow(Some(runaway()), so_far), None);
    assert!(allowance.due() <= Some(Instant::now()) && allowance.due().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_what_nobody_limited_goes_by_how_long_the_server_had_it() {
    tokio::time::advance(Duration::from_secs(60)).await;
    let now = Instant::now();
    let worked = Some(Duration::from_secs(30));
    let mut allowance = Allowance::default();
    assert_eq!(allowance.follow(Some(runaway()), SoFar { rows: 0, worked }), None);
    assert_eq!(allowance.due(), Some(now - Duration::from_secs(28)));
    let mut uploads = Allowance::default();
    assert_eq!(uploads.follow(Some(runaway()), SoFar { rows: 0, worked: None }), None);
    assert_eq!(uploads.due(), None);
    uploads.begin(None, now);
    assert_eq!(uploads.due(), Some(now + Duration::from_secs(2)), "by the newer file");
    assert_eq!(uploads.end(None), Leftover::Nothing);
    uploads.begin(None, now);
    assert_eq!(uploads.due(), None, "another statement");
}

#[tokio::test(start_paused = true)]
async fn work_on_a_file_that_is_too_long_is_told_once_and_counts() {
    let mut allowance = Allowance::default();
    let (limit, now) = (Duration::from_secs(2), Instant::now());
    assert!(!allowance.overworks(limit, limit / 2, now));
    let worked = Duration::from_secs(3);
    tokio::time::advance(worked).await;
    assert!(allowance.overworks(limit, worked, Instant::now()));
    assert!(!allowance.overworks(limit, worked, Instant::now()));
    assert_eq!(allowance.elapsed(), worked);
    allowance.begin(Some(runaway()), Instant::now());
    assert_eq!(allowance.due(), None, "the file's end is no other beginning");
}

#[test]
fn a_kill_that_did_not_end_the_statement_is_left_over() {
    let killed = || Allowance { kills: 1, ..Allowance::default() };
    assert_eq!(killed().end(Some(1317)), Leftover::Nothing);
    assert_eq!(killed().end(None), Leftover::Stale);
    assert_eq!(killed().end(Some(1062)), Leftover::Stale);
    let mut doubtful = Allowance { doubtful: true, ..killed() };
    assert_eq!(doubtful.end(Some(1317)), Leftover::Doubtful);
}

#[test]
fn each_reason_why_it_was_not_killed_is_told_once() {
    let mut allowance = Allowance::default();
    assert!(allowance.note_reason("no connection") && !allowance.note_reason("no connection"));
    assert!(allowance.note_reason("another server") && !allowance.note_reason("no connection"));
    assert!(allowance.note_reason("3") && allowance.note_reason("4"));
    assert!(!allowance.note_reason("5"), "it is other each time");
    assert_eq!(allowance.end(None), Leftover::Nothing);
    assert!(allowance.note_reason("5"), "another statement");
}

/// What it has too much of by one file is no matter of the next.
#[tokio::test(start_paused = true)]
async fn what_was_logged_for_its_rows_ends_for_its_time_and_what_is_spared_may_end_later() {
    let so_far = SoFar { rows: 20, worked: None };
    let of_rows = Runaway { elapsed: None, action: RunawayAction::Log, ..runaway() };
    let of_time = Runaway { bytes_sent: None, rows_sent: None, ..runaway() };
    let mut allowance = Allowance::default();
    allowance.begin(Some(of_rows), Instant::now());
    assert_eq!(allowance.take(1, 20), Some(Excess::RowsSent));
    allowance.exceed(Excess::RowsSent);
    allowance.note_done(RunawayAction::Log);
    assert_eq!(allowance.follow(Some(of_time), so_far), None);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(allowance.due() <= Some(Instant::now()));
    assert!(!allowance.is_spared((Excess::Elapsed, 20), Some(of_time)));
    assert_eq!(allowance.exceed(Excess::Elapsed), Excess::Elapsed);

    // A KILL that failed is tried again, unless a file gives more by then.
    allowance.note_done(RunawayAction::Kill);
    allowance.retry(Instant::now());
    let longer = Runaway { elapsed: Some(Duration::from_secs(60)), ..of_time };
    assert!(allowance.is_spared((Excess::Elapsed, 20), Some(longer)));
    assert!(allowance.due() > Some(Instant::now()), "nobody looks again and again");
    assert_eq!(allowance.follow(Some(of_time), so_far), None);
    assert!(allowance.due() <= Some(Instant::now()) && allowance.due().is_some());
    assert!(allowance.is_spared((Excess::Elapsed, 20), None));
    assert_eq!(allowance.due(), None);
}
