//! What cannot be put in force.

use super::*;
use crate::caught::words;

/// No later edit was looked at: the one that panicked had taken with it what puts them in force.
#[tokio::test]
async fn a_panic_is_a_failed_reload_and_the_next_edit_is_put_in_force_also_that_of_before() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let loaded = load(&path).unwrap();
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    let (sender, mut applied) = mpsc::unbounded_channel();
    let apply = move |config: &Arc<Config>| {
        let rule = config.clusters[0].rules.of_file()[0].name.to_string();
        sender.send(rule.clone()).unwrap();
        assert_ne!(rule, "bad", "a fault of Sluice's own");
        Ok(())
    };
    let watcher = ConfigWatcher::spawn(path.clone(), &loaded, telemetry.clone(), apply);
    for (rule, is_in_force) in [("bad", false), ("first", true), ("second", true), ("bad", false)] {
        fs::write(&path, text(rule)).unwrap();
        let next = tokio::time::timeout(Duration::from_secs(5), applied.recv()).await;
        assert_eq!(next.unwrap().unwrap(), rule);
        let said = async {
            while telemetry.config_is_valid() != is_in_force {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(2), said).await.expect(rule);
    }
    // It is not tried again by itself; who asks for that gets it.
    watcher.reload_now();
    assert_eq!(applied.recv().await.unwrap(), "bad");
}

#[tokio::test]
async fn what_panics_on_its_way_is_caught_with_its_words() {
    let panics = async {
        tokio::task::yield_now().await;
        panic!("at {}", 7)
    };
    let panic = caught::<()>(panics).await.unwrap_err();
    assert_eq!(words(&panic), "at 7");
    assert_eq!(caught(async { 7 }).await.unwrap(), 7);
}
