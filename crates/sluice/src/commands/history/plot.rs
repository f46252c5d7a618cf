//! Plots of one line each, for terminals.

use std::collections::BTreeMap;

use history::words::quantity;
use history::{Answer, At};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Each signal, what was delayed, and what was refused, from the begin of the time to its end.
pub(super) fn plots(answer: &Answer) -> String {
    let mut plots: Vec<(String, BTreeMap<At, f64>, String)> = Vec::new();
    let mut signals: BTreeMap<(&str, &str), BTreeMap<At, f64>> = BTreeMap::new();
    for part in &answer.signals {
        let values = signals.entry((&part.cluster, &part.signal)).or_default();
        values.insert(part.at, part.values.max);
    }
    for ((_, name), values) in signals {
        let unit = if name == "lag" { "s" } else { "" };
        let highest = values.values().copied().fold(0.0, f64::max);
        plots.push((name.to_owned(), values, format!("{} at most", quantity(highest, unit))));
    }
    type Read = fn(&history::record::Counts) -> u64;
    let counted: [(&str, Read); 2] =
        [("delayed", |counts| counts.delayed), ("refused", |counts| counts.refused)];
    for (name, read) in counted {
        let values: BTreeMap<At, f64> = answer
            .parts
            .iter()
            .filter_map(|part| Some((part.at, f64::from(u32::try_from(read(&part.counts)).ok()?))))
            .collect();
        let highest = values.values().copied().fold(0.0, f64::max);
        if highest > 0.0 {
            let of = format!("{} at most in {} s", quantity(highest, ""), answer.part_s);
            plots.push((name.to_owned(), values, of));
        }
    }
    let width = plots.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, values, of) in &plots {
        text.push_str(&format!("\n{name:>width$} {} {of}", line(answer, values)));
    }
    if text.is_empty() { text } else { format!("{text}\n") }
}

fn line(answer: &Answer, values: &BTreeMap<At, f64>) -> String {
    let part_ms = answer.part_s.max(1).saturating_mul(1_000);
    let first = answer.since.0.div_euclid(part_ms).saturating_mul(part_ms);
    let highest = values.values().copied().fold(0.0, f64::max);
    let mut line = String::new();
    let mut at = first;
    while at < answer.until.0 && line.chars().count() < PARTS_MAX {
        line.push(values.get(&At(at)).map_or(' ', |value| bar(*value, highest)));
        at = at.saturating_add(part_ms);
    }
    line
}

/// More than one answer has.
const PARTS_MAX: usize = 120;

fn bar(value: f64, highest: f64) -> char {
    if highest <= 0.0 {
        return BARS[0];
    }
    let share = (value / highest).clamp(0.0, 1.0);
    let place = BARS.iter().zip(1_u8..).find(|(_, step)| share <= f64::from(*step) / 8.0);
    place.map_or('█', |(bar, _)| *bar)
}
