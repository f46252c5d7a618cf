//! The walk over one reading of a text.

use super::begin::Begin;
use super::block::{Clause, Filter, Frame, Frames, Joins, Kind, Verdict};
use super::keyword::{Keyword, keyword};
use super::{InList, Survey, Unfiltered, Unjudged, Walked};
use crate::{
    describe::Whole,
    lexer::{Kind as TokenKind, Lexer, NoComments, Reading, Token},
    mode::{LexMode, Server},
};

/// Deepest nesting of brackets that is followed.
const DEPTH_MAX: usize = 64;

/// One reading of a text.
pub(super) struct Walk<'t, 'f> {
    pub(super) lexer: Lexer<'t, NoComments>,
    reading: Reading,
    pub(super) survey: Survey,
    frames: &'f mut Frames,
    pub(super) depth: usize,
    pub(super) begin: Begin,
    /// Where the statement begins.
    pub(super) began_at: u32,
    /// A WITH names queries of unknown size.
    pub(super) with: bool,
    /// A table is named next.
    pub(super) expects: bool,
    /// The IN just passed.
    pub(super) in_at: Option<u32>,
    /// A DELETE whose FROM names what is deleted, unless no USING follows.
    pub(super) targets: bool,
    pub(super) before: Option<Token>,
    /// What follows is not judged.
    pub(super) stopped: bool,
    /// What follows is at first the body of a stored program.
    pub(super) stored: bool,
    /// It is text out of a literal.
    pub(super) is_inner: bool,
}

pub(super) fn walk(
    text: &[u8],
    (mode, reading): (LexMode, Reading),
    whole: Whole,
    frames: &mut Frames,
) -> Walked {
    let mut walk = Walk::new(text, mode, reading, frames);
    walk.run(whole);
    let Walk { lexer, survey, .. } = walk;
    let broken = lexer.broken && whole == Whole::Yes;
    Walked { survey, broken, unsure: lexer.unsure }
}

impl<'t, 'f> Walk<'t, 'f> {
    fn new(text: &'t [u8], mode: LexMode, reading: Reading, frames: &'f mut Frames) -> Self {
        frames.clear();
        Self {
            lexer: Lexer::new(text, mode, reading, NoComments),
            reading,
            survey: Survey::default(),
            frames,
            depth: 0,
            begin: Begin::Start,
            began_at: 0,
            with: false,
            expects: false,
            in_at: None,
            targets: false,
            before: None,
            stopped: false,
            stored: false,
            is_inner: false,
        }
    }

    fn run(&mut self, whole: Whole) {
        loop {
            let token = self.lexer.next();
            match token.kind {
                TokenKind::End => return self.end(whole),
                TokenKind::Semicolon => self.semicolon(),
                TokenKind::Word
                | TokenKind::Name
                | TokenKind::Text
                | TokenKind::DollarText
                | TokenKind::Number
                | TokenKind::UserVar
                | TokenKind::SysVar
                | TokenKind::Punct(_) => {
                    if !self.stopped && !self.begin(token) {
                        self.token(token);
                    }
                }
            }
            self.before = Some(token);
        }
    }

    fn semicolon(&mut self) {
        self.lexer.end_statement();
        if self.stopped {
            // Behind a body, or in it: nobody knows.
            if self.lexer.peeked().kind != TokenKind::End {
                self.give_up();
            }
            return;
        }
        self.finish();
        self.begin = Begin::Start;
    }

    fn end(&mut self, whole: Whole) {
        match whole {
            Whole::Yes if !self.stopped => self.finish(),
            Whole::Yes => {}
            Whole::Truncated => {
                for at in 0..=self.depth {
                    self.close_list(at);
                }
                self.give_up();
            }
        }
    }

    /// What else the text holds is not judged.
    pub(super) fn give_up(&mut self) {
        self.survey.note_unjudged(Unjudged::ALL);
        self.survey.has_from = true;
    }

    /// Looks at the text of a literal.
    pub(super) fn inner(&mut self, text: &[u8], at: u32) {
        let mut frames = Frames::default();
        let mut inner = Walk::new(text, self.lexer.mode(), self.reading, &mut frames);
        inner.is_inner = true;
        inner.run(Whole::Yes);
        self.lexer.unsure |= inner.lexer.unsure;
        if inner.lexer.broken {
            return;
        }
        let survey = inner.survey;
        self.survey.note_inner(&survey, at);
    }

    pub(super) fn offset(token: Token) -> u32 {
        u32::try_from(token.start).unwrap_or(u32::MAX)
    }

    pub(super) fn frame(&mut self) -> &mut Frame {
        self.frame_at(self.depth)
    }

    /// The frame at a depth, which is followed; the outermost one where it is not.
    pub(super) fn frame_at(&mut self, depth: usize) -> &mut Frame {
        self.frames.at(depth)
    }

    /// The statement is an UPDATE or a DELETE.
    pub(super) fn main_block(&mut self, kind: Kind, clause: Clause) {
        let (at, derived) = (self.began_at, self.with);
        let joins = Joins::beside(derived);
        *self.frame() = Frame { kind, clause, at, joins, ..Frame::default() };
        self.expects = clause == Clause::From;
        self.targets = kind == Kind::Delete;
    }

    fn finish(&mut self) {
        // Brackets that do not close: no server takes it.
        if self.depth == 0 {
            self.settle_main();
        }
        self.frames.clear();
        self.depth = 0;
        self.with = false;
        self.expects = false;
        self.in_at = None;
        self.before = None;
    }

    fn settle_main(&mut self) {
        let Frame { kind, filter, at, limited, .. } = *self.frame();
        let deletes = match kind {
            Kind::Update => Some(false),
            Kind::Delete => Some(true),
            Kind::Plain | Kind::Tables | Kind::With | Kind::Query | Kind::List(_) => None,
        };
        if let Some(deletes) = deletes {
            let constant = match filter {
                Filter::Absent => Some(false),
                Filter::Constant => Some(true),
                Filter::Present => None,
            };
            if let Some(constant) = constant {
                self.survey.note_unfiltered(Unfiltered { at, deletes, constant }, limited);
            }
        }
        self.settle(0);
    }

    /// Says of the joins of a block at this depth what there is to say.
    pub(super) fn settle(&mut self, depth: usize) {
        let Frame { kind, filter, joins, derived, common, .. } = *self.frame_at(depth);
        if !kind.is_block() {
            return;
        }
        match joins.verdict(filter) {
            Verdict::Joined => {}
            Verdict::Unjudged => self.survey.unjudged.joins = true,
            Verdict::Loose(_) if common => self.survey.unjudged.joins = true,
            Verdict::Loose(at) if derived => {
                let outer = depth.saturating_sub(1);
                self.frame_at(outer).joins.derived_loose.get_or_insert(at);
            }
            Verdict::Loose(at) => {
                let first = self.survey.cross_join.map_or(at, |first| first.min(at));
                self.survey.cross_join = Some(first);
            }
        }
    }

    fn close_list(&mut self, depth: usize) {
        if let Frame { kind: Kind::List(at), commas, .. } = *self.frame_at(depth) {
            self.survey.note_list(InList { at, len: commas.saturating_add(1) });
        }
    }

    fn token(&mut self, token: Token) {
        let at = Self::offset(token);
        match token.kind {
            TokenKind::Punct(b'(') => self.open(),
            TokenKind::Punct(b')') => self.close(),
            TokenKind::Punct(b',') => self.comma(at),
            TokenKind::Word if self.introduces_literal(token) => self.in_at = None,
            TokenKind::Word if self.is_plain_word(token) => {
                let keyword = keyword(self.lexer.bytes(token));
                self.note_in_filter(keyword);
                match keyword {
                    Some(keyword) => self.keyword(keyword, at),
                    None => self.name(token),
                }
            }
            TokenKind::Word | TokenKind::Name => {
                let of_variable =
                    self.before.is_some_and(|before| before.kind == TokenKind::SysVar);
                if !of_variable {
                    self.note_in_filter(None);
                    self.name(token);
                }
            }
            TokenKind::Punct(_)
            | TokenKind::Text
            | TokenKind::DollarText
            | TokenKind::Number
            | TokenKind::UserVar
            | TokenKind::SysVar
            | TokenKind::Semicolon
            | TokenKind::End => self.in_at = None,
        }
    }

    /// Whether a word may be a keyword: behind a point, or in the name of a variable, it is a name.
    fn is_plain_word(&self, token: Token) -> bool {
        self.before.is_none_or(|before| match before.kind {
            TokenKind::Punct(b'.') => before.end != token.start,
            TokenKind::SysVar => false,
            TokenKind::Word
            | TokenKind::Name
            | TokenKind::Text
            | TokenKind::DollarText
            | TokenKind::Number
            | TokenKind::UserVar
            | TokenKind::Punct(_)
            | TokenKind::Semicolon
            | TokenKind::End => true,
        })
    }

    /// Whether a word is part of the literal behind it: `x'41'`, `N'a'`, `_utf8mb4'a'`, `_latin1 x'41'`,
    /// `DATE 'a'`, `{d 'a'}`. Of what stands ahead of it: `\N`, which is MariaDB's NULL.
    fn introduces_literal(&mut self, token: Token) -> bool {
        let bytes = self.lexer.bytes(token);
        if let Some(before) = self.before
            && (before.kind == TokenKind::Punct(b'{')
                || (before.kind == TokenKind::Punct(b'\\') && bytes == b"N"))
        {
            return true;
        }
        let next = self.lexer.peeked();
        let is_text = next.kind == TokenKind::Text;
        match bytes {
            [b'b' | b'B' | b'n' | b'N' | b'x' | b'X'] => is_text && next.start == token.end,
            [b'_', ..] => is_text || (next.kind == TokenKind::Word && self.begins_bytes(next)),
            word => {
                let is = |kind: &str| word.eq_ignore_ascii_case(kind.as_bytes());
                is_text && ["DATE", "TIME", "TIMESTAMP"].into_iter().any(is)
            }
        }
    }

    /// Whether a word begins a literal of bytes or bits: `x'41'`, `0x41`, `0b1`. What stands behind a
    /// character set can be nothing else that is written so.
    fn begins_bytes(&self, token: Token) -> bool {
        matches!(self.lexer.bytes(token), [b'b' | b'B' | b'x' | b'X'] | [b'0', b'b' | b'x', ..])
    }

    pub(super) fn is_before(&self, word: &str) -> bool {
        self.before.is_some_and(|before| {
            before.kind == TokenKind::Word
                && self.lexer.bytes(before).eq_ignore_ascii_case(word.as_bytes())
        })
    }

    /// A name, or a word that may be one.
    fn name(&mut self, token: Token) {
        self.in_at = None;
        if matches!(*self.frame(), Frame { kind: Kind::Delete, clause: Clause::Head, .. }) {
            self.word_of_delete(token);
        }
        if std::mem::take(&mut self.expects) {
            match self.lexer.peeked().kind {
                // A function that gives a table.
                TokenKind::Punct(b'(') => self.frame().joins.has_derived = true,
                // Also of a schema that is called DUAL, which MariaDB takes.
                TokenKind::Punct(b'.') => {
                    self.survey.has_from |= self.frame().kind == Kind::Query;
                }
                TokenKind::Punct(_)
                | TokenKind::Word
                | TokenKind::Name
                | TokenKind::Text
                | TokenKind::DollarText
                | TokenKind::Number
                | TokenKind::UserVar
                | TokenKind::SysVar
                | TokenKind::Semicolon
                | TokenKind::End => {}
            }
        }
    }

    /// A word between DELETE and FROM: a modifier, or what is deleted.
    fn word_of_delete(&mut self, token: Token) {
        let is = |word: &str| {
            token.kind == TokenKind::Word
                && self.lexer.bytes(token).eq_ignore_ascii_case(word.as_bytes())
        };
        if is("HISTORY") {
            // MariaDB's DELETE HISTORY has no WHERE; elsewhere it is a table.
            self.give_up_on_filters();
        } else if !["LOW_PRIORITY", "QUICK", "IGNORE"].into_iter().any(is) {
            self.targets = false;
        }
    }

    fn open(&mut self) {
        let depth = self.depth;
        let Frame { kind, block, .. } = *self.frame();
        let block = if kind.is_block() { depth } else { block };
        let opened = match self.in_at.take() {
            Some(at) => Kind::List(at),
            None if std::mem::take(&mut self.expects) => Kind::Tables,
            None => Kind::Plain,
        };
        let is_table = opened == Kind::Tables;
        self.depth = depth.saturating_add(1);
        if self.depth >= DEPTH_MAX {
            self.give_up();
            self.stopped = true;
            return;
        }
        let common = kind == Kind::With;
        let frame = Frame { kind: opened, block, common, ..Frame::default() };
        self.frames.open(self.depth, frame);
        self.expects = is_table;
    }

    fn close(&mut self) {
        self.expects = false;
        self.in_at = None;
        let Some(outer) = self.depth.checked_sub(1) else { return };
        let Frame { kind, joins, .. } = *self.frame();
        match kind {
            Kind::Tables => self.frame_at(outer).joins.take_in(joins),
            Kind::List(_) => self.close_list(self.depth),
            Kind::Query | Kind::Update | Kind::Delete => self.settle(self.depth),
            Kind::Plain | Kind::With => {}
        }
        self.depth = outer;
    }

    fn comma(&mut self, at: u32) {
        self.in_at = None;
        let in_tables = self.in_tables();
        let frame = self.frame();
        match frame.kind {
            Kind::List(_) => frame.commas = frame.commas.saturating_add(1),
            Kind::Plain | Kind::Tables | Kind::With | Kind::Query | Kind::Update | Kind::Delete => {
                if in_tables {
                    frame.joins.comma(at);
                    self.expects = true;
                }
            }
        }
    }

    /// Whether tables are named here.
    pub(super) fn in_tables(&mut self) -> bool {
        let Frame { kind, clause, .. } = *self.frame();
        kind == Kind::Tables || (kind.is_block() && clause == Clause::From)
    }

    /// Takes a word or name for what it says of the WHERE that it stands in.
    fn note_in_filter(&mut self, keyword: Option<Keyword>) {
        let depth = self.depth;
        let Frame { kind, block, .. } = *self.frame();
        let own = if kind.is_block() { depth } else { block };
        let block = self.frame_at(own);
        if block.clause != Clause::Where || block.filter != Filter::Constant {
            return;
        }
        let is_unknown = self.is_before("IS") || self.is_before("NOT");
        let is_mariadb = matches!(self.lexer.mode().server, Server::MariaDb { .. });
        let ends = own == depth
            && keyword.is_some_and(|keyword| {
                keyword.ends_where() || (keyword == Keyword::Returning && is_mariadb)
            });
        let says_nothing = keyword.is_some_and(|keyword| {
            keyword.is_constant() || (keyword == Keyword::Unknown && is_unknown)
        });
        if !ends && !says_nothing {
            self.frame_at(own).filter = Filter::Present;
        }
    }

    /// The statement is an UPDATE or DELETE of which it is not judged whether it has a WHERE.
    pub(super) fn give_up_on_filters(&mut self) {
        self.survey.unjudged.filters = true;
        self.frame_at(0).filter = Filter::Present;
    }
}
