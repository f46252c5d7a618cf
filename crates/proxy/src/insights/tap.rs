//! What one connection counts.

use admission::Reason;
use insights::{Kind, Learned, NAME_LEN_MAX, Record, name_hash};
use session::{About, News};
use sql::Class;
use wire::response_tracker::ResponseEnd;

use super::InsightsBoard;

/// A connection's names with their hashes, and what is known of the statement under way.
#[derive(Debug, Default)]
pub(crate) struct InsightsTap {
    app: Named,
    user: Named,
    schema: Named,
    answer: Option<Answered>,
    /// Bytes of the command, and of its answer.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// What the server has answered.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Answered {
    pub(crate) error: Option<u16>,
    rows: u64,
    affected_rows: u64,
    warnings: u16,
}

/// Whose statement it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whose<'s> {
    pub(crate) app: &'s [u8],
    pub(crate) user: &'s [u8],
    pub(crate) about: About<'s>,
}

/// A name and its hash.
#[derive(Debug, Default)]
struct Named {
    name: Vec<u8>,
    hash: u64,
}

impl Named {
    /// The hash of this name, which mostly is the one before. Whoever counts is told the name.
    fn hash(&mut self, name: &[u8], board: &InsightsBoard) -> u64 {
        if self.name != name {
            let name = name.get(..NAME_LEN_MAX).unwrap_or(name);
            self.name.clear();
            self.name.extend_from_slice(name);
            self.hash = name_hash(name);
        }
        if self.hash != 0 && !board.memo.is_told(self.hash) {
            let Self { name, hash } = self;
            board.tell(*hash, || Learned::Name { hash: *hash, name: name.as_slice().into() });
        }
        self.hash
    }
}

impl InsightsTap {
    /// The answer is over.
    pub(crate) fn note_answer(&mut self, end: &ResponseEnd) {
        self.answer = Some(Answered {
            error: end.error,
            rows: end.rows,
            affected_rows: end.affected_rows,
            warnings: u16::try_from(end.warnings).unwrap_or(u16::MAX),
        });
    }

    /// What the server has answered to the statement under way. `None`: it has not.
    pub(crate) fn answer(&self) -> Option<Answered> {
        self.answer
    }

    /// Sends the record of a statement that is over. Without lock, and without memory once its
    /// digest and its names have been told.
    pub(crate) fn record(
        &mut self,
        record: Record,
        Whose { app, user, about }: Whose<'_>,
        (board, worker): (&InsightsBoard, usize),
    ) {
        if let (Some(digest), Some(news)) = (about.digest, about.news) {
            board.tell(digest, || learned(digest, news));
        }
        if !about.tag_news.is_empty() {
            let pairs = about.tag_news.into();
            board.tell(about.tags, || Learned::Tags { hash: about.tags, pairs });
        }
        let answer = self.answer.unwrap_or_default();
        let record = Record {
            digest: about.digest,
            app: self.app.hash(app, board),
            schema: self.schema.hash(about.schema, board),
            user: self.user.hash(user, board),
            tags: about.tags,
            rows_sent: answer.rows,
            rows_affected: answer.affected_rows,
            warnings: answer.warnings,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            ..record
        };
        board.put(&record, worker);
    }

    /// A command is over.
    pub(crate) fn end_command(&mut self) {
        self.answer = None;
        self.bytes_in = 0;
        self.bytes_out = 0;
    }
}

fn learned(hash: u64, news: News<'_>) -> Learned {
    Learned::Digest {
        hash,
        text: news.text.into(),
        tables: news.tables.into(),
        all_tables: news.all_tables,
        kind: kind(news),
        sample: news.sample.map(Into::into),
    }
}

/// What kind of statement it is, in words: the class that it counts as first.
fn kind(News { classes, exemption, .. }: News<'_>) -> Kind {
    let strictest = classes.strictest();
    let others = Class::ALL.into_iter();
    let others = others.filter(|class| classes.contains(*class) && Some(*class) != strictest);
    Kind {
        classes: strictest.into_iter().chain(others).map(Class::as_str).collect(),
        exemption: exemption.map(sql::Exemption::as_str),
    }
}

/// The number of a reason in a record; 0 for none.
pub(crate) fn reason_number(reason: Option<Reason>) -> u16 {
    let place = reason.and_then(|reason| Reason::ALL.iter().position(|known| *known == reason));
    place.and_then(|place| u16::try_from(place.saturating_add(1)).ok()).unwrap_or_default()
}

/// What a statement was refused for, by that number. Without a reason it was killed, or its
/// session was, while it waited.
pub fn refusal_name(number: u16) -> &'static str {
    let place = usize::from(number).checked_sub(1);
    place.and_then(|place| Reason::ALL.get(place)).map_or("killed", |reason| reason.as_str())
}
