//! The reference of the configuration file, `docs/CONFIG.md`.

mod admin_keys;
mod budget_keys;
mod bypass_keys;
mod classes;
mod compression_keys;
mod guard_keys;
mod identity_keys;
mod insights_keys;
mod keys;
mod latency_keys;
mod network_keys;
mod replica_keys;
mod rule_keys;
mod sections;
mod tls_keys;

use self::classes::CLASSES;
use self::keys::Key;
use self::sections::SECTIONS;

/// The reference in Markdown.
#[must_use]
pub fn config_reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    for section in SECTIONS {
        text.push_str(&format!("\n## {}\n\n", section.title));
        if !section.about.is_empty() {
            text.push_str(&format!("{}\n\n", section.about));
        }
        text.push_str("| key | meaning | default | range | raising it | live |\n");
        text.push_str("|---|---|---|---|---|---|\n");
        for key in section.keys {
            push_key(&mut text, key);
        }
    }
    text.push_str(CLASSES);
    text.push_str(NOTES);
    text
}

fn push_key(text: &mut String, key: &Key) {
    let Key { name, meaning, limits, raising, live } = key;
    let (default, range) = limits.show();
    let raising = if raising.is_empty() { "–" } else { raising };
    let live = live.as_str();
    let row = format!("| `{name}` | {meaning} | {default} | {range} | {raising} | {live} |\n");
    text.push_str(&row);
}

const INTRODUCTION: &str = "\
# The configuration file

Made by `cargo run -p policy --example config_reference > docs/CONFIG.md`; the ranges are those that the
reader checks, and tests hold the keys to those that it knows. `proxy-config.yaml` is a complete example.

Saving the file applies it within a second. A file with faults changes nothing, and all of its faults
are reported with their paths and lines. What says `no` under *live* keeps its value until the process
is started again; the log names it.

Durations have a unit: `250ms`, `5s`, `10m`, `1h30m`, `1d`. Unknown keys, keys that are there twice and
values out of range are faults. Anchors and aliases work, merge keys (`<<`) do not.
";

const NOTES: &str = "
## Notes

- Secrets are never in the file: they come from the environment variable or the file that it names.
- A rule that cannot do what it says is a fault: one without an end, one whose `statements` can never
  be delayed, keys without effect beside `exempt` or `deny`; one whose `match.statements` names a class that
  the rule does not cover, or the other way round: such a statement would match and pass, and the rules
  behind it would not see it. (A rule with `gate: none` that holds nothing back may match any class.)
- An exempt rule skips every class, whatever its `statements` would be.
- A rule on `table` matches when one of the statement's tables is among its values, read or written. Tables
  behind views, triggers, routines, MERGE and FEDERATED tables are not in the text: name views too. A name that
  WITH gives is taken for a table of the default schema (`WITH archive AS (…) SELECT * FROM archive` is about
  `archive`): which of the two is meant goes by where it stands, and no guess lets a table through. When not
  all tables of a statement can be told, a rule that throttles or denies a class of it matches: nothing
  escapes it by being hard to read. That is CALL and what else is `call`; triggers, procedures and events
  that are made, changed or dropped, ALTER DATABASE, IMPORT TABLE; what cannot be read, or not to its end
  (texts of more than 1 MiB); EXECUTE of what is not known. So where `deny` protects a table, let
  procedures that are known to leave it alone pass by a rule in front, on their digest, an app or a user. A
  rule that lets pass (`exempt`, or `gate: none` that holds nothing back), or whose `statements` lack the
  class, matches only when all tables are known and all are among its values.
- A statement has no digest for `digest` while it is not certain how the server reads it (executable comments
  on a server of unknown version, text that does not end, more than 256 KiB): then no rule on a digest
  matches. Who wants to escape such a rule writes the statement differently.
- Networks are compared by their longest prefix, but rules are a list: the first that matches decides.
";

#[cfg(test)]
mod tests;
