//! What is asked for.

use std::time::Duration;

use insights::{By, Filter, Look};
use serde::Deserialize;

use crate::refusal::{Error, Refusal};
use crate::request::{Parameter, Parameters};

/// Most rows of one answer, and as many as there are unless the query says how many: whoever adds
/// them up has all.
const ROWS_MAX: usize = 10_000;

/// How far back unless the query says so.
const WINDOW: Duration = Duration::from_secs(600);

/// Windows are kept for so long.
const WINDOW_MAX: Duration = Duration::from_secs(86_400);

/// The query.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Query {
    by: Option<String>,
    sort: Option<String>,
    window: Option<String>,
    compare: Option<String>,
    limit: Option<usize>,
    cluster: Option<String>,
    app: Option<String>,
    schema: Option<String>,
    user: Option<String>,
    digest: Option<String>,
    tag: Option<String>,
}

impl Parameters for Query {
    const KNOWN: &'static [Parameter] = &[
        Parameter::text("by"),
        Parameter::text("sort"),
        Parameter::text("window"),
        Parameter::text("compare"),
        Parameter::number("limit"),
        Parameter::text("cluster"),
        Parameter::text("app"),
        Parameter::text("schema"),
        Parameter::text("user"),
        Parameter::text("digest"),
        Parameter::text("tag"),
    ];
}

/// The same, understood.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) cluster: Option<String>,
    pub(super) look: Look,
    /// What it is compared with.
    pub(super) before: Option<Look>,
    pub(super) sort: Sort,
    pub(super) limit: usize,
}

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Count,
    Time,
    Mean,
    P50,
    P95,
    P99,
    Max,
    Errors,
    Lost,
    Warnings,
    Queued,
    Refused,
    ClientGone,
    RowsSent,
    RowsAffected,
    BytesIn,
    BytesOut,
    FirstSeen,
    LastSeen,
}

/// The words for what makes a row.
pub(super) const BYS: [(&str, By); 4] =
    [("digest", By::Digest), ("app", By::App), ("user", By::User), ("table", By::Table)];

const BYS_WORDS: &str = "one of digest, app, user, table, or tag:NAME";

/// The words for what rows are sorted by; those of the fields mean the same.
pub(super) const SORTS: [(&str, Sort); 19] = [
    ("count", Sort::Count),
    ("time", Sort::Time),
    ("mean", Sort::Mean),
    ("p50", Sort::P50),
    ("p95", Sort::P95),
    ("p99", Sort::P99),
    ("max", Sort::Max),
    ("errors", Sort::Errors),
    ("lost", Sort::Lost),
    ("warnings", Sort::Warnings),
    ("queued", Sort::Queued),
    ("refused", Sort::Refused),
    ("client_gone", Sort::ClientGone),
    ("rows_sent", Sort::RowsSent),
    ("rows_affected", Sort::RowsAffected),
    ("bytes_in", Sort::BytesIn),
    ("bytes_out", Sort::BytesOut),
    ("first_seen", Sort::FirstSeen),
    ("last_seen", Sort::LastSeen),
];

impl Asked {
    pub(super) fn of(query: Query) -> Result<Self, Refusal> {
        let (by, tag) = match &query.by {
            None => (By::Digest, ""),
            Some(word) => match word.strip_prefix("tag:") {
                Some(tag) => (By::Tag, tag),
                None => (one_of(word, "by", &BYS).map_err(|no| no.remedy(BYS_WORDS))?, ""),
            },
        };
        let sort = match &query.sort {
            None => Sort::Time,
            Some(word) => one_of(field(word), "sort", &SORTS)?,
        };
        let window = query.window.as_deref().map(|text| span("window", text)).transpose()?;
        let window = window.unwrap_or(WINDOW);
        let digest = query.digest.as_deref().map(digest).transpose()?;
        let of_tag = query.tag.as_deref().map(pair).transpose()?;
        let filter =
            Filter { app: query.app, schema: query.schema, user: query.user, digest, tag: of_tag };
        let look = Look { by, tag: tag.to_owned(), window_s: window.as_secs(), ago_s: 0, filter };
        let ago = match query.compare.as_deref() {
            None => None,
            Some("previous") => Some(window),
            Some(text) => Some(span("compare", text)?),
        };
        let before = ago.map(|ago| Look { ago_s: ago.as_secs(), ..look.clone() });
        let limit = query.limit.unwrap_or(ROWS_MAX).min(ROWS_MAX);
        Ok(Self { cluster: query.cluster, look, before, sort, limit })
    }

    /// The word for what rows are sorted by.
    pub(super) fn sort_word(&self) -> &'static str {
        SORTS.iter().find(|(_, sort)| *sort == self.sort).map_or("", |(word, _)| word)
    }

    /// The tags that the file has to name for this.
    pub(super) fn tags(&self) -> impl Iterator<Item = &str> {
        let by = Some(&*self.look.tag).filter(|_| self.look.by == By::Tag);
        let of = self.look.filter.tag.as_ref().map(|(key, _)| &**key);
        by.into_iter().chain(of)
    }

    /// The word for what makes a row.
    pub(super) fn by_word(&self) -> String {
        if self.look.by == By::Tag {
            return format!("tag:{}", self.look.tag);
        }
        let word = BYS.iter().find(|(_, by)| *by == self.look.by);
        word.map_or("", |(word, _)| word).to_owned()
    }
}

/// `time_p99_s` is `p99`, `queued_total_s` is `queued`.
fn field(word: &str) -> &str {
    match word {
        "time_total_s" | "share" | "total" => "time",
        "time_mean_s" => "mean",
        "time_p50_s" => "p50",
        "time_p95_s" => "p95",
        "time_p99_s" => "p99",
        "time_max_s" => "max",
        "queued_total_s" => "queued",
        other => other,
    }
}

fn one_of<T: Copy>(word: &str, key: &str, known: &[(&str, T)]) -> Result<T, Refusal> {
    match known.iter().find(|(name, _)| *name == word) {
        Some((_, value)) => Ok(*value),
        None => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let message = format!("`{key}` has no value {word:?}");
            Err(Refusal::new(Error::BadRequest, message)
                .remedy(format!("one of {}", names.join(", "))))
        }
    }
}

fn span(key: &str, text: &str) -> Result<Duration, Refusal> {
    let span = policy::parse_duration(text);
    span.filter(|span| *span <= WINDOW_MAX).ok_or_else(|| {
        let message = format!("`{key}` is not a time of a day at most: {text:?}");
        Refusal::new(Error::BadRequest, message).remedy("10m, 1h or 1d, for instance")
    })
}

/// `NAME:VALUE`.
fn pair(text: &str) -> Result<(String, String), Refusal> {
    let (key, value) = text.split_once(':').ok_or_else(|| {
        let message = format!("`tag` is not NAME:VALUE: {text:?}");
        Refusal::new(Error::BadRequest, message).remedy("tag=tenant:acme, for instance")
    })?;
    Ok((key.to_owned(), value.to_owned()))
}

fn digest(text: &str) -> Result<u64, Refusal> {
    u64::from_str_radix(text, 16).map_err(|_| {
        let message = format!("`digest` is not 16 hexadecimal digits: {text:?}");
        Refusal::new(Error::BadRequest, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insights::Cost;

    #[test]
    fn rows_are_sorted_by_every_number_that_they_have() {
        let cost = serde_json::to_value(Cost::default()).unwrap();
        let numbers = cost.as_object().unwrap().keys().filter(|key| !key.contains("_by_"));
        for field in numbers.map(String::as_str).chain(["first_seen", "last_seen"]) {
            let query = Query { sort: Some(field.to_owned()), ..Query::default() };
            assert!(Asked::of(query).is_ok(), "{field}");
        }
        let query = Query { sort: Some("digest".to_owned()), ..Query::default() };
        assert!(Asked::of(query).is_err());
    }

    #[test]
    fn whoever_adds_rows_up_has_all_of_them() {
        assert_eq!(Asked::of(Query::default()).ok().map(|asked| asked.limit), Some(ROWS_MAX));
        let query = Query { limit: Some(3), ..Query::default() };
        assert_eq!(Asked::of(query).ok().map(|asked| asked.limit), Some(3));
    }
}
