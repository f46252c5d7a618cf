//! Takes from two budgets for a statement and gives it back, again and again, for tools that count
//! what a process does: see `counts`.
//!
//!   budgeted KIND COUNT
//!
//! KIND is `taken` (one user, who has room at once), `users` (a thousand of them in turn, each with a bucket of
//! its own), `crowd` (the same with a hundred thousand) or `asked` (one, with a permit, and everything is
//! polled behind it, as where others wait).

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Duration;

use admission::{
    AppKey, BudgetAsk, BudgetBook, BudgetHold, BudgetKey, BudgetSet, BudgetTerms, BudgetUse,
    BudgetUsed, Controller, ControllerConfig, Decision, DigestKey, GateConfig, GateKey,
    IdentityKey, Mode, MonoTime, OnExceeded, Request, RuleKey, SignalConfig, SignalKey, Terms,
};
use benches::Result;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let kind = args.next().unwrap_or_default();
    let count: u64 = args.next().ok_or("how many statements?")?.parse()?;
    let (users, take): (u64, Take) = match kind.as_str() {
        "taken" => (1, take),
        "users" => (1_000, take),
        "crowd" => (100_000, take),
        "asked" => (1, ask),
        other => return Err(format!("{other:?} is not one of those").into()),
    };
    let mut now = MonoTime::from_nanos(1);
    let mut controller = Controller::new(config(), 1, now);
    for n in 0..count {
        let set = met_by(n.checked_rem(users).unwrap_or_default());
        let hold = take(&mut controller, now, &set)?;
        now = now.saturating_add(SERVER_TIME);
        let used = BudgetUsed { server_time: SERVER_TIME, rows: 1, failed: false };
        controller.finish_budgeted(now, hold, &used);
        if kind == "asked" {
            poll(&mut controller, now);
        }
    }
    Ok(())
}

/// How a statement comes to what it takes.
type Take = fn(&mut Controller, MonoTime, &BudgetSet) -> Result<BudgetHold>;

fn take(controller: &mut Controller, now: MonoTime, set: &BudgetSet) -> Result<BudgetHold> {
    let Request { rule, identity, app, digest, .. } = request(now);
    let ask = BudgetAsk { rule, identity, app, digest };
    Ok(controller.take_budgets(now, set, ask).ok_or("there is no room")?)
}

fn ask(controller: &mut Controller, now: MonoTime, set: &BudgetSet) -> Result<BudgetHold> {
    let Decision::Admit(mut permit) = controller.request_budgets(now, &request(now), set) else {
        return Err("there is no room".into());
    };
    poll(controller, now);
    Ok(permit.take_hold().ok_or("it has taken nothing")?)
}

fn poll(controller: &mut Controller, now: MonoTime) {
    black_box(controller.poll_resolution(now).is_some());
    black_box(controller.poll_timeout());
}

fn request(now: MonoTime) -> Request {
    Request {
        rule: RuleKey(1),
        identity: IdentityKey(2),
        app: AppKey(3),
        digest: Some(DigestKey(4)),
        written: None,
        gate: GateKey(1),
        terms: Terms::default(),
        arrived: now,
        since: now,
    }
}

fn met_by(user: u64) -> BudgetSet {
    let mut set = BudgetSet::default();
    for (budget, instance) in [(AT_ONCE, 0), (OF_EACH, user)] {
        set.add(BudgetUse { budget, instance });
    }
    set
}

fn config() -> ControllerConfig {
    let none = BudgetTerms {
        max_concurrency: None,
        rate: None,
        rows_per_s: None,
        share: None,
        burst: 0.0,
        max_query_cost: None,
        on_exceeded: OnExceeded::Delay,
        max_delay: Duration::from_secs(60),
        mode: Mode::Enforce,
    };
    let at_once = BudgetTerms { max_concurrency: Some(1_000), ..none };
    let of_each = BudgetTerms { share: Some(100.0), burst: 100.0, ..none };
    let signals = [1, 2, 3, 4].map(SignalKey);
    ControllerConfig {
        signals: signals.map(|key| SignalConfig::at_threshold(key, 1.0)).to_vec(),
        gates: vec![GateConfig { key: GateKey(1), signals: signals.to_vec() }],
        budgets: BudgetBook::new(HashMap::from([(AT_ONCE, at_once), (OF_EACH, of_each)])),
        ..ControllerConfig::default()
    }
}

const AT_ONCE: BudgetKey = BudgetKey(1);
const OF_EACH: BudgetKey = BudgetKey(2);
const SERVER_TIME: Duration = Duration::from_millis(1);
