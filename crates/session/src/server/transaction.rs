//! What may pass because its transaction has been admitted already.
//!
//! The state comes from the status flags of the server's own OK and EOF packets (manual: "Server
//! status flags"), never from guessing at SQL text. The flag alone is not enough: after a `BEGIN`
//! it is set although nothing has run, so this also remembers whether the transaction has been
//! admitted. What no flag shows (`LOCK TABLES`, the global read lock) is followed by the statements
//! that succeeded, and user-level locks by the values that `GET_LOCK` returned.
//!
//! ```text
//!          a statement that works is admitted, and OK,     OK without IN_TRANS, deadlock, reset,
//!          or fails in a transaction that goes on
//!   Open ──────────────────────────────────────────▶ Admitted ───────────────────────────────▶ Open
//!     ▲                                                │ or behind what may have ended it: BEGIN,
//!     ├────────────────────────────────────────────────┤ COMMIT, an error in them or among them
//!     │                                                │ a CALL, EXECUTE or block, OK with IN_TRANS
//!     └──────────────────── in doubt ◀─────────────────┘
//!             as from Admitted
//! ```
//!
//! What fails keeps the rows that it has locked by then, to the end of its transaction. So what runs
//! behind it was admitted with it: an error is no second admission, for there is one transaction to
//! commit, as behind a statement that locks nothing.
//!
//! Whatever is not certain ends the admission: the next statement is asked for again. Behind a CALL
//! nobody but the server knows whether the locks of before are still held. Budgets do not delay such
//! a session, for it may keep others from giving them back; nor does a rule, if one has admitted it.
//! What denies or holds reaches it, for the transaction may be one that nobody has admitted. The next
//! CALL is asked for: so there is no transaction but the first behind an admission that has not been.

use policy::{Cover, PassReason};
use sql::{Class, Locks, NamedLockUse, PlainEffects, TransactionAfter, VerbsRun};
use wire::response_tracker::{OnlyValue, ResponseEnd};
use wire::status::{SERVER_STATUS_IN_TRANS, StatusFlags};

/// The server rolled the whole transaction back: `ER_LOCK_DEADLOCK`, and `ER_CHECKREAD`, which is
/// InnoDB's of MariaDB with `innodb_snapshot_isolation`.
const ROLLED_BACK: [u16; 2] = [1213, 1020];

/// `ER_PARSE_ERROR`, `XAER_NOTA`, `XAER_INVAL`, `XAER_RMFAIL`, `XAER_OUTSIDE` and `XAER_DUPID`: what
/// cannot be read, or the state of the transaction does not allow, was not begun, and has left it as it
/// was. A SIGNAL says what it likes; none is met within COMMIT, BEGIN or a statement of XA.
const HAS_RUN_NOTHING: [u16; 6] = [1064, 1397, 1398, 1399, 1400, 1440];

/// User-level locks (`GET_LOCK`) counted per session. A count beyond it would only tell when the
/// session is free again, and `RELEASE_ALL_LOCKS` or a reset tells that too.
const NAMED_LOCKS_MAX: u32 = 1 << 20;

/// The transaction and the locks of one session.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    flags: StatusFlags,
    admitted: Admitted,
    locks: Locks,
    named_locks: u32,
}

/// How what a transaction does has come to the server; the later the stronger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Admitted {
    /// Nothing has worked in it, or nobody knows what.
    #[default]
    No,
    /// It may be one in which something has run that nobody was asked for, or another: only the
    /// server knows.
    MayBePassed,
    /// It may be one that was asked for, or another.
    MayBeAsked,
    /// Something that may lock or write has run, of a class that its rule does not name.
    NotNamed,
    /// Something that may lock or write has run, for which nobody had to be asked.
    Passed,
    /// Such a statement was asked for, and admitted.
    Asked,
}

impl Admitted {
    /// With one more statement in it. What passes in doubt makes nothing certain.
    fn with(self, statement: Self) -> Self {
        match (self, statement) {
            (Self::MayBePassed | Self::MayBeAsked, Self::NotNamed | Self::Passed) => self,
            (one, other) => one.max(other),
        }
    }

    /// Behind what may have ended it, and begun another.
    fn doubted(self) -> Self {
        match self {
            Self::No => Self::No,
            Self::NotNamed | Self::Passed | Self::MayBePassed => Self::MayBePassed,
            Self::Asked | Self::MayBeAsked => Self::MayBeAsked,
        }
    }

    /// What a statement of this class makes of its transaction, that runs because it was admitted.
    pub(crate) fn of_asked(class: Class) -> Self {
        if class.works() { Self::Asked } else { Self::No }
    }

    /// The same, when the rules let it pass for this reason.
    pub(crate) fn of_passed(class: Class, why: PassReason) -> Self {
        match why {
            PassReason::NoRule | PassReason::Exempt | PassReason::Ungated if class.works() => {
                Self::Passed
            }
            // DDL commits of itself.
            PassReason::NotCovered if class.is_covered_by_write() => Self::NotNamed,
            PassReason::NoRule
            | PassReason::Exempt
            | PassReason::Ungated
            | PassReason::NotCovered
            | PassReason::NotGateable
            | PassReason::NeverHeld(_)
            | PassReason::InTransaction
            | PassReason::HoldsTableLocks
            | PassReason::HoldsRowLocks
            | PassReason::HoldsNamedLock => Self::No,
        }
    }
}

impl Transaction {
    /// What lets a statement of this session pass although a rule would hold it: its transaction
    /// has been admitted, or the session holds locks that others wait for. A text that ends the
    /// transaction before it goes on to work, or gives the locks back, is not covered by it.
    pub(crate) fn cover(&self, effects: &PlainEffects) -> Cover {
        if self.locks.any() {
            // Until it has run, others wait for them.
            if effects.unlocks_before_other { Cover::MayHoldRows } else { Cover::TableLocks }
        } else if effects.transaction_control_before_other {
            match self.cover_of_named_locks() {
                Cover::Nothing if self.admitted != Admitted::No => Cover::MayHoldRows,
                cover => cover,
            }
        } else {
            let is_doubtful = effects.transaction_after == TransactionAfter::Unknown;
            match (self.admitted, self.cover_of_named_locks()) {
                (Admitted::Asked, _) => Cover::Transaction,
                (Admitted::Passed, _) => Cover::Worked,
                (Admitted::MayBeAsked, _) if !is_doubtful => Cover::Worked,
                (Admitted::MayBePassed, Cover::Nothing) if !is_doubtful => Cover::MayHoldRows,
                (Admitted::NotNamed, Cover::Nothing) => Cover::MayHoldRows,
                (
                    Admitted::NotNamed
                    | Admitted::MayBeAsked
                    | Admitted::MayBePassed
                    | Admitted::No,
                    cover,
                ) => cover,
            }
        }
    }

    fn cover_of_named_locks(&self) -> Cover {
        if self.named_locks > 0 { Cover::NamedLock } else { Cover::Nothing }
    }

    /// Whether the permit of this session's last admission is still in use: it counts what runs in
    /// the transaction.
    pub(crate) fn is_admitted(&self) -> bool {
        matches!(self.admitted, Admitted::Asked | Admitted::MayBeAsked)
    }

    /// Whether its transaction is certain to be the one that was admitted.
    pub(crate) fn is_certainly_admitted(&self) -> bool {
        self.admitted == Admitted::Asked
    }

    /// Whether the session holds locks of `LOCK TABLES`, the global read lock or the backup lock.
    pub(crate) fn holds_table_locks(&self) -> bool {
        self.locks.any()
    }

    /// Whether it holds locks of `LOCK TABLES`.
    pub(crate) fn holds_tables(&self) -> bool {
        self.locks.tables
    }

    /// Whether the server's flags say that a transaction is open.
    pub(crate) fn is_open(&self) -> bool {
        self.flags.in_transaction()
    }

    /// The flags as last seen.
    pub(crate) fn flags(&self) -> StatusFlags {
        self.flags
    }

    /// The flags of an OK outside of statements: login, change of user.
    pub(crate) fn start(&mut self, flags: StatusFlags) {
        *self = Self { flags, ..Self::default() };
    }

    /// The response to a statement has ended.
    #[inline]
    pub(crate) fn handle_end(
        &mut self,
        end: &ResponseEnd,
        admits: Admitted,
        effects: &PlainEffects,
    ) {
        self.count_named_locks(end, effects.named_locks);
        match end.error {
            Some(code) => self.handle_error(code, end, admits, effects),
            None => {
                if let Some(flags) = end.status {
                    self.handle_ok(flags, admits, effects);
                }
                self.handle_locks(effects);
            }
        }
    }

    /// Flags seen on an answer that is not a statement's (COM_PING, COM_INIT_DB …).
    pub(crate) fn handle_flags(&mut self, flags: StatusFlags) {
        self.flags = flags;
        self.keep_admission(flags.in_transaction());
    }

    fn handle_ok(&mut self, flags: StatusFlags, admits: Admitted, effects: &PlainEffects) {
        self.flags = flags;
        self.follow(admits, effects);
        self.keep_admission(flags.in_transaction());
    }

    /// All that the text has of what begins or ends a transaction has run, and the flags are those
    /// of behind it.
    fn follow(&mut self, admits: Admitted, effects: &PlainEffects) {
        self.admitted = match effects.transaction_after {
            TransactionAfter::Same => self.admitted.with(admits),
            TransactionAfter::Unknown => self.admitted.with(admits).doubted(),
            // `BEGIN; INSERT …` in one text was asked for as a whole, and goes on.
            TransactionAfter::OfText => admits,
            TransactionAfter::OfTextOrOther => admits.doubted(),
            TransactionAfter::Other => Admitted::No,
        };
    }

    fn keep_admission(&mut self, stands: bool) {
        if !stands {
            self.admitted = Admitted::No;
        }
    }

    /// An ERR carries no flags: those of the result ahead of it are the last. The transaction goes on
    /// as if the statement had worked, but that a deadlock or its like has rolled it back, unless the text could
    /// end it: then it matters how far it came.
    fn handle_error(
        &mut self,
        code: u16,
        end: &ResponseEnd,
        admits: Admitted,
        effects: &PlainEffects,
    ) {
        self.flags = end.status_ahead.unwrap_or(self.flags);
        let mut has_run_nothing = false;
        if ROLLED_BACK.contains(&code) {
            self.flags = StatusFlags(self.flags.0 & !SERVER_STATUS_IN_TRANS);
            self.admitted = Admitted::No;
        } else {
            match effects.transaction_verbs.run(end.results_ahead) {
                VerbsRun::None => self.admitted = self.admitted.with(admits),
                VerbsRun::PlainFailed if HAS_RUN_NOTHING.contains(&code) => has_run_nothing = true,
                // Only what switches it on commits.
                VerbsRun::SwitchFailed if self.flags.autocommit() => {}
                VerbsRun::PlainFailed | VerbsRun::SwitchFailed | VerbsRun::Some => {
                    self.admitted = Admitted::No;
                }
                VerbsRun::All => self.follow(admits, effects),
            }
            // With autocommit off it is begun by what fails, and no flags have shown it yet.
            self.keep_admission(self.flags.in_transaction() || !self.flags.autocommit());
        }
        // What gives locks back is among those verbs.
        if has_run_nothing {
            return;
        }
        // Of what it takes nobody knows whether it is held, also not of what it would have taken
        // anew.
        let PlainEffects { takes, releases, begins_transaction, .. } = effects;
        let Locks { tables, global, instance } = self.locks;
        self.locks = Locks {
            tables: tables && !(takes.tables || releases.tables || *begins_transaction),
            global: global && !(takes.global || releases.global),
            instance: instance && !(takes.instance || releases.instance),
        };
    }

    /// The server alone knows whether it gave a user-level lock: its value counts, of a text that
    /// does nothing else.
    fn count_named_locks(&mut self, end: &ResponseEnd, used: NamedLockUse) {
        self.named_locks = match (used, end.only_value) {
            (NamedLockUse::None, _) => self.named_locks,
            (NamedLockUse::SoleGet, Some(OnlyValue::Integer(GIVEN))) => {
                self.named_locks.saturating_add(1).min(NAMED_LOCKS_MAX)
            }
            // Nothing was released: the session did not hold it, or nobody did.
            (NamedLockUse::SoleGet, _)
            | (NamedLockUse::SoleRelease, Some(OnlyValue::Null | OnlyValue::Integer(NOT_GIVEN))) => {
                self.named_locks
            }
            (NamedLockUse::SoleRelease, _) => self.named_locks.saturating_sub(1),
            (NamedLockUse::Other, _) => 0,
        };
    }

    fn handle_locks(&mut self, effects: &PlainEffects) {
        let PlainEffects { takes, releases, .. } = effects;
        // BEGIN unlocks tables, but not the global read lock.
        let unlocks_tables = releases.tables || effects.begins_transaction;
        self.locks = Locks {
            tables: takes.tables || (self.locks.tables && !unlocks_tables),
            global: takes.global || (self.locks.global && !releases.global),
            instance: takes.instance || (self.locks.instance && !releases.instance),
        };
    }
}

/// What `GET_LOCK` and `RELEASE_LOCK` return when they did it.
const GIVEN: i64 = 1;
/// What they return when they did not.
const NOT_GIVEN: i64 = 0;
