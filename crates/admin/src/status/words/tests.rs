use super::*;
use crate::status::{BudgetStatus, GuardStatus, QuarantineEntry, RefusedStatus};

#[test]
fn time_spans_read_well() {
    let whole = |seconds| whole(seconds).to_string();
    assert_eq!(span(1.5), "1.50 s");
    assert_eq!(whole(119), "119 s");
    assert_eq!(whole(7_199), "119 min");
    assert_eq!(whole(90_000), "25 h 0 min");
    assert_eq!(whole(200_000), "2 d 7 h");
}

#[test]
fn a_reason_names_the_signal_with_its_value_against_its_threshold() {
    let gate = |value| Obstacle {
        reason: Some("gate_closed".to_owned()),
        signal: Some("lag".to_owned()),
        value,
        threshold: Some(1.0),
        unit: Some("s".to_owned()),
        ..Obstacle::default()
    };
    assert_eq!(why(&gate(Some(12.34))), "gate_closed: lag 12.34 s, threshold 1 s");
    assert_eq!(why(&gate(None)), "gate_closed: lag no value, threshold 1 s");
    let hold = Obstacle { reason: Some("hold".to_owned()), ..Obstacle::default() };
    assert_eq!(why(&hold), "hold");
    let paced =
        |obstacle: Obstacle| why(&Obstacle { reason: Some("paced".to_owned()), ..obstacle });
    assert_eq!(paced(gate(Some(0.3))), "paced: lag 0.3 s, threshold 1 s");
    let limit = Some("max_rate".to_owned());
    assert_eq!(paced(Obstacle { limit, ..Obstacle::default() }), "paced: max_rate of its rule");
    let budget = Some("reports".to_owned());
    let reason = Some("budget_rate".to_owned());
    let waits = Obstacle { reason, budget, ..Obstacle::default() };
    assert_eq!(why(&waits), "budget_rate: budget reports");
    assert_eq!((amount(100.0, ""), amount(0.25, "s")), ("100".to_owned(), "0.25 s".to_owned()));
}

#[test]
fn every_row_has_a_cell_for_each_column() {
    let cluster = ClusterStatus {
        replicas: vec![ReplicaStatus::default()],
        signals: vec![SignalStatus::default()],
        throttled: vec![ThrottledStatus::default()],
        waiting: vec![WaitingStatus::default()],
        starved: vec![StarvedStatus::default()],
        apps: vec![AppStatus::default()],
        refused: vec![RefusedStatus::default()],
        budgets: vec![BudgetStatus::default()],
        guards: vec![GuardStatus::default()],
        quarantine: vec![QuarantineEntry::default()],
        rules: vec![RuleStatus::default()],
        ..ClusterStatus::default()
    };
    let tables = tables(&cluster);
    assert_eq!(tables.len(), 11);
    for table in tables {
        for row in table.rows {
            assert_eq!(row.cells.len(), table.columns.len(), "{}", table.caption);
        }
    }
}
