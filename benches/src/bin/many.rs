//! A million names that clients make up: what they take of memory, and of time for each.
//!
//!   many [owed|at-once|tried|digests]        all, each in a process of its own, unless one is named
//!
//! `owed` is a budget with `share` and `per: tag:NAME`, where every statement comes with another value, and owes. `at-once` is
//! one with `max_concurrency`. `tried` is one budget for all and another digest each time. `digests` are texts through a session, with insights.
//!
//! Prints a line of Markdown for each: time for one of the first hundred thousand and of the last, resident memory
//! before, after the first hundred thousand and after all.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use admission::{
    AppKey, BudgetBook, BudgetKey, BudgetSet, BudgetTerms, BudgetUse, BudgetUsed, Controller,
    ControllerConfig, Decision, DigestKey, GateKey, IdentityKey, Mode, MonoTime, OnExceeded,
    Request, RuleKey, Terms,
};
use benches::process::resident_kib;
use benches::relay::{self, Relay};
use benches::{Result, rules};

fn main() -> Result<()> {
    match std::env::args().nth(1) {
        Some(kind) => one(&kind),
        None => {
            println!(
                "| kind | ns for one of the first 100,000 | of the last 100,000 | KiB before | after 100,000 | after 1,000,000 |\n\
                 |---|---|---|---|---|---|"
            );
            let program = std::env::current_exe()?;
            for kind in ["owed", "at-once", "tried", "digests"] {
                let status = Command::new(&program).arg(kind).status()?;
                if !status.success() {
                    return Err(format!("{kind}: {status}").into());
                }
            }
            Ok(())
        }
    }
}

fn one(kind: &str) -> Result<()> {
    let unlimited = BudgetTerms {
        max_concurrency: None,
        rate: None,
        rows_per_s: None,
        share: None,
        burst: 0.0,
        max_query_cost: None,
        on_exceeded: OnExceeded::Refuse,
        max_delay: Duration::from_secs(60),
        mode: Mode::Enforce,
    };
    match kind {
        "owed" => {
            let terms = BudgetTerms { share: Some(0.25), burst: 2.0, ..unlimited };
            let mut budgets = Budgets::new(terms);
            measure(kind, |n| budgets.statement(n, 0))
        }
        "at-once" => {
            let terms = BudgetTerms { max_concurrency: Some(4), ..unlimited };
            let mut budgets = Budgets::new(terms);
            measure(kind, |n| budgets.statement(n, 0))
        }
        "tried" => {
            let terms = BudgetTerms { max_query_cost: Some(5.0), ..unlimited };
            let mut budgets = Budgets::new(terms);
            measure(kind, |n| budgets.statement(0, n))
        }
        "digests" => {
            let mut relay = Relay::logged_in(rules::policy(100)?)?.counted();
            measure(kind, |n| {
                relay.statement(&relay::point_select(&format!("SELECT c{n} FROM t WHERE id = 5")))
            })
        }
        other => Err(format!("{other:?} is not one of those").into()),
    }
}

/// A million of them, in ten parts.
fn measure(kind: &str, mut touch: impl FnMut(u64) -> Result<()>) -> Result<()> {
    let pid = std::process::id();
    let mut kib = vec![resident_kib(pid)?];
    let mut times = Vec::new();
    for part in 0..PARTS {
        let began = Instant::now();
        for n in 0..PART_LEN {
            touch(part.saturating_mul(PART_LEN).saturating_add(n))?;
        }
        times.push(began.elapsed());
        kib.push(resident_kib(pid)?);
    }
    let ns = |time: Option<&Duration>| {
        let each = PART_LEN_F64 / 1e9;
        time.map_or(f64::NAN, |time| time.as_secs_f64() / each)
    };
    let [before, first, .., last] = &kib[..] else { return Err("too few parts".into()) };
    println!(
        "| {kind} | {:.0} | {:.0} | {before:.0} | {first:.0} | {last:.0} |",
        ns(times.first()),
        ns(times.last())
    );
    Ok(())
}

/// A controller whose statements meet one budget.
struct Budgets {
    controller: Controller,
    now: MonoTime,
}

impl Budgets {
    fn new(terms: BudgetTerms) -> Self {
        let now = MonoTime::from_nanos(1);
        let budgets = BudgetBook::new(HashMap::from([(BUDGET, terms)]));
        let config = ControllerConfig { budgets, ..ControllerConfig::default() };
        Self { controller: Controller::new(config, 1, now), now }
    }

    /// From the question to the end, one every 20 µs, of 1 ms each.
    fn statement(&mut self, instance: u64, digest: u64) -> Result<()> {
        self.now = self.now.saturating_add(APART);
        let now = self.now;
        let request = Request {
            rule: RuleKey(1),
            identity: IdentityKey(1),
            app: AppKey(1),
            digest: Some(DigestKey(digest)),
            gate: GateKey(0),
            written: None,
            terms: Terms::default(),
            arrived: now,
            since: now,
        };
        let mut set = BudgetSet::default();
        set.add(BudgetUse { budget: BUDGET, instance });
        let Decision::Admit(mut permit) = self.controller.request_budgets(now, &request, &set)
        else {
            return Err("the budget has no room".into());
        };
        let hold = permit.take_hold().ok_or("it has taken nothing")?;
        let used = BudgetUsed { server_time: SERVER_TIME, rows: 1, failed: false };
        self.controller.finish_budgeted(now, hold, &used);
        Ok(())
    }
}

const BUDGET: BudgetKey = BudgetKey(1);
const APART: Duration = Duration::from_micros(20);
const SERVER_TIME: Duration = Duration::from_millis(1);
const PARTS: u64 = 10;
const PART_LEN: u64 = 100_000;
const PART_LEN_F64: f64 = 100_000.0;
