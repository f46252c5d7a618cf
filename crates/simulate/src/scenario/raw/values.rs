//! Values that can be written in more than one way.

use std::time::Duration;

use policy::reading::{Faults, Fields, FromNode, Named, Node, Place, Spanned, Value, expected};

use super::plain;
use crate::scenario::limits::DAY;

/// A duration with its unit, a day at most.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::scenario) struct Span(pub(in crate::scenario) Duration);

impl FromNode for Span {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let span = Duration::from_node(node, place, faults)?;
        if span > DAY {
            faults.add(place, "must be at most 24h");
            return None;
        }
        Some(Self(span))
    }
}

/// A duration with its unit, as in `250ms`, `1.5s` or `10m`, of a day at most; `None` for any other
/// text.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    policy::parse_duration(text).filter(|span| *span <= DAY)
}

/// A whole number from 0 on.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) struct Count(pub(in crate::scenario) u32);

impl FromNode for Count {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let count = u32::try_from(i128::from_node(node, place, faults)?);
        if count.is_err() {
            faults.add(place, format!("must be a whole number from 0 to {}", u32::MAX));
        }
        count.ok().map(Self)
    }
}

/// Where chance comes from: any number of 64 bits.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) struct Seed(pub(in crate::scenario) u64);

impl FromNode for Seed {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let seed = u64::try_from(i128::from_node(node, place, faults)?);
        if seed.is_err() {
            faults.add(place, format!("must be a whole number from 0 to {}", u64::MAX));
        }
        seed.ok().map(Self)
    }
}

/// Two things in a list.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) struct Pair<A, B>(pub(in crate::scenario) A, pub(in crate::scenario) B);

impl<A: FromNode, B: FromNode> FromNode for Pair<A, B> {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let list = match node.value {
            Value::List(list) => <[Node; 2]>::try_from(list).ok(),
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Mapping(_) => None,
        };
        let Some([first, second]) = list else {
            faults.add(place, "must be a list of two, as in [10s, 20s]");
            return None;
        };
        let (a, b) = (place.element(0, first.line), place.element(1, second.line));
        let read = (A::from_node(first, &a, faults), B::from_node(second, &b, faults));
        Some(Self(read.0?, read.1?))
    }
}

/// Pairs in a list.
#[derive(Debug)]
pub(in crate::scenario) struct Pairs<A, B>(pub(in crate::scenario) Vec<(A, B)>);

impl<A: FromNode, B: FromNode> FromNode for Pairs<A, B> {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let list = Vec::<Spanned<Pair<A, B>>>::from_node(node, place, faults)?;
        Some(Self(list.into_iter().map(|pair| (pair.value.0, pair.value.1)).collect()))
    }
}

/// How long the stream to a replica takes: a duration, or steps of them.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Transit(pub(in crate::scenario) Vec<(Span, Span)>);

impl FromNode for Transit {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Text(_) => {
                let always = Span::from_node(node, place, faults)?;
                Some(Self(vec![(Span::default(), always)]))
            }
            Value::List(_) => Pairs::from_node(node, place, faults).map(|Pairs(steps)| Self(steps)),
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Mapping(_) => {
                let what = "a duration with its unit, like 150ms, or steps of them, like \
                            [[0s, 100ms], [100s, 300ms]]";
                expected(what, &node, place, faults);
                None
            }
        }
    }
}

/// A number, steps, or a sine.
#[derive(Debug)]
pub(in crate::scenario) enum Amount {
    Number(f64),
    Steps(Vec<(Span, f64)>),
    Sine { min: f64, max: f64, period: Span },
}

impl FromNode for Amount {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Integer(_) | Value::Float(_) => {
                f64::from_node(node, place, faults).map(Self::Number)
            }
            Value::List(_) => {
                Pairs::from_node(node, place, faults).map(|Pairs(steps)| Self::Steps(steps))
            }
            Value::Mapping(_) => {
                let mut fields = Fields::open(node, place, faults)?;
                let sine = plain(fields.require::<Sine>("sine"));
                fields.finish();
                let Sine { min, max, period } = sine?;
                Some(Self::Sine { min, max, period })
            }
            Value::Nothing | Value::Flag(_) | Value::Text(_) => {
                let what = "a number, steps [[0s, 1000], [100s, 300]], or \
                            { sine: { min: 200, max: 1000, period: 44s } }";
                expected(what, &node, place, faults);
                None
            }
        }
    }
}

struct Sine {
    min: f64,
    max: f64,
    period: Span,
}

impl FromNode for Sine {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let mut fields = Fields::open(node, place, faults)?;
        let (min, max) = (fields.require("min"), fields.require("max"));
        let period = fields.require("period");
        fields.finish();
        Some(Self { min: plain(min)?, max: plain(max)?, period: plain(period)? })
    }
}

/// A number, or the least and the most.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) struct Rows {
    pub(in crate::scenario) min: u32,
    pub(in crate::scenario) max: u32,
}

impl FromNode for Rows {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Mapping(_) => {
                let mut fields = Fields::open(node, place, faults)?;
                let (min, max) = (fields.require::<Count>("min"), fields.require::<Count>("max"));
                fields.finish();
                Some(Self { min: plain(min)?.0, max: plain(max)?.0 })
            }
            Value::Integer(_) | Value::Float(_) => {
                let Count(rows) = Count::from_node(node, place, faults)?;
                Some(Self { min: rows, max: rows })
            }
            Value::Nothing | Value::Flag(_) | Value::Text(_) | Value::List(_) => {
                expected("a number of rows, or { min: 1, max: 9 }", &node, place, faults);
                None
            }
        }
    }
}

/// What a signal must stay below: a number, or a duration.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) enum Level {
    Number(f64),
    Time(Span),
}

impl FromNode for Level {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Integer(_) | Value::Float(_) => {
                f64::from_node(node, place, faults).map(Self::Number)
            }
            Value::Nothing
            | Value::Flag(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Mapping(_) => Span::from_node(node, place, faults).map(Self::Time),
        }
    }
}

/// What is expected: ranges by the names of figures, nested or with dots between them.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Expect(pub(in crate::scenario) Vec<(String, Expected)>);

/// One value under `expect`.
#[derive(Debug)]
pub(in crate::scenario) enum Expected {
    Range(f64, f64),
    Number(f64),
    Nested(Expect),
}

impl FromNode for Expect {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        let Named(named) = Named::<Expected>::from_node(node, place, faults)?;
        Some(Self(named.into_iter().map(|(key, value)| (key, value.value)).collect()))
    }
}

impl FromNode for Expected {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match node.value {
            Value::Integer(_) | Value::Float(_) => {
                f64::from_node(node, place, faults).map(Self::Number)
            }
            Value::Mapping(_) => Expect::from_node(node, place, faults).map(Self::Nested),
            Value::List(_) | Value::Nothing | Value::Flag(_) | Value::Text(_) => {
                let is_pair = |list: &Vec<Node>| list.len() == 2;
                if !matches!(&node.value, Value::List(list) if is_pair(list)) {
                    expected("a range [low, high]", &node, place, faults);
                    return None;
                }
                let Pair(low, high) = Pair::from_node(node, place, faults)?;
                Some(Self::Range(low, high))
            }
        }
    }
}

/// `open`, `closed` or `{ hold_last: 30s }`.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) enum NoData {
    Open,
    Closed,
    HoldLast(Span),
}

impl FromNode for NoData {
    fn from_node(node: Node, place: &Place, faults: &mut Faults) -> Option<Self> {
        match &node.value {
            Value::Text(word) if word == "open" => return Some(Self::Open),
            Value::Text(word) if word == "closed" => return Some(Self::Closed),
            Value::Mapping(_) => {
                let mut fields = Fields::open(node, place, faults)?;
                let hold_last = plain(fields.require("hold_last"));
                fields.finish();
                return hold_last.map(Self::HoldLast);
            }
            Value::Nothing
            | Value::Flag(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_) => {}
        }
        expected("open, closed or { hold_last: 30s }", &node, place, faults);
        None
    }
}
