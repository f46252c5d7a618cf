//! The walk over a text, statement by statement.

use super::transactions::Switch;
use crate::{
    calls::Calls,
    class::{Class, ClassSet},
    comments::Spans,
    effects::{Effects, NamedLockUse, TransactionVerbs},
    lexer::{Kind, Lexer, Reading, Token},
    mode::{LexMode, Server},
    named_locks::sole_call,
    seen::{Hints, Seen, is_system_schema},
    text::is_plain_name,
};

/// Where the latest words and quoted names of the text begin and end.
#[derive(Default)]
pub(super) struct Recent {
    spans: [(usize, usize); RECENT],
    /// Where the next one goes: over the oldest.
    next: usize,
}

/// How many are kept: a power of two.
const RECENT: usize = 4;

impl Recent {
    #[inline]
    pub(super) fn push(&mut self, token: Token) {
        if let Some(span) = self.spans.get_mut(self.next % RECENT) {
            *span = (token.start, token.end);
        }
        self.next = self.next.wrapping_add(1);
    }

    /// Start and end of the latest, the one before it, and so on.
    pub(super) fn nearest<const COUNT: usize>(&self) -> [(usize, usize); COUNT] {
        std::array::from_fn(|back| {
            let at = self.next.wrapping_sub(back).wrapping_sub(1) % RECENT;
            self.spans.get(at).copied().unwrap_or_default()
        })
    }
}

/// What a first word leads to.
pub(super) enum Step {
    Class(Class),
    /// The statement that begins here is the one that counts.
    Again(Token),
}

/// Most prefixes (EXPLAIN ANALYZE, SET STATEMENT … FOR) in front of one statement.
const PREFIXES_MAX: u32 = 8;

/// Reads `text` in one way.
pub(super) fn walk<'t>(
    text: &'t [u8],
    mode: LexMode,
    reading: Reading,
    comments: &mut Spans,
) -> Seen<'t> {
    let mut walk = Walk::new(Lexer::new(text, mode, reading, comments), reading);
    walk.text();
    walk.finish_names();
    walk.effects.plain.sql_mode_by_flags &= walk.count == 1 && !walk.classes.contains(Class::Call);
    if walk.effects.plain.named_locks == NamedLockUse::Other
        && walk.count == 1
        && let Some(named_locks) = sole_call(text, mode, reading)
    {
        walk.effects.plain.named_locks = named_locks;
    }
    let classes = walk.classes;
    Seen {
        classes: if walk.denied_as_ddl { classes.with_denied_as_ddl() } else { classes },
        count: walk.count,
        effects: walk.effects,
        hints: walk.hints,
        calls: walk.calls,
        unsure: walk.lexer.unsure,
        broken: walk.lexer.broken,
        ordinary: walk.ordinary,
    }
}

/// Shows every token of the body that is defined by `source`, a CREATE FUNCTION, or that `source`
/// is, to `each`, with its bytes, and gives what the body calls. Nothing, if it moves a sequence on
/// or cannot be read in one way to its end.
pub(crate) fn calls_of_body<'t>(
    source: &'t [u8],
    mode: LexMode,
    mut each: impl FnMut(Token, &'t [u8]),
) -> Option<Calls> {
    let mut comments = Spans::default();
    let reading = Reading::first(mode);
    let mut walk = Walk::new(Lexer::new(source, mode, reading, &mut comments), reading);
    let mut token = walk.raw_token();
    if walk.is(token, "CREATE") {
        token = walk.function_head()?;
    }
    loop {
        each(token, walk.lexer.bytes(token));
        if token.kind == Kind::Semicolon {
            walk.lexer.end_statement();
        }
        if token.kind == Kind::End {
            break;
        }
        token = walk.raw_token();
    }
    let plain = !walk.writes && !walk.lexer.unsure && !walk.lexer.broken;
    plain.then_some(walk.calls)
}

pub(super) struct Walk<'t, 's> {
    pub(super) lexer: Lexer<'t, &'s mut Spans>,
    pub(super) reading: Reading,
    unread: Option<Token>,
    /// The semicolon or the end of the current statement has been passed.
    finished: bool,
    at_end: bool,
    /// This statement reads with a lock, somewhere.
    pub(super) locking: bool,
    /// This statement moves a sequence on, or fills the table that it creates.
    pub(super) writes: bool,
    /// What this statement names before a bracket is run, if it is a function.
    pub(super) spots: bool,
    /// This statement calls what is not built in.
    pub(super) called: bool,
    /// See [`ClassSet::with_denied_as_ddl`].
    pub(super) denied_as_ddl: bool,
    pub(super) recent: Recent,
    /// The server may be MariaDB.
    pub(super) mariadb: bool,
    pub(super) calls: Calls,
    /// A statement before has changed how the server reads what follows.
    pub(super) reads_differently: bool,
    /// This statement may begin or end a transaction.
    pub(super) controls: bool,
    /// What this statement does to autocommit, if it is a SET.
    pub(super) switch: Switch,
    /// This statement is LOCK TABLES or LOCK INSTANCE.
    pub(super) locks: bool,
    /// A statement before may have given back locks.
    pub(super) unlocks: bool,
    /// The statements before that may have begun or ended one.
    pub(super) verbs: TransactionVerbs,
    /// The statement before has committed, unless it failed to, and nothing has run since.
    pub(super) committed: bool,
    /// The statement before may have done so by an implicit commit.
    pub(super) commits_implicitly: bool,
    /// Statements about prepared ones.
    prepared: u32,
    /// This statement stands behind SET STATEMENT … FOR.
    pub(super) behind_settings: bool,
    /// See [`Seen::ordinary`].
    pub(super) ordinary: bool,
    pub(super) effects: Effects<'t>,
    pub(super) hints: Hints,
    classes: ClassSet,
    /// Statements so far, this one with them.
    pub(super) count: u32,
}

impl<'t, 's> Walk<'t, 's> {
    fn new(lexer: Lexer<'t, &'s mut Spans>, reading: Reading) -> Self {
        let mariadb = match lexer.mode().server {
            Server::MariaDb { .. } | Server::Unknown => true,
            Server::MySql { .. } => false,
        };
        Self {
            lexer,
            reading,
            unread: None,
            finished: false,
            at_end: false,
            locking: false,
            writes: false,
            spots: true,
            called: false,
            denied_as_ddl: false,
            recent: Recent::default(),
            mariadb,
            calls: Calls::default(),
            reads_differently: false,
            controls: false,
            switch: Switch::default(),
            locks: false,
            unlocks: false,
            verbs: TransactionVerbs::default(),
            committed: false,
            commits_implicitly: false,
            prepared: 0,
            behind_settings: false,
            ordinary: false,
            effects: Effects::default(),
            hints: Hints::default(),
            classes: ClassSet::default(),
            count: 0,
        }
    }

    fn text(&mut self) {
        loop {
            self.finished = false;
            self.locking = false;
            self.writes = false;
            self.spots = true;
            self.called = false;
            self.behind_settings = false;
            let first = self.first();
            if self.at_end {
                break;
            }
            if self.finished {
                continue;
            }
            self.count = self.count.saturating_add(1);
            if self.reads_differently && self.lexer.depends_on_mode(first) {
                self.lexer.broken = true;
                return;
            }
            self.effects.plain.ends_transaction |= self.commits_implicitly;
            self.commits_implicitly = false;
            let class = self.statement(first);
            self.rest();
            self.note(class);
            if self.at_end {
                break;
            }
        }
        if self.count == 0 {
            self.classes = self.classes.with(Class::Unknown);
        }
    }

    /// The first token of a statement behind any opening brackets.
    fn first(&mut self) -> Token {
        loop {
            let token = self.token();
            if token.kind != Kind::Punct(b'(') {
                return token;
            }
        }
    }

    fn statement(&mut self, first: Token) -> Class {
        let mut token = first;
        for _ in 0..PREFIXES_MAX {
            match self.step(token) {
                Step::Class(class) => {
                    self.note_transaction(token, class);
                    return class;
                }
                Step::Again(next) => token = next,
            }
        }
        Class::Unknown
    }

    fn note(&mut self, class: Class) {
        let reads = matches!(class, Class::Read | Class::LockingRead);
        let class = match class {
            Class::Read | Class::LockingRead if self.writes => Class::Write,
            Class::Read if self.locking => Class::LockingRead,
            other => other,
        };
        let mut classes = ClassSet::default().with(class);
        if self.writes && !reads {
            classes = classes.with(Class::Write);
        }
        if self.called {
            classes = classes.with(Class::Call);
        }
        self.follow_transaction(class, classes);
        if classes.contains(Class::Call) {
            // GET_LOCK() and RELEASE_LOCK() may stand in any routine.
            self.effects.plain.named_locks = NamedLockUse::Other;
        }
        self.classes = self.classes.union(classes);
    }

    /// The name of a prepared statement in PREPARE, EXECUTE or DEALLOCATE, if it can be followed.
    /// Other names than plain ones may be equal to them: MySQL's collation folds accents and
    /// trailing spaces.
    pub(super) fn prepared_name(&mut self, token: Token) -> Option<&'t [u8]> {
        self.prepared = self.prepared.saturating_add(1);
        let name = self.lexer.name_of(token).filter(|name| is_plain_name(name));
        self.effects.plain.forgets_prepared |= name.is_none();
        name
    }

    /// Of several statements about prepared ones, or where the text to prepare is read in a mode
    /// that the text itself has set, none is followed.
    fn finish_names(&mut self) {
        let names = self.effects.prepare.is_some() || self.effects.deallocate.is_some();
        if self.prepared > 1 || (names && self.reads_differently) {
            self.effects.prepare = None;
            self.effects.deallocate = None;
            self.effects.plain.forgets_prepared = true;
        }
    }

    /// The next token of this statement; at its end always the same one.
    pub(super) fn token(&mut self) -> Token {
        if self.finished {
            let end = self.lexer.text().len();
            return Token { kind: Kind::End, start: end, end };
        }
        let token = self.raw_token();
        self.finish_at(token);
        token
    }

    /// The next token, also across semicolons. A byte from 0x80 up that belongs to no word is taken
    /// for white space, which it may be.
    pub(super) fn raw_token(&mut self) -> Token {
        if let Some(token) = self.unread.take() {
            return token;
        }
        loop {
            let token = self.lexer.next();
            if matches!(token.kind, Kind::Word | Kind::Name) {
                self.spot(token);
            }
            if !matches!(token.kind, Kind::Punct(0x80..)) {
                return token;
            }
        }
    }

    /// Ends the statement if `token` does.
    pub(super) fn finish_at(&mut self, token: Token) {
        if matches!(token.kind, Kind::Semicolon | Kind::End) {
            self.finished = true;
            self.lexer.end_statement();
        }
        self.at_end |= token.kind == Kind::End;
    }

    /// Gives a token back.
    pub(super) fn unread(&mut self, token: Token) {
        if !self.finished {
            self.unread = Some(token);
        }
    }

    /// The next token without taking it.
    pub(super) fn peek(&mut self) -> Token {
        let token = self.token();
        self.unread(token);
        token
    }

    /// Whether `token` is the unquoted word `word`.
    pub(super) fn is(&self, token: Token, word: &str) -> bool {
        token.kind == Kind::Word && self.lexer.bytes(token).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Passes over the rest of the statement and notes the words that matter anywhere.
    pub(super) fn rest(&mut self) {
        while !self.finished {
            let token = match self.unread.take() {
                Some(token) => token,
                None => self.next_word(),
            };
            self.finish_at(token);
            if matches!(token.kind, Kind::Word | Kind::Name) {
                self.note_word(token);
            }
        }
    }

    fn next_word(&mut self) -> Token {
        let token = self.lexer.next_word();
        if matches!(token.kind, Kind::Word | Kind::Name) {
            self.spot(token);
        }
        token
    }

    /// Notes a word that matters wherever it stands. Almost every word is dismissed by its length
    /// and its last byte.
    #[inline]
    pub(super) fn note_word(&mut self, token: Token) {
        let bytes = self.lexer.bytes(token);
        let Some(last) = bytes.last() else { return };
        let matters = match last {
            b'r' | b'R' => bytes.len() == "for".len(),
            b's' | b'S' => matches!(bytes.len(), 3 | 17),
            b'k' | b'K' => matches!(bytes.len(), 4 | 8 | 12),
            b'a' | b'A' => bytes.len() == "performance_schema".len(),
            b'c' => bytes.ends_with(b"_ghc"),
            b'`' | b'"' => true,
            _ => false,
        };
        if matters {
            self.look_at(token);
        }
    }

    fn look_at(&mut self, token: Token) {
        let Some(name) = self.lexer.name_of(token) else { return };
        let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
        if is_system_schema(name) {
            self.hints.system_schema = true;
        } else if name.ends_with(b"_ghc") {
            self.hints.changelog = true;
        } else if token.kind == Kind::Name {
            // A quoted name is neither a keyword nor taken for a function.
        } else if is(b"for") {
            self.after_for();
        } else if is(b"lock") {
            self.after_lock();
        } else if is(b"get_lock") || is(b"release_lock") || is(b"release_all_locks") {
            self.lock_function(token);
            self.effects.plain.named_locks = NamedLockUse::Other;
        } else if is(b"is_free_lock") || is(b"is_used_lock") {
            self.lock_function(token);
        }
    }

    /// FOR UPDATE, FOR SHARE.
    fn after_for(&mut self) {
        let next = self.token();
        if self.is(next, "UPDATE") || self.is(next, "SHARE") {
            self.locking = true;
        } else {
            self.unread(next);
        }
    }

    /// LOCK IN SHARE MODE.
    fn after_lock(&mut self) {
        let next = self.token();
        if !self.is(next, "IN") {
            return self.unread(next);
        }
        let next = self.token();
        if self.is(next, "SHARE") {
            self.locking = true;
        } else {
            self.unread(next);
        }
    }

    /// A call of the server's own function, not of a stored one of that name in some schema.
    fn lock_function(&mut self, token: Token) {
        let next = self.token();
        if next.kind == Kind::Punct(b'(') && !self.is_qualified(token) {
            self.hints.lock_function = true;
        }
        self.unread(next);
    }

    /// Whether a point, or a comment that may hide one, stands before `token`.
    fn is_qualified(&self, token: Token) -> bool {
        let before = self.lexer.text().get(..token.start).unwrap_or_default().trim_ascii_end();
        matches!(before.last(), Some(b'.' | b'/'))
    }
}
