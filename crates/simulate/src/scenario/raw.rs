//! The file as it is written: which keys there are and what type their values have.

mod values;

use policy::reading::{Faults, Fields, FromNode, Maybe, Named, Node, OneOrMany, Place, Spanned};

pub use self::values::duration;
pub(super) use self::values::{
    Amount, Count, Expect, Expected, Level, NoData, Pairs, Rows, Seed, Span, Transit,
};

fn plain<T>(read: Maybe<T>) -> Option<T> {
    read.map(|Spanned { value, .. }| value)
}

#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) name: Option<String>,
    pub(super) duration: Option<Span>,
    pub(super) warmup: Option<Span>,
    pub(super) seed: Option<Seed>,
    pub(super) pacing: Option<String>,
    pub(super) row_costs: Option<String>,
    pub(super) threshold: Option<Span>,
    pub(super) lag: Option<Lag>,
    pub(super) check_interval: Option<Span>,
    pub(super) release_per_s: Option<Count>,
    pub(super) max_queue_total: Option<Count>,
    pub(super) heartbeat_interval: Option<Span>,
    pub(super) probe_interval: Option<Span>,
    pub(super) probe_delay: Option<Span>,
    pub(super) primary: Option<Primary>,
    pub(super) signals: Option<Named<Signal>>,
    pub(super) replicas: Option<Vec<Spanned<Replica>>>,
    pub(super) background: Option<Background>,
    pub(super) proxies: Option<Count>,
    pub(super) restarts: Option<Vec<Spanned<Span>>>,
    pub(super) handover: Option<bool>,
    pub(super) apps: Option<Vec<Spanned<App>>>,
    pub(super) expect: Option<Expect>,
}

impl FromNode for Scenario {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let read = Self {
            name: plain(fields.require("name")),
            duration: plain(fields.require("duration")),
            warmup: plain(fields.take("warmup")),
            seed: plain(fields.take("seed")),
            pacing: plain(fields.take("pacing")),
            row_costs: plain(fields.take("row_costs")),
            threshold: plain(fields.take("threshold")),
            lag: plain(fields.take("lag")),
            check_interval: plain(fields.take("check_interval")),
            release_per_s: plain(fields.take("release_per_s")),
            max_queue_total: plain(fields.take("max_queue_total")),
            heartbeat_interval: plain(fields.take("heartbeat_interval")),
            probe_interval: plain(fields.take("probe_interval")),
            probe_delay: plain(fields.take("probe_delay")),
            primary: plain(fields.require("primary")),
            signals: plain(fields.take("signals")),
            replicas: plain(fields.require("replicas")),
            background: plain(fields.take("background")),
            proxies: plain(fields.take("proxies")),
            restarts: plain(fields.take("restarts")),
            handover: plain(fields.take("handover")),
            apps: plain(fields.require("apps")),
            expect: plain(fields.take("expect")),
        };
        fields.finish();
        Some(read)
    }
}

#[derive(Debug)]
pub(super) struct Primary {
    pub(super) writes_per_s: Option<Amount>,
    pub(super) latency: Option<Span>,
    pub(super) service: Option<Service>,
}

impl FromNode for Primary {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let read = Self {
            writes_per_s: plain(fields.require("writes_per_s")),
            latency: plain(fields.take("latency")),
            service: plain(fields.take("service")),
        };
        fields.finish();
        Some(read)
    }
}

#[derive(Debug)]
pub(super) struct Service {
    pub(super) slots: Option<Amount>,
    pub(super) per_statement: Option<Span>,
}

impl FromNode for Service {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let read = Self {
            slots: plain(fields.require("slots")),
            per_statement: plain(fields.require("per_statement")),
        };
        fields.finish();
        Some(read)
    }
}

#[derive(Debug)]
pub(super) struct Replica {
    pub(super) apply_per_s: Option<Amount>,
    pub(super) jitter: Option<f64>,
    pub(super) group: Option<String>,
    pub(super) threshold: Option<Span>,
    pub(super) away: Option<Pairs<Span, Span>>,
    pub(super) transit: Option<Transit>,
    pub(super) appliers: Option<Count>,
    pub(super) workers: Option<Count>,
    pub(super) preserve_commit_order: Option<bool>,
    pub(super) commit_cost: Option<f64>,
}

impl FromNode for Replica {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let read = Self {
            apply_per_s: plain(fields.require("apply_per_s")),
            jitter: plain(fields.take("jitter")),
            group: plain(fields.take("group")),
            threshold: plain(fields.take("threshold")),
            away: plain(fields.take("away")),
            transit: plain(fields.take("transit")),
            appliers: plain(fields.take("appliers")),
            workers: plain(fields.take("workers")),
            preserve_commit_order: plain(fields.take("preserve_commit_order")),
            commit_cost: plain(fields.take("commit_cost")),
        };
        fields.finish();
        Some(read)
    }
}

#[derive(Debug)]
pub(super) struct Background {
    pub(super) writes_per_s: Option<Amount>,
}

impl FromNode for Background {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let read = Self { writes_per_s: plain(fields.require("writes_per_s")) };
        fields.finish();
        Some(read)
    }
}

#[derive(Debug)]
pub(super) struct Lag {
    pub(super) open_at: Option<Span>,
    pub(super) close_at: Option<Span>,
    pub(super) stale_after: Option<Span>,
    pub(super) on_no_data: Option<NoData>,
    pub(super) ignore_slowest: Option<Count>,
    pub(super) min_replicas: Option<Count>,
}

impl FromNode for Lag {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let read = Self {
            open_at: plain(fields.take("open_at")),
            close_at: plain(fields.take("close_at")),
            stale_after: plain(fields.take("stale_after")),
            on_no_data: plain(fields.take("on_no_data")),
            ignore_slowest: plain(fields.take("ignore_slowest")),
            min_replicas: plain(fields.take("min_replicas")),
        };
        fields.finish();
        Some(read)
    }
}

#[derive(Debug)]
pub(super) struct Signal {
    pub(super) latency: Option<Latency>,
    pub(super) threshold: Option<Level>,
    pub(super) noise: Option<f64>,
    pub(super) silent: Option<Pairs<Span, Span>>,
    pub(super) stale_after: Option<Span>,
    pub(super) on_no_data: Option<NoData>,
}

impl FromNode for Signal {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let read = Self {
            latency: plain(fields.take("latency")),
            threshold: plain(fields.require("threshold")),
            noise: plain(fields.take("noise")),
            silent: plain(fields.take("silent")),
            stale_after: plain(fields.take("stale_after")),
            on_no_data: plain(fields.take("on_no_data")),
        };
        fields.finish();
        Some(read)
    }
}

#[derive(Debug)]
pub(super) struct Latency {
    pub(super) app: Option<String>,
    pub(super) statements: Option<OneOrMany<String>>,
    pub(super) percentile: Option<f64>,
    pub(super) window: Option<Span>,
}

impl FromNode for Latency {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let read = Self {
            app: plain(fields.require("app")),
            statements: plain(fields.take("statements")),
            percentile: plain(fields.take("percentile")),
            window: plain(fields.take("window")),
        };
        fields.finish();
        Some(read)
    }
}

#[derive(Debug)]
pub(super) struct App {
    pub(super) app: Option<String>,
    pub(super) sessions: Option<Count>,
    pub(super) proxies: Option<Vec<Spanned<Count>>>,
    pub(super) identities: Option<Count>,
    pub(super) digests: Option<Count>,
    pub(super) ratio: Option<f64>,
    pub(super) weight: Option<Count>,
    pub(super) rows_per_statement: Option<Rows>,
    pub(super) apply_cost: Option<f64>,
    pub(super) phantom_rows: Option<Count>,
    pub(super) table: Option<String>,
    pub(super) transactions: Option<Count>,
    pub(super) think_time: Option<Span>,
    pub(super) max_delay: Option<Span>,
    pub(super) active: Option<Pairs<Span, Span>>,
    pub(super) latency: Option<Span>,
    pub(super) rule: Option<String>,
    pub(super) exempt: Option<bool>,
    pub(super) deny: Option<bool>,
    pub(super) hold: Option<bool>,
    pub(super) gate: Option<OneOrMany<String>>,
    pub(super) on_refused_check: Option<String>,
    pub(super) on_timeout: Option<String>,
    pub(super) max_queue: Option<Count>,
    pub(super) mode: Option<String>,
    pub(super) speed: Option<f64>,
    pub(super) min_rate: Option<Count>,
    pub(super) max_rate: Option<Count>,
    pub(super) max_in_flight: Option<Count>,
    pub(super) comes_back_after: Option<Span>,
}

impl FromNode for App {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let read = Self {
            app: plain(fields.require("app")),
            sessions: plain(fields.require("sessions")),
            proxies: plain(fields.take("proxies")),
            identities: plain(fields.take("identities")),
            digests: plain(fields.take("digests")),
            ratio: plain(fields.take("ratio")),
            weight: plain(fields.take("weight")),
            rows_per_statement: plain(fields.take("rows_per_statement")),
            apply_cost: plain(fields.take("apply_cost")),
            phantom_rows: plain(fields.take("phantom_rows")),
            table: plain(fields.take("table")),
            transactions: plain(fields.take("transactions")),
            think_time: plain(fields.take("think_time")),
            max_delay: plain(fields.take("max_delay")),
            active: plain(fields.take("active")),
            latency: plain(fields.take("latency")),
            rule: plain(fields.take("rule")),
            exempt: plain(fields.take("exempt")),
            deny: plain(fields.take("deny")),
            hold: plain(fields.take("hold")),
            gate: plain(fields.take("gate")),
            on_refused_check: plain(fields.take("on_refused_check")),
            on_timeout: plain(fields.take("on_timeout")),
            max_queue: plain(fields.take("max_queue")),
            mode: plain(fields.take("mode")),
            speed: plain(fields.take("speed")),
            min_rate: plain(fields.take("min_rate")),
            max_rate: plain(fields.take("max_rate")),
            max_in_flight: plain(fields.take("max_in_flight")),
            comes_back_after: plain(fields.take("comes_back_after")),
        };
        fields.finish();
        Some(read)
    }
}
