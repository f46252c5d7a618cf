//! What may pass because its transaction has been admitted already.
//!
//! The state comes from the status flags of the server's own OK and EOF packets (manual: "Server status
//! flags"), never from guessing at SQL text. The flag alone is not enough: after a `BEGIN` it is set
//! although nothing has run, so this also remembers whether the transaction has been admitted. What no
//! flag shows (`LOCK TABLES`, `GET_LOCK`, the global read lock) is followed by the statements that
//! succeeded.
//!
//! ```text
//!            first write admitted                  OK without IN_TRANS, deadlock, reset
//!   Open ───────────────────────────▶ Admitted ───────────────────────────────────────▶ Open
//!     ▲                                  │ BEGIN (implicit commit), COMMIT AND CHAIN
//!     └──────────────────────────────────┘
//! ```

use sql::{Locks, NamedLockUse, PlainEffects};
use wire::response_tracker::ResponseEnd;
use wire::status::{SERVER_STATUS_IN_TRANS, StatusFlags};

/// The server rolled the whole transaction back: errno of `ER_LOCK_DEADLOCK`.
const ER_LOCK_DEADLOCK: u16 = 1213;

/// Named locks (`GET_LOCK`) counted per session. A count beyond it would only tell when the session is free
/// again, and `RELEASE_ALL_LOCKS` or a reset tells that too.
const NAMED_LOCKS_MAX: u32 = 1 << 20;

/// The transaction and the locks of one session.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    flags: StatusFlags,
    admitted: bool,
    locks: Locks,
    named_locks: u32,
}

/// What kind of statement has just ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ran {
    /// A statement of a class that can take locks or write: it makes its transaction admitted.
    Work,
    #[default]
    /// Anything else: reads, SET, SHOW, transaction control.
    Rest,
}

impl Transaction {
    /// Whether a statement passes without being asked for: its transaction has been admitted, or the
    /// session holds locks that others wait for. A text that ends the transaction before it goes on
    /// to work is not covered by it.
    pub(crate) fn covers(&self, effects: &PlainEffects) -> bool {
        (self.admitted && !effects.transaction_control_before_other)
            || self.locks.any()
            || self.named_locks > 0
    }

    /// Whether the permit of this session's last admission is still in use.
    pub(crate) fn is_admitted(&self) -> bool {
        self.admitted
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

    /// A statement has ended.
    pub(crate) fn handle_end(&mut self, end: &ResponseEnd, ran: Ran, effects: &PlainEffects) {
        match end.error {
            Some(code) => self.handle_error(code, ran, effects),
            None => {
                if let Some(flags) = end.status {
                    self.handle_ok(flags, ran, effects);
                }
                self.handle_locks(effects);
            }
        }
    }

    /// Flags seen on an answer that is not a statement's (COM_PING, COM_INIT_DB …).
    pub(crate) fn handle_flags(&mut self, flags: StatusFlags) {
        self.flags = flags;
        self.admitted &= flags.in_transaction();
    }

    fn handle_ok(&mut self, flags: StatusFlags, ran: Ran, effects: &PlainEffects) {
        self.flags = flags;
        let work = ran == Ran::Work;
        let admitted = if effects.begins_transaction {
            // BEGIN commits what was open. `BEGIN; INSERT …` in one text was asked for as a whole and
            // goes on; `INSERT …; BEGIN` leaves a new transaction that nobody has admitted.
            work && effects.transaction_control_before_other && !effects.ends_transaction
        } else {
            work || self.admitted
        };
        self.admitted = admitted && flags.in_transaction();
    }

    /// An ERR carries no flags. What stood before stands, but that a deadlock has rolled back, and that
    /// a write which failed may have opened its transaction and hold locks.
    fn handle_error(&mut self, code: u16, ran: Ran, effects: &PlainEffects) {
        if code == ER_LOCK_DEADLOCK {
            self.admitted = false;
            self.flags = StatusFlags(self.flags.0 & !SERVER_STATUS_IN_TRANS);
            return;
        }
        let may_be_open =
            self.flags.in_transaction() || !self.flags.autocommit() || effects.begins_transaction;
        self.admitted |= ran == Ran::Work && may_be_open;
    }

    fn handle_locks(&mut self, effects: &PlainEffects) {
        let PlainEffects { takes, releases, .. } = effects;
        self.named_locks = match effects.named_locks {
            NamedLockUse::None => self.named_locks,
            NamedLockUse::SoleGet => self.named_locks.saturating_add(1).min(NAMED_LOCKS_MAX),
            NamedLockUse::SoleRelease => self.named_locks.saturating_sub(1),
            NamedLockUse::Other => 0,
        };
        // BEGIN unlocks tables, but not the global read lock.
        let unlocks_tables = releases.tables || effects.begins_transaction;
        self.locks = Locks {
            tables: takes.tables || (self.locks.tables && !unlocks_tables),
            global: takes.global || (self.locks.global && !releases.global),
            instance: takes.instance || (self.locks.instance && !releases.instance),
        };
    }
}
