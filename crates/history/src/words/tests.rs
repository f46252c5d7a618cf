//! Hours as they are scripted, and the sentences about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::Reason;
use proxy::telemetry::{CheckKey, Tallied, TallyKey, Waits};

use super::*;
use crate::answer::{Sources, answer};
use crate::book::Book;
use crate::disk::{Asked, Disk, Limits, Reading};
use crate::look::{
    CauseLook, ClusterLook, Happened, Look, RuleLook, ServerLook, SignalLook, StarvedLook,
    WaitingLook,
};
use crate::time;

/// A step of the script: as often as it is looked.
const STEP: Duration = Duration::from_millis(250);

mod causes;
mod told;

/// A world without clocks: both are what the script says.
struct World {
    book: Book,
    mono: Duration,
    wall: At,
    /// The monotonic time at which the state of the gate, and of the replica, began.
    shut: Option<Duration>,
    shut_since: Duration,
    rules: Option<Vec<RuleLook>>,
}

/// What happens in one step.
#[derive(Default)]
struct Scene {
    /// Statements of etl that wait: since when the oldest does.
    waits_since: Option<Duration>,
    reason: &'static str,
    /// What is behind what they wait for.
    behind: Option<&'static str>,
    /// What is behind what was refused.
    causes: Vec<CauseLook>,
    /// Statements of etl that are refused in this step, and how long they had waited.
    refused: Option<(Reason, u64, Duration)>,
    /// Those admitted after a wait.
    delayed: Option<(u64, Duration)>,
    /// The lag, where it shuts the gate.
    lag: Option<f64>,
    rows: &'static [(&'static str, u64)],
    happened: Vec<Happened>,
    checks: Vec<(CheckKey, u64)>,
    starved: Vec<StarvedLook>,
    stopped: bool,
    /// Why the replica is stopped, where that is known.
    trouble: Option<&'static str>,
}

fn utc(text: &str) -> At {
    time::parse(text, At(0), &TimeZone::UTC).unwrap()
}

impl World {
    fn new(at: &str) -> Self {
        let wall = utc(at);
        Self {
            book: Book::new(1, "0.1.0", wall),
            mono: Duration::ZERO,
            wall,
            shut: None,
            shut_since: Duration::ZERO,
            rules: Some(vec![rule("nightly-etl", None)]),
        }
    }

    fn step(&mut self, scene: &Scene) {
        let cluster: Arc<str> = "main".into();
        if self.shut.is_some() != scene.lag.is_some() {
            self.shut = scene.lag.map(|_| self.mono);
            self.shut_since = self.mono;
        }
        let mut counted = Vec::new();
        let mut etl = Tallied::default();
        if let Some((reason, count, waited)) = scene.refused {
            let place = Reason::ALL.iter().position(|known| *known == reason).unwrap();
            etl.refused[place] = count;
            waits(&mut etl, count, waited);
        }
        if let Some((count, waited)) = scene.delayed {
            etl.admitted = count;
            waits(&mut etl, count, waited);
        }
        if etl != Tallied::default() {
            counted.push((key(&cluster, "etl", "nightly-etl"), etl));
        }
        for (app, rows) in scene.rows {
            let counts = Tallied { admitted: 1, rows: *rows, ..Tallied::default() };
            counted.push((key(&cluster, app, "everything-else"), counts));
        }
        let waiting = scene.waits_since.map(|since| WaitingLook {
            app: "etl".to_owned(),
            rule: "nightly-etl".into(),
            depth: 1,
            oldest: self.mono.saturating_sub(since),
            reason: scene.reason,
            behind: scene
                .behind
                .or((scene.reason == "gate_closed").then_some("lag"))
                .map(str::to_owned),
        });
        self.book.look(&Look {
            mono: self.mono,
            at: self.wall,
            counted,
            checks: scene.checks.clone(),
            clusters: vec![ClusterLook {
                cluster,
                waiting: waiting.into_iter().collect(),
                causes: scene.causes.clone(),
                signals: vec![SignalLook {
                    signal: "lag".into(),
                    unit: "s",
                    value: Some(scene.lag.unwrap_or(0.1)),
                    threshold: 1.0,
                    shut: scene.lag.map(|_| "closed"),
                    lasts: self.mono.saturating_sub(self.shut_since),
                    server: Some("db3".into()),
                }],
                servers: vec![ServerLook {
                    server: "db3".to_owned(),
                    is_primary: false,
                    state: if scene.stopped { "applier_stopped" } else { "counted" }.to_owned(),
                    lasts: None,
                    trouble: scene.trouble.map(str::to_owned),
                }],
                starved: scene.starved.clone(),
                rules: self.rules.take(),
            }],
            happened: scene.happened.clone(),
        });
        self.mono += STEP;
        self.wall.0 += 250;
    }

    /// The same again until the wall clock shows this.
    fn until(&mut self, at: &str, mut scene: impl FnMut(Duration) -> Scene) {
        let end = utc(at);
        while self.wall < end {
            let scene = scene(self.mono);
            self.step(&scene);
        }
    }

    fn quiet_until(&mut self, at: &str) {
        self.until(at, |_| Scene::default());
    }

    /// etl waits a second and is refused, again and again, while db3 is behind; online-ddl writes.
    fn held_until(&mut self, at: &str) {
        let begin = self.mono;
        self.until(at, move |mono| {
            let in_round = Duration::from_nanos(
                u64::try_from((mono - begin).as_nanos() % 1_000_000_000).unwrap(),
            );
            let ends = mono > begin && in_round.is_zero();
            Scene {
                waits_since: Some(mono - in_round),
                reason: "gate_closed",
                refused: ends.then_some((Reason::GateClosed, 1, Duration::from_secs(1))),
                lag: Some(if mono - begin > Duration::from_secs(60) { 3.2 } else { 1.5 }),
                rows: &[("online-ddl", 61), ("web", 39)],
                ..Scene::default()
            }
        });
    }

    fn ask(&self, app: Option<&str>, since: &str, until: &str) -> Answer {
        self.ask_with(app, since, until, None)
    }

    fn ask_with(
        &self,
        app: Option<&str>,
        since: &str,
        until: &str,
        disk: Option<&Reading>,
    ) -> Answer {
        let (since, until) = (utc(since), utc(until));
        let recent = self.book.recent(since, until);
        let asked = Asked { since, until, cluster: None, app };
        answer(&asked, &Sources { recent, disk }, self.wall)
    }

    fn says(&self, app: Option<&str>, since: &str, until: &str, zone: &str) -> Vec<String> {
        sentences(&self.ask(app, since, until), &TimeZone::get(zone).unwrap())
    }
}

fn waits(counts: &mut Tallied, count: u64, waited: Duration) {
    if waited.is_zero() {
        return;
    }
    counts.delayed += count;
    counts.wait_sum += waited * u32::try_from(count).unwrap();
    counts.wait_max = counts.wait_max.max(waited);
    let mut waits = Waits::default();
    (0..count).for_each(|_| waits.note(waited));
    counts.waits.add(&waits);
}

fn key(cluster: &Arc<str>, app: &str, rule: &str) -> TallyKey {
    let cluster = cluster.clone();
    TallyKey { cluster, app: app.into(), user: "app".into(), rule: rule.into() }
}

fn rule(name: &str, author: Option<&str>) -> RuleLook {
    RuleLook {
        name: name.into(),
        author: author.map(Into::into),
        reason: "mornings".to_owned(),
        does: "hold".to_owned(),
        ends: None,
        slows: false,
    }
}

#[test]
fn a_scripted_hour_is_told_to_the_second() {
    let mut world = World::new("2026-11-22T06:30:00Z");
    world.quiet_until("2026-11-22T07:00:00Z");
    world.held_until("2026-11-22T07:25:00Z");
    world.quiet_until("2026-11-22T07:30:00Z");
    let said = world.says(Some("etl"), "2026-11-22T06:30:00Z", "2026-11-22T07:30:00Z", "UTC");
    assert_eq!(
        said,
        [
            "etl was held 07:00:00–07:25:00: lag 3.2 s at replica db3 (over 1 s for 25 min); 1,499 \
             statements waited 1 s at most, 1,499 were refused; meanwhile online-ddl wrote 61 % of \
             the rows",
            "lag was over 1 s 07:00:00–07:25:00, 3.2 s at db3 at most",
            "at 06:30:00 Sluice 0.1.0 was started",
        ]
    );
    let answer = world.ask(Some("etl"), "2026-11-22T06:30:00Z", "2026-11-22T07:30:00Z");
    assert_eq!(answer.refused_by, BTreeMap::from([("gate_closed".to_owned(), 1_499)]));
    assert_eq!((answer.total.asked, answer.total.refused), (1_499, 1_499));
    assert!((answer.total.wait_p99_s - 1.0).abs() < 0.001, "{:?}", answer.total);
    let shut: f64 = answer.signals.iter().map(|part| part.values.shut_s).sum();
    assert!((shut - 1_500.0).abs() < 0.5, "{shut}");
    // The time is cut: what overlaps it is told whole.
    let said = world.says(Some("etl"), "2026-11-22T07:10:00Z", "2026-11-22T07:11:00Z", "UTC");
    assert!(said[0].starts_with("etl was held 07:00:00–07:25:00: "), "{said:?}");
}

#[test]
fn what_goes_on_and_the_minute_under_way_are_told_at_once() {
    let mut world = World::new("2026-11-22T07:00:10Z");
    world.held_until("2026-11-22T07:00:20Z");
    let said = world.says(Some("etl"), "2026-11-22T06:50:00Z", "2026-11-22T07:00:21Z", "UTC");
    let first = "etl has been held since 07:00:10, for 9.8 s: lag 1.5 s at replica db3 (over 1 s \
                 for 9.8 s); 9 statements waited 1 s at most, 9 were refused; meanwhile online-ddl \
                 wrote 61 % of the rows";
    assert_eq!(said[0], first);
    assert_eq!(said[1], "lag has been over 1 s since 07:00:10, 1.5 s at db3 at most");
    // Of a client that does not come back it is not said that it waits.
    world.quiet_until("2026-11-22T07:00:26Z");
    let said = world.says(Some("etl"), "2026-11-22T06:50:00Z", "2026-11-22T07:00:30Z", "UTC");
    assert!(said[0].starts_with("etl was held 07:00:10–07:00:20: "), "{said:?}");
}

#[test]
fn what_held_it_in_the_rest_of_the_time_is_told_too() {
    let mut world = World::new("2026-11-22T07:00:00Z");
    let diced = |mono: Duration| Scene {
        waits_since: Some(mono.saturating_sub(Duration::from_millis(500))),
        reason: "ratio",
        ..Scene::default()
    };
    world.until("2026-11-22T07:01:00Z", diced);
    world.held_until("2026-11-22T07:01:30Z");
    world.until("2026-11-22T07:02:00Z", diced);
    let said = world.says(Some("etl"), "2026-11-22T06:50:00Z", "2026-11-22T07:02:00Z", "UTC");
    let told = "lag 1.5 s at replica db3 (over 1 s for 30 s), and the dice of rule nightly-etl;";
    assert!(said[0].contains(told), "{said:?}");
}

#[test]
fn a_client_that_comes_back_makes_one_interval_and_a_pause_makes_two() {
    let mut world = World::new("2026-11-22T07:00:00Z");
    let refused =
        || Scene { refused: Some((Reason::Ratio, 1, Duration::ZERO)), ..Scene::default() };
    for at in ["07:00:05", "07:00:14", "07:00:23", "07:01:00", "07:01:09"] {
        world.quiet_until(&format!("2026-11-22T{at}Z"));
        world.step(&refused());
    }
    world.quiet_until("2026-11-22T07:02:00Z");
    let held = world.ask(Some("etl"), "2026-11-22T07:00:00Z", "2026-11-22T07:02:00Z").held;
    let held: Vec<(String, f64, u64)> =
        held.iter().map(|it| (it.began.to_string(), it.lasted_s, it.refused)).collect();
    let expected = [("2026-11-22T07:00:05Z", 18.0, 3), ("2026-11-22T07:01:00Z", 9.0, 2)];
    assert_eq!(held, expected.map(|(at, lasted, count)| (at.to_owned(), lasted, count)));
    let said = world.says(Some("etl"), "2026-11-22T07:00:00Z", "2026-11-22T07:02:00Z", "UTC");
    assert_eq!(
        said[0],
        "etl was slowed down 07:00:05–07:00:23: the dice of rule nightly-etl (mornings); 3 \
         statements were refused"
    );
}

#[test]
fn a_clock_that_is_set_makes_nothing_longer_and_no_minute_twice() {
    let mut world = World::new("2026-11-22T07:00:00Z");
    world.quiet_until("2026-11-22T07:05:00Z");
    world.held_until("2026-11-22T07:15:00Z");
    // Back by an hour: the minutes from 06:15 on come, and nothing of before is lost.
    world.wall.0 -= 3_600_000;
    world.held_until("2026-11-22T06:20:00Z");
    world.quiet_until("2026-11-22T06:30:00Z");
    let answer = world.ask(Some("etl"), "2026-11-22T06:00:00Z", "2026-11-22T08:00:00Z");
    assert_eq!(answer.held.len(), 1);
    assert!((answer.held[0].lasted_s - 900.0).abs() < 1.0, "{:?}", answer.held[0]);
    assert_eq!(answer.total.refused, 599 + 299);
    let said = sentences(&answer, &TimeZone::UTC);
    assert!(said.contains(&"at 06:15:00 the clock was set back by 1 h".to_owned()), "{said:?}");
    // Forward, a hold is not longer for it either.
    world.wall.0 += 3_600_000;
    world.quiet_until("2026-11-22T07:40:00Z");
    let said = world.says(None, "2026-11-22T07:00:00Z", "2026-11-22T08:00:00Z", "UTC");
    assert!(said.contains(&"at 07:30:00 the clock was set forward by 1 h".to_owned()), "{said:?}");
}

#[test]
fn where_the_zones_offset_changes_each_time_says_which() {
    // At 01:00 UTC the clocks of Berlin go from 03:00 back to 02:00.
    let mut world = World::new("2026-10-25T00:00:00Z");
    world.quiet_until("2026-10-25T00:30:00Z");
    world.held_until("2026-10-25T01:10:00Z");
    world.quiet_until("2026-10-25T01:30:00Z");
    let (since, until) = ("2026-10-25T00:00:00Z", "2026-10-25T01:30:00Z");
    let said = world.says(Some("etl"), since, until, "Europe/Berlin");
    assert!(
        said[0].starts_with(
            "etl was held 02:30:00 CEST–02:10:00 CET: lag 3.2 s at replica db3 \
            (over 1 s for 40 min)"
        ),
        "{said:?}"
    );
    let said = world.says(Some("etl"), since, until, "UTC");
    assert!(said[0].starts_with("etl was held 00:30:00–01:10:00: "), "{said:?}");
}

#[test]
fn other_days_are_named() {
    let mut world = World::new("2026-11-21T23:50:00Z");
    world.held_until("2026-11-22T00:10:00Z");
    world.quiet_until("2026-11-22T00:20:00Z");
    let said = world.says(Some("etl"), "2026-11-21T23:00:00Z", "2026-11-22T00:20:00Z", "UTC");
    assert!(
        said[0].starts_with("etl was held 2026-11-21 23:50:00–2026-11-22 00:10:00: "),
        "{said:?}"
    );
}

#[test]
fn rules_servers_and_the_starved_are_told_with_who_did_it() {
    let mut world = World::new("2026-11-22T07:00:00Z");
    world.quiet_until("2026-11-22T07:01:00Z");
    let made = Happened::Rule {
        cluster: "main".into(),
        rule: "runtime:etl".into(),
        author: "ann".to_owned(),
        what: "made",
    };
    let both = vec![rule("runtime:etl", Some("ann")), rule("nightly-etl", None)];
    world.rules = Some(both);
    world.step(&Scene { happened: vec![made], ..Scene::default() });
    let trouble = Some("somebody stopped it");
    world.until("2026-11-22T07:02:59Z", |_| Scene { stopped: true, trouble, ..Scene::default() });
    // The cause is over before the state is.
    world.until("2026-11-22T07:03:00Z", |_| Scene { stopped: true, ..Scene::default() });
    let lifted = Happened::Rule {
        cluster: "main".into(),
        rule: "runtime:etl".into(),
        author: "bob".to_owned(),
        what: "lifted",
    };
    world.rules = Some(vec![rule("nightly-etl", None)]);
    let edited = Happened::File {
        path: "/etc/sluice.yaml".to_owned(),
        changes: vec!["rule nightly-etl changed".to_owned()],
        diff: "-a\n+b".to_owned(),
    };
    world.step(&Scene { happened: vec![lifted, edited], ..Scene::default() });
    let starved = |mono: Duration| StarvedLook {
        app: "etl".to_owned(),
        rule: "nightly-etl".to_owned(),
        lasts: mono.saturating_sub(Duration::from_secs(200)),
        meanwhile: "admitted meanwhile: ddl: 9".to_owned(),
    };
    world.quiet_until("2026-11-22T07:04:00Z");
    world.until("2026-11-22T07:05:00Z", |mono| Scene {
        starved: vec![starved(mono)],
        ..Scene::default()
    });
    world.quiet_until("2026-11-22T07:06:00Z");
    let said = world.says(None, "2026-11-22T07:00:00Z", "2026-11-22T07:06:00Z", "UTC");
    for sentence in [
        "replica db3 was applier stopped 07:01:00–07:03:00: somebody stopped it",
        "etl was starved under rule nightly-etl 07:03:20–07:05:00: admitted meanwhile: ddl: 9",
        "at 07:01:00 rule runtime:etl was made by ann: hold (mornings)",
        "at 07:03:00 /etc/sluice.yaml was applied: rule nightly-etl changed",
        "at 07:03:00 rule runtime:etl was lifted by bob: hold (mornings)",
    ] {
        assert!(said.iter().any(|said| said == sentence), "{sentence}: {said:#?}");
    }
    let answer = world.ask(None, "2026-11-22T07:00:00Z", "2026-11-22T07:06:00Z");
    assert!(answer.events.iter().any(|event| event.diff.as_deref() == Some("-a\n+b")));
}

#[test]
fn over_a_restart_memory_and_file_tell_one_story_and_the_gap() {
    let directory = crate::disk::scratch::Scratch::new();
    let mut disk = Disk::new(directory.path(), Limits::default());
    let mut first = World::new("2026-11-22T07:00:00Z");
    first.quiet_until("2026-11-22T07:05:00Z");
    first.held_until("2026-11-22T07:10:20Z");
    // Killed here: five seconds are lost, and nothing was closed.
    disk.write(&[first.book.writes()], first.wall).unwrap();
    first.held_until("2026-11-22T07:10:25Z");
    drop(first);

    let mut second = World::new("2026-11-22T07:10:40Z");
    second.book = Book::new(7_000, "0.1.0", second.wall);
    second.held_until("2026-11-22T07:15:00Z");
    disk.write(&[second.book.writes()], second.wall).unwrap();
    second.quiet_until("2026-11-22T07:16:00Z");
    let (since, until) = ("2026-11-22T07:00:00Z", "2026-11-22T07:20:00Z");
    let recent = second.book.recent(utc(since), utc(until));
    let reading = Reading::open(directory.path(), recent.from).unwrap();
    let answer = second.ask_with(Some("etl"), since, until, Some(&reading));
    assert_eq!(answer.total.refused, 319 + 259, "the minute of both counts once of each");
    let said = sentences(&answer, &TimeZone::UTC);
    let begins = |with: &str| said.iter().any(|said| said.starts_with(with));
    assert!(begins("etl was held 07:05:00–07:10:20: lag 3.2 s at replica db3 "), "{said:#?}");
    assert!(begins("etl was held 07:10:40–07:15:00: lag 3.2 s at replica db3 "), "{said:#?}");
    assert!(begins("nothing was recorded 07:10:20–07:10:40: no Sluice ran here"), "{said:#?}");
}

/// It was said that no Sluice ran in the time that the clock had left out.
#[test]
fn over_a_clock_that_is_set_the_gap_is_the_clocks() {
    let directory = crate::disk::scratch::Scratch::new();
    let mut disk = Disk::new(directory.path(), Limits::default());
    let mut world = World::new("2026-11-22T07:00:00Z");
    world.quiet_until("2026-11-22T07:05:00Z");
    world.wall.0 += 3_600_000;
    world.quiet_until("2026-11-22T08:10:00Z");
    disk.write(&[world.book.writes()], world.wall).unwrap();
    let (since, until) = ("2026-11-22T07:00:00Z", "2026-11-22T08:10:00Z");
    let recent = world.book.recent(utc(since), utc(until));
    let reading = Reading::open(directory.path(), recent.from).unwrap();
    let answer = world.ask_with(None, since, until, Some(&reading));
    let said = sentences(&answer, &TimeZone::UTC);
    let gap = "nothing was recorded 07:05:00–08:05:00: the clock was set";
    assert!(said.iter().any(|said| said == gap), "{said:#?}");
}
