//! What a statement changes in its session.

use crate::{
    mode::{Charset, LexMode, Server, Setting},
    text::SqlText,
};

/// What the session must know once the server has answered the text.
///
/// Text of several statements gives the net effect: what a later one undoes is gone, and of two
/// values the later one stands. Where the text was not read, because it was cut, because its end
/// was not found, or because what it runs stands elsewhere, [`PlainEffects::unread`] is set and
/// every other effect is the one that loosens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Effects<'t> {
    /// What can be kept without the text.
    pub plain: PlainEffects,
    /// `SET @sluice_app = …`.
    pub set_app: Option<AppSetting<'t>>,
    /// USE: the name as written between its quotes (doubled quotes are not undone).
    pub use_schema: Option<&'t [u8]>,
    /// PREPARE name FROM …, and no other PREPARE, EXECUTE or DEALLOCATE in the text. An error drops
    /// a statement that had the name before.
    pub prepare: Option<SqlPrepare<'t>>,
    /// The text is one EXECUTE, of this name. [`PlainEffects::unread`] is set as well: where it is
    /// known what was prepared under the name, the effects of that stand in for these.
    pub execute: Option<&'t [u8]>,
    /// DEALLOCATE PREPARE or DROP PREPARE name, as [`Effects::prepare`].
    pub deallocate: Option<&'t [u8]>,
}

/// Effects that refer to no text. Small: they move with every statement.
///
/// Every name of a prepared statement consists of ASCII letters, digits, `_`, `$` and `.`; such
/// names are equal when they are equal but for the case of their ASCII letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PlainEffects {
    /// What the text did is not known: EXECUTE, a compound statement, a text that was cut or cannot
    /// be read. The mode of reading is unknown, names of prepared statements stand for anything,
    /// the transaction may have ended and another begun, locks are not known to be held, and the
    /// default schema may be another; also after an error. The other effects say all this too, so
    /// that they need not be looked at apart. CALL says it of all but the mode, which servers
    /// restore behind a routine.
    pub unread: bool,
    /// The text is one statement, and begins with what is no statement of the server. If all that it
    /// answers is `ER_PARSE_ERROR`, it has run nothing, and no other effect is to be looked at.
    pub no_statement: bool,
    /// BEGIN, START TRANSACTION, XA START, COMMIT or ROLLBACK AND CHAIN. The transaction it begins
    /// is a new one, also when one was open.
    pub begins_transaction: bool,
    /// COMMIT, ROLLBACK (not TO SAVEPOINT), XA COMMIT, ROLLBACK or PREPARE, and SET autocommit to
    /// anything but 0. With `completion_type` a new transaction may be open behind it at once.
    pub ends_transaction: bool,
    /// What may end a transaction is followed by a statement that a rule may hold back, in one
    /// text: the transaction the latter runs in may not be the one that was open when the text was
    /// sent.
    pub transaction_control_before_other: bool,
    /// What may give back locks of tables, or all of them, is followed by a statement that a rule may hold
    /// back, in what was read of the text.
    pub unlocks_before_other: bool,
    /// Which transaction is open once the server has answered the text with OK, if one is.
    pub transaction_after: TransactionAfter,
    /// Where in the text stands what may begin or end a transaction.
    pub transaction_verbs: TransactionVerbs,
    /// Locks that it leaves held.
    pub takes: Locks,
    /// Locks that it gives back.
    pub releases: Locks,
    /// GET_LOCK() and its family.
    pub named_locks: NamedLockUse,
    /// `character_set_client`, set in any way. After an error it may be in force or not, as the
    /// next two ([`LexMode::after_error`](crate::LexMode::after_error)).
    pub set_charset: Option<Charset>,
    /// SET sql_mode: whether ANSI_QUOTES is in force now. Not if it stays as it was, which
    /// `CONCAT(@@sql_mode, ',…')` leaves it.
    pub sets_ansi_quotes: Option<Setting>,
    /// SET sql_mode: whether NO_BACKSLASH_ESCAPES is in force now; as the one before.
    pub sets_no_backslash_escapes: Option<Setting>,
    /// The text is one SET that gives `sql_mode` a value which only the server knows, and nothing
    /// runs in it that could make the status flags of its OK lie: those say what is in force now,
    /// as far as they show it.
    pub sql_mode_by_flags: bool,
    /// Names of prepared statements were given, taken or changed in a way that cannot be followed:
    /// none is known any more, also after an error.
    pub forgets_prepared: bool,
    /// The default schema may be another: a routine of MariaDB can leave it changed.
    pub forgets_schema: bool,
    /// KILL of a connection given by number, and nothing else in the text.
    pub kill: Option<Kill>,
}

/// Which transaction is open behind a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransactionAfter {
    /// The one that was open ahead of it, if the server's flags still show one, or the one that its
    /// only statement has opened.
    #[default]
    Same,
    /// One that began within the text, and the last statement that may lock or write ran in it.
    OfText,
    /// Perhaps such a one, perhaps another: a CALL stands behind what began within the text.
    OfTextOrOther,
    /// Perhaps the one that was open ahead of it, perhaps another: what ran stands elsewhere.
    Unknown,
    /// Perhaps another, in which nothing of the text has run.
    Other,
}

impl TransactionAfter {
    /// What is behind a text of which both may be readings.
    fn merged(self, other: Self) -> Self {
        if self == other { self } else { Self::Other }
    }
}

/// Which statements of a text, counted from 1, may begin or end a transaction, of themselves or by
/// an implicit commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TransactionVerbs {
    /// The first one; 0 if there is none.
    first: u8,
    /// The last one, or [`TransactionVerbs::UNCOUNTED`].
    last: u8,
    /// What the first one is.
    kind: TransactionVerb,
}

/// What one of [`TransactionVerbs`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum TransactionVerb {
    /// Of [`Class::Transaction`](crate::Class::Transaction), which runs nothing else.
    Plain,
    /// SET autocommit, and nothing else in that SET.
    Switch,
    /// CALL, which has any number of results.
    Call,
    /// Another.
    #[default]
    Other,
}

/// What had become of [`TransactionVerbs`] when a statement of the text failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerbsRun {
    /// None had run.
    None,
    /// The first of them is what failed, and is a statement that runs nothing else.
    PlainFailed,
    /// The first of them is what failed, and is one assignment to autocommit.
    SwitchFailed,
    /// Nobody but the server knows.
    Some,
    /// All had.
    All,
}

impl TransactionVerbs {
    /// Somewhere: how many results there are ahead of the last one is not known.
    const UNCOUNTED: u8 = u8::MAX;

    /// Anywhere in a text.
    const ANYWHERE: Self = Self { first: 1, last: Self::UNCOUNTED, kind: TransactionVerb::Other };

    /// With that statement, counted from 1, as one of them.
    pub(crate) fn with(self, statement: u32, verb: TransactionVerb) -> Self {
        let place = u8::try_from(statement).unwrap_or(Self::UNCOUNTED);
        let last = match verb {
            TransactionVerb::Call => Self::UNCOUNTED,
            TransactionVerb::Plain | TransactionVerb::Switch | TransactionVerb::Other => {
                self.last.max(place)
            }
        };
        if self.any() {
            return Self { last, ..self };
        }
        Self { first: place, last, kind: verb }
    }

    /// Whether there is any.
    #[must_use]
    pub fn any(self) -> bool {
        self.first != 0
    }

    /// What had become of them when an error came behind so many results.
    #[must_use]
    pub fn run(self, results: u32) -> VerbsRun {
        let (first, last) = (u32::from(self.first), u32::from(self.last));
        if !self.any() || results.saturating_add(1) < first {
            VerbsRun::None
        } else if self.last == Self::UNCOUNTED {
            VerbsRun::Some
        } else if results >= last {
            VerbsRun::All
        } else if results < first {
            match self.kind {
                TransactionVerb::Plain => VerbsRun::PlainFailed,
                TransactionVerb::Switch => VerbsRun::SwitchFailed,
                TransactionVerb::Call | TransactionVerb::Other => VerbsRun::Some,
            }
        } else {
            VerbsRun::Some
        }
    }

    /// Those of a text of which both may be readings.
    fn merged(self, other: Self) -> Self {
        match (self.any(), other.any()) {
            _ if self == other => self,
            (true, true) => Self { first: self.first.min(other.first), ..Self::ANYWHERE },
            (true, false) => Self { last: Self::UNCOUNTED, ..self },
            (false, _) => Self { last: Self::UNCOUNTED, ..other },
        }
    }
}

/// How a text uses the server's named locks. What it did only the value that the server returns
/// can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NamedLockUse {
    /// None of their functions is called.
    #[default]
    None,
    /// The text is one `SELECT GET_LOCK(…)` of one row and one column: 1 says that the session
    /// holds one more.
    SoleGet,
    /// The text is one `SELECT RELEASE_LOCK(…)` of one row and one column: 1 says that the
    /// session holds one less.
    SoleRelease,
    /// GET_LOCK, RELEASE_LOCK or RELEASE_ALL_LOCKS in any other way: how many the session holds is
    /// not known, also after an error.
    Other,
}

impl NamedLockUse {
    /// The use in a text of which both may be readings.
    fn merged(self, other: Self) -> Self {
        if self == other { self } else { Self::Other }
    }
}

/// Locks that no status flag shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Locks {
    /// LOCK TABLES, FLUSH TABLES … FOR EXPORT or WITH READ LOCK. UNLOCK TABLES and a new transaction
    /// release it, and so does dropping the last of those tables.
    pub tables: bool,
    /// FLUSH TABLES WITH READ LOCK, of no table by name. UNLOCK TABLES releases it.
    pub global: bool,
    /// LOCK INSTANCE FOR BACKUP, and MariaDB's BACKUP LOCK and BACKUP STAGE.
    pub instance: bool,
}

impl Locks {
    /// All of them.
    pub(crate) const ALL: Self = Self { tables: true, global: true, instance: true };

    /// Whether any is set.
    #[must_use]
    pub fn any(self) -> bool {
        self.tables || self.global || self.instance
    }

    /// What is set in both.
    #[must_use]
    pub(crate) fn both(self, other: Self) -> Self {
        Self {
            tables: self.tables && other.tables,
            global: self.global && other.global,
            instance: self.instance && other.instance,
        }
    }

    /// What is set in either.
    #[must_use]
    pub(crate) fn either(self, other: Self) -> Self {
        Self {
            tables: self.tables || other.tables,
            global: self.global || other.global,
            instance: self.instance || other.instance,
        }
    }

    /// What is set here and not in `other`.
    #[must_use]
    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            tables: self.tables && !other.tables,
            global: self.global && !other.global,
            instance: self.instance && !other.instance,
        }
    }
}

/// What `SET @sluice_app = …` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppSetting<'t> {
    /// A string literal.
    Named(SqlText<'t>),
    /// NULL: the session names no app any more.
    Cleared,
    /// An expression, whose value only the server knows.
    Unreadable,
}

/// KILL [CONNECTION | QUERY] of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The connection as the server numbers it.
    pub connection_id: u64,
    /// KILL QUERY: only its statement, the connection stays.
    pub query_only: bool,
}

/// PREPARE name FROM text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlPrepare<'t> {
    /// The name, as [`PlainEffects`] says of names.
    pub name: &'t [u8],
    /// The literal, or nothing if the text comes from a variable or an expression.
    pub text: Option<SqlText<'t>>,
}

/// What both readings say.
fn same<T: PartialEq>(one: Option<T>, two: Option<T>) -> Option<T> {
    if one == two { one } else { None }
}

/// What both readings set; if they differ, it is not known.
fn set<T: PartialEq>(one: Option<T>, two: Option<T>, unknown: T) -> Option<T> {
    if one == two { one } else { Some(unknown) }
}

impl Effects<'_> {
    /// What a text has done that was not read, whatever could be seen of it.
    pub(crate) fn unread(self) -> Self {
        Self {
            plain: PlainEffects {
                transaction_control_before_other: self.plain.transaction_control_before_other,
                unlocks_before_other: self.plain.unlocks_before_other,
                no_statement: self.plain.no_statement,
                ..PlainEffects::unread()
            },
            set_app: self.set_app.map(|_| AppSetting::Unreadable),
            execute: self.execute,
            ..Self::default()
        }
    }

    /// `self` is one reading of the text, `other` another: nothing that loosens survives unless
    /// both have it, and whatever tightens survives if either has it.
    pub(crate) fn merged(self, other: Self) -> Self {
        let mut plain = self.plain.merged(other.plain);
        plain.forgets_prepared |=
            self.prepare != other.prepare || self.deallocate != other.deallocate;
        plain.unread |= self.execute != other.execute;
        plain.forgets_schema |= self.use_schema != other.use_schema;
        Self {
            plain,
            set_app: match (self.set_app, other.set_app) {
                (one, two) if one == two => self.set_app,
                _ => Some(AppSetting::Unreadable),
            },
            use_schema: same(self.use_schema, other.use_schema),
            prepare: same(self.prepare, other.prepare),
            execute: same(self.execute, other.execute),
            deallocate: same(self.deallocate, other.deallocate),
        }
    }
}

impl PlainEffects {
    /// What a text has done that was not read: anything that tightens, and nothing that loosens.
    #[must_use]
    pub fn unread() -> Self {
        Self {
            unread: true,
            no_statement: false,
            begins_transaction: true,
            ends_transaction: true,
            transaction_control_before_other: false,
            unlocks_before_other: false,
            transaction_after: TransactionAfter::Unknown,
            transaction_verbs: TransactionVerbs::ANYWHERE,
            takes: Locks::default(),
            releases: Locks::ALL,
            named_locks: NamedLockUse::Other,
            set_charset: Some(Charset::Unknown),
            sets_ansi_quotes: Some(Setting::Unknown),
            sets_no_backslash_escapes: Some(Setting::Unknown),
            sql_mode_by_flags: false,
            forgets_prepared: true,
            forgets_schema: true,
            kill: None,
        }
    }

    /// Notes that a stored procedure was called, which can do all that a client can, but for the
    /// mode: both servers restore `sql_mode` and `character_set_client` behind it, also after an
    /// error. Its transaction is the caller's, and only it may leave another.
    pub(crate) fn call(&mut self, server: Server) {
        let Self { set_charset, sets_ansi_quotes, sets_no_backslash_escapes, .. } = *self;
        *self = Self {
            unread: self.unread,
            transaction_control_before_other: self.transaction_control_before_other,
            unlocks_before_other: self.unlocks_before_other,
            transaction_after: self.transaction_after,
            set_charset,
            sets_ansi_quotes,
            sets_no_backslash_escapes,
            forgets_schema: self.forgets_schema || !matches!(server, Server::MySql { .. }),
            ..Self::unread()
        };
    }

    /// See [`Effects::merged`].
    fn merged(self, other: Self) -> Self {
        Self {
            unread: self.unread || other.unread,
            no_statement: self.no_statement && other.no_statement,
            begins_transaction: self.begins_transaction || other.begins_transaction,
            ends_transaction: self.ends_transaction || other.ends_transaction,
            transaction_control_before_other: self.transaction_control_before_other
                || other.transaction_control_before_other,
            unlocks_before_other: self.unlocks_before_other || other.unlocks_before_other,
            transaction_after: self.transaction_after.merged(other.transaction_after),
            transaction_verbs: self.transaction_verbs.merged(other.transaction_verbs),
            takes: self.takes.both(other.takes),
            releases: self.releases.either(other.releases),
            named_locks: self.named_locks.merged(other.named_locks),
            set_charset: set(self.set_charset, other.set_charset, Charset::Unknown),
            sets_ansi_quotes: set(self.sets_ansi_quotes, other.sets_ansi_quotes, Setting::Unknown),
            sets_no_backslash_escapes: set(
                self.sets_no_backslash_escapes,
                other.sets_no_backslash_escapes,
                Setting::Unknown,
            ),
            sql_mode_by_flags: self.sql_mode_by_flags && other.sql_mode_by_flags,
            forgets_prepared: self.forgets_prepared || other.forgets_prepared,
            forgets_schema: self.forgets_schema || other.forgets_schema,
            kill: same(self.kill, other.kill),
        }
    }

    /// Notes that `locks` are held now.
    pub(crate) fn take(&mut self, locks: Locks) {
        self.takes = self.takes.either(locks);
        self.releases = self.releases.without(locks);
    }

    /// Notes that `locks` are given back.
    pub(crate) fn release(&mut self, locks: Locks) {
        self.takes = self.takes.without(locks);
        self.releases = self.releases.either(locks);
    }
}

/// What a text makes of the mode in which the next one is read.
impl LexMode {
    /// The mode once the server has answered every statement of a text of these effects with OK.
    #[must_use]
    pub fn after_ok(self, effects: &PlainEffects) -> Self {
        Self {
            no_backslash_escapes: effects
                .sets_no_backslash_escapes
                .unwrap_or(self.no_backslash_escapes),
            ansi_quotes: effects.sets_ansi_quotes.unwrap_or(self.ansi_quotes),
            charset: effects.set_charset.unwrap_or(self.charset),
            server: self.server,
        }
    }

    /// The mode once the server has answered such a text with an error. What the text set before
    /// the error is in force, and that need not be what it would have set last.
    #[must_use]
    pub fn after_error(self, effects: &PlainEffects) -> Self {
        let unless = |now: Setting, set: Option<Setting>| match set {
            Some(_) => Setting::Unknown,
            None => now,
        };
        Self {
            no_backslash_escapes: unless(
                self.no_backslash_escapes,
                effects.sets_no_backslash_escapes,
            ),
            ansi_quotes: unless(self.ansi_quotes, effects.sets_ansi_quotes),
            charset: match effects.set_charset {
                Some(_) => Charset::Unknown,
                None => self.charset,
            },
            server: self.server,
        }
    }
}
