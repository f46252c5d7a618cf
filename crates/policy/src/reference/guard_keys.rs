//! The keys of a guard.

use super::keys::{Key, REQUIRED, Shown, live};
use crate::compile::limits;

const MODES: &str = "`off`, `warn`, `deny`";

/// The keys of one of `guards`.
pub(super) const GUARD_KEYS: &[Key] = &[
    live(
        "name",
        "Its name in metrics, logs and messages.",
        Shown::Words(REQUIRED, "up to 64 letters, digits and `-_.:/@+`, once in the file"),
        "",
    ),
    live("match", "Whom it is about, as in rules.", Shown::Words("everybody", ""), ""),
    live(
        "mode",
        "How far any of its checks goes at most: `warn` counts, `deny` refuses.",
        Shown::Words("`deny`", MODES),
        "",
    ),
    live(
        "where_required",
        "An UPDATE or DELETE has a WHERE of its own that names a column.",
        Shown::Words("`off`", MODES),
        "",
    ),
    live(
        "limit_counts",
        "Of `where_required`: a LIMIT is enough.",
        Shown::Words("`false`", "`true`, `false`"),
        "",
    ),
    live(
        "constant_counts",
        "Of `where_required`: a WHERE of constants only (`WHERE 1 = 1`) is enough.",
        Shown::Words("`false`", "`true`, `false`"),
        "",
    ),
    live(
        "no_cross_join",
        "A join has ON or USING, or its query block has a WHERE.",
        Shown::Words("`off`", MODES),
        "",
    ),
    live(
        "max_in_list",
        "Most elements of a list of IN.",
        Shown::Words("`off`", "1 to 1000000, `off`"),
        "Longer lists pass.",
    ),
    live(
        "max_statement_bytes",
        "Longest text, parameters not counted. From 16777214 bytes on it refuses nothing: longer texts are \
         sent on before their length is known, as not judged.",
        Shown::Words("`off`", "a size like `1MiB`, or bytes; up to 1GiB; `off`"),
        "Longer texts pass.",
    ),
    live(
        "require_tag",
        "Keys of tags that a statement on tables must have. A prepared statement may bring them with each \
         execution.",
        Shown::Words("`off`", "one key or a list, up to 16; none that names the app; `off`"),
        "",
    ),
    live(
        "no_ddl_hours",
        "No DDL while this is in force: as `schedule` of a rule, or its hours alone, like `08:00-19:00` (every day, UTC).",
        Shown::Words(
            "`off`",
            "as `rules[].schedule` or spans like `08:00-19:00`, one or a list; `off`",
        ),
        "",
    ),
    live(
        "max_rows_expected",
        "Most rows that the primary expects to read for a SELECT, UPDATE, DELETE, INSERT … SELECT or REPLACE … \
         SELECT, by its EXPLAIN, asked over the probe's account: [how](GUARDS.md#rows-expected).",
        Shown::Words("`off`", "1 and more, `off`"),
        "Larger ones pass.",
    ),
    live(
        "explain_timeout",
        "Of `max_rows_expected`: how long a statement waits for its EXPLAIN, before it passes.",
        Shown::Time(limits::EXPLAIN_TIMEOUT),
        "Fewer statements pass unjudged, those that are new wait longer.",
    ),
    live(
        "error",
        "What a refused client is told, as in rules.",
        Shown::Words("`quota`", "as `rules[].error`"),
        "",
    ),
    live("reason", "Why it exists, for people.", Shown::Words("empty", "up to 1000 bytes"), ""),
];

const _: () = assert!(limits::MAX_IN_LIST.max == 1_000_000);
const _: () = assert!(limits::MAX_STATEMENT_BYTES == 1 << 30);

/// The keys of `runaway` of a rule.
pub(super) const RUNAWAY_KEYS: &[Key] = &[
    live(
        "elapsed",
        "Longest time from the last byte of the statement sent to the server to the last one of its answer. \
         Time in the queue does not count.",
        Shown::Words("none", "10ms to 7d"),
        "Longer statements pass.",
    ),
    live(
        "bytes_sent",
        "Most bytes of an answer, as they come from the server.",
        Shown::Words("none", "a size like `1GiB`, or bytes"),
        "Larger answers pass.",
    ),
    live(
        "rows_sent",
        "Most rows of an answer, of all its result sets together.",
        Shown::Words("none", "1 and more"),
        "Longer answers pass.",
    ),
    live(
        "action",
        "`log`: it is counted and logged; `kill`: KILL QUERY over the probe's account, which needs \
         CONNECTION_ADMIN (MariaDB: CONNECTION ADMIN) and PROCESS; `deprioritise`: it goes on, and of \
         statements like it one at a time is at the server, for as long as `watch` says.",
        Shown::Words("`log`", "`log`, `kill`, `deprioritise`"),
        "",
    ),
    live(
        "watch",
        "With `kill`: statements like a killed one are refused for a while. With `deprioritise`: which are \
         like it, and for how long. With `log` it does nothing, which is a warning.",
        Shown::Words("none", "see below"),
        "",
    ),
];

/// The keys of `watch` of it.
pub(super) const WATCH_KEYS: &[Key] = &[
    live(
        "by",
        "What makes statements alike: their `digest`, or their `text` byte by byte.",
        Shown::Words("`digest`", "`digest`, `text`"),
        "",
    ),
    live(
        "for",
        "How long they are refused, or come last.",
        Shown::Words(REQUIRED, "1s to 7d"),
        "For longer.",
    ),
];

const _: () = assert!(limits::QUARANTINE.min.as_secs() == 1);
const _: () = assert!(limits::RUNAWAY_ELAPSED.min.as_millis() == 10);
