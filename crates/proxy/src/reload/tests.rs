use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use notify::EventKind;
use notify::event::{AccessKind, AccessMode, DataChange, ModifyKind};
use tokio::sync::mpsc;

use super::*;
use crate::telemetry::TelemetryConfig;

mod failing;
mod naming;

/// A folder of its own for each test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sluice-reload-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A file with one rule.
fn text(rule: &str) -> String {
    format!(
        "version: 1\nclusters:\n  main:\n    listen: 127.0.0.1:0\n    primary: 127.0.0.1:3306\n\
         rules:\n  - {{ name: {rule}, permanent: true }}\n"
    )
}

/// A watcher, and the first rule of each configuration it applies.
struct Watched {
    watcher: ConfigWatcher,
    applied: mpsc::UnboundedReceiver<String>,
    telemetry: Arc<Telemetry>,
}

impl Watched {
    fn start(path: &Path) -> Self {
        let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
        let loaded = load(path).expect("the first file is good");
        let (sender, applied) = mpsc::unbounded_channel();
        let apply = move |config: &Arc<Config>| {
            let rule = config.clusters[0].rules.of_file()[0].name.to_string();
            sender.send(rule).expect("the test is there");
            Ok(())
        };
        let watcher = ConfigWatcher::spawn(path.into(), &loaded, telemetry.clone(), apply);
        Self { watcher, applied, telemetry }
    }

    /// The rule of the next configuration applied. The bound is the contract's second, and one more
    /// for a machine that is busy.
    async fn next(&mut self) -> String {
        let next = tokio::time::timeout(Duration::from_secs(2), self.applied.recv()).await;
        next.expect("applied in time").expect("the watcher runs")
    }

    /// Writes a file in two halves, of which the first would be a good file of its own.
    async fn waits_for(&mut self, path: &Path, rule: &str) {
        let mut file = fs::File::create(path).unwrap();
        file.write_all(text(rule).as_bytes()).unwrap();
        self.nothing_happens().await;
        file.write_all(b"  - { name: more, permanent: true }\n").unwrap();
        drop(file);
        assert_eq!(self.next().await, rule);
    }

    /// It is said to be in force when that is done.
    async fn is_said_to_be_in_force(&self) {
        let said = async {
            while !self.telemetry.config_is_valid() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(2), said).await.expect("said in time");
    }

    async fn nothing_happens(&mut self) {
        let next = tokio::time::timeout(POLL_INTERVAL * 2, self.applied.recv()).await;
        assert!(next.is_err(), "applied {next:?}");
    }
}

#[tokio::test]
async fn a_file_that_is_written_in_place_is_applied() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut watched = Watched::start(&path);
    fs::write(&path, text("second")).unwrap();
    assert_eq!(watched.next().await, "second");
    fs::write(&path, text("third")).unwrap();
    assert_eq!(watched.next().await, "third");
    watched.nothing_happens().await;
}

#[tokio::test]
async fn a_file_that_an_editor_replaces_by_rename_is_applied() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut watched = Watched::start(&path);
    for rule in ["second", "third"] {
        let draft = folder.file(".config.yaml.swp");
        fs::write(&draft, text(rule)).unwrap();
        fs::rename(&draft, &path).unwrap();
        assert_eq!(watched.next().await, rule);
    }
}

#[tokio::test]
async fn a_config_map_that_swaps_its_link_is_applied() {
    let folder = Folder::new();
    let version = |name: &str, rule| {
        fs::create_dir(folder.file(name)).unwrap();
        fs::write(folder.file(name).join("config.yaml"), text(rule)).unwrap();
    };
    version("..v1", "first");
    symlink("..v1", folder.file("..data")).unwrap();
    symlink("..data/config.yaml", folder.file("config.yaml")).unwrap();
    let mut watched = Watched::start(&folder.file("config.yaml"));
    version("..v2", "second");
    symlink("..v2", folder.file("..data_tmp")).unwrap();
    fs::rename(folder.file("..data_tmp"), folder.file("..data")).unwrap();
    fs::remove_dir_all(folder.file("..v1")).unwrap();
    assert_eq!(watched.next().await, "second");
}

/// The directory of the link shows nothing of it: half of such a file was in force.
#[tokio::test]
async fn what_a_link_leads_to_is_waited_for_while_somebody_writes_it() {
    let folder = Folder::new();
    let elsewhere = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(elsewhere.file("one.yaml"), text("first")).unwrap();
    symlink(elsewhere.file("one.yaml"), &path).unwrap();
    let mut watched = Watched::start(&path);
    fs::write(elsewhere.file("one.yaml"), text("second")).unwrap();
    assert_eq!(watched.next().await, "second", "the watch is there");
    watched.waits_for(&elsewhere.file("one.yaml"), "third").await;
    // The link leads elsewhere, and the file there is a new one.
    fs::write(elsewhere.file("two.yaml"), text("fourth")).unwrap();
    symlink(elsewhere.file("two.yaml"), folder.file("link")).unwrap();
    fs::rename(folder.file("link"), &path).unwrap();
    assert_eq!(watched.next().await, "fourth");
    fs::remove_file(elsewhere.file("two.yaml")).unwrap();
    watched.waits_for(&elsewhere.file("two.yaml"), "fifth").await;
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_the_next_good_one_is_applied() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut watched = Watched::start(&path);
    assert!(watched.telemetry.config_is_valid());
    fs::write(&path, text("second").replace("permanent", "permanant")).unwrap();
    watched.nothing_happens().await;
    assert!(!watched.telemetry.config_is_valid());
    fs::write(&path, text("third")).unwrap();
    assert_eq!(watched.next().await, "third");
    watched.is_said_to_be_in_force().await;
}

#[tokio::test]
async fn a_file_that_goes_away_is_a_fault_until_it_is_back() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut watched = Watched::start(&path);
    fs::remove_file(&path).unwrap();
    watched.nothing_happens().await;
    assert!(!watched.telemetry.config_is_valid());
    fs::write(&path, text("first")).unwrap();
    watched.nothing_happens().await;
    assert!(watched.telemetry.config_is_valid());
}

#[tokio::test]
async fn what_is_in_force_is_not_applied_again() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut watched = Watched::start(&path);
    fs::write(&path, text("first")).unwrap();
    watched.watcher.reload_now();
    watched.nothing_happens().await;
}

#[tokio::test]
async fn faults_that_somebody_asks_about_again_stay_faults() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut watched = Watched::start(&path);
    fs::write(&path, "version: 1").unwrap();
    watched.nothing_happens().await;
    watched.watcher.reload_now();
    watched.nothing_happens().await;
    assert!(!watched.telemetry.config_is_valid());
}

#[tokio::test]
async fn a_file_in_the_middle_of_being_saved_is_not_taken() {
    // On a machine that stalls this task, a prefix may rest for as long as a saved file does.
    for _ in 0..100 {
        let folder = Folder::new();
        let path = folder.file("config.yaml");
        fs::write(&path, text("first")).unwrap();
        let mut watched = Watched::start(&path);
        if save_slowly(&path).await < SETTLE_INTERVAL {
            assert_eq!(watched.next().await, "whole");
            watched.nothing_happens().await;
            return;
        }
    }
    panic!("no file was saved without a stall");
}

/// Saves `whole` by way of prefixes, each of which would be a good file of its own. The longest
/// time for which one of them rested, from ahead of its write to behind the next one.
async fn save_slowly(path: &Path) -> Duration {
    let mut growing = text("half");
    let mut written = Instant::now();
    let mut rested = Duration::ZERO;
    for part in 0..8 {
        let begun = Instant::now();
        fs::write(path, &growing).unwrap();
        rested = rested.max(written.elapsed());
        written = begun;
        growing = growing
            .replace("rules:\n", &format!("rules:\n  - {{ name: r{part}, permanent: true }}\n"));
        tokio::time::sleep(SETTLE_INTERVAL / 5).await;
    }
    fs::write(path, text("whole")).unwrap();
    rested.max(written.elapsed())
}

#[tokio::test]
async fn a_file_that_somebody_still_writes_is_waited_for() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut watched = Watched::start(&path);
    fs::write(&path, text("second")).unwrap();
    assert_eq!(watched.next().await, "second", "the watch is there");
    watched.waits_for(&path, "third").await;
}

/// Two readings agreed on half of a file whose writing had begun between the look at the watch and the
/// first of them: now and then what stood so far was in force for a moment.
#[tokio::test]
async fn what_is_begun_behind_the_look_at_the_watch_is_not_taken() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let loaded = load(&path).unwrap();
    let mut reloader = reloader(&path, loaded);
    fs::write(&path, text("half")).unwrap();
    reloader.writing.note(WRITTEN, Instant::now());
    reloader.look(Prompt::Change).await;
    assert_eq!(*reloader.in_force.content.text(), text("first"));
    reloader.writing.note(CLOSED, Instant::now());
    reloader.look(Prompt::Change).await;
    assert_eq!(*reloader.in_force.content.text(), text("half"));
}

fn reloader(
    path: &Path,
    loaded: Loaded,
) -> Reloader<impl FnMut(&Arc<Config>) -> Result<(), NotApplied> + Send + 'static> {
    reloader_with(path, loaded, |_: &Arc<Config>| Ok(()))
}

fn reloader_with<A>(path: &Path, loaded: Loaded, apply: A) -> Reloader<A> {
    let watch = Watch::new(path.into(), Arc::default(), Arc::default());
    Reloader {
        path: path.into(),
        seen: loaded.content.clone(),
        in_force: loaded,
        telemetry: Telemetry::new(TelemetryConfig { max_apps: 10 }),
        writing: Arc::default(),
        watch: Arc::new(Mutex::new(watch)),
        reading: None,
        hung: Vec::new(),
        waiting: None,
        apply: Arc::new(Mutex::new(apply)),
        is_torn: false,
    }
}

/// Its reader waited for a writer for ever, and no edit was seen any more.
#[tokio::test]
async fn a_fifo_is_a_fault_and_the_next_save_is_applied() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let mut watched = Watched::start(&path);
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    watched.nothing_happens().await;
    assert!(!watched.telemetry.config_is_valid());
    fs::write(folder.file("draft"), text("second")).unwrap();
    fs::rename(folder.file("draft"), &path).unwrap();
    assert_eq!(watched.next().await, "second");
    let error = FileContent::NotRegular.load(None, Secrets::Elsewhere).unwrap_err();
    assert!(error.lines(&path)[0].ends_with("cannot read it: it is not a regular file"));
}

#[tokio::test(start_paused = true)]
async fn a_reading_that_hangs_is_a_fault_until_it_has_ended() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let loaded = load(&path).unwrap();
    let mut reloader = reloader(&path, loaded.clone());
    let telemetry = reloader.telemetry.clone();
    let (end, ended) = std::sync::mpsc::channel();
    reloader.reading = Some(tokio::task::spawn_blocking(move || ended.recv().unwrap()));
    telemetry.reload(Reload::Applied, 0.0);
    let passing = async {
        while telemetry.config_is_valid() {
            tokio::time::advance(READING_MAX).await;
        }
    };
    tokio::join!(reloader.look(Prompt::Change), passing);
    assert!(reloader.reading.is_some(), "there is no second one beside it");
    end.send(loaded.content).unwrap();
    reloader.look(Prompt::Change).await;
    assert!(telemetry.config_is_valid());
}

/// Whoever applies has files of tokens read: one that hung stopped the thread that accepts and keeps the
/// clusters' timers.
#[tokio::test(start_paused = true)]
async fn what_hangs_while_an_edit_is_put_in_force_holds_up_nothing_else() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("first")).unwrap();
    let loaded = load(&path).unwrap();
    let (end, ended) = std::sync::mpsc::channel();
    let apply = move |_: &Arc<Config>| {
        ended.recv_timeout(Duration::from_secs(10)).expect("others go on");
        Ok(())
    };
    let mut reloader = reloader_with(&path, loaded.clone(), apply);
    let telemetry = reloader.telemetry.clone();
    telemetry.reload(Reload::Applied, 0.0);
    fs::write(&path, text("second")).unwrap();
    let edited = load(&path).unwrap();
    let others = async {
        while telemetry.config_is_valid() {
            tokio::time::advance(READING_MAX).await;
        }
        end.send(()).unwrap();
    };
    tokio::join!(reloader.take(edited), others);
    assert!(telemetry.config_is_valid(), "it is in force in the end");
    assert!(reloader.in_force.content != loaded.content);
}

#[test]
fn who_opens_the_file_again_and_again_holds_it_up_for_five_seconds() {
    let writing = Writing::default();
    let begun = Instant::now();
    let at = |millis| begun + Duration::from_millis(millis);
    let rewrite = |millis| {
        writing.note(CLOSED, at(millis));
        writing.note(WRITTEN, at(millis));
        writing.goes_on(at(millis))
    };
    assert!((0..5_000).step_by(100).all(rewrite));
    assert!(!rewrite(5_000) && !rewrite(5_100));
    writing.is_read();
    assert!(rewrite(5_200), "the next one is waited for again");
    assert!(!writing.goes_on(at(10_200)), "it is kept open");
}

const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));

#[test]
fn faults_are_lines_with_file_line_and_path() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    fs::write(&path, text("x").replace("permanent: true", "ratio: 2, permanent: true")).unwrap();
    let error = load(&path).unwrap_err();
    let lines = error.lines(&path);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let place = format!("{}:7: rules[0].ratio: ", path.display());
    assert!(lines[0].starts_with(&place), "{lines:?}");
    fs::write(&path, "version: 1\n").unwrap();
    let lines = load(&path).unwrap_err().lines(&path);
    assert_eq!(lines, [format!("{}:1: `clusters` is missing", path.display())]);
    let error = load(&folder.file("absent.yaml")).unwrap_err();
    assert!(error.lines(&path)[0].contains("cannot read it"), "{error:?}");
}

/// A file whose cluster shows a certificate.
fn with_certificate(folder: &Folder, name: &str, rule: &str) -> String {
    let (cert, key) = (folder.file(&format!("{name}.pem")), folder.file("key.pem"));
    let tls = format!("client_tls: {{ cert: {}, key: {} }}", cert.display(), key.display());
    text(rule).replace("primary:", &format!("{tls}\n    primary:"))
}

#[tokio::test]
async fn a_broken_certificate_holds_up_no_edit_but_one_of_its_own_settings() {
    let folder = Folder::new();
    let path = folder.file("config.yaml");
    let made = rcgen::generate_simple_self_signed(vec!["db.example".to_owned()]).unwrap();
    fs::write(folder.file("first.pem"), made.cert.pem()).unwrap();
    fs::write(folder.file("key.pem"), made.signing_key.serialize_pem()).unwrap();
    fs::write(&path, with_certificate(&folder, "first", "one")).unwrap();
    let mut watched = Watched::start(&path);
    fs::write(folder.file("first.pem"), "nothing").unwrap();
    fs::write(&path, format!("# edited\n{}", with_certificate(&folder, "first", "two"))).unwrap();
    assert_eq!(watched.next().await, "two");
    assert!(watched.telemetry.config_is_valid());
    fs::write(&path, with_certificate(&folder, "second", "three")).unwrap();
    watched.nothing_happens().await;
    assert!(!watched.telemetry.config_is_valid());
    let error = load(&path).unwrap_err();
    assert!(error.lines(&path)[0].contains("client_tls.cert"), "{error:?}");
    fs::write(&path, with_certificate(&folder, "first", "four")).unwrap();
    assert_eq!(watched.next().await, "four");
    // Nothing is in force before a start.
    assert!(load(&path).is_err());
}
