//! What refuses statements beside gates: whom, and how full, as tables of the screen.

use admin::status::words::{Row, Table, Tone, refused_by, span, tables};
use admin::status::{ClusterStatus, RefusedStatus};

use super::view::Panel;

/// Where the reason stands among the columns of those who were refused: on wide screens only, for
/// what refused them says nearly the same.
pub(super) const REASON: usize = 6;

/// The table of a panel, with as many rows as are listed; `None`: it is none of these.
pub(super) fn table(panel: Panel, cluster: &ClusterStatus) -> Option<Table> {
    let caption = match panel {
        Panel::Identities | Panel::Servers | Panel::Rules => return None,
        Panel::Refused => return Some(refused(cluster)),
        Panel::Budgets => "Budgets",
        Panel::Guards => "Guards",
        Panel::Quarantine => "Quarantine",
    };
    let found = tables(cluster).into_iter().find(|table| table.caption.starts_with(caption));
    Some(found.unwrap_or(Table { caption, columns: &[], rows: Vec::new(), total: 0 }))
}

/// How many rows it has.
pub(super) fn rows(panel: Panel, cluster: &ClusterStatus) -> usize {
    match panel {
        Panel::Identities | Panel::Servers | Panel::Rules => 0,
        Panel::Refused => cluster.refused.len(),
        Panel::Budgets => cluster.budgets.len(),
        Panel::Guards => cluster.guards.len(),
        Panel::Quarantine => cluster.quarantine.len(),
    }
}

fn refused(cluster: &ClusterStatus) -> Table {
    let row = |refused: &RefusedStatus| {
        let cells = vec![
            refused.app.clone(),
            refused.user.clone(),
            refused.count.to_string(),
            span(refused.for_s),
            span(refused.last_s),
            refused.last_id.clone(),
            refused.reason.clone(),
            refused_by(refused),
        ];
        Row { tone: Tone::Bad, cells }
    };
    Table {
        caption: "Refused in the last ten minutes",
        columns: &["app", "user", "refused", "since", "last", "sluice why", "reason", "refused by"],
        rows: cluster.refused.iter().map(row).collect(),
        total: cluster.refused_total,
    }
}

#[cfg(test)]
mod tests {
    use admin::status::{BudgetStatus, GuardStatus, QuarantineEntry};

    use super::*;

    #[test]
    fn each_table_has_its_rows_and_each_row_its_cells() {
        let full = ClusterStatus {
            refused: vec![RefusedStatus::default(); 3],
            budgets: vec![BudgetStatus::default(); 2],
            guards: vec![GuardStatus::default()],
            quarantine: vec![QuarantineEntry::default(); 4],
            ..ClusterStatus::default()
        };
        for (panel, len) in
            [(Panel::Refused, 3), (Panel::Budgets, 2), (Panel::Guards, 1), (Panel::Quarantine, 4)]
        {
            let table = table(panel, &full).unwrap();
            assert_eq!((table.rows.len(), rows(panel, &full)), (len, len), "{panel:?}");
            assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
            let none = super::table(panel, &ClusterStatus::default()).unwrap();
            assert!(none.rows.is_empty(), "{panel:?}");
        }
        assert_eq!(table(Panel::Refused, &full).unwrap().columns[REASON], "reason");
    }
}
