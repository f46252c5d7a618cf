//! What the log tells of many that run away.

use super::*;

/// Each had a line: a rule that only watched wrote thousands a second.
#[tokio::test]
async fn of_many_that_run_away_a_few_have_a_line_and_all_are_counted() {
    let servers = MYSQL.get().await.unwrap();
    let rules = "- { name: wide, match: { app: wide }, gate: none, permanent: true, runaway: { rows_sent: 1 } }";
    let mut sluice = started(servers, rules).await;
    let mut conn = connect_as(&sluice, "wide").await.unwrap();
    for _ in 0..60 {
        conn.query("SELECT 1 UNION SELECT 2").await.unwrap().accepted().unwrap();
    }
    sluice.stop(Duration::from_secs(20)).await.unwrap();
    let log = sluice.log().unwrap();
    let lines = |of: &str| log.lines().filter(|line| line.contains(of)).count();
    let untold = |of: &str| -> usize {
        let sums = log.lines().filter(|line| line.contains(of));
        let untold = sums.filter_map(|line| line.split("untold=").nth(1)?.split(' ').next());
        untold.map(|count| count.parse::<usize>().unwrap()).sum()
    };
    let (told, sums) = ("a statement runs away", "more statements run away");
    assert!(lines(told) < 20 && lines(sums) > 0, "{log}");
    assert_eq!(lines(told) + untold(sums), 60, "{log}");
}
