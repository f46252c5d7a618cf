//! Crashes between any two steps, on a disk that loses what a disk may lose.

use std::collections::BTreeMap;

use super::record::{line, parse};
use super::storage::Storage;
use super::writer::Writer;
use super::*;
use crate::body::{EffectName, FORMAT, RuleBody};

/// What is left of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crash {
    /// The process is killed: what was written is there.
    Killed,
    /// The power fails: what was not synced is gone, but for a part of each file's last bytes.
    PowerLoss { kept_of_ten: usize },
}

/// A directory whose files and names are safe only once they are synced.
#[derive(Clone, Debug, Default)]
struct Simulated {
    files: Vec<SimulatedFile>,
    names: BTreeMap<String, usize>,
    safe_names: BTreeMap<String, usize>,
    /// Steps until it stops, in the middle of one that writes.
    steps_left: usize,
}

#[derive(Clone, Debug, Default)]
struct SimulatedFile {
    content: Vec<u8>,
    safe_len: usize,
}

impl Simulated {
    fn step(&mut self) -> io::Result<()> {
        if self.steps_left == 0 {
            return Err(io::Error::other("it has stopped"));
        }
        self.steps_left -= 1;
        Ok(())
    }

    fn file(&mut self, name: &str) -> &mut SimulatedFile {
        let index = self.names[name];
        &mut self.files[index]
    }

    /// The directory as the next process finds it.
    fn after(mut self, crash: Crash) -> Self {
        if let Crash::PowerLoss { kept_of_ten } = crash {
            for file in &mut self.files {
                let unsafe_len = file.content.len() - file.safe_len;
                file.content.truncate(file.safe_len + unsafe_len * kept_of_ten / 10);
            }
            // Names may have reached the disk without being asked to.
            if kept_of_ten < 5 {
                self.names = self.safe_names.clone();
            }
        }
        self.steps_left = usize::MAX;
        self
    }
}

/// The directory outlives the process that uses it.
#[derive(Clone, Debug, Default)]
struct Shared(std::sync::Arc<Mutex<Simulated>>);

impl Storage for Shared {
    fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut disk = self.0.lock();
        Ok(disk.names.contains_key(name).then(|| disk.file(name).content.clone()))
    }

    fn create(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut disk = self.0.lock();
        let died = disk.step();
        let index = disk.files.len();
        let len = if died.is_ok() { content.len() } else { content.len() / 2 };
        let content = content[..len].to_vec();
        disk.files.push(SimulatedFile { content, safe_len: 0 });
        disk.names.insert(name.to_owned(), index);
        died
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.0.lock();
        let died = disk.step();
        let len = if died.is_ok() { bytes.len() } else { bytes.len() / 2 };
        disk.file(name).content.extend_from_slice(&bytes[..len]);
        died
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.step()?;
        let file = disk.file(name);
        file.safe_len = file.content.len();
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.step()?;
        let index = disk.names.remove(from).unwrap();
        disk.names.insert(to.to_owned(), index);
        Ok(())
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.step()?;
        disk.safe_names = disk.names.clone();
        Ok(())
    }
}

fn record(app: &str, effect: EffectName, id: u64) -> Record {
    Record {
        cluster: "main".to_owned(),
        author: "ann".to_owned(),
        lifted: false,
        ends_at_ms: 3_600_000,
        left_ms: 3_600_000,
        version: None,
        body: RuleBody {
            format: FORMAT,
            id,
            app: Some(app.to_owned()),
            user: None,
            classes: Vec::new(),
            effect,
            ratio: None,
            reason: "a\nb \u{0} \"c\"".to_owned(),
            made_at_ms: 0,
        },
    }
}

/// What stands: the last record of each rule.
fn standing<'r>(records: impl IntoIterator<Item = &'r Record>) -> BTreeMap<String, (u64, bool)> {
    let entry = |record: &Record| {
        (format!("{}/{}", record.cluster, record.body.name()), (record.body.id, record.lifted))
    };
    records.into_iter().map(entry).collect()
}

/// Changes that are made one after the other; the second is of two clusters at once.
fn changes() -> Vec<Vec<Record>> {
    let hold = |app: &str, id| record(app, EffectName::Hold, id);
    let in_b = |record: Record| Record { cluster: "b".to_owned(), ..record };
    vec![
        vec![hold("etl", 1)],
        vec![hold("web", 2), in_b(hold("web", 2))],
        vec![hold("etl", 3)],
        vec![Record { lifted: true, ..hold("web", 2) }, in_b(hold("web", 4))],
        vec![hold("other", 5)],
    ]
}

/// Runs the changes, writing anew where that is wanted and before the change of this number, until
/// the disk stops. How many were acknowledged.
fn run(disk: &Shared, anew_before: usize) -> usize {
    let Ok((mut writer, found, _)) = Writer::open(disk.clone(), 0) else { return 0 };
    let mut all = found.records;
    for (number, change) in changes().into_iter().enumerate() {
        all.extend(change.clone());
        let saved = if writer.wants_all(all.len()) || number == anew_before {
            writer.write_all(&all)
        } else {
            writer.add(&change)
        };
        if saved.is_err() {
            return number;
        }
    }
    changes().len()
}

#[test]
fn after_a_crash_between_any_two_steps_a_change_is_there_or_nobody_was_told_so_never_half() {
    let mut crashes = vec![Crash::Killed];
    crashes.extend((0..=10).map(|kept_of_ten| Crash::PowerLoss { kept_of_ten }));
    for anew_before in 0..changes().len() {
        let mut stopped_at = 0;
        loop {
            let disk = Shared::default();
            disk.0.lock().steps_left = stopped_at;
            let told = run(&disk, anew_before);
            for crash in &crashes {
                let left = disk.0.lock().clone().after(*crash);
                let next = Shared(std::sync::Arc::new(Mutex::new(left)));
                let (mut writer, found, aside) = Writer::open(next.clone(), 1).unwrap();
                let stands = standing(&found.records);
                let after = |count: usize| standing(changes()[..count].iter().flatten());
                let next_one = (told + 1).min(changes().len());
                assert!(
                    stands == after(told) || stands == after(next_one),
                    "stopped before step {stopped_at}, {crash:?}: {told} were told, {stands:?}"
                );
                assert_eq!(aside, None, "a crash is no damage");
                // And it can go on from there.
                writer.write_all(&found.records).unwrap();
                writer.add(&[record("late", EffectName::Deny, 9)]).unwrap();
                let (_, found, _) = Writer::open(next, 2).unwrap();
                assert_eq!(found.state, State::Whole);
                assert!(standing(&found.records).contains_key("main/runtime:late"));
            }
            if told == changes().len() {
                break;
            }
            stopped_at += 1;
        }
        assert!(stopped_at > 10, "every step was one to stop at");
    }
}

#[test]
fn a_disk_that_was_full_for_a_while_has_everything_once_it_is_not() {
    let disk = Shared::default();
    disk.0.lock().steps_left = usize::MAX;
    let (mut writer, _, _) = Writer::open(disk.clone(), 0).unwrap();
    let first = record("a", EffectName::Hold, 1);
    writer.write_all(std::slice::from_ref(&first)).unwrap();
    disk.0.lock().steps_left = 0;
    let second = record("b", EffectName::Hold, 2);
    assert!(writer.add(std::slice::from_ref(&second)).is_err());
    disk.0.lock().steps_left = usize::MAX;
    assert!(writer.wants_all(2), "half a line is never written behind");
    writer.write_all(&[first, second]).unwrap();
    let (_, found, _) = Writer::open(disk, 1).unwrap();
    assert_eq!((found.records.len(), found.state), (2, State::Whole));
}

#[test]
fn damage_is_kept_aside_and_what_exempts_does_not_come_back_from_it() {
    let mut content = record::head().into_bytes();
    content.extend(line(&[record("a", EffectName::Hold, 1)]).bytes());
    content.extend(line(&[record("b", EffectName::Exempt, 2)]).bytes());
    let damaged_at = content.len() + 40;
    content.extend(line(&[record("c", EffectName::Hold, 3)]).bytes());
    content.extend(line(&[record("d", EffectName::Deny, 4)]).bytes());
    content[damaged_at] ^= 1;
    let disk = Shared::default();
    disk.0.lock().steps_left = usize::MAX;
    disk.clone().create(JOURNAL, &content).unwrap();
    let (_, found, aside) = Writer::open(disk.clone(), 77).unwrap();
    assert_eq!(found.state, State::Damaged { lines: 1 });
    let names: Vec<String> = found.records.iter().map(|record| record.body.name()).collect();
    assert_eq!(names, ["runtime:a", "runtime:d"]);
    let aside = aside.unwrap();
    assert_eq!(aside, "rules.journal.damaged-77");
    assert_eq!(disk.clone().read(&aside).unwrap(), Some(content));
}

#[test]
fn a_journal_of_a_later_version_is_kept_aside_and_not_guessed_at() {
    let content = b"sluice runtime rules 2\n0 whatever\n";
    assert_eq!(parse(content), Found { records: Vec::new(), state: State::Newer { format: 2 } });
    let disk = Shared::default();
    disk.0.lock().steps_left = usize::MAX;
    disk.clone().create(JOURNAL, content).unwrap();
    let (_, _, aside) = Writer::open(disk, 5).unwrap();
    assert_eq!(aside.as_deref(), Some("rules.journal.newer-5"));
}

#[test]
fn any_bit_that_is_another_is_noticed() {
    let whole = [record::head(), line(&[record("a", EffectName::Hold, 1)])].concat();
    assert_eq!(parse(whole.as_bytes()).state, State::Whole);
    for at in 0..whole.len() {
        let mut content = whole.clone().into_bytes();
        content[at] ^= 1;
        assert_ne!(parse(&content).state, State::Whole, "byte {at}");
    }
    for len in 0..whole.len() {
        // Never a panic, and never a rule that is not whole.
        assert!(parse(&whole.as_bytes()[..len]).records.is_empty());
    }
}

#[test]
fn what_is_kept_has_the_time_that_it_had_left_whatever_the_clock_did() {
    let record =
        Record { ends_at_ms: 100_000, left_ms: 60_000, ..record("a", EffectName::Hold, 1) };
    let left = |now_ms| record.kept(now_ms).left.as_millis();
    assert_eq!(left(70_000), 30_000);
    assert_eq!(left(-9_000_000), 60_000, "a clock that was set back makes nothing longer");
    assert_eq!(left(100_001), 0);
}

#[test]
fn a_link_in_the_directory_leads_to_no_other_file() {
    let directory =
        std::env::temp_dir().join(format!("sluice-journal-{:x}", rand::random::<u64>()));
    std::fs::create_dir(&directory).unwrap();
    let others = directory.join("others");
    std::fs::write(&others, "precious").unwrap();
    std::os::unix::fs::symlink(&others, directory.join("rules.journal.next")).unwrap();
    let journal = Journal::new(&directory);
    assert_eq!(journal.acquire(0).unwrap(), Some(Vec::new()));
    journal.save(&Nothing).unwrap();
    let kept = std::fs::read_to_string(&others).unwrap();
    let written = std::fs::symlink_metadata(directory.join("rules.journal")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(kept, "precious");
    assert!(written.is_file());
}

#[test]
fn two_processes_do_not_write_one_journal() {
    let directory =
        std::env::temp_dir().join(format!("sluice-journal-{:x}", rand::random::<u64>()));
    let ours = Journal::new(&directory);
    assert_eq!(ours.acquire(0).unwrap(), Some(Vec::new()));
    let next = Journal::new(&directory);
    assert_eq!(next.acquire(0).unwrap(), None);
    assert!(next.is_others() && !ours.is_others());
    let nothing = Nothing;
    assert!(next.save(&nothing).unwrap_err().contains("in use by another process"));
    assert_eq!(ours.save(&nothing), Ok(()));
    ours.let_go();
    assert_eq!(next.acquire(0).unwrap(), Some(Vec::new()));
    assert_eq!(next.save(&nothing), Ok(()));
    assert!(ours.save(&nothing).unwrap_err().contains("took over"));
    std::fs::remove_dir_all(directory).unwrap();
}

struct Nothing;

impl Source for Nothing {
    fn changed(&self) -> Vec<Record> {
        Vec::new()
    }
    fn all(&self) -> Vec<Record> {
        Vec::new()
    }
    fn count(&self) -> usize {
        0
    }
}
