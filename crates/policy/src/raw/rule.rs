//! One of `rules`, as it is written.

use std::time::Duration;

use super::fields::{Fields, FromNode, Maybe, Named, OneOrMany, Spanned, expected};
use super::node::{Node, Value};
use super::runaway::Runaway;
use crate::fault::{Faults, Place};

/// One of `rules`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(crate) name: Maybe<String>,
    pub(crate) conditions: Maybe<Match>,
    pub(crate) ratio: Maybe<f64>,
    pub(crate) speed: Maybe<f64>,
    pub(crate) gate: Maybe<OneOrMany<String>>,
    pub(crate) statements: Maybe<OneOrMany<String>>,
    pub(crate) max_delay: Maybe<Duration>,
    pub(crate) on_refused_check: Maybe<String>,
    pub(crate) on_timeout: Maybe<String>,
    pub(crate) max_queue: Maybe<i128>,
    pub(crate) exempt: Maybe<bool>,
    pub(crate) deny: Maybe<bool>,
    pub(crate) hold: Maybe<bool>,
    pub(crate) mode: Maybe<String>,
    pub(crate) weight: Maybe<i128>,
    pub(crate) min_rate: Maybe<i128>,
    pub(crate) max_rate: Maybe<i128>,
    pub(crate) max_in_flight: Maybe<i128>,
    pub(crate) error: Maybe<ErrorProfile>,
    pub(crate) honour_priority: Maybe<bool>,
    pub(crate) schedule: Maybe<OneOrMany<Schedule>>,
    pub(crate) on_client_gone: Maybe<String>,
    pub(crate) runaway: Maybe<Runaway>,
    pub(crate) expires_at: Maybe<String>,
    pub(crate) permanent: Maybe<bool>,
    pub(crate) essential: Maybe<bool>,
    pub(crate) reason: Maybe<String>,
}

/// `match` of a rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Match {
    pub(crate) app: Maybe<OneOrMany<String>>,
    pub(crate) tag: Maybe<Named<OneOrMany<String>>>,
    pub(crate) attribute: Maybe<Named<OneOrMany<String>>>,
    pub(crate) user: Maybe<OneOrMany<String>>,
    pub(crate) schema: Maybe<OneOrMany<String>>,
    pub(crate) client: Maybe<OneOrMany<String>>,
    pub(crate) cluster: Maybe<OneOrMany<String>>,
    pub(crate) statements: Maybe<OneOrMany<String>>,
    pub(crate) digest: Maybe<OneOrMany<String>>,
    pub(crate) table: Maybe<OneOrMany<String>>,
}

/// `schedule` of a rule, or one of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    pub(crate) days: Maybe<OneOrMany<String>>,
    pub(crate) hours: Maybe<OneOrMany<String>>,
    pub(crate) time_zone: Maybe<String>,
}

/// `error` of a rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ErrorProfile {
    Keyword(String),
    Custom { errno: Maybe<i128>, sqlstate: Maybe<String>, message: Maybe<String> },
}

impl FromNode for Rule {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let rule = Self {
            name: fields.require("name"),
            conditions: fields.take("match"),
            ratio: fields.take("ratio"),
            speed: fields.take("speed"),
            gate: fields.take("gate"),
            statements: fields.take("statements"),
            max_delay: fields.take("max_delay"),
            on_refused_check: fields.take_word("on_refused_check"),
            on_timeout: fields.take_word("on_timeout"),
            max_queue: fields.take("max_queue"),
            exempt: fields.take("exempt"),
            deny: fields.take("deny"),
            hold: fields.take("hold"),
            mode: fields.take_word("mode"),
            weight: fields.take("weight"),
            min_rate: fields.take("min_rate"),
            max_rate: fields.take("max_rate"),
            max_in_flight: fields.take("max_in_flight"),
            error: fields.take("error"),
            honour_priority: fields.take("honour_priority"),
            schedule: fields.take("schedule"),
            on_client_gone: fields.take_word("on_client_gone"),
            runaway: fields.take("runaway"),
            expires_at: fields.take("expires_at"),
            permanent: fields.take("permanent"),
            essential: fields.take("essential"),
            reason: fields.take("reason"),
        };
        fields.finish();
        Some(rule)
    }
}

impl FromNode for Match {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let conditions = Self {
            app: fields.take("app"),
            tag: fields.take("tag"),
            attribute: fields.take("attribute"),
            user: fields.take("user"),
            schema: fields.take("schema"),
            client: fields.take("client"),
            cluster: fields.take("cluster"),
            statements: fields.take("statements"),
            digest: fields.take("digest"),
            table: fields.take("table"),
        };
        fields.finish();
        Some(conditions)
    }
}

impl FromNode for Schedule {
    /// A text is its hours.
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        if let Value::Text(_) = &node.value {
            let value = OneOrMany::from_node(node, place, faults)?;
            let hours = Some(Spanned { value, place: place.clone() });
            return Some(Self { days: None, hours, time_zone: None });
        }
        let mut fields = Fields::open(node, place, faults)?;
        let schedule = Self {
            days: fields.take("days"),
            hours: fields.take("hours"),
            time_zone: fields.take("time_zone"),
        };
        fields.finish();
        Some(schedule)
    }
}

impl FromNode for ErrorProfile {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Text(keyword) => Some(Self::Keyword(keyword)),
            Value::Mapping(_) => {
                let mut fields = Fields::open(node, place, faults)?;
                let profile = Self::Custom {
                    errno: fields.require("errno"),
                    sqlstate: fields.take("sqlstate"),
                    message: fields.take("message"),
                };
                fields.finish();
                Some(profile)
            }
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::List(_) => {
                expected("a profile's name or {errno, sqlstate, message}", &node, place, faults);
                None
            }
        }
    }
}
