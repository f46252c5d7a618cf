//! The keys of compression.

use super::keys::{Section, Shown, live};
use crate::compile::limits;

pub(super) const CLIENT_COMPRESSION: Section = Section {
    title: "`clusters.NAME.client_compression`",
    about: "",
    keys: &[live(
        "algorithms",
        "What clients are offered, whatever the server offers; compression is used when the client asks for it. \
         Without `uncompressed`, clients that do not are refused with errno 3922.",
        Shown::Words("`[zstd, zlib, uncompressed]`", "a list of `zstd`, `zlib`, `uncompressed`"),
        "",
    )],
};

pub(super) const COMPRESSION_LEVEL: Section = Section {
    title: "`clusters.NAME.compression_level`",
    about: "How hard Sluice compresses what it sends, on both legs.",
    keys: &[
        live(
            "zlib",
            "The level of zlib.",
            Shown::Count(limits::ZLIB_LEVEL),
            "Fewer bytes, more CPU: two and a half times as much from 2 to 6, for 7 % fewer bytes.",
        ),
        live(
            "zstd",
            "The level of zstd. A client names one as well; the lower one counts. It is also what the server is asked for.",
            Shown::Count(limits::ZSTD_LEVEL),
            "Fewer bytes, more CPU: four times as much from 3 to 6, twenty times from 3 to 12.",
        ),
    ],
};
