//! The file as it is written: which keys there are and what type their values have, nothing more.
//! Whether the values make sense is for [`crate::compile`].

mod admin;
mod budget;
mod bypass;
mod compression;
pub(crate) mod fields;
mod guard;
mod history;
mod insights;
mod network;
pub(crate) mod node;
mod replica;
mod rule;
mod runaway;
mod size;
mod tls;

use std::time::Duration;

pub(crate) use self::admin::{Admin, AdminTls};
pub(crate) use self::budget::Budget;
pub(crate) use self::bypass::Bypass;
pub(crate) use self::compression::{ClientCompression, CompressionLevel};
pub use self::fields::parse_duration;
use self::fields::{Fields, FromNode, expected};
pub(crate) use self::fields::{Maybe, Named, OneOrMany, Spanned};
pub(crate) use self::guard::{Guard, OrOff, on};
pub(crate) use self::history::History;
pub(crate) use self::insights::Insights;
pub(crate) use self::network::{Keepalive, ProxyProtocol};
use self::node::{Node, Value};
pub(crate) use self::replica::{OwnReplica, Replica};
pub(crate) use self::rule::{ErrorProfile, Match, Rule, Schedule};
pub(crate) use self::runaway::Runaway;
pub(crate) use self::size::Size;
pub(crate) use self::tls::{BackendTls, ClientTls};
use crate::fault::{Fault, Faults, Place};

/// The file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct File {
    pub(crate) version: Maybe<i128>,
    pub(crate) admin: Maybe<Admin>,
    pub(crate) metrics: Maybe<Metrics>,
    pub(crate) drain_timeout: Maybe<Duration>,
    pub(crate) takeover_socket: Maybe<String>,
    pub(crate) state_dir: Maybe<String>,
    pub(crate) clusters: Maybe<Named<Cluster>>,
    pub(crate) identity: Maybe<Identity>,
    pub(crate) rules: Maybe<Vec<Spanned<Rule>>>,
    pub(crate) guards: Maybe<Vec<Spanned<Guard>>>,
    pub(crate) budgets: Maybe<Vec<Spanned<Budget>>>,
    pub(crate) starvation: Maybe<Starvation>,
    pub(crate) insights: Maybe<Insights>,
    pub(crate) history: Maybe<History>,
}

/// `metrics`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metrics {
    pub(crate) max_apps: Maybe<i128>,
}

/// One of `clusters`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cluster {
    pub(crate) listen: Maybe<String>,
    pub(crate) listen_mode: Maybe<String>,
    pub(crate) primary: Maybe<String>,
    pub(crate) replicas: Maybe<Vec<Spanned<Replica>>>,
    pub(crate) probe: Maybe<Probe>,
    pub(crate) bypass: Maybe<Bypass>,
    pub(crate) signals: Maybe<Named<Signal>>,
    pub(crate) default_gate: Maybe<OneOrMany<String>>,
    pub(crate) mode: Maybe<String>,
    pub(crate) check_interval: Maybe<Duration>,
    pub(crate) pacing: Maybe<String>,
    pub(crate) release_per_s: Maybe<i128>,
    pub(crate) max_queue_total: Maybe<i128>,
    pub(crate) connect_timeout: Maybe<Duration>,
    pub(crate) login_timeout: Maybe<Duration>,
    pub(crate) max_connections: Maybe<i128>,
    pub(crate) keepalive: Maybe<Keepalive>,
    pub(crate) proxy_protocol: Maybe<ProxyProtocol>,
    pub(crate) client_tls: Maybe<ClientTls>,
    pub(crate) backend_tls: Maybe<BackendTls>,
    pub(crate) redirect: Maybe<String>,
    pub(crate) client_compression: Maybe<ClientCompression>,
    pub(crate) backend_compression: Maybe<String>,
    pub(crate) compression_level: Maybe<CompressionLevel>,
}

/// `probe` of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Probe {
    pub(crate) user: Maybe<String>,
    pub(crate) password_env: Maybe<String>,
    pub(crate) password_file: Maybe<String>,
    pub(crate) heartbeat_interval: Maybe<Duration>,
    pub(crate) probe_interval: Maybe<Duration>,
    pub(crate) heartbeat_table: Maybe<String>,
    pub(crate) source: Maybe<LagSource>,
    pub(crate) row_costs: Maybe<String>,
}

/// `probe.source`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LagSource {
    Keyword(String),
    Query(Maybe<String>),
}

/// One of `signals`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Signal {
    pub(crate) threshold: Maybe<Level>,
    pub(crate) open_at: Maybe<Level>,
    pub(crate) close_at: Maybe<Level>,
    pub(crate) stale_after: Maybe<Duration>,
    pub(crate) on_no_data: Maybe<OnNoData>,
    pub(crate) ignore_slowest: Maybe<i128>,
    pub(crate) min_replicas: Maybe<i128>,
    pub(crate) query: Maybe<String>,
    pub(crate) status: Maybe<String>,
    pub(crate) latency: Maybe<Latency>,
    pub(crate) on: Maybe<String>,
}

/// `latency` of a signal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Latency {
    pub(crate) app: Maybe<OneOrMany<String>>,
    pub(crate) rule: Maybe<String>,
    pub(crate) statements: Maybe<OneOrMany<String>>,
    pub(crate) percentile: Maybe<f64>,
    pub(crate) window: Maybe<Duration>,
}

/// A number, or a duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Level {
    Number(f64),
    Time(Duration),
}

/// `on_no_data`: a word, or `hold_last: 30s`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OnNoData {
    Keyword(String),
    HoldLast(Maybe<Duration>),
}

/// `starvation`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Starvation {
    pub(crate) share: Maybe<f64>,
    pub(crate) window: Maybe<Duration>,
}

/// `identity`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Identity {
    pub(crate) keys: Maybe<Vec<Spanned<String>>>,
    pub(crate) claims: Maybe<Vec<Spanned<Claim>>>,
}

/// One of `identity.claims`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    pub(crate) user: Maybe<OneOrMany<String>>,
    pub(crate) from: Maybe<OneOrMany<String>>,
    pub(crate) apps: Maybe<OneOrMany<String>>,
}

/// Reads the file, noting every fault of its syntax.
///
/// # Errors
/// Text that is not YAML at all.
pub(crate) fn parse(text: &str, faults: &mut Faults) -> Result<Option<File>, Fault> {
    let node = node::parse(text)?;
    let place = Place { path: String::new(), line: node.line };
    if node.value == Value::Nothing {
        faults.add(&place, "the file is empty");
        return Ok(None);
    }
    Ok(File::from_node(node, &place, faults))
}

impl FromNode for File {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let file = Self {
            version: fields.require("version"),
            admin: fields.take("admin"),
            metrics: fields.take("metrics"),
            drain_timeout: fields.take("drain_timeout"),
            takeover_socket: fields.take("takeover_socket"),
            state_dir: fields.take("state_dir"),
            clusters: fields.require("clusters"),
            identity: fields.take("identity"),
            rules: fields.take("rules"),
            guards: fields.take("guards"),
            budgets: fields.take("budgets"),
            starvation: fields.take("starvation"),
            insights: fields.take("insights"),
            history: fields.take("history"),
        };
        fields.finish();
        Some(file)
    }
}

impl FromNode for Metrics {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let metrics = Self { max_apps: fields.take("max_apps") };
        fields.finish();
        Some(metrics)
    }
}

impl FromNode for Cluster {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let cluster = Self {
            listen: fields.require_address("listen"),
            listen_mode: fields.take("listen_mode"),
            primary: fields.require_address("primary"),
            replicas: fields.take_address("replicas"),
            probe: fields.take("probe"),
            bypass: fields.take("bypass"),
            signals: fields.take("signals"),
            default_gate: fields.take("default_gate"),
            mode: fields.take_word("mode"),
            check_interval: fields.take("check_interval"),
            pacing: fields.take("pacing"),
            release_per_s: fields.take("release_per_s"),
            max_queue_total: fields.take("max_queue_total"),
            connect_timeout: fields.take("connect_timeout"),
            login_timeout: fields.take("login_timeout"),
            max_connections: fields.take("max_connections"),
            keepalive: fields.take("keepalive"),
            proxy_protocol: fields.take("proxy_protocol"),
            client_tls: fields.take("client_tls"),
            backend_tls: fields.take("backend_tls"),
            redirect: fields.take("redirect"),
            client_compression: fields.take("client_compression"),
            backend_compression: fields.take("backend_compression"),
            compression_level: fields.take("compression_level"),
        };
        fields.finish();
        Some(cluster)
    }
}

impl FromNode for Probe {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let probe = Self {
            user: fields.require("user"),
            password_env: fields.take("password_env"),
            password_file: fields.take("password_file"),
            heartbeat_interval: fields.take("heartbeat_interval"),
            probe_interval: fields.take("probe_interval"),
            heartbeat_table: fields.take("heartbeat_table"),
            source: fields.take("source"),
            row_costs: fields.take("row_costs"),
        };
        fields.secret("password");
        fields.finish();
        Some(probe)
    }
}

impl FromNode for LagSource {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Text(keyword) => Some(Self::Keyword(keyword)),
            Value::Mapping(_) => {
                let mut fields = Fields::open(node, place, faults)?;
                let query = fields.require("query");
                fields.finish();
                Some(Self::Query(query))
            }
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_) => {
                expected("`heartbeat`, `replica_status` or {query: \"…\"}", &node, place, faults);
                None
            }
        }
    }
}

impl FromNode for Signal {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let signal = Self {
            threshold: fields.take("threshold"),
            open_at: fields.take("open_at"),
            close_at: fields.take("close_at"),
            stale_after: fields.take("stale_after"),
            on_no_data: fields.take("on_no_data"),
            ignore_slowest: fields.take("ignore_slowest"),
            min_replicas: fields.take("min_replicas"),
            query: fields.take("query"),
            status: fields.take("status"),
            latency: fields.take("latency"),
            on: fields.take("on"),
        };
        fields.finish();
        Some(signal)
    }
}

impl FromNode for Latency {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let latency = Self {
            app: fields.take("app"),
            rule: fields.take("rule"),
            statements: fields.take("statements"),
            percentile: fields.take("percentile"),
            window: fields.take("window"),
        };
        fields.finish();
        Some(latency)
    }
}

impl FromNode for Level {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        if let Value::Text(text) = &node.value
            && let Some(time) = parse_duration(text)
        {
            return Some(Self::Time(time));
        }
        if matches!(node.value, Value::Text(_)) {
            fields::expected("a number, or a duration like 500ms or 2s", &node, place, faults);
            return None;
        }
        f64::from_node(node, place, faults).map(Self::Number)
    }
}

impl FromNode for OnNoData {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Text(text) => match text.strip_prefix("hold_last:") {
                Some(time) => {
                    let text = Node { line: node.line, value: Value::Text(time.trim().into()) };
                    let value = Duration::from_node(text, place, faults)?;
                    Some(Self::HoldLast(Some(Spanned { value, place: place.clone() })))
                }
                None => Some(Self::Keyword(text)),
            },
            Value::Mapping(_) => {
                let mut fields = Fields::open(node, place, faults)?;
                let time = fields.require("hold_last");
                fields.finish();
                Some(Self::HoldLast(time))
            }
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_) => {
                expected("`open`, `closed` or {hold_last: 30s}", &node, place, faults);
                None
            }
        }
    }
}

impl FromNode for Starvation {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let starvation = Self { share: fields.take("share"), window: fields.take("window") };
        fields.finish();
        Some(starvation)
    }
}

impl FromNode for Identity {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let identity = Self { keys: fields.take("keys"), claims: fields.take("claims") };
        fields.finish();
        Some(identity)
    }
}

impl FromNode for Claim {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let claim = Self {
            user: fields.require("user"),
            from: fields.take("from"),
            apps: fields.require("apps"),
        };
        fields.finish();
        Some(claim)
    }
}

#[cfg(test)]
mod tests;
