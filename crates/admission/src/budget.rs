//! Budgets: what statements may use of the server together, whatever rule decides about them.
//!
//! Theory. A statement has room when every budget that meets it has: first all are looked at, then
//! it is taken from all, so a statement that waits or is refused has used nothing. What a budget
//! limits is kept in *buckets*, one for each budget, or one for each instance of what it is `per`:
//!
//! - *places*, the statements at the server, taken when one is forwarded and free when its answer
//!   is over;
//! - *debts*, by a reverse leaky bucket: a statement adds its cost, the debt drains at the rate of
//!   the budget, and a statement that would take it over the bucket's size waits until it does not.
//!   One that is larger than the bucket passes when there is no debt at all, and is paid for behind
//!   it. So over any time t a bucket lets through at most `rate × t`, its size, and one statement
//!   beyond what was foreseen.
//!
//! What a statement costs is foreseen from what its digest cost before ([`prediction`]), and put
//! right when it has ended. A bucket without place and debt says nothing: it is not stored, and one
//! is made when it is touched. Nobody sweeps: debts drain when they are looked at, and a new bucket
//! takes the room of one that has emptied.
//!
//! Who has no room waits in the line of the first bucket that has none, in fair turns as everywhere
//! ([`crate::ring`]), and is looked at again when a place is free, or when enough has drained.

mod bucket;
mod elsewhere;
mod idle;
mod known;
mod ledger;
mod line;
mod prediction;
mod store;
mod terms;

pub use self::elsewhere::{BudgetDebt, BudgetNews};
pub use self::ledger::{BudgetHold, BudgetUsed, BudgetView};
pub(crate) use self::ledger::{Budgets, InTheWay};
pub(crate) use self::line::{BudgetLines, BudgetScope, Sought};
pub use self::prediction::DigestCost;
pub use self::terms::{BudgetBook, BudgetKey, BudgetSet, BudgetTerms, BudgetUse, OnExceeded};

#[cfg(test)]
mod tests;
