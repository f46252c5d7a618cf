//! `make siege`: attacks of chance on real servers, for as long as one likes.
//!
//! ```text
//! siege [--seconds N] [--seed N] [--workers N] [--server mysql|mariadb] [--minimise N] [--keep FILE]
//!       [--traps quotes,prepare,…]
//!       [--suites FOLDER]      in its own third of the time, the servers' own test statements
//! siege --replay FILE          plays the sequences of a file, and says what each moves
//! siege --show SEED            prints the sequence of a seed
//! ```
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use integration::error::{HarnessError, Result};
use integration::scenario::Chance;
use integration::server::Flavour;
use integration::siege::grammar::{Maker, Trap};
use integration::siege::suite::{self, SuiteReport};
use integration::siege::{Finding, Report, Sequence, Siege, Target};

struct Options {
    seconds: u64,
    seed: u64,
    workers: u64,
    minimise: usize,
    sequences: u64,
    flavours: Vec<Flavour>,
    traps: Vec<Trap>,
    keep: Option<PathBuf>,
    suites: Option<PathBuf>,
    replay: Option<PathBuf>,
    show: Option<u64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = options()?;
    if let Some(seed) = options.show {
        for flavour in &options.flavours {
            println!(
                "# {flavour:?}\n{}",
                Maker::new(seed, *flavour).only(&options.traps).sequence()
            );
        }
        return Ok(());
    }
    if let Some(file) = &options.replay {
        return replay(file, &options.flavours).await;
    }
    let mut past = 0;
    let mut seconds = options.seconds;
    if let Some(folder) = &options.suites {
        let share = seconds / 3;
        seconds -= share;
        past += suites(folder, &options, Duration::from_secs(share)).await?;
    }
    let mut running = tokio::task::JoinSet::new();
    for flavour in options.flavours.clone() {
        for worker in 0..options.workers {
            let siege = Siege {
                seed: options.seed.wrapping_add(worker.wrapping_mul(SEEDS_OF_A_WORKER)),
                duration: Duration::from_secs(seconds),
                sequences_max: options.sequences,
                traps: options.traps.clone(),
                minimised_max: options.minimise,
            };
            let keep = options.keep.clone();
            running.spawn(async move { (flavour, one(flavour, siege, keep).await) });
        }
    }
    let mut reports =
        vec![(Flavour::MySql, Report::default()), (Flavour::MariaDb, Report::default())];
    let started = Instant::now();
    while let Some(ended) = running.join_next().await {
        let (flavour, report) = ended.map_err(|e| HarnessError::Malformed(e.to_string()))?;
        let report = report.unwrap_or_else(|error| {
            println!("{flavour:?}: a worker has failed: {error}");
            past += 1;
            Report::default()
        });
        if let Some((_, sum)) = reports.iter_mut().find(|(of, _)| *of == flavour) {
            sum.add(report);
        }
    }
    for (flavour, report) in reports {
        if options.flavours.contains(&flavour) {
            past += report.alarm_count();
            print(flavour, &report, started.elapsed());
        }
    }
    if past > 0 {
        return Err(HarnessError::Protocol(format!("{past} sequences got past")));
    }
    Ok(())
}

/// The files of each server's suite, in an order of chance. How many statements moved something.
async fn suites(folder: &Path, options: &Options, duration: Duration) -> Result<u64> {
    let run = |flavour: Flavour| async move {
        let name = match flavour {
            Flavour::MySql => "mysql",
            Flavour::MariaDb => "mariadb",
        };
        let mut files = Vec::new();
        test_files(&folder.join(name), &mut files);
        files.sort();
        let mut chance = Chance::new(options.seed);
        let mut target = Target::start(flavour).await?;
        let mut report = SuiteReport::default();
        let until = Instant::now() + duration;
        while Instant::now() < until && !files.is_empty() {
            let file = files.swap_remove(chance.index(files.len()));
            let text = std::fs::read(&file).unwrap_or_default();
            let from = report.past.len();
            if let Err(error) = suite::run(&mut target, &text, until, &mut report).await {
                println!("{flavour:?}: {}: {error}", file.display());
                target.recover().await?;
            }
            for (statement, moved) in report.past.iter().skip(from) {
                println!(
                    "# {flavour:?}, {}: {}: {moved}\n{statement}\n",
                    file.display(),
                    moved.kind()
                );
            }
        }
        let SuiteReport { files, statements, refused, documented, past } = report;
        println!(
            "== {flavour:?}: {statements} statements of {files} files of its own tests; {refused} refused, {documented} documented transactions, {} got past",
            past.len()
        );
        Ok::<_, HarnessError>(u64::try_from(past.len()).unwrap_or(u64::MAX))
    };
    let mut past = 0;
    let both = tokio::join!(
        optional(options.flavours.contains(&Flavour::MySql), run(Flavour::MySql)),
        optional(options.flavours.contains(&Flavour::MariaDb), run(Flavour::MariaDb)),
    );
    for one in [both.0, both.1] {
        past += one?;
    }
    Ok(past)
}

async fn optional(wanted: bool, run: impl Future<Output = Result<u64>>) -> Result<u64> {
    if wanted { run.await } else { Ok(0) }
}

fn test_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            test_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "test") {
            files.push(path);
        }
    }
}

async fn one(flavour: Flavour, siege: Siege, keep: Option<PathBuf>) -> Result<Report> {
    let mut target = Target::start(flavour).await?;
    siege.run(&mut target, |finding| tell(flavour, finding, keep.as_ref())).await
}

fn tell(flavour: Flavour, finding: &Finding, keep: Option<&PathBuf>) {
    let Finding { seed, sequence, moved } = finding;
    let text = format!("# {flavour:?}, seed {seed}: {}: {moved}\n{sequence}\n", moved.kind());
    println!("{text}");
    if let Some(path) = keep {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        if file.and_then(|mut file| file.write_all(text.as_bytes())).is_err() {
            println!("cannot write {}", path.display());
        }
    }
}

fn print(flavour: Flavour, report: &Report, elapsed: Duration) {
    let per_s = report.sequences.checked_div(elapsed.as_secs().max(1)).unwrap_or(0);
    println!(
        "== {flavour:?}: {} sequences in {} s ({per_s}/s)",
        report.sequences,
        elapsed.as_secs()
    );
    println!(
        "   {} answers, {} of them errors; {} logins refused; {} broken off; {} documented transactions",
        report.answers, report.errors, report.logins_refused, report.broken, report.documented
    );
    println!("   {} got past", report.alarm_count());
    for (key, (count, seed)) in &report.alarms {
        println!("   {count:6} × {key} (first seed {seed})");
    }
    for (seed, words) in &report.crashes {
        println!("   seed {seed} has made the server crash: {words}");
    }
    if !report.unrepeated.is_empty() {
        println!("   not repeated on restored tables: seeds {:?}", report.unrepeated);
    }
}

async fn replay(file: &PathBuf, flavours: &[Flavour]) -> Result<()> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| HarnessError::Io { what: file.display().to_string(), source })?;
    let sequences = Sequence::parse_all(&text)?;
    for flavour in flavours {
        let mut target = Target::start(*flavour).await?;
        for sequence in &sequences {
            target.restore().await?;
            let (played, moved) = target.attack(sequence).await?;
            println!("{flavour:?}: {}: {}: {moved} ({played:?})", sequence.name, moved.kind());
        }
    }
    Ok(())
}

fn options() -> Result<Options> {
    let mut options = Options {
        seconds: 60,
        seed: 1,
        workers: 1,
        minimise: 40,
        sequences: u64::MAX,
        flavours: vec![Flavour::MySql, Flavour::MariaDb],
        traps: Trap::ALL.to_vec(),
        keep: None,
        suites: None,
        replay: None,
        show: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let bad = || HarnessError::Malformed(format!("{word}: see the head of siege.rs"));
        let value = words.next().ok_or_else(bad)?;
        let number = || value.parse::<u64>().map_err(|_| bad());
        match word.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--workers" => options.workers = number()?,
            "--sequences" => options.sequences = number()?,
            "--minimise" => options.minimise = usize::try_from(number()?).map_err(|_| bad())?,
            "--show" => options.show = Some(number()?),
            "--keep" => options.keep = Some(PathBuf::from(value)),
            "--suites" => options.suites = Some(PathBuf::from(value)),
            "--replay" => options.replay = Some(PathBuf::from(value)),
            "--traps" => {
                let named = value.split(',').map(|name| Trap::named(name).ok_or_else(bad));
                options.traps = named.collect::<Result<_>>()?;
            }
            "--server" => {
                options.flavours = match value.as_str() {
                    "mysql" => vec![Flavour::MySql],
                    "mariadb" => vec![Flavour::MariaDb],
                    _ => return Err(bad()),
                };
            }
            _ => return Err(bad()),
        }
    }
    Ok(options)
}

const SEEDS_OF_A_WORKER: u64 = 1_000_000_000;
