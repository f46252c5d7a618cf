//! The keys of a rule.

use super::keys::{Key, NAMES, REQUIRED, Shown, live};
use crate::compile::limits;

/// The keys of one of `rules`.
pub(super) const RULE_KEYS: &[Key] = &[
    live(
        "name",
        "Its name in metrics, logs and messages.",
        Shown::Words(REQUIRED, "up to 64 letters, digits and `-_.:/@+`, once in the file"),
        "",
    ),
    live("match", "Whom and what it matches.", Shown::Words("everything", ""), ""),
    live(
        "ratio",
        "The probability that one check is refused, whatever the metrics say. Not a speed: each lost check of a \
         session waits `check_interval`, so at 0.9 a session that did 1,500 writes a second does about one. To \
         slow a session down use `speed`.",
        Shown::Words("0", "0 to 1"),
        "Longer delays, a smaller share where others wait too.",
    ),
    live(
        "speed",
        "The part of its own speed at which each session goes: what took the server t is followed by a pause of \
         t × (1/speed − 1) before the session's next admission, 0.1 is a tenth. t is the time that Sluice waited \
         for the server's answers to whatever of the session the rule matches, reads too; of an admitted \
         transaction, which is never paused inside, all of it. One pause lasts `max_delay` at most, before the \
         checks, and is never an error. It is waited for from the end of the work: a session that does nothing \
         for so long is not held up, nor is its first statement.",
        Shown::Words("1", "above 0, up to 1"),
        "Shorter pauses.",
    ),
    live(
        "gate",
        "The signals that must be healthy.",
        Shown::Words("the cluster's `default_gate`", "names of signals, or `none`"),
        "",
    ),
    live(
        "statements",
        "The [classes](#classes-of-statements) that it can delay or refuse. `write` covers `write`, \
         `locking_read`, `call`, `load` and `unknown`. With `deny` the default is all that changes data or schema: \
         `[write, ddl]`, and where a rule denies `ddl` it denies RENAME TABLE too.",
        Shown::Words(
            "`[write]`; `[write, ddl]` with `deny`",
            "`read`, `locking_read`, `write`, `load`, `call`, `ddl`, `unknown`",
        ),
        "",
    ),
    live(
        "max_delay",
        "Longest wait in the queue, and longest pause of `speed`, which comes before it; 0s does not wait.",
        Shown::Time(limits::MAX_DELAY),
        "Fewer refusals, longer waits. Stay below the client's own timeout.",
    ),
    live(
        "on_refused_check",
        "`delay`: stay queued and check again; `reject`: refuse at once.",
        Shown::Words("`delay`", "`delay`, `reject`"),
        "",
    ),
    live(
        "on_timeout",
        "What happens when `max_delay` has passed.",
        Shown::Words("`reject`", "`reject`, `admit`"),
        "",
    ),
    live(
        "max_queue",
        "Most waiters of this rule; one more is refused at once.",
        Shown::Count(limits::MAX_QUEUE),
        "More clients wait instead of being refused.",
    ),
    live(
        "weight",
        "Share of this rule against others at a contended gate. All apps that the rule matches have it together, each as much as the other.",
        Shown::Count(limits::WEIGHT),
        "A larger share.",
    ),
    live(
        "min_rate",
        "Rows a second that pass while the gate is open, even if the pace has no room for them: a floor.",
        Shown::Words("none", "1 to 1000000000"),
        "More passes beside the pace.",
    ),
    live(
        "max_rate",
        "Rows a second at most, whatever the gate says: a cap. What is too much waits its turn, and is \
         refused as `paced` after `max_delay`.",
        Shown::Words("none", "1 to 1000000000"),
        "More passes.",
    ),
    live(
        "max_in_flight",
        "Statements of the rule at the server at once, and transactions: a place is free when the server has \
         really finished. What is too much waits like behind `max_rate`.",
        Shown::Words("none", "1 to 1000000000"),
        "More run at once.",
    ),
    live("exempt", "Skips dice and gate; still counted.", Shown::Words("false", "true, false"), ""),
    live(
        "deny",
        "Refused always, as a policy. The client reads the rule's `reason`.",
        Shown::Words("false", "true, false"),
        "",
    ),
    live(
        "hold",
        "Nothing is admitted until it is lifted; waiters wait up to `max_delay`.",
        Shown::Words("false", "true, false"),
        "",
    ),
    live(
        "mode",
        "`enforce`, or `observe`: decide and count, change nothing.",
        Shown::Words("the cluster's", "`enforce`, `observe`"),
        "",
    ),
    live(
        "error",
        "What a refused client is told.",
        Shown::Words("`retryable`; `quota` with `deny`", "see below"),
        "",
    ),
    live(
        "honour_priority",
        "Scales the ratio by the priority that a statement names, `/*vt+ PRIORITY=70 */`, 0 the highest and \
         100 the lowest: the ratio is `ratio × priority / 100`, so priority 0 throws no dice. The gate and a \
         hold are for all priorities. Without it priorities mean nothing.",
        Shown::Words("false", "true, false"),
        "",
    ),
    live(
        "schedule",
        "When it is in force: days, hours, time zone; or a list of such windows, of which one is enough.",
        Shown::Words("always", "see below"),
        "",
    ),
    live(
        "on_client_gone",
        "What becomes of a running statement whose client has left and that no admission holds: `close` the \
         server's connection, which the server notices as if the client had gone from it; `kill` the query, with \
         KILL QUERY over the probe's account; or let it `finish`.",
        Shown::Words("`close`", "`close`, `kill`, `finish`"),
        "",
    ),
    live(
        "expires_at",
        "The second from which the rule is gone.",
        Shown::Words("required, unless permanent", "RFC 3339, like 2026-12-01T07:00:00Z"),
        "",
    ),
    live("permanent", "The rule does not expire.", Shown::Words("false", "true, false"), ""),
    live(
        "essential",
        "Lets an exempt rule be permanent.",
        Shown::Words("false", "true, false"),
        "",
    ),
    live(
        "runaway",
        "What its statements may take at the server, and what is done with one that takes more: see below, and \
         [RUNAWAY](RUNAWAY.md).",
        Shown::Words("none", "see there"),
        "",
    ),
    live(
        "reason",
        "Why the rule exists, shown wherever it is shown; the first 120 bytes to whom it denies.",
        Shown::Words("empty", "up to 1000 bytes"),
        "",
    ),
];

/// The keys of its `schedule`.
pub(super) const SCHEDULE_KEYS: &[Key] = &[
    live(
        "days",
        "Days on which its hours begin.",
        Shown::Words("every day", "`mon` to `sun`, ranges like `mon-fri`; one or a list"),
        "",
    ),
    live(
        "hours",
        "Hours of the day. A span over midnight belongs to the day on which it begins.",
        Shown::Words("the whole day", "spans like `07:00-19:30`, `22:00-06:00`; one or a list"),
        "",
    ),
    live(
        "time_zone",
        "Whose days and hours. The zones are compiled in.",
        Shown::Words("`UTC`", "a name of the IANA database, like `Europe/Berlin`"),
        "",
    ),
];

/// The keys of its `match`.
pub(super) const MATCH_KEYS: &[Key] = &[
    live(
        "app",
        "The app. A value without `:` matches an app that has it as one of its levels, a value with `:` \
         the whole app.",
        Shown::Words("any", NAMES),
        "",
    ),
    live(
        "tag",
        "Other keys of query attributes, comments and connection attributes: `{controller: reports}`.",
        Shown::Words("any", "values by key"),
        "",
    ),
    live(
        "attribute",
        "Connection attributes: `{_client_name: libmysql}`. The first 256 of a connection count, 16 KiB of \
         them.",
        Shown::Words("any", "values by key"),
        "",
    ),
    live("user", "The MySQL user.", Shown::Words("any", NAMES), ""),
    live("schema", "The default schema; case does not count.", Shown::Words("any", NAMES), ""),
    live(
        "client",
        "The client's address.",
        Shown::Words("any", "addresses or networks, one or a list"),
        "",
    ),
    live(
        "cluster",
        "The clusters in which the rule is in force.",
        Shown::Words("all", "names, one or a list"),
        "",
    ),
    live(
        "statements",
        "Classes of statements; unlike the rule's `statements` it decides whether the rule matches. Where both \
         are there they name the same.",
        Shown::Words("any", "the classes, `transaction`, `session`, `admin`"),
        "",
    ),
    live(
        "digest",
        "What the statement looks like without its values, as `sluice explain` prints it: the hash of 16 \
         hexadecimal digits, or the text.",
        Shown::Words("any", "hashes or texts, one or a list"),
        "",
    ),
    live(
        "table",
        "A table that the statement writes or reads: `orders`, `shop.orders`, `tmp_*`, `shop.*`, `*`. Names \
         without a schema are in the default schema; case does not count. DROP DATABASE is about every table of \
         the schema.",
        Shown::Words("any", "one or a list"),
        "",
    ),
];
