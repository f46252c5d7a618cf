use std::fs;
use std::process::Command;
use std::sync::mpsc;

use proxy::clock::Clock;

use super::*;

/// A file with one rule, whose changes over HTTP need the token in a file, if one is named.
fn config(rule: &str, token: Option<&Path>) -> Config {
    let token = token.map(|path| format!(", token_file: {}", path.display())).unwrap_or_default();
    policy::load(&format!(
        "version: 1\nadmin: {{ listen: 127.0.0.1:1{token} }}\nclusters:\n  main:\n    \
         listen: 127.0.0.1:2\n    primary: 127.0.0.1:3306\n\
         rules:\n  - {{ name: {rule}, permanent: true }}\n"
    ))
    .unwrap()
}

/// Rules came in force ahead of tokens, and so half of an edit whose token's file hung.
#[tokio::test]
async fn files_are_read_ahead_of_all_changes() {
    let token = std::env::temp_dir().join(format!("sluice-run-{}", std::process::id()));
    assert!(Command::new("mkfifo").arg(&token).status().unwrap().success());
    let writer = fs::OpenOptions::new().read(true).write(true).open(&token).unwrap();
    let first = config("first", None);
    let cluster = Cluster::new(first.clusters[0].clone(), Clock::start(), 7);
    let clusters: Arc<[Arc<Cluster>]> = Arc::new([cluster.clone()]);
    let probes = ClusterProbes::start(&clusters).unwrap();
    let (mut follower, _drain_timeout) = Follower::new(&first, clusters, probes);
    let access = Access::new(&first.admin);
    let rule = || cluster.policy().rules.of_file()[0].name.to_string();
    let edited = config("second", Some(&token));
    let (done, is_done) = mpsc::channel();
    let runtime = tokio::runtime::Handle::current();
    let editing = std::thread::spawn(move || {
        let _runtime = runtime.enter();
        put_in_force(&edited, &mut follower, &access).unwrap();
        done.send(()).unwrap();
    });
    let hung = is_done.recv_timeout(Duration::from_millis(500));
    let meanwhile = rule();
    // Whoever reads sees its end.
    fs::remove_file(&token).unwrap();
    drop(writer);
    editing.join().unwrap();
    assert!(hung.is_err());
    assert_eq!((&*meanwhile, &*rule()), ("first", "second"));
}
