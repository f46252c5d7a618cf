//! The keys of a budget.

use super::keys::{Key, REQUIRED, Section, Shown, live};
use crate::compile::limits;

/// `budgets`.
pub(super) const BUDGETS: Section = Section {
    title: "`budgets[]`",
    about: "What statements may use of the server together: every budget whose `match` meets a statement \
            must have room for it, whatever rule decides. [Budgets](BUDGETS.md) has the details.",
    keys: BUDGET_KEYS,
};

const BUDGET_KEYS: &[Key] = &[
    live(
        "name",
        "Its name in metrics, logs and messages.",
        Shown::Words(REQUIRED, "up to 64 letters, digits and `-_.:/@+`, once among the budgets"),
        "",
    ),
    live(
        "match",
        "Whom and what it meets, as in rules; reads too, unless `statements` says otherwise.",
        Shown::Words("everything", ""),
        "",
    ),
    live(
        "max_concurrency",
        "Statements at the server at once, each from when it is sent to the end of its answer.",
        Shown::Words("none", "1 to 1000000"),
        "More run at once.",
    ),
    live(
        "rate",
        "Statements a second. A text of several statements counts as one.",
        Shown::Words("none", "0.001 to 1000000000"),
        "More pass.",
    ),
    live(
        "rows_per_s",
        "Rows changed or sent a second. How many of a statement is foreseen by its digest.",
        Shown::Words("none", "0.001 to 1000000000"),
        "More pass.",
    ),
    live(
        "share",
        "Server-seconds a second: 0.25 is a quarter of one session that works all the time. What a \
         statement will take is foreseen by its digest, and put right when it has ended.",
        Shown::Words("none", "0.001 to 100000"),
        "More pass.",
    ),
    live(
        "burst",
        "Server-seconds that may be owed to `share` at a time. A statement that is larger passes when nothing \
         is owed.",
        Shown::Words(
            "what `share` gives in a second",
            "server-seconds like `2`, or a duration like `2s`",
        ),
        "More comes at once after a rest.",
    ),
    live(
        "max_query_cost",
        "Server-seconds that a statement is foreseen to take at most: a digest that takes more is refused. \
         Every ten minutes one of them is let through, to see whether it still does.",
        Shown::Words("none", "server-seconds like `2`, or a duration like `2s`"),
        "Fewer are refused.",
    ),
    live(
        "per",
        "Who has a budget of this size each. Without it all that it meets share one.",
        Shown::Words("one for all", "`app`, `user`, `tag:NAME`, `client`, `digest`"),
        "",
    ),
    live(
        "on_exceeded",
        "What happens to a statement without room: `delay`, it waits; `refuse` (or `reject`, as in rules), it does not.",
        Shown::Words("`delay`", "`delay`, `refuse`, `reject`"),
        "",
    ),
    live(
        "max_delay",
        "Longest wait for it; then the statement is refused. The wait that a rule allows begins behind it.",
        Shown::Time(limits::BUDGET_MAX_DELAY),
        "Fewer refusals, longer waits. Stay below the client's own timeout.",
    ),
    live(
        "mode",
        "`enforce`, or `warn` (or `observe`, as in rules): count what has no room, and let it pass. In a cluster that observes, all warn.",
        Shown::Words("`enforce`", "`enforce`, `warn`, `observe`"),
        "",
    ),
    live("reason", "Why it exists, for people.", Shown::Words("empty", "up to 1000 bytes"), ""),
];
