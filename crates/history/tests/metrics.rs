//! The history's metrics, as an alert reads them.

/// 0 would be a disk that does not take it.
#[test]
fn without_a_state_dir_no_disk_is_missed() {
    let metrics = history::History::default().metrics();
    assert!(metrics.contains("\nsluice_history_bytes 0\n"), "{metrics}");
    assert!(!metrics.contains("sluice_history_on_disk"), "{metrics}");
}
