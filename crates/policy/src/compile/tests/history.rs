use super::*;
use crate::history::HistoryLimits;

const CLUSTER: &str = "    listen: 127.0.0.1:1\n    primary: db:1";

fn of(history: &str) -> String {
    format!("{}\nhistory: {history}\n", with_cluster(CLUSTER))
}

fn limits(text: &str) -> HistoryLimits {
    load(text).unwrap().clusters.first().unwrap().history
}

#[test]
fn a_history_is_bounded_by_age_and_by_size() {
    let usual = limits(&with_cluster(CLUSTER));
    assert!(usual.enabled);
    assert_eq!((usual.max_age.as_secs(), usual.max_size), (31 * 86_400, 256 << 20));
    let own = limits(&of("{ enabled: false, max_age: 2d, max_size: 64MiB }"));
    assert!(!own.enabled);
    assert_eq!((own.max_age.as_secs(), own.max_size), (2 * 86_400, 64 << 20));
    assert_eq!(limits(&of("{ max_size: 2097152 }")).max_size, 2 << 20, "in bytes");
    assert_eq!(limits(&of("{ max_size: 2048KiB }")).max_size, 2 << 20);
    assert_eq!(limits(&of("{ max_size: 1GiB }")).max_size, 1 << 30);
}

#[test]
fn sizes_and_ages_that_make_no_history_are_faults() {
    for size in ["1KiB", "65537MiB", "0", "99999999999999999999GiB", "64", "64MB", "lots", "-1"] {
        assert_fault(&of(&format!("{{ max_size: {size} }}")), "history.max_size");
    }
    assert_fault(&of("{ max_age: 5m }"), "history.max_age");
    assert_fault(&of("{ max_agee: 5d }"), "history.max_agee");
}
