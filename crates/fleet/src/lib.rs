//! Rules that are made while Sluice runs: where they live, and how all Sluices of a cluster get
//! them.
//!
//! ```text
//! make, lift ─▶ ledger ─▶ in force here, at once      (proxy::cluster)
//!                 │  ╲
//!                 │   ╲──▶ journal in `state_dir`      (fsync)
//!                 ▼
//!              outbox ─▶ table on the primary ─▶ every other Sluice's ledger ─▶ in force there
//! ```
//!
//! A [`RuntimeRules`] is the handle of one process. Each cluster has a ledger, which is pure: what
//! the table, the disk and the clock say are arguments of its methods. A change is in force here
//! first, then on disk, then in the table; the [`Receipt`] says how far it came. Neither a disk nor
//! a primary that does not answer holds it up for long, and traffic never waits for either.

mod body;
mod draft;
mod journal;
mod ledger;
mod member;
mod receipt;
mod rules;

pub use self::draft::{
    LASTS_DEFAULT, LASTS_MAX, LASTS_MIN, Lift, LiftError, MakeError, RULES_MAX, RuleDraft,
};
pub use self::receipt::{Receipt, StandingRule, TableReceipt};
pub use self::rules::RuntimeRules;
pub use policy::RuntimeEffect;
