//! The keys of `metrics`, `starvation`, `insights` and `history`: what is told of identities.

use super::keys::{Section, Shown, live};
use crate::compile::limits;

pub(super) const INSIGHTS: Section = Section {
    title: "`insights`",
    about: "What each digest, app, schema and user has cost: see [insights](INSIGHTS.md).",
    keys: &[
        live(
            "enabled",
            "Whether statements are counted.",
            Shown::Words("`true`", "`true`, `false`"),
            "",
        ),
        live(
            "max_digests",
            "Combinations of digest, app, schema and user that have a row of their own in a minute; a \
             quarter of it in ten minutes. The others are `other`. In force from the next minute on.",
            Shown::Count(limits::MAX_DIGESTS),
            "More rows; memory, at most 30 KiB for each.",
        ),
        live(
            "sample_text",
            "Whether one statement of each digest is kept as it came, values included: they are shown to \
             whoever may look at the admin port.",
            Shown::Words("`false`", "`true`, `false`"),
            "",
        ),
        live(
            "tags",
            "The tags by whose values statements are counted too (`by=tag:NAME`), as rules read them: \
             query attributes, comments, connection attributes. Values that are many (an id, a trace) \
             are mostly counted as `other`.",
            Shown::Words("none", "up to 4 keys; none that names the app"),
            "",
        ),
    ],
};

pub(super) const HISTORY: Section = Section {
    title: "`history`",
    about: "What happened, as `sluice history` tells it, in `history.sqlite3` of `state_dir`: see \
            [history](HISTORY.md).",
    keys: &[
        live(
            "enabled",
            "Whether what happens is kept, in memory or on disk. What is on disk already stays there.",
            Shown::Words("`true`", "`true`, `false`"),
            "",
        ),
        live(
            "max_age",
            "What is older goes.",
            Shown::Time(limits::HISTORY_AGE),
            "A longer history; a larger file.",
        ),
        live(
            "max_size",
            "The largest size of the file; the oldest goes first. A file does not become smaller by a \
             smaller value, it stays as it is and is used again.",
            Shown::Words("256MiB", "1MiB to 64GiB, or bytes"),
            "A longer history; a larger file.",
        ),
    ],
};

pub(super) const METRICS: Section = Section {
    title: "`metrics`",
    about: "",
    keys: &[live(
        "max_apps",
        "Most values of the label `app`; the rest are `other`.",
        Shown::Count(limits::MAX_APPS),
        "More series.",
    )],
};

pub(super) const STARVATION: Section = Section {
    title: "`starvation`",
    about: "An identity that has waited or been refused for more than this share of the window is \
            reported in a metric, a log line and on the page, with the apps that were admitted \
            meanwhile. Waits of less than 5 s (less than share × window, where that is shorter) do \
            not count. So is one that received less than half of its fair share beside the others \
            for as long.",
    keys: &[
        live(
            "share",
            "The share of the window; 0 switches the detection off.",
            Shown::Words("0.014: ten minutes in twelve hours", "0 to 1"),
            "Fewer reports.",
        ),
        live(
            "window",
            "How far it looks back.",
            Shown::Time(limits::STARVATION_WINDOW),
            "Single waits matter less, reports come later.",
        ),
    ],
};
