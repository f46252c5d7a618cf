//! The text of a guard's refusal: what is wrong, how to write it, and the stable part of every
//! refusal.
//!
//! `User has exceeded the 'sluice' resource: this DELETE has no WHERE, write one that names a column
//! [sluice id=007f3a9c rule=none identity=shop reason=guard guard=where check=where_required
//! offset=0 waited_ms=0 retry_after_ms=0 executed=no]`

use std::time::Duration;

use admission::Reason;

use super::{GuardHit, Guards, TextFault};
use crate::refusal::push_identity;

/// Longest key of a tag in the text.
const KEY_LEN_MAX: usize = 40;

/// Writes the message of a statement that a guard refuses. `id` is the number under which the log
/// has it; it has waited if the guard came while it did. With the longest of everything it stays below
/// the 512 bytes that clients keep.
pub fn write_message(
    out: &mut Vec<u8>,
    guards: &Guards,
    hit: &GuardHit,
    (id, waited): (u32, Duration),
    app: &[u8],
) {
    let mut text = guards.of(hit).map(|guard| guard.error.prefix.clone()).unwrap_or_default();
    text.push_str(": ");
    text.push_str(&hit.advice());
    text.push_str(&format!(" [sluice id={id:08x} rule=none identity="));
    push_identity(&mut text, app);
    let GuardHit { guard, check, offset, .. } = hit;
    let (reason, waited_ms) = (Reason::Guard, waited.as_millis());
    let retry_after_ms = hit.retry_after().as_millis();
    text.push_str(&format!(
        " reason={reason} guard={guard} check={check} offset={offset} \
         waited_ms={waited_ms} retry_after_ms={retry_after_ms} executed=no]"
    ));
    out.extend_from_slice(text.as_bytes());
}

impl GuardHit {
    /// What is wrong, and how to write it.
    #[must_use]
    pub fn advice(&self) -> String {
        advice(&self.fault)
    }

    /// After how long the same text passes; zero where it never does.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        let TextFault::Ddl { now, until: Some(until) } = &self.fault else { return Duration::ZERO };
        Duration::from_secs(u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0))
    }
}

fn advice(fault: &TextFault) -> String {
    let verb = |deletes: bool| if deletes { "DELETE" } else { "UPDATE" };
    match fault {
        TextFault::NoWhere { deletes } => {
            format!("this {} has no WHERE, write one that names a column", verb(*deletes))
        }
        TextFault::ConstantWhere { deletes } => {
            format!("the WHERE of this {} names no column, write one that does", verb(*deletes))
        }
        TextFault::CrossJoin => "this join has no condition, write ON, USING or a WHERE".to_owned(),
        TextFault::InList { len, most } => {
            format!("this IN lists {len} values and may list {most}, split it or join a table")
        }
        TextFault::Long { most } => {
            format!("this text is longer than {most} bytes, split it or send values as parameters")
        }
        TextFault::NoTag(key) => {
            let key = String::from_utf8_lossy(key);
            let key: String = key.chars().take(KEY_LEN_MAX).collect();
            format!("this statement has no tag {key}, write /*{key}='...'*/ at its end")
        }
        TextFault::RowsExpected { rows, most } => format!(
            "the server expects to read {rows} rows for it and {most} are allowed, add a condition \
             that an index serves"
        ),
        TextFault::Ddl { until: Some(until), .. } => {
            format!("the schema may not be changed now, send it again at {until} or later")
        }
        TextFault::Ddl { until: None, .. } => {
            "the schema may not be changed for days, see no_ddl_hours".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::GuardMode;
    use crate::time::UnixTime;

    const WAITED: Duration = Duration::from_millis(1_500);

    #[test]
    fn what_passes_later_says_when_and_what_never_does_says_nothing() {
        let told = |fault| {
            let (guard, mode) = ("hours".into(), GuardMode::Deny);
            let hit = GuardHit { guard, check: "c", mode, offset: 0, index: 0, fault };
            let mut message = Vec::new();
            write_message(&mut message, &Guards::default(), &hit, (1, WAITED), b"app");
            String::from_utf8(message).unwrap()
        };
        let now = UnixTime(1_795_449_570);
        let until = Some(UnixTime(1_795_449_600));
        let ends = told(TextFault::Ddl { now, until });
        assert!(ends.contains("send it again at 2026-11-23T16:00:00Z or later ["), "{ends}");
        assert!(ends.contains(" waited_ms=1500 retry_after_ms=30000 "), "{ends}");
        for never in [TextFault::Ddl { now, until: None }, TextFault::CrossJoin] {
            let never = told(never);
            assert!(never.contains(" retry_after_ms=0 "), "{never}");
        }
    }
}
