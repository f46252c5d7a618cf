//! Families that are read when somebody scrapes.

use prometheus::core::Collector;
use prometheus::{GaugeVec, IntCounterVec, Opts, Registry};

#[expect(clippy::expect_used, reason = "names and labels are literals, and a test scrapes them")]
pub(super) fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    let family = GaugeVec::new(Opts::new(name, help), labels).expect("the family is well-formed");
    let collector: Box<dyn Collector> = Box::new(family.clone());
    registry.register(collector).expect("the families have different names");
    family
}

#[expect(clippy::expect_used, reason = "names and labels are literals, and a test scrapes them")]
pub(super) fn counters(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> IntCounterVec {
    let family =
        IntCounterVec::new(Opts::new(name, help), labels).expect("the family is well-formed");
    let collector: Box<dyn Collector> = Box::new(family.clone());
    registry.register(collector).expect("the families have different names");
    family
}
