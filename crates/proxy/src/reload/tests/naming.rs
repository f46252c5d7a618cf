//! Edits whose files, of secrets or certificates, are not there or do not answer.

use super::*;

/// A file whose probe has its password in a file.
fn with_password(rule: &str, password: &Path) -> String {
    let probe = format!("    probe: {{ user: a, password_file: {} }}\nrules:", password.display());
    text(rule).replace("rules:", &probe)
}

const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(TRIED_AGAIN_EVERY_S);

/// Nothing happened until somebody saved it again.
#[tokio::test(start_paused = true)]
async fn an_edit_whose_file_appears_later_is_put_in_force_by_itself() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut reloader = reloader(&path, load(&path).unwrap());
    let edited = with_password("second", &folder.file("password"));
    fs::write(&path, &edited).unwrap();
    reloader.look(Prompt::Change).await;
    assert_eq!(reloader.telemetry.last_reload(), Some(Reload::Waiting));
    assert!(!reloader.telemetry.config_is_valid());
    fs::write(folder.file("password"), "a secret").unwrap();
    reloader.look(Prompt::Change).await;
    assert_eq!(reloader.telemetry.last_reload(), Some(Reload::Waiting), "not at each look");
    tokio::time::advance(TRIED_AGAIN_AFTER).await;
    reloader.look(Prompt::Change).await;
    assert_eq!(reloader.telemetry.last_reload(), Some(Reload::Applied));
    assert_eq!(*reloader.in_force.content.text(), edited);
    assert!(reloader.waiting.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_cannot_be_applied_yet_is_tried_again_and_one_with_faults_is_not() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let tries = Arc::new(AtomicU32::new(0));
    let apply = {
        let tries = tries.clone();
        move |_: &Arc<Config>| match tries.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(NotApplied("a password is not there".to_owned())),
            _ => Ok(()),
        }
    };
    let mut reloader = reloader_with(&path, load(&path).unwrap(), apply);
    fs::write(&path, text("second")).unwrap();
    for tried in [1, 2, 3, 3] {
        reloader.look(Prompt::Change).await;
        assert_eq!(tries.load(Ordering::Relaxed), tried);
        tokio::time::advance(TRIED_AGAIN_AFTER).await;
    }
    assert_eq!(reloader.telemetry.last_reload(), Some(Reload::Applied));
    fs::write(&path, with_password("third", &folder.file("password")).replace("user", "usr"))
        .unwrap();
    reloader.look(Prompt::Change).await;
    assert_eq!(reloader.telemetry.last_reload(), Some(Reload::Failed), "a save is needed anyhow");
    assert!(reloader.waiting.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_edit_whose_file_hangs_is_looked_at_once_and_again_when_that_has_answered() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut reloader = reloader(&path, load(&path).unwrap());
    let fifo = Fifo::new(folder.file("password"));
    fs::write(&path, with_password("second", &fifo.path)).unwrap();
    let edited = FileContent::read(&path);
    let passing = tokio::time::advance(CHECKING_MAX + Duration::from_secs(1));
    let (checked, ()) = tokio::join!(reloader.check(edited.clone()), passing);
    reloader.seen = edited;
    reloader.complain(&checked.unwrap_err());
    for _ in 0..3 {
        tokio::time::advance(TRIED_AGAIN_AFTER).await;
        reloader.look(Prompt::Change).await;
        assert_eq!(reloader.telemetry.last_reload(), Some(Reload::Waiting));
        assert_eq!(reloader.hung.len(), 1, "no second thread waits for it");
    }
    drop(fifo);
    fs::write(folder.file("password"), "a secret").unwrap();
    while !reloader.hung[0].1.is_finished() {
        tokio::task::yield_now().await;
    }
    reloader.look(Prompt::Change).await;
    assert_eq!(reloader.telemetry.last_reload(), Some(Reload::Applied));
}

#[tokio::test]
async fn the_log_says_why_an_edit_waits_once_and_again_when_that_is_something_else() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut reloader = reloader(&path, load(&path).unwrap());
    assert!(reloader.waits("a") && !reloader.waits("a") && reloader.waits("b"));
}

/// A FIFO to which nothing is written. Whoever reads of it sees its end when this is dropped, and nobody
/// finds it any more: the runtime would wait for that thread.
struct Fifo {
    path: PathBuf,
    _writer: fs::File,
}

impl Fifo {
    fn new(path: PathBuf) -> Self {
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let writer = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        Self { path, _writer: writer }
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// The reader of a file that an edit names waited for ever, and no later edit was seen.
#[tokio::test(start_paused = true)]
async fn a_file_that_an_edit_names_and_that_hangs_is_a_fault_and_the_next_edit_is_read() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut reloader = reloader(&path, load(&path).unwrap());
    let fifo = Fifo::new(folder.file("password"));
    let content = |text: &str| FileContent::Bytes(text.as_bytes().into());
    let hangs = content(&with_password("second", &fifo.path));
    let good = content(&text("third"));
    for _ in 0..HUNG_MAX {
        assert!(reloader.check(good.clone()).await.is_ok());
        let passing = tokio::time::advance(CHECKING_MAX + Duration::from_secs(1));
        let (checked, ()) = tokio::join!(reloader.check(hangs.clone()), passing);
        let lines = checked.unwrap_err().lines(&path);
        assert!(lines[0].ends_with("does not answer"), "{lines:?}");
    }
    let lines = reloader.check(good.clone()).await.unwrap_err().lines(&path);
    assert!(
        lines[0].contains("edits before this one"),
        "no more threads than these wait: {lines:?}"
    );
    drop(fifo);
    while !reloader.hung.iter().any(|(_, checking)| checking.is_finished()) {
        tokio::task::yield_now().await;
    }
    assert!(reloader.check(good).await.is_ok());
}
