use super::*;
use crate::load;

/// Whether a rule with this schedule is in force at an RFC 3339 time.
fn in_force(schedule: &str, time: &str) -> bool {
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: db:1 }} }}\nrules:\n  \
         - {{ name: r, permanent: true, schedule: {schedule} }}\n"
    );
    let config = load(&text).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let rule = &config.clusters[0].rules.of_file()[0];
    rule.schedule.as_ref().unwrap().is_in_force(UnixTime(seconds(time)))
}

fn seconds(time: &str) -> i64 {
    time.parse::<Timestamp>().unwrap().as_second()
}

#[track_caller]
fn assert_in_force(schedule: &str, times: &[(&str, bool)]) {
    for (time, expected) in times {
        assert_eq!(in_force(schedule, time), *expected, "{schedule} at {time}");
    }
}

#[test]
fn days_and_hours_are_those_of_the_zone() {
    // A Friday and the week-end behind it.
    assert_in_force(
        "{ days: mon-fri, hours: \"07:00-19:00\", time_zone: Europe/Berlin }",
        &[
            ("2026-11-20T05:59:59Z", false),
            ("2026-11-20T06:00:00Z", true),
            ("2026-11-20T17:59:59Z", true),
            ("2026-11-20T18:00:00Z", false),
            ("2026-11-21T10:00:00Z", false),
            // In summer the same hours are an hour earlier.
            ("2026-07-17T05:00:00Z", true),
            ("2026-07-17T17:00:00Z", false),
        ],
    );
    assert_in_force(
        "{ days: [sat-mon, wed] }",
        &[
            ("2026-11-20T23:59:59Z", false),
            ("2026-11-21T00:00:00Z", true),
            ("2026-11-23T23:59:59Z", true),
            ("2026-11-24T00:00:00Z", false),
            ("2026-11-25T12:00:00Z", true),
        ],
    );
    assert!(in_force("{ hours: [\"00:00-24:00\"] }", "2026-11-20T23:59:59Z"));
}

#[test]
fn a_span_over_midnight_belongs_to_the_day_on_which_it_begins() {
    assert_in_force(
        "{ days: fri, hours: \"22:00-06:00\", time_zone: America/New_York }",
        &[
            ("2026-11-20T21:59:00-05:00", false),
            ("2026-11-20T22:00:00-05:00", true),
            ("2026-11-21T05:59:59-05:00", true),
            ("2026-11-21T06:00:00-05:00", false),
            ("2026-11-21T22:00:00-05:00", false),
            ("2026-11-20T05:00:00-05:00", false),
        ],
    );
    // Sunday night goes on on Monday, over the end of the week.
    let sunday = "{ days: sun, hours: \"23:00-01:00\" }";
    assert_in_force(sunday, &[("2026-11-23T00:30:00Z", true), ("2026-11-22T00:30:00Z", false)]);
}

#[test]
fn one_window_of_several_is_enough() {
    let both = "[{ days: mon-fri, hours: [\"6:00-8:00\", \"16:00-18:00\"] }, { days: sat }]";
    assert_in_force(
        both,
        &[
            ("2026-11-20T07:00:00Z", true),
            ("2026-11-20T12:00:00Z", false),
            ("2026-11-20T17:59:00Z", true),
            ("2026-11-21T12:00:00Z", true),
            ("2026-11-22T12:00:00Z", false),
        ],
    );
}

#[test]
fn when_clocks_go_forward_skipped_hours_do_not_occur() {
    // Berlin, 29 March 2026: 01:00 UTC is 02:00, and at once 03:00.
    let berlin = |hours: &str| format!("{{ hours: \"{hours}\", time_zone: Europe/Berlin }}");
    assert_in_force(
        &berlin("02:30-03:30"),
        &[
            ("2026-03-29T00:59:59Z", false),
            ("2026-03-29T01:00:00Z", true),
            ("2026-03-29T01:29:59Z", true),
            ("2026-03-29T01:30:00Z", false),
        ],
    );
    let skipped = berlin("02:00-03:00");
    for minute in 0..180 {
        let now = UnixTime(seconds("2026-03-28T23:30:00Z") + 60 * minute);
        let time = Timestamp::from_second(now.0).unwrap().to_string();
        assert!(!in_force(&skipped, &time), "{time}");
    }
    // New York, 8 March 2026: the night is an hour shorter, and its end is at six there.
    assert_in_force(
        "{ days: sat, hours: \"22:00-06:00\", time_zone: America/New_York }",
        &[
            ("2026-03-08T02:59:59Z", false),
            ("2026-03-08T03:00:00Z", true),
            ("2026-03-08T09:59:59Z", true),
            ("2026-03-08T10:00:00Z", false),
        ],
    );
}

#[test]
fn when_clocks_go_back_repeated_hours_are_in_force_twice() {
    // Berlin, 25 October 2026: 01:00 UTC is 03:00, and at once 02:00 again.
    assert_in_force(
        "{ hours: \"02:15-02:45\", time_zone: Europe/Berlin }",
        &[
            ("2026-10-25T00:14:59Z", false),
            ("2026-10-25T00:15:00Z", true),
            ("2026-10-25T00:45:00Z", false),
            ("2026-10-25T01:15:00Z", true),
            ("2026-10-25T01:45:00Z", false),
        ],
    );
    // New York, 1 November 2026: the night is an hour longer.
    assert_in_force(
        "{ days: sat, hours: \"22:00-06:00\", time_zone: America/New_York }",
        &[
            ("2026-11-01T01:59:59Z", false),
            ("2026-11-01T02:00:00Z", true),
            ("2026-11-01T06:30:00Z", true),
            ("2026-11-01T10:59:59Z", true),
            ("2026-11-01T11:00:00Z", false),
        ],
    );
}

#[test]
fn schedules_change_at_whole_minutes_only() {
    assert_eq!(Schedule::next_change_after(UnixTime(0)), UnixTime(60));
    assert_eq!(Schedule::next_change_after(UnixTime(59)), UnixTime(60));
    assert_eq!(Schedule::next_change_after(UnixTime(-1)), UnixTime(0));
    // A zone with a quarter of an hour in its offset.
    let schedule = "{ hours: \"12:00-13:00\", time_zone: Asia/Kathmandu }";
    assert_in_force(schedule, &[("2026-11-20T06:14:59Z", false), ("2026-11-20T06:15:00Z", true)]);
}

#[test]
fn a_schedule_ends_where_its_clock_says() {
    let end = |schedule: &str, time: &str| {
        let text = format!(
            "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: db:1 }} }}\nrules:\n  \
             - {{ name: r, permanent: true, schedule: {schedule} }}\n"
        );
        let config = load(&text).unwrap_or_else(|faults| panic!("{faults:#?}"));
        let rule = &config.clusters[0].rules.of_file()[0];
        let end = rule.schedule.as_ref().unwrap().end_after(UnixTime(seconds(time)));
        end.map(|end| end.to_string())
    };
    for (schedule, time, expected) in [
        (
            "{ hours: \"08:00-19:00\", time_zone: Europe/Berlin }",
            "2026-11-23T15:42:30Z",
            Some("2026-11-23T18:00:00Z"),
        ),
        (
            "[{ hours: \"08:00-12:00\" }, { hours: \"12:00-12:30\" }]",
            "2026-11-23T08:00:00Z",
            Some("2026-11-23T12:30:00Z"),
        ),
        ("{ days: sat-sun }", "2026-11-21T00:00:00Z", Some("2026-11-23T00:00:00Z")),
        ("{ days: mon-sun, hours: \"00:00-24:00\" }", "2026-11-21T00:00:00Z", None),
    ] {
        assert_eq!(end(schedule, time).as_deref(), expected, "{schedule} at {time}");
    }
}
