//! KILLs at a server that offers no TLS.

use super::*;

/// Each KILL began with a connection that wanted TLS and was broken off.
#[tokio::test]
async fn the_next_kill_knows_that_the_server_has_no_tls() {
    let servers = Topology::mariadb(0).await.unwrap();
    let rules = "- { name: slow, match: { app: slow }, gate: none, permanent: true, runaway: { elapsed: 100ms, action: kill } }";
    let sluice = started(&servers, rules).await;
    let mut conn = connect_as(&sluice, "slow").await.unwrap();
    let mut broken_off = Vec::new();
    for _ in 0..3 {
        let answer = conn.query(SLOW).await.unwrap();
        assert_eq!(answer.err().map(|(errno, _)| errno), Some(1317), "{answer:?}");
        let question = "SHOW GLOBAL STATUS LIKE 'Aborted_connects'";
        let told: (String, u64) = servers.primary.query_first(question).await.unwrap().unwrap();
        broken_off.push(told.1);
    }
    let [first, rest @ ..] = &*broken_off else { panic!("three were killed") };
    assert!(*first > 0, "it is known that it has none");
    assert!(rest.iter().all(|count| count == first), "{broken_off:?}");
}
