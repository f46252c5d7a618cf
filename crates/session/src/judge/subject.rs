//! What a statement is about, for those who count statements.
//!
//! It costs one look at a text while it has come before with other values. The text of a digest, and
//! its tables, are there until somebody has been told them.

use policy::identity::Identity;
use policy::{InsightTags, OwnedShape, ShapeNeeds, ShapeScratch, ShapeText};
use sql::{ClassSet, DigestMemo, Exemption, Extent, LexMode, Statement, TextKey};

use super::known::{KnownTexts, Recent};
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
    /// Changes whenever the schema, the user or the app do, and is never again what it was.
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
        (text, mode): (&[u8], LexMode),
        (recent, texts): (&Recent, &KnownTexts),
        shape: &mut ShapeScratch,
    ) -> u64 {
        let known = self.read.or_else(|| recent.read(texts));
        let digest = known.unwrap_or_else(|| {
            let digest = shape.digest(text, mode);
            recent.note_read(texts, digest);
            digest
        });
        // What is counted of a long text is the digest of its front.
        self.read = Some(digest).filter(|_| text.len() <= FRONT_LEN);
        digest
    }

    /// A statement comes by which nobody has judged yet.
    pub(super) fn pass(&mut self) {
        self.read = None;
    }

    /// It is this text. One that can be read in several ways has no digest: in the wrong one a value
    /// may look like a name, and be shown.
    pub(super) fn note_text(
        &mut self,
        (text, mode): (&[u8], LexMode),
        statement: &Statement<'_>,
        ((recent, texts), shape): ((&Recent, &KnownTexts), &mut ShapeScratch),
        (memo, samples): (&DigestMemo, Samples),
    ) {
        if !statement.is_certain() {
            return;
        }
        let generation = memo.generation();
        let is_it = |digest: &u64| self.read.is_none_or(|read| read == *digest);
        self.digest = recent.digest(texts, generation).filter(is_it);
        if self.digest.is_some() {
            return;
        }
        let front = text.get(..FRONT_LEN).unwrap_or(text);
        let is_long = front.len() < text.len();
        let key = TextKey::of(front, mode, if is_long { Extent::Front } else { Extent::Whole });
        if let Some(digest) = key.and_then(|key| memo.get(key))
            && self.read.is_none_or(|read| read == digest)
        {
            self.digest = Some(digest);
            recent.note_digest(texts, digest, generation);
            return;
        }
        // What is in the scratch may be the digest of all of it.
        if is_long {
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

    /// What it is about, sent by who that was.
    pub(crate) fn about(&self, who: &Who) -> About<'_> {
        let Self { digest, schema, whose, news, tags: tag_news, .. } = self;
        let (news, tags) = (news.as_deref(), who.tags());
        // Of when it came, as the schema is: it may have changed who the session is.
        let whose = whose.wrapping_add(who.said.app_changes());
        About { digest: *digest, schema, whose, news, tags, tag_news }
    }

    pub(super) fn shrink(&mut self) {
        self.news = None;
        self.tags = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use sql::{Charset, Scratch, Server, Setting, Whole, describe};

    use super::*;

    const MODE: LexMode = LexMode {
        no_backslash_escapes: Setting::Off,
        ansi_quotes: Setting::Off,
        charset: Charset::Plain,
        server: Server::MySql { version: 90_704 },
    };

    /// A session, and what is known of texts.
    struct Session {
        subject: Subject,
        recent: Recent,
        known: KnownTexts,
        shape: ShapeScratch,
        memo: DigestMemo,
    }

    impl Session {
        fn new() -> Self {
            let (memo, shape) = (DigestMemo::default(), ShapeScratch::default());
            let (recent, known) = (Recent::default(), KnownTexts::default());
            Self { subject: Subject::default(), recent, known, shape, memo }
        }

        /// A text comes. By what it is judged, if it is, and as what it is counted.
        fn comes(&mut self, text: &[u8], is_judged: bool) -> (Option<u64>, Option<u64>) {
            let Self { subject, recent, known, shape, memo } = self;
            let mut texts = Scratch::default();
            let statement = describe(text, MODE, Whole::Yes, &mut texts);
            shape.clear();
            recent.pass();
            subject.pass();
            subject.begin(&Who::default());
            recent.find(known, (text, MODE), &mut Scratch::default());
            recent.note(known, (text, MODE), &statement);
            let known = (&*recent, &*known);
            let judged = is_judged.then(|| subject.judged_by((text, MODE), known, shape));
            let counts = (known, shape);
            subject.note_text((text, MODE), &statement, counts, (memo, Samples::NotKept));
            (judged, subject.digest)
        }
    }

    fn text(id: u32) -> Vec<u8> {
        format!("SELECT c FROM t WHERE id = {id}").into_bytes()
    }

    fn digest_of(text: &[u8]) -> u64 {
        ShapeScratch::default().digest(text, MODE)
    }

    #[test]
    fn a_text_that_came_with_other_values_is_judged_by_its_digest_without_being_read() {
        let mut session = Session::new();
        let digest = digest_of(&text(1));
        session.memo.note_told(digest);
        for id in 0..10 {
            assert_eq!(session.comes(&text(id), true), (Some(digest), Some(digest)));
        }
        assert!(session.shape.digest_text().is_empty(), "it is not read any more");
        let other = b"SELECT c FROM t WHERE jd = 7";
        let (judged, counted) = session.comes(other, true);
        assert_eq!((judged, counted), (Some(digest_of(other)), Some(digest_of(other))));
    }

    #[test]
    fn what_is_judged_before_anybody_was_told_of_it_is_told_all_the_same() {
        let mut session = Session::new();
        let digest = digest_of(&text(1));
        for id in 0..10 {
            assert_eq!(session.comes(&text(id), true), (Some(digest), Some(digest)));
            assert!(session.subject.news.is_some(), "{id}");
        }
    }

    /// Whoever made a text whose hash is that of another would have passed for what that costs.
    #[test]
    fn what_the_memo_of_all_sessions_says_is_never_judged_by() {
        let mut session = Session::new();
        let (forged, digest) = (999, digest_of(&text(1)));
        session.memo.note_told(forged);
        session.memo.note_told(digest);
        for id in 0..10 {
            let key = TextKey::of(&text(id), MODE, Extent::Whole).unwrap();
            session.memo.put(key, forged);
            assert_eq!(session.comes(&text(id), false).1, Some(forged), "it is counted so");
        }
        for id in 0..10 {
            assert_eq!(session.comes(&text(id), true), (Some(digest), Some(digest)));
        }
    }
}
