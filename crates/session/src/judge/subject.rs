//! What a statement is about, for those who count statements.
//!
//! It costs one look at a text while it has come before with other values. The text of a digest, and
//! its tables, are there until somebody has been told them.

mod recent;

use policy::identity::Identity;
use policy::{InsightTags, OwnedShape, ShapeNeeds, ShapeScratch, ShapeText};
use sql::{ClassSet, DigestMemo, Exemption, Extent, LexMode, Statement, TextKey};

use self::recent::{KnownDigest, RecentTexts};
use super::replace;
use super::who::Who;

/// What the last statement was about.
#[derive(Debug, Default)]
pub(crate) struct Subject {
    digest: Option<u64>,
    /// The default schema when it came.
    schema: Vec<u8>,
    /// The digest of the text under way, if that has been read for those who judge by it.
    read: Option<u64>,
    /// The generation of who the session is, of which that schema is.
    whose: u64,
    recent: RecentTexts,
    /// A digest of which somebody was told, and in which generation of the memo.
    told: (Option<u64>, u64),
    /// Nobody has been told what the digest stands for. Boxed: that is rare.
    news: Option<Box<News>>,
    /// The tags that are kept: key, NUL, value, NUL. Only what nobody has been told.
    tags: Vec<u8>,
}

/// What a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About<'s> {
    /// The hash of its digest text. `None`: the text is not known.
    pub digest: Option<u64>,
    /// The default schema when it came.
    pub schema: &'s [u8],
    /// Changes whenever the schema or the user do.
    pub whose: u64,
    /// What the digest stands for, if nobody has been told.
    pub news: Option<&'s News>,
    /// What stands for the tags that are kept; 0 for none.
    pub tags: u64,
    /// Those tags, key, NUL, value, NUL, if nobody has been told; empty otherwise.
    pub tag_news: &'s [u8],
}

/// What a digest stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Its text, cut where it is long.
    pub text: Vec<u8>,
    /// Its tables: schema, NUL, table, NUL. A schema that is not in the text is empty.
    pub tables: Vec<u8>,
    /// Whether these are all.
    pub all_tables: bool,
    /// Its classes.
    pub classes: ClassSet,
    /// Why nothing may hold it.
    pub exemption: Option<Exemption>,
    /// The text as it came, cut where it is long, if the file wants samples.
    pub sample: Option<Vec<u8>>,
}

/// The front of a long text that its digest is made of here: such texts are long for their values,
/// and reading all of it would cost more than counting is worth.
const FRONT_LEN: usize = 4 * 1024;

/// The longest sample.
const SAMPLE_LEN: usize = 1024;

/// Whether texts are kept as they came.
#[derive(Clone, Copy, Debug)]
pub(super) enum Samples {
    Kept,
    NotKept,
}

impl Subject {
    /// A statement comes from this session.
    pub(super) fn begin(&mut self, who: &Who) {
        self.digest = None;
        self.read = None;
        self.news = None;
        self.tags.clear();
        if self.whose != who.generation() {
            self.whose = who.generation();
            replace(&mut self.schema, who.identity().schema());
        }
    }

    /// The tags that are kept, and what stands for them.
    pub(super) fn note_tags(
        &mut self,
        kept: &InsightTags,
        identity: &Identity<'_>,
        memo: &DigestMemo,
    ) -> u64 {
        if kept.is_empty() {
            return 0;
        }
        let tags = kept.write(identity, &mut self.tags);
        if memo.is_told(tags) {
            self.tags.clear();
        }
        tags
    }

    /// The digest of a certain text, for those who judge by it: read, or known of a text that has
    /// been read and is the same but for its values. What only the memo of all sessions says does
    /// not count, for hashes can be made to collide.
    pub(super) fn judged_by(
        &mut self,
        text: (&[u8], LexMode),
        memo: &DigestMemo,
        shape: &mut ShapeScratch,
    ) -> u64 {
        if self.read.is_none() {
            let known = self.recent.find(text, memo.generation());
            self.read = known.and_then(|known| known.is_read.then_some(known.digest));
            self.digest = self.read;
        }
        let digest = self.read.unwrap_or_else(|| shape.digest(text.0, text.1));
        // What is counted of a long text is the digest of its front.
        self.read = Some(digest).filter(|_| text.0.len() <= FRONT_LEN);
        digest
    }

    /// It is this text. One that can be read in several ways has no digest: in the wrong one a value
    /// may look like a name, and be shown.
    pub(super) fn note_text(
        &mut self,
        (text, mode): (&[u8], LexMode),
        statement: &Statement<'_>,
        shape: &mut ShapeScratch,
        (memo, samples): (&DigestMemo, Samples),
    ) {
        if !statement.is_certain() || self.digest.is_some() {
            return;
        }
        let generation = memo.generation();
        if let Some(known) = self.recent.find((text, mode), generation)
            && self.read.is_none_or(|read| read == known.digest)
        {
            self.digest = Some(known.digest);
            if self.read.is_some() {
                self.recent.note_read();
            }
            return;
        }
        let front = text.get(..FRONT_LEN).unwrap_or(text);
        let is_long = front.len() < text.len();
        let key = TextKey::of(front, mode, if is_long { Extent::Front } else { Extent::Whole });
        if let Some(digest) = key.and_then(|key| memo.get(key))
            && self.read.is_none_or(|read| read == digest)
        {
            self.digest = Some(digest);
            let known = KnownDigest { digest, is_read: self.read.is_some() };
            self.recent.note((text, mode), known, generation);
            return;
        }
        // What is in the scratch may be the text that a PREPARE prepares.
        if is_long || statement.effects.prepare.is_some() {
            shape.clear();
        }
        let digest =
            if is_long { shape.digest_front(front, mode) } else { shape.digest(text, mode) };
        self.digest = Some(digest);
        if let Some(key) = key {
            memo.put(key, digest);
        }
        if memo.is_told(digest) {
            return;
        }
        let told = shape.digest_text().to_vec();
        let needs = ShapeNeeds { digest: false, tables: true };
        let read = shape.read(&ShapeText::new(front, mode, &self.schema, statement), needs);
        let all_tables = read.knows_tables() && !is_long;
        let mut tables = Vec::new();
        shape.write_tables(&mut tables);
        let sample = match samples {
            Samples::Kept => Some(text.get(..SAMPLE_LEN).unwrap_or(text).to_vec()),
            Samples::NotKept => None,
        };
        let Statement { classes, exemption, .. } = *statement;
        let news = News { text: told, tables, all_tables, classes, exemption, sample };
        self.news = Some(Box::new(news));
    }

    /// It is an execution of what has this shape, and these classes now.
    pub(super) fn note_shape(
        &mut self,
        shape: &OwnedShape,
        memo: &DigestMemo,
        classes: impl FnOnce() -> (ClassSet, Option<Exemption>),
    ) {
        self.digest = shape.shape().digest();
        let now = (self.digest, memo.generation());
        if self.told == now {
            return;
        }
        let told = self.digest.is_none_or(|digest| memo.is_told(digest));
        if told {
            self.told = now;
        }
        if told || shape.digest_text().is_empty() {
            return;
        }
        let mut tables = Vec::new();
        shape.write_tables(&mut tables);
        let (classes, exemption) = classes();
        self.news = Some(Box::new(News {
            text: shape.digest_text().to_vec(),
            tables,
            classes,
            exemption,
            all_tables: shape.shape().knows_tables(),
            sample: None,
        }));
    }

    /// What it is about, of a sender whose tags these stand for.
    pub(crate) fn about(&self, tags: u64) -> About<'_> {
        let Self { digest, schema, whose, news, tags: tag_news, .. } = self;
        let news = news.as_deref();
        About { digest: *digest, schema, whose: *whose, news, tags, tag_news }
    }

    pub(super) fn shrink(&mut self) {
        self.news = None;
        self.tags = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use sql::{Scratch, Whole, describe};

    use super::*;

    /// A session, and what is known of texts.
    struct Session {
        subject: Subject,
        shape: ShapeScratch,
        memo: DigestMemo,
    }

    impl Session {
        fn new() -> Self {
            let memo = DigestMemo::default();
            Self { subject: Subject::default(), shape: ShapeScratch::default(), memo }
        }

        fn begin(&mut self) {
            self.subject.begin(&Who::default());
            self.shape.clear();
        }

        /// As what a text is counted that comes.
        fn count(&mut self, id: u32) -> Option<u64> {
            let Self { subject, shape, memo } = self;
            let text = text(id);
            let mut texts = Scratch::default();
            let mode = LexMode::default();
            let statement = describe(&text, mode, Whole::Yes, &mut texts);
            subject.note_text((&text, mode), &statement, shape, (memo, Samples::NotKept));
            subject.digest
        }

        /// By what it is judged.
        fn judge(&mut self, id: u32) -> u64 {
            let Self { subject, shape, memo } = self;
            subject.judged_by((&text(id), LexMode::default()), memo, shape)
        }
    }

    fn text(id: u32) -> Vec<u8> {
        format!("SELECT c FROM t WHERE id = {id}").into_bytes()
    }

    fn digest() -> u64 {
        ShapeScratch::default().digest(&text(1), LexMode::default())
    }

    #[test]
    fn a_text_that_came_with_other_values_is_judged_by_its_digest_without_being_read() {
        let mut session = Session::new();
        session.memo.note_told(digest());
        for id in 0..10 {
            session.begin();
            assert_eq!(session.judge(id), digest());
            assert_eq!(session.count(id), Some(digest()));
        }
        assert!(session.shape.digest_text().is_empty(), "it is not read any more");
    }

    /// Whoever made a text whose hash is that of another would have passed for what that costs.
    #[test]
    fn what_the_memo_of_all_sessions_says_is_never_judged_by() {
        let mut session = Session::new();
        let forged = 999;
        session.memo.note_told(forged);
        session.memo.note_told(digest());
        for id in 0..10 {
            let key = TextKey::of(&text(id), LexMode::default(), Extent::Whole).unwrap();
            session.memo.put(key, forged);
            session.begin();
            assert_eq!(session.count(id), Some(forged), "it is counted so");
        }
        for id in 0..10 {
            session.begin();
            assert_eq!(session.judge(id), digest());
            assert_eq!(session.count(id), Some(digest()));
        }
    }
}
