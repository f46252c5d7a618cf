//! The text of a refusal: one line, first what clients and tools look for, then a stable part of
//! `key=value`, never SQL text.
//!
//! `Lock wait timeout exceeded; try restarting transaction [sluice id=007f3a9c rule=backfill
//! identity=online-ddl reason=gate_closed signal=lag value=12.3s threshold=5s waited_ms=1500
//! retry_after_ms=800 executed=no]`
//!
//! A budget names itself, `reason=budget_concurrency budget=reports`, where a gate names its signal.
//!
//! A rule that denies says why in front of that part, for people: `User has exceeded the 'sluice'
//! resource: ask the data team [sluice … reason=deny …]`.

use std::borrow::Cow;

use admission::{Cause, Reason, Refusal};

use crate::cluster::{ClusterPolicy, SignalKind};
use crate::rule::{RefusalProfile, Rule};
use crate::time::UnixTime;

/// The name of the rule that decided where there was none.
const NO_RULE: &str = "none";

/// Longest identity in the text. With it, the whole text stays below the 512 bytes that clients
/// keep (`MYSQL_ERRMSG_SIZE`): 120 for what it begins with, twice 64 for names, 64 here, and the
/// rest is numbers; a denial has no signal, and [`REASON_LEN_MAX`] instead.
const IDENTITY_LEN_MAX: usize = 64;

/// Most bytes of a rule's `reason` in the text; the page and `sluice explain` have all of it.
const REASON_LEN_MAX: usize = 120;

/// A refusal that stands for as long as its rule does tells how long that is: a place in the queue of
/// one that lets nothing through leads nowhere before.
#[must_use]
pub fn as_long_as_it_stands(rule: Option<&Rule>, refusal: Refusal, now: UnixTime) -> Refusal {
    let Some(rule) = rule else { return refusal };
    let by_rule = matches!(refusal.reason, Reason::Ratio | Reason::QueueFull);
    let stands = refusal.reason == Reason::Hold || (by_rule && rule.lets_nothing_through());
    if stands { Refusal { retry_after: rule.stands_for(now), ..refusal } } else { refusal }
}

/// Writes the message of a refused statement. `id` is the number under which the log has it.
#[expect(
    clippy::too_many_arguments,
    reason = "each is one part of the text, and only the shell that calls it has them all"
)]
pub fn write_message(
    out: &mut Vec<u8>,
    policy: &ClusterPolicy,
    rule: Option<&Rule>,
    id: u32,
    app: &[u8],
    refusal: &Refusal,
) {
    out.extend_from_slice(message(policy, rule, id, app, refusal).as_bytes());
}

/// What a refused client is told: the rule's own profile. What costs too much for its budget, and what
/// is in quarantine, is not worth a retry, and without a rule the default one counts.
#[must_use]
pub fn profile(rule: Option<&Rule>, reason: Reason) -> Cow<'_, RefusalProfile> {
    match (reason, rule) {
        (Reason::BudgetQuery | Reason::Quarantined, _) => Cow::Owned(RefusalProfile::quota()),
        (_, Some(rule)) => Cow::Borrowed(&rule.error),
        (_, None) => Cow::Owned(RefusalProfile::retryable()),
    }
}

fn message(
    policy: &ClusterPolicy,
    rule: Option<&Rule>,
    id: u32,
    app: &[u8],
    refusal: &Refusal,
) -> String {
    let mut text = profile(rule, refusal.reason).prefix.clone();
    if let Some(rule) = rule.filter(|_| refusal.reason == Reason::Deny) {
        push_reason(&mut text, &rule.reason);
    }
    let name = rule.map_or(NO_RULE, |rule| &rule.name);
    text.push_str(&format!(" [sluice id={id:08x} rule={name} identity="));
    push_identity(&mut text, app);
    text.push_str(" reason=");
    text.push_str(refusal.reason.as_str());
    if let Some(Cause { signal, value, threshold }) = refusal.cause {
        let signal = policy.signal(signal);
        let name = signal.map_or("unknown", |signal| &*signal.name);
        let kind = signal.map(|signal| &signal.kind);
        let value = value.map_or_else(|| "none".to_owned(), |value| quantity(value, kind));
        let threshold = quantity(threshold, kind);
        text.push_str(&format!(" signal={name} value={value} threshold={threshold}"));
    }
    if let Some(budget) = refusal.budget.and_then(|budget| policy.budgets.get(budget)) {
        text.push_str(&format!(" budget={}", budget.name));
    }
    let waited_ms = refusal.waited.as_millis();
    let retry_after_ms = refusal.retry_after.as_millis();
    text.push_str(&format!(" waited_ms={waited_ms} retry_after_ms={retry_after_ms} executed=no]"));
    text
}

/// Why the rule exists, on one line, without what the stable part begins or ends with.
fn push_reason(text: &mut String, reason: &str) {
    let mut separator = ": ";
    let mut left = REASON_LEN_MAX;
    for word in reason.split(|c: char| c.is_whitespace() || is_unprintable(c)) {
        if word.is_empty() {
            continue;
        }
        text.push_str(separator);
        for c in word.chars() {
            let Some(rest) = left.checked_sub(c.len_utf8()) else {
                text.push_str("...");
                return;
            };
            left = rest;
            text.push(match c {
                '[' => '(',
                ']' => ')',
                other => other,
            });
        }
        left = left.saturating_sub(1);
        separator = " ";
    }
}

/// Control characters, and those that have no width or turn the direction of a text: names that
/// clients choose are shown without them.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}')
        || matches!(
            c,
            '\u{00AD}' | '\u{061C}' | '\u{180E}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}'
        )
}

/// The app in printable ASCII without what would end the value, and not longer than it may be.
pub(crate) fn push_identity(text: &mut String, app: &[u8]) {
    if app.is_empty() {
        text.push('-');
    }
    for byte in app.iter().take(IDENTITY_LEN_MAX) {
        let plain = byte.is_ascii_graphic() && !matches!(byte, b'[' | b']' | b'=' | b'"' | b'\'');
        text.push(if plain { char::from(*byte) } else { '?' });
    }
    if app.len() > IDENTITY_LEN_MAX {
        text.push_str("...");
    }
}

/// A value of a signal: seconds with their unit, other numbers plain; at most one decimal from 1
/// on, three below.
fn quantity(value: f64, kind: Option<&SignalKind>) -> String {
    let shown = if value.abs() >= 1.0 { format!("{value:.1}") } else { format!("{value:.3}") };
    let shown = shown.trim_end_matches('0').trim_end_matches('.');
    let unit = if kind.is_some_and(SignalKind::is_time) { "s" } else { "" };
    // A custom query can give numbers of 300 digits.
    if shown.len() > QUANTITY_LEN_MAX {
        format!("{value:e}{unit}")
    } else {
        format!("{shown}{unit}")
    }
}

/// Longest number that is written out.
const QUANTITY_LEN_MAX: usize = 20;

#[cfg(test)]
mod tests;
