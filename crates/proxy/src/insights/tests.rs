use insights::{By, Filter};

use super::*;

fn policy() -> Arc<ClusterPolicy> {
    let text = "version: 1\nclusters: { a: { listen: 127.0.0.1:1, primary: db:1 } }\n";
    policy::load(text).unwrap().clusters[0].clone()
}

#[test]
fn a_million_digests_while_nobody_counts_keep_nobody_waiting_and_are_in_the_totals() {
    const ALL: u64 = 1_000_000;
    let policy = policy();
    let board = InsightsBoard::new(&policy, 7);
    for n in 1..=ALL {
        // So many texts find no place on their way either.
        let digest = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        board.tell(digest, || Learned::Name { hash: digest, name: Box::default() });
        let ending = if n % 10 == 0 { insights::Ending::Failed(1062) } else { Default::default() };
        let (app, server_ns, rows_sent) = (7, 1_000, 2);
        let digest = Some(digest);
        board.put(&Record { digest, app, server_ns, rows_sent, ending, ..Record::default() }, 0);
    }
    let look = Look {
        by: By::Digest,
        tag: String::new(),
        window_s: 600,
        ago_s: 0,
        filter: Filter::default(),
    };
    let View { rows, total, .. } = board.look(&look, &policy);
    assert_eq!((total.count, total.errors.sum()), (ALL, ALL / 10));
    assert_eq!((total.time_ns, total.rows_sent), (ALL * 1_000, ALL * 2));
    let counted: u64 = rows.iter().map(|row| row.stats.count).sum();
    assert_eq!(counted, ALL, "what found no place is in a row that says so");
    let places = usize::try_from(policy.insights.max_digests).unwrap();
    assert!(rows.len() <= places + 2, "{} rows", rows.len());
    let kept = board.rings.iter().filter_map(OnceLock::get).map(|ring| ring.len()).sum::<u64>();
    assert_eq!(kept, 0, "and nothing is on its way any more");
}

/// They are kept beyond the process, where a later one reads them.
#[test]
fn the_number_of_a_reason_stays_as_it_is() {
    let reasons = [
        "ratio",
        "gate_closed",
        "no_data",
        "paced",
        "hold",
        "deny",
        "guard",
        "quarantined",
        "budget_concurrency",
        "budget_rate",
        "budget_share",
        "budget_query",
        "queue_full",
        "timeout",
        "shutdown",
    ];
    let numbers = (0..).take(reasons.len() + 1).map(refusal_name);
    assert!(numbers.eq(std::iter::once("killed").chain(reasons)), "a new one goes last");
}
