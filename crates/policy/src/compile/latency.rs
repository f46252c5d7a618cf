//! `latency` of a signal.

use sql::{Class, ClassSet};

use super::checks::{duration, patterns};
use super::classes::{Delayable, compile_classes};
use super::limits;
use crate::cluster::Latency;
use crate::fault::Faults;
use crate::raw::{self, Maybe, Spanned};

pub(super) fn compile(written: Spanned<raw::Latency>, faults: &mut Faults) -> Latency {
    let Spanned { value: raw, place } = written;
    if raw.app.is_none() && raw.rule.is_none() {
        faults.add(&place, "whose? `app` or `rule` is missing; `app: \"*\"` is everybody's");
    }
    let every = || Class::ALL.into_iter().fold(ClassSet::default(), ClassSet::with);
    Latency {
        app: raw.app.map(|apps| patterns(&apps.value, &apps.place, faults)),
        rule: raw.rule.map(|rule| rule.value.into()),
        statements: raw
            .statements
            .map_or_else(every, |classes| compile_classes(&classes, Delayable::AndOthers, faults)),
        percentile: percentile(raw.percentile, faults),
        window: duration(raw.window, limits::LATENCY_WINDOW, faults),
    }
}

fn percentile(percentile: Maybe<f64>, faults: &mut Faults) -> f64 {
    let Some(Spanned { value, place }) = percentile else { return limits::LATENCY_PERCENTILE };
    if !(value > 0.0 && value < 1.0) {
        faults.add(&place, "must be between 0 and 1, like 0.99");
    }
    value
}
