//! Whether statements of a digest would have run away.
//!
//! Of time the longest is known, so one that took more is certain, and how many did is not. Of rows
//! and bytes only the sums are: where the mean is more than is allowed, some took more; where the sum
//! is not, none did.

use std::time::Duration;

use admin::insights::{Cost, Row};
use policy::{Runaway, is_killable};
use sql::Class;

use super::digests::Hit;

/// Whether some statement of the row took more than this. `None`: none did.
pub(super) fn took_more(runaway: Runaway, row: &Row) -> Option<Hit> {
    if is_left_alone(row) || row.cost.count == 0 {
        return None;
    }
    let Cost { count, rows_sent, bytes_out, time_max_s, .. } = row.cost;
    let hits = [
        runaway.elapsed.and_then(|most| longer(most, time_max_s)),
        runaway.rows_sent.and_then(|most| larger(most, rows_sent, count)),
        runaway.bytes_sent.and_then(|most| larger(most, bytes_out, count)),
    ];
    let certain = hits.iter().flatten().find(|hit| **hit == Hit::Certain);
    certain.or_else(|| hits.iter().flatten().next()).copied()
}

/// What ends a transaction, and SET, are never killed.
fn is_left_alone(row: &Row) -> bool {
    let class = row.class.as_deref().and_then(Class::parse);
    class.is_some_and(|class| !is_killable(class))
}

fn longer(most: Duration, longest_s: Option<f64>) -> Option<Hit> {
    match longest_s {
        Some(longest_s) => (longest_s > most.as_secs_f64()).then_some(Hit::Certain),
        // Insights of something else.
        None => Some(Hit::Unknown),
    }
}

fn larger(most: u64, sum: u64, count: u64) -> Option<Hit> {
    let is_over_on_average = sum > most.saturating_mul(count);
    match (sum > most, is_over_on_average) {
        (false, _) => None,
        (true, true) => Some(Hit::Certain),
        (true, false) => Some(Hit::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use policy::RunawayAction;

    use super::*;

    fn row(class: &str, cost: Cost) -> Row {
        Row { class: Some(class.to_owned()), cost, ..Row::default() }
    }

    #[test]
    fn the_longest_says_it_of_time_and_the_mean_of_rows_and_bytes() {
        let limits = Runaway {
            elapsed: Some(Duration::from_secs(2)),
            bytes_sent: None,
            rows_sent: Some(100),
            action: RunawayAction::Kill,
            watch: None,
        };
        let cost = |longest_s: f64, rows_sent: u64| Cost {
            count: 10,
            time_max_s: Some(longest_s),
            rows_sent,
            ..Cost::default()
        };
        let took = |class: &str, cost: Cost| took_more(limits, &row(class, cost));
        assert_eq!(took("read", cost(2.0, 100)), None);
        assert_eq!(took("read", cost(2.1, 100)), Some(Hit::Certain));
        assert_eq!(took("read", cost(0.1, 101)), Some(Hit::Unknown));
        assert_eq!(took("read", cost(0.1, 1_001)), Some(Hit::Certain));
        assert_eq!(took("read", cost(2.1, 101)), Some(Hit::Certain));
        assert_eq!(took("transaction", cost(9.0, 0)), None, "a COMMIT is left alone");
        assert_eq!(took("read", Cost { refused: 3, ..Cost::default() }), None);
    }
}
