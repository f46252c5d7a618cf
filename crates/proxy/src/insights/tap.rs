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
    /// The generation of the memo, and in what state of the session's names ([`About::whose`]),
    /// whoever counts was told these.
    told: Option<(u64, u64)>,
    answer: Option<Answered>,
    /// As what the last statement was counted.
    last: Counted,
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
    warnings: u32,
}

/// As what a statement was counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    digest: Option<u64>,
    schema: u64,
    app: u64,
    user: u64,
    tags: u64,
}

impl Counted {
    /// Its digest, if it has one.
    pub(crate) fn digest(&self) -> Option<u64> {
        self.digest
    }
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
    /// Makes it this name, and whether whoever counts has been told it.
    fn tell(&mut self, name: &[u8], board: &InsightsBoard) -> bool {
        let name = name.get(..NAME_LEN_MAX).unwrap_or(name);
        if self.name != name {
            self.name.clear();
            self.name.extend_from_slice(name);
            self.hash = name_hash(name);
        }
        let Self { name, hash } = self;
        let is_told = || *hash == 0 || board.memo.is_told(*hash);
        is_told() || {
            board.tell(*hash, || Learned::Name { hash: *hash, name: name.as_slice().into() });
            is_told()
        }
    }
}

impl InsightsTap {
    /// The answer is over.
    pub(crate) fn note_answer(&mut self, end: &ResponseEnd) {
        self.answer = Some(Answered {
            error: end.error,
            rows: end.rows,
            affected_rows: end.affected_rows,
            warnings: end.warnings,
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
        if about.news.is_some() || !about.tag_news.is_empty() {
            tell_news(about, board);
        }
        let names = (board.memo.generation(), about.whose);
        if self.told != Some(names) {
            let told = self.tell_names(Whose { app, user, about }, board);
            self.told = told.then_some(names);
        }
        self.last = Counted {
            digest: about.digest,
            schema: self.schema.hash,
            app: self.app.hash,
            user: self.user.hash,
            tags: about.tags,
        };
        self.put(record, self.last, (board, worker));
    }

    /// As what the last statement was counted.
    pub(crate) fn counted(&self) -> Option<Counted> {
        Some(self.last)
    }

    /// Sends what is to be added to a statement that was counted as this. `None`: nobody knows which;
    /// it is of whoever sent the last.
    pub(crate) fn record_more(
        &mut self,
        record: Record,
        counted: Option<Counted>,
        board: (&InsightsBoard, usize),
    ) {
        let counted = counted.unwrap_or(Counted { digest: None, tags: 0, ..self.last });
        self.put(record, counted, board);
    }

    fn put(&self, record: Record, counted: Counted, (board, worker): (&InsightsBoard, usize)) {
        let answer = self.answer.unwrap_or_default();
        let record = Record {
            digest: counted.digest,
            app: counted.app,
            schema: counted.schema,
            user: counted.user,
            tags: counted.tags,
            rows_sent: answer.rows,
            rows_affected: answer.affected_rows,
            warnings: answer.warnings,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            ..record
        };
        board.put(&record, worker);
    }

    /// One of the names may be another than before; whether whoever counts has been told all.
    #[cold]
    fn tell_names(&mut self, whose: Whose<'_>, board: &InsightsBoard) -> bool {
        let Whose { app, user, about } = whose;
        let app = self.app.tell(app, board);
        let user = self.user.tell(user, board);
        let schema = self.schema.tell(about.schema, board);
        app && user && schema
    }

    /// A command is over.
    pub(crate) fn end_command(&mut self) {
        self.answer = None;
        self.bytes_in = 0;
        self.bytes_out = 0;
    }
}

/// Says what is new in a statement.
#[cold]
fn tell_news(about: About<'_>, board: &InsightsBoard) {
    if let (Some(digest), Some(news)) = (about.digest, about.news) {
        board.tell(digest, || learned(digest, news));
    }
    if !about.tag_news.is_empty() {
        let pairs = about.tag_news.into();
        board.tell(about.tags, || Learned::Tags { hash: about.tags, pairs });
    }
}

fn learned(hash: u64, news: &News) -> Learned {
    Learned::Digest {
        hash,
        text: news.text.as_slice().into(),
        tables: news.tables.as_slice().into(),
        all_tables: news.all_tables,
        kind: kind(news),
        sample: news.sample.as_deref().map(Into::into),
    }
}

/// What kind of statement it is, in words: the class that it counts as first.
fn kind(News { classes, exemption, .. }: &News) -> Kind {
    let strictest = classes.strictest();
    let others = Class::ALL.into_iter();
    let others = others.filter(|class| classes.contains(*class) && Some(*class) != strictest);
    Kind {
        classes: strictest.into_iter().chain(others).map(|it| it.as_str().into()).collect(),
        exemption: exemption.map(|it| it.as_str().into()),
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
