//! The keys of `insights`.

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
    ],
};
