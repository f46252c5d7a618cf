//! The keys of a signal's `latency`.

use super::keys::{Key, Shown, live};
use crate::compile::limits;

pub(super) const LATENCY: &[Key] = &[
    live(
        "app",
        "The apps, matched as by rules: a level, the whole, or a prefix.",
        Shown::Words("any; it or `rule` is required", "a value or a list"),
        "",
    ),
    live(
        "rule",
        "The rule that decided about the statement, by its name.",
        Shown::Words("any, or none", "a name"),
        "",
    ),
    live("statements", "The classes of statements.", Shown::Words("all", "classes"), ""),
    live(
        "percentile",
        "The share of statements that take at most the value.",
        Shown::Words("0.99", "between 0 and 1"),
        "Rarer statements decide.",
    ),
    live(
        "window",
        "Over what time.",
        Shown::Time(limits::LATENCY_WINDOW),
        "A steadier value, and a slower answer.",
    ),
];
