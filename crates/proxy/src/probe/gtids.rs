//! Sets of global transaction identifiers, as servers write them.
//!
//! MySQL: `source_id[:tag]:interval[:interval]…`, where an interval is a number or two with a hyphen
//! between, and several such parts have commas between; a tag may also stand behind intervals and
//! then begins further ones (manual: "GTID Format and Storage"). MariaDB: `domain-server-number`
//! parts with commas between; the numbers of a domain are applied in their order, so a position
//! says that all of the domain up to it are there (knowledge base: "Global Transaction ID").

use std::collections::BTreeMap;

/// A set of identifiers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GtidSet {
    /// By source and tag, or by domain: intervals with both their ends, in order, none touching.
    parts: BTreeMap<Box<str>, Vec<Interval>>,
}

type Interval = (u64, u64);

impl GtidSet {
    /// Reads a server's `gtid_executed`, or its `gtid_binlog_pos` or `gtid_slave_pos`; `None` for
    /// what is none of them.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut set = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if part.contains(':') { set.add_mysql(part)? } else { set.add_mariadb(part)? }
        }
        Some(set)
    }

    fn add_mysql(&mut self, part: &str) -> Option<()> {
        let mut fields = part.split(':').map(str::trim);
        let source = fields.next().filter(|source| !source.is_empty())?.to_ascii_lowercase();
        let mut of = source.clone();
        for field in fields {
            if field.starts_with(|c: char| c.is_ascii_digit()) {
                let (first, last) = field.split_once('-').unwrap_or((field, field));
                self.add(&of, (first.trim().parse().ok()?, last.trim().parse().ok()?))?;
            } else {
                of = format!("{source}:{field}");
            }
        }
        Some(())
    }

    fn add_mariadb(&mut self, part: &str) -> Option<()> {
        let mut fields = part.split('-').map(|field| field.trim().parse::<u64>().ok());
        let (domain, _server, number) = (fields.next()??, fields.next()??, fields.next()??);
        self.add(&domain.to_string(), (1, number))
    }

    fn add(&mut self, part: &str, (first, last): Interval) -> Option<()> {
        if first > last {
            return None;
        }
        let intervals = self.parts.entry(part.into()).or_default();
        intervals.push((first, last));
        intervals.sort_unstable();
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for &(first, last) in intervals.iter() {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = (*end).max(last),
                Some(_) | None => merged.push((first, last)),
            }
        }
        *intervals = merged;
        Some(())
    }

    /// Whether there is none in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether all of `other` are in it.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        other.parts.iter().all(|(part, intervals)| {
            let own = self.parts.get(part).map_or(&[][..], Vec::as_slice);
            let within = |of: &Interval| own.iter().any(|i| i.0 <= of.0 && of.1 <= i.1);
            intervals.iter().all(within)
        })
    }

    /// What is in it and not in `other`.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut parts = BTreeMap::new();
        for (part, intervals) in &self.parts {
            let taken = other.parts.get(part).map_or(&[][..], Vec::as_slice);
            let left: Vec<Interval> =
                intervals.iter().flat_map(|interval| uncovered(*interval, taken)).collect();
            if !left.is_empty() {
                parts.insert(part.clone(), left);
            }
        }
        Self { parts }
    }
}

/// The parts of an interval that none of these covers.
fn uncovered((first, last): Interval, taken: &[Interval]) -> Vec<Interval> {
    let mut left = Vec::new();
    let mut from = Some(first);
    for &(begin, end) in taken.iter().filter(|(begin, end)| *begin <= last && first <= *end) {
        if let Some(from) = from.filter(|from| *from < begin) {
            left.push((from, begin.saturating_sub(1)));
        }
        from = end.checked_add(1).filter(|next| *next <= last);
    }
    left.extend(from.map(|from| (from, last)));
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3E11FA47-71CA-11E1-9E33-C80AA9429562";
    const B: &str = "4350f323-7565-4e59-8763-4b1b83a0ce0e";

    fn set(text: &str) -> GtidSet {
        GtidSet::parse(text).unwrap()
    }

    #[test]
    fn what_servers_write_is_read() {
        assert!(set("").is_empty());
        assert_eq!(set(&format!("{A}:1-3:5,\n{B}:7")), set(&format!("{B}:7,{A}:5:1-2:3")));
        assert_eq!(set(&format!("{A}:1-2:3-4")), set(&format!("{A}:1-4")));
        assert_eq!(set(&format!("{A}:1-4:web:1-2")), set(&format!("{A}:1-4,{A}:web:1-2")));
        assert_eq!(set("0-1-100,7-2-5"), set("7-2-5,0-9-100"));
        for text in ["x", "0-1", "0-1-x", &format!("{A}:4-1"), &format!("{A}:1-x"), ":1"] {
            assert_eq!(GtidSet::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_gap_is_not_contained() {
        let executed = set(&format!("{A}:1-100:102-200,{B}:1-5"));
        for there in [format!("{A}:1-100"), format!("{A}:110-120,{B}:5"), String::new()] {
            assert!(executed.contains(&set(&there)), "{there}");
        }
        for missing in [format!("{A}:1-101"), format!("{A}:100-102"), format!("{B}:5-6")] {
            assert!(!executed.contains(&set(&missing)), "{missing}");
        }
        assert!(!executed.contains(&set(&format!("{A}:web:1"))), "a tag has numbers of its own");
        assert!(set("0-1-100,7-1-5").contains(&set("0-2-100")));
        assert!(!set("0-1-100,7-1-5").contains(&set("7-1-6")));
    }

    #[test]
    fn what_was_there_before_is_not_asked_for() {
        let without = |all: &str, before: &str| set(all).without(&set(before));
        assert_eq!(without("0-1-9,7-1-5", "0-1-4"), {
            let mut left = set("7-1-5");
            left.add("0", (5, 9)).unwrap();
            left
        });
        let all = format!("{A}:1-100,{B}:1-5");
        assert_eq!(without(&all, &format!("{A}:1-9:20-30:95-200,{B}:1-5")), {
            set(&format!("{A}:10-19:31-94"))
        });
        assert!(without(&all, &all).is_empty());
        assert_eq!(without(&format!("{A}:18446744073709551615"), ""), {
            set(&format!("{A}:18446744073709551615"))
        });
    }
}
