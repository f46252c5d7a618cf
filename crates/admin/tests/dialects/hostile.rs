//! Whatever is sent, an answer comes and nothing grows.

use crate::door::Door;

#[tokio::test]
async fn names_of_every_byte_are_answered_in_both_dialects() {
    let door = Door::open();
    for byte in 0..=255_u8 {
        let app = format!("a%{byte:02x}b");
        for path in [format!("/throttler/check?app={app}"), format!("/check/{app}/mysql/main")] {
            let reply = door.get(&path).await;
            let body = reply.json();
            let control = byte.is_ascii_control();
            assert_eq!(reply.status, if control { 417 } else { 200 }, "{path} {body}");
            assert_eq!(body["Message"] == "no app indicated", control, "{path} {body}");
        }
    }
    let metrics = door.metrics().await;
    let series = metrics.lines().filter(|line| line.starts_with("sluice_cooperative_checks_total"));
    assert!(series.count() < 250, "the apps' labels are bounded");
    assert!(door.get("/recent-apps").await.json().as_object().unwrap().len() <= 1_000);
    assert!(door.get("/throttler/status").await.json()["RecentApps"].is_object());
}

#[tokio::test]
async fn odd_paths_and_parameters_are_no_permission() {
    let door = Door::open();
    door.signal("lag", 7.5);
    let long = "x".repeat(4_000);
    let levels = "a:".repeat(40);
    let paths = [
        format!("/throttler/check?app={long}"),
        format!("/throttler/check?app={levels}gated"),
        "/throttler/check?app=gated&app=spared".to_owned(),
        "/throttler/check?app=gated&cluster=".to_owned(),
        "/throttler/check?app=gated&rows=18446744073709551615".to_owned(),
        "/throttler/check?app=gated&m=%00".to_owned(),
        format!("/throttler/check?app=gated{}", "&m=lag".repeat(300)),
        "/throttler/check?&&&=&app=gated&%".to_owned(),
        "/throttler//check?app=spared".to_owned(),
        "/throttler/check/?app=spared".to_owned(),
        "/check/gated/mysql/".to_owned(),
        "/check//mysql/main".to_owned(),
        "/check/gated/mysql/main/".to_owned(),
        "/check/gated%2Fmysql%2Fmain".to_owned(),
        "/check/gated/mysql/..%2fmain".to_owned(),
        "/check-read/gated/mysql/main/NaN".to_owned(),
        "/check-read/gated/mysql/main/-inf".to_owned(),
        // No number of JSON's, and no threshold.
        "/check-read/gated/mysql/main/1e400".to_owned(),
        "/CHECK/spared/mysql/main".to_owned(),
        "/throttle-app/%ff/ttl/5".to_owned(),
        format!("/throttle-app/{long}/ttl/5"),
    ];
    for path in paths {
        let reply = door.get(&path).await;
        assert!([404, 417, 429, 500].contains(&reply.status), "{path} {reply:?}");
        reply.json();
    }
}
