//! What a statement changes in its session, if the server answers it with OK.

use crate::{mode::Charset, text::SqlText};

/// What the session must know when the server has accepted the text.
///
/// Text of several statements gives the net effect: what a later one undoes is gone, and of two
/// values the later one stands. Text that was cut, or that cannot be read to its end, has no effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Effects<'t> {
    /// What can be kept without the text.
    pub plain: PlainEffects,
    /// `SET @sluice_app = …`.
    pub set_app: Option<AppSetting<'t>>,
    /// USE: the name as written between its quotes (doubled quotes are not undone).
    pub use_schema: Option<&'t [u8]>,
    /// PREPARE name FROM ….
    pub prepare: Option<SqlPrepare<'t>>,
    /// EXECUTE name: the name as written; names of prepared statements ignore case.
    pub execute: Option<&'t [u8]>,
    /// DEALLOCATE PREPARE or DROP PREPARE name.
    pub deallocate: Option<&'t [u8]>,
}

/// Effects that refer to no text. Small: they move with every statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PlainEffects {
    /// BEGIN, START TRANSACTION, XA START, COMMIT or ROLLBACK AND CHAIN. The transaction it begins
    /// is a new one, also when one was open.
    pub begins_transaction: bool,
    /// COMMIT, ROLLBACK (not TO SAVEPOINT), XA COMMIT, ROLLBACK or PREPARE.
    pub ends_transaction: bool,
    /// Transaction control is followed by a statement that a rule may hold back, in one text: the
    /// transaction the latter runs in is not the one that was open when the text was sent.
    pub transaction_control_before_other: bool,
    /// Locks that it leaves held.
    pub takes: Locks,
    /// Locks that it gives back.
    pub releases: Locks,
    /// RELEASE_ALL_LOCKS(): not one named lock but all of them.
    pub releases_all_named: bool,
    /// SET NAMES, SET CHARACTER SET, SET character_set_client, with a value that can be read.
    pub set_charset: Option<Charset>,
    /// SET sql_mode with a readable value: whether ANSI_QUOTES is on now.
    pub sets_ansi_quotes: Option<bool>,
    /// KILL of a connection given by number.
    pub kill: Option<Kill>,
}

/// Locks that no status flag shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Locks {
    /// LOCK TABLES, FLUSH TABLES … FOR EXPORT. UNLOCK TABLES and a new transaction release it.
    pub tables: bool,
    /// FLUSH TABLES WITH READ LOCK. UNLOCK TABLES releases it.
    pub global: bool,
    /// LOCK INSTANCE FOR BACKUP, and MariaDB's BACKUP LOCK and BACKUP STAGE.
    pub instance: bool,
    /// GET_LOCK().
    pub named: bool,
}

impl Locks {
    /// Whether any is set.
    #[must_use]
    pub fn any(self) -> bool {
        self.tables || self.global || self.instance || self.named
    }

    /// What is set in both.
    #[must_use]
    pub(crate) fn both(self, other: Self) -> Self {
        Self {
            tables: self.tables && other.tables,
            global: self.global && other.global,
            instance: self.instance && other.instance,
            named: self.named && other.named,
        }
    }

    /// What is set in either.
    #[must_use]
    pub(crate) fn either(self, other: Self) -> Self {
        Self {
            tables: self.tables || other.tables,
            global: self.global || other.global,
            instance: self.instance || other.instance,
            named: self.named || other.named,
        }
    }

    /// What is set here and not in `other`.
    #[must_use]
    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            tables: self.tables && !other.tables,
            global: self.global && !other.global,
            instance: self.instance && !other.instance,
            named: self.named && !other.named,
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
    /// The name as written; names of prepared statements ignore case.
    pub name: &'t [u8],
    /// The literal, or nothing if the text comes from a variable or an expression.
    pub text: Option<SqlText<'t>>,
}

/// What both readings say.
fn same<T: PartialEq>(one: Option<T>, two: Option<T>) -> Option<T> {
    if one == two { one } else { None }
}

impl Effects<'_> {
    /// `self` is one reading of the text, `other` another: nothing that loosens survives unless
    /// both have it, and whatever tightens survives if either has it.
    pub(crate) fn merged(self, other: Self) -> Self {
        Self {
            plain: self.plain.merged(other.plain),
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
    /// See [`Effects::merged`].
    fn merged(self, other: Self) -> Self {
        Self {
            begins_transaction: self.begins_transaction || other.begins_transaction,
            ends_transaction: self.ends_transaction || other.ends_transaction,
            transaction_control_before_other: self.transaction_control_before_other
                || other.transaction_control_before_other,
            takes: self.takes.both(other.takes),
            releases: self.releases.either(other.releases),
            releases_all_named: self.releases_all_named || other.releases_all_named,
            set_charset: same(self.set_charset, other.set_charset),
            sets_ansi_quotes: same(self.sets_ansi_quotes, other.sets_ansi_quotes),
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
