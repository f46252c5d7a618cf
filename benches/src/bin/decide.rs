//! Time per decision, and of its parts, on one thread.
//!
//! Each figure is that of the fastest of many short rounds: whatever else the machine does only adds. For instructions instead of time:
//! `valgrind --tool=callgrind --toggle-collect='policy::decide::decide*' target/release/decide`.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use benches::line::Line;
use benches::relay::{self, Relay};
use benches::{Result, rules};
use policy::identity::{IdentityScratch, SessionIdentity, resolve};
use policy::{
    ClusterPolicy, Facts, RuntimeChange, RuntimeEffect, RuntimeRule, RuntimeSpec, Shape, UnixTime,
    decide,
};
use sql::{LexMode, Scratch, Whole, describe};
use wire::capability::Capabilities;
use wire::response_tracker::{Expect, ResponseTracker};

fn main() -> Result<()> {
    reading();
    for count in [10, 10_000] {
        let started = Instant::now();
        let policy = rules::policy(count)?;
        let title = format!("{count} rules (loaded in {:.0?})", started.elapsed());
        deciding(&title, &policy, count)?;
    }
    made_at_runtime()?;
    following()?;
    for count in [10, 10_000] {
        whole_statements(count)?;
    }
    paced();
    Ok(())
}

/// `sql::describe` alone.
fn reading() {
    println!(
        "### Reading a statement (`sql::describe`)\n\n| statement | bytes | ns |\n|---|---|---|"
    );
    let mut scratch = Scratch::default();
    for (name, text) in statements() {
        let ns = nanoseconds(|| {
            black_box(describe(
                black_box(text.as_bytes()),
                LexMode::default(),
                Whole::Yes,
                &mut scratch,
            ));
        });
        println!("| {name} | {} | {ns:.0} |", text.len());
    }
}

/// From text to verdict.
fn deciding(title: &str, policy: &ClusterPolicy, count: usize) -> Result<()> {
    println!(
        "\n### Deciding with {title}\n\n\
         | statement | rule | identity and rule, ns | with reading the text, ns |\n|---|---|---|---|"
    );
    let middle = count / 2 / 8 * 8 + 1;
    let texts = [
        ("no comment", "UPDATE t SET a = a + 1 WHERE id = 42".to_owned()),
        (
            "a rule's app",
            format!("UPDATE t SET a = a + 1 WHERE id = 42 /*app='job-{middle}:etl'*/"),
        ),
        (
            "tags of a web framework",
            "UPDATE t SET a = a + 1 WHERE id = 42 \
             /*application:Shop,controller:orders,action:create,job:none*/"
                .to_owned(),
        ),
    ];
    let session = SessionIdentity::new(b"app", Some([127, 0, 0, 1].into()), b"test", attributes());
    for (name, text) in &texts {
        let mut bench = Deciding { policy, session: &session, buffer: IdentityScratch::default() };
        let mut scratch = Scratch::default();
        let statement = describe(text.as_bytes(), LexMode::default(), Whole::Yes, &mut scratch);
        let rule = bench.decide(&statement);
        let alone = nanoseconds(|| {
            black_box(bench.decide(black_box(&statement)));
        });
        let mut scratch = Scratch::default();
        let whole = nanoseconds(|| {
            let text = black_box(text.as_bytes());
            let statement = describe(text, LexMode::default(), Whole::Yes, &mut scratch);
            black_box(bench.decide(&statement));
        });
        println!("| {name} | {} | {alone:.0} | {whole:.0} |", rule.unwrap_or("none"));
    }
    Ok(())
}

/// 10,000 rules made at runtime before the file's, and what a change costs beside so many.
fn made_at_runtime() -> Result<()> {
    println!(
        "| made at runtime | one more, µs | one fewer, µs | the file read again, µs |\n|---|---|---|---|"
    );
    let file = rules::policy(100)?;
    let made = |count: u32| (0..count).map(|n| stands(&format!("night-{n}")));
    for count in [0, 100, 10_000] {
        let running = file.with_runtime_changes(made(count));
        let micros = |change: &dyn Fn() -> ClusterPolicy| {
            nanoseconds(|| drop(black_box(change()))) / 1_000.0
        };
        let more = stands("one-more");
        let more = micros(&|| running.with_runtime_changes([more.clone()]));
        let fewer = RuntimeChange::Gone("runtime:night-7".into());
        let fewer = micros(&|| running.with_runtime_changes([fewer.clone()]));
        let again = micros(&|| file.behind_runtime_rules_of(&running));
        println!("| {count} | {more:.1} | {fewer:.1} | {again:.1} |");
    }
    let policy = rules::policy(10_000)?.with_runtime_changes(made(10_000));
    deciding("10000 rules and as many made at runtime", &policy, 10_000)
}

fn stands(app: &str) -> RuntimeChange {
    RuntimeChange::Stands(runtime(app))
}

#[expect(clippy::expect_used, reason = "the rule is right")]
fn runtime(app: &str) -> RuntimeRule {
    let spec = RuntimeSpec {
        name: format!("runtime:{app}"),
        app: Some(app.to_owned()),
        user: None,
        classes: Vec::new(),
        effect: RuntimeEffect::Hold,
        reason: "for tonight".to_owned(),
        made_at_ms: 0,
    };
    let ends = UnixTime(rules::NOW.0.saturating_add(3_600));
    RuntimeRule::new(spec, "ann".into(), ends).expect("it is right")
}

struct Deciding<'a> {
    policy: &'a ClusterPolicy,
    session: &'a SessionIdentity,
    buffer: IdentityScratch,
}

impl<'a> Deciding<'a> {
    fn decide(&mut self, statement: &sql::Statement<'_>) -> Option<&'a str> {
        let identity = resolve(
            &self.policy.identity,
            self.session,
            std::iter::empty(),
            statement.tags().map(|tag| (tag.key, tag.value)),
            statement.tool(),
            &mut self.buffer,
        );
        let facts = Facts {
            identity: &identity,
            session: self.session,
            classes: statement.classes,
            exemption: statement.exemption,
            shape: Shape::default(),
            now: rules::NOW,
        };
        decide(self.policy, &facts).rule().map(|rule| &*rule.name)
    }
}

/// What drivers send.
fn attributes() -> impl Iterator<Item = (&'static [u8], &'static [u8])> {
    let pairs: [(&[u8], &[u8]); 5] = [
        (b"_client_name", b"libmysql"),
        (b"_client_version", b"9.7.0"),
        (b"_os", b"Linux"),
        (b"_pid", b"4242"),
        (b"program_name", b"/usr/bin/webapp"),
    ];
    pairs.into_iter()
}

/// The response tracker.
fn following() -> Result<()> {
    println!(
        "\n### Following a response (`wire::response_tracker`)\n\n| response | packets | ns per packet |\n|---|---|---|"
    );
    let row = [&[119][..], &[b'x'; 119]].concat();
    for rows in [1_u32, 1_000] {
        let bytes = relay::result(&vec![row.clone(); usize::try_from(rows)?]);
        let mut tracker = ResponseTracker::new(Capabilities { base: 0x0108_8201, mariadb: 0 });
        let packets = rows + 3;
        let ns = nanoseconds(|| {
            tracker.begin(Expect::ResultSets);
            black_box(tracker.feed(black_box(&bytes))).ok();
        });
        println!("| {rows} rows of 120 bytes | {packets} | {:.1} |", ns / f64::from(packets));
    }
    Ok(())
}

/// A statement and its answer through `session::Session`, without sockets.
fn whole_statements(count: usize) -> Result<()> {
    println!(
        "\n### A statement and its answer through `session` with {count} rules\n\n| statement | ns |\n|---|---|"
    );
    let policy = rules::policy(count)?;
    let plain = relay::point_select("SELECT c FROM sbtest1 WHERE id=5042");
    let tagged = |n: u32| {
        relay::point_select(&format!("SELECT c FROM sbtest1 WHERE id=5042 /*app='job-{n}:etl'*/"))
    };
    let (one, other) = (tagged(1), tagged(9));
    let execute = relay::execute();
    let exchanges = [
        ("point select, text", vec![&plain]),
        ("the same with a comment", vec![&one]),
        ("the same, another comment each time", vec![&one, &other]),
        ("point select, prepared", vec![&execute]),
    ];
    for (name, exchanges) in exchanges {
        let mut relay = Relay::logged_in(policy.clone())?;
        relay.statement(&relay::prepare("SELECT c FROM sbtest1 WHERE id=?"))?;
        for exchange in &exchanges {
            relay.statement(exchange)?;
        }
        let mut turns = exchanges.iter().cycle();
        let ns = nanoseconds(|| {
            if let Some(exchange) = turns.next() {
                black_box(relay.statement(black_box(exchange))).ok();
            }
        });
        println!("| {name} | {ns:.0} |");
    }
    Ok(())
}

/// Admission at a gate that is paced by the lag.
fn paced() {
    println!(
        "\n### Admission with 1,000 waiters of 200 identities, paced by the lag (`admission::Controller`)\n\n\
         | replica applies, rows/s | pace | waiting | ns per statement: request, release, complete |\n|---|---|---|---|"
    );
    for rows_per_s in [1_000.0, 50_000.0] {
        let mut line = Line::new(1_000, 200, rows_per_s);
        let a_round = || {
            let started = Instant::now();
            line.run(u64::from(STATEMENTS));
            started.elapsed().as_secs_f64() * 1e9 / f64::from(STATEMENTS)
        };
        let ns = std::iter::repeat_with(a_round).take(60).fold(f64::INFINITY, f64::min);
        println!("| {rows_per_s} | {:.0} | {} | {ns:.0} |", line.pace_per_s(), line.waiting());
    }
}

/// Of a round: heartbeats and probes, which come every so often, are in every round's figure.
const STATEMENTS: u32 = 20_000;

/// The time of one call in the fastest round.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let mut calls = 1_u32;
    // As many calls as fill a round.
    while timed(calls, &mut call) < ROUND && calls < CALLS_MAX {
        calls = calls.saturating_mul(2);
    }
    let per_call = |duration: Duration| duration.as_secs_f64() * 1e9 / f64::from(calls);
    (0..ROUNDS).map(|_| per_call(timed(calls, &mut call))).fold(f64::INFINITY, f64::min)
}

fn timed(calls: u32, call: &mut impl FnMut()) -> Duration {
    let started = Instant::now();
    for _ in 0..calls {
        call();
    }
    started.elapsed()
}

const ROUND: Duration = Duration::from_millis(2);
const ROUNDS: u32 = 100;
const CALLS_MAX: u32 = 1 << 24;

/// Kinds of statements that applications send.
fn statements() -> [(&'static str, String); 7] {
    let row = |n: u32| {
        format!(
            "({n}, 'name of {n}', 'and a text of some fifty bytes that says nothing much', {n}.5, NOW())"
        )
    };
    let rows = |count| (0..count).map(row).collect::<Vec<_>>().join(", ");
    let ids = (0..1_000).map(|n: u32| (n * 7).to_string()).collect::<Vec<_>>().join(", ");
    [
        ("point select", "SELECT c FROM sbtest1 WHERE id=5042".into()),
        (
            "point select of an ORM, with tags",
            "SELECT `orders`.`id`, `orders`.`customer_id`, `orders`.`state`, `orders`.`total`, `orders`.`created_at` \
             FROM `orders` WHERE `orders`.`id` = 4711 AND `orders`.`deleted_at` IS NULL ORDER BY `orders`.`id` ASC \
             LIMIT 1 /*application:Shop,controller:orders,action:show*/".into(),
        ),
        (
            "update by key",
            "UPDATE accounts SET balance = balance - 42.50, updated_at = '2026-11-21 09:15:00', note = 'it''s paid' \
             WHERE id = 815 AND version = 7".into(),
        ),
        ("insert of 10 rows", format!("INSERT INTO t (id, name, text, price, made) VALUES {}", rows(10))),
        (
            "join and group",
            "SELECT c.name, COUNT(*) AS n, SUM(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id LEFT JOIN \
             regions r ON r.id = c.region_id WHERE o.created_at >= '2026-01-01' AND r.code IN ('DE', 'FR', 'IT') GROUP BY \
             c.name HAVING n > 10 ORDER BY n DESC LIMIT 50".into(),
        ),
        ("IN list of 1,000", format!("SELECT * FROM t WHERE id IN ({ids})")),
        ("insert of 1,000 rows", format!("INSERT INTO t (id, name, text, price, made) VALUES {}", rows(1_000))),
    ]
}
