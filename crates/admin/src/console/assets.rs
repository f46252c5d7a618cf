//! The files of the page, as they are in the binary.

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::refusal::{Error, Refusal};

/// Nothing but what comes from here, nothing inline, and in no frame of anybody.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// A file.
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const DOCUMENT: Asset = Asset {
    name: "",
    kind: "text/html; charset=utf-8",
    bytes: include_bytes!("assets/index.html"),
};

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! assets {
    ($($name:literal: $kind:expr),+ $(,)?) => {
        [$(Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("assets/", $name)),
        }),+]
    };
}

static ASSETS: [Asset; 19] = assets! {
    "app.css": STYLE,
    "controls.css": STYLE,
    "actions.js": SCRIPT,
    "app.js": SCRIPT,
    "cluster.js": SCRIPT,
    "dom.js": SCRIPT,
    "identity.js": SCRIPT,
    "insights.js": SCRIPT,
    "limits.js": SCRIPT,
    "listing.js": SCRIPT,
    "live.js": SCRIPT,
    "names.js": SCRIPT,
    "plots.js": SCRIPT,
    "rules.js": SCRIPT,
    "table.js": SCRIPT,
    "words.js": SCRIPT,
    "icon.svg": "image/svg+xml",
    "uPlot.iife.min.js": SCRIPT,
    "uPlot.min.css": STYLE,
};

/// What this build's files are, so that a page of another build knows itself for old.
pub(super) static BUILD: LazyLock<String> = LazyLock::new(|| {
    let all: Vec<u8> =
        [&DOCUMENT].into_iter().chain(&ASSETS).flat_map(|it| it.bytes).copied().collect();
    tag(&all)
});

/// `GET /`.
pub(crate) async fn document(headers: HeaderMap) -> Response {
    DOCUMENT.answer(&headers)
}

/// `GET /console/NAME`.
pub(crate) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => asset.answer(&headers),
        None => Refusal::new(Error::NotFound, "the console has no such file").into_response(),
    }
}

impl Asset {
    fn answer(&self, asked: &HeaderMap) -> Response {
        let etag = format!("\"{}\"", tag(self.bytes));
        let known = asked.get(IF_NONE_MATCH).is_some_and(|known| *known == *etag);
        let headers = [
            (CONTENT_TYPE, self.kind),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            // Another version may be there after the next restart.
            (CACHE_CONTROL, "no-cache"),
            (ETAG, &etag),
        ];
        if known {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        (headers, self.bytes).into_response()
    }
}

/// A few bytes of the digest, in hexadecimal.
fn tag(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(asset: &Asset) -> String {
        String::from_utf8(asset.bytes.to_vec()).unwrap()
    }

    #[test]
    fn the_page_names_no_other_host_and_has_nothing_inline() {
        for asset in [&DOCUMENT].into_iter().chain(&ASSETS) {
            let ours = text(asset).replace("http://www.w3.org/2000/svg", "");
            // The library's licence names its author's page.
            let ours = ours.replace("https://github.com/leeoniya/uPlot", "");
            assert!(!ours.contains("http://") && !ours.contains("https://"), "{}", asset.name);
        }
        let page = text(&DOCUMENT);
        for inline in [" style=", "<style", " onclick", " onload", "javascript:", "<script>"] {
            assert!(!page.contains(inline), "{inline}");
        }
    }

    #[test]
    fn every_file_that_one_names_is_there() {
        let names: Vec<&str> = ASSETS.iter().map(|asset| asset.name).collect();
        for asset in [&DOCUMENT].into_iter().chain(&ASSETS) {
            let text = text(asset);
            let by_page = text.split("/console/").skip(1);
            let by_import = text.split("from \"./").skip(1);
            for rest in by_page.chain(by_import) {
                let named = rest.split(['"', '\'', '`', ')']).next().unwrap();
                assert!(names.contains(&named), "{} names {named}", asset.name);
            }
        }
    }

    /// Names of clients are text: nothing of ours ever reads text as markup.
    #[test]
    fn no_script_of_ours_makes_markup_of_text() {
        for asset in ASSETS.iter().filter(|asset| asset.name.ends_with(".js")) {
            if asset.name.starts_with("uPlot") {
                continue;
            }
            let text = text(asset);
            for way in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "Function(",
            ] {
                assert!(!text.contains(way), "{} has {way}", asset.name);
            }
        }
    }
}
