//! What a row costs the replicas, by the table it is written to and the kind of statement.
//!
//! Theory. Rows as the primary tells them are not what a replica has work with: a cascade, a
//! trigger, a table without a primary key, a commit for each row. Nobody has to guess that: at any
//! moment the server says what its appliers are at. Looked at ten times a second, the part of the
//! looks that meet a table is its part of the replica's time, as in a profiler that samples. That
//! over its part of the rows told is what one of its rows counts as: [`RowWork::factor`], one on
//! the average of all rows told.
//!
//! - A look meets a transaction, which holds all of its tables: with a cascade or a trigger also
//!   tables that nobody named. It counts for those of its tables that somebody was admitted to
//!   write, and for nobody if there is none.
//! - Who writes the same table past every gate is in the same looks: of a table's looks as much counts
//!   as the part of its applied rows that was told ([`RowWork::applied`]). Where rows may be applied as any kind
//!   (REPLACE, and INSERT that may update), the rows of all kinds of the table are compared.
//! - Rows of a table at which no look has met anybody are rows: whoever writes through a view, or calls the table
//!   otherwise than the server does, is not cheap for that. What others cost is found without them.
//! - Where appliers keep the order of commits, those that are met at work share a look: one that is alone at work holds
//!   up the others, and its moment is the replica's. Where they do not, it holds up nobody, and its work is its own.
//! - What is done for a transaction, whatever it writes (its commit, most of all), has a price of its own, the same for
//!   all: [`ByTransaction`]. Where a replica is durable that is nearly all of the work of a small one.
//! - Rows count once the lag has passed since they were told: until then no replica was at them.
//! - While the lag grows as time goes by, nothing is applied: who an applier stands at is no dearer.
//! - Who knows the factors has found a rate that is too high for who does not: [`RowWork::evenly`].
//! - Nothing is charged by chance: a factor is in force only while it is [`CERTAIN`] deviations
//!   from one, by what the looks of one [`BLOCK`] and the next differ in, and [`MATTERS`] times.
//!
//! Bounds: [`KEYS_MAX`] pairs of table and kind; whoever comes then has the factor one.

mod account;
mod price;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use self::account::{Account, Met, Part, Sum, Totals};
pub(crate) use self::price::Price;
use self::price::{AtTransactions, ByTransaction};
use crate::MonoTime;

/// A table, as a number that only the shell can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableKey(pub u64);

/// How a statement writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WriteKind {
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// REPLACE, and INSERT that may update instead: what the appliers do for its rows may be any of these.
    Replace,
}

/// What a statement writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Written {
    /// The table that it names.
    pub table: TableKey,
    /// How.
    pub kind: WriteKind,
}

/// What an applier of a replica is at.
#[derive(Debug, Clone, Copy)]
pub struct Applying<'a> {
    /// The tables whose locks its transaction holds by now. Empty: it begins or ends one.
    pub tables: &'a [TableKey],
    /// What it does for that.
    pub step: Step,
}

/// What an applier does for a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It applies rows, of this kind if it says so.
    Rows(Option<WriteKind>),
    /// It begins or commits, whatever the transaction writes.
    Transaction,
}

/// What the appliers of a replica are at.
#[derive(Debug, Clone, Copy)]
pub struct Appliers<'a> {
    /// Those that wait for no other.
    pub busy: &'a [Applying<'a>],
    /// Whether there is nothing for any of them, for certain. (One that waits for a lock has work.)
    pub idle: bool,
    /// Whether they commit in the order of the primary.
    pub keep_order: bool,
}

/// How far a replica is behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behind {
    pub(crate) lag: Duration,
    /// How long what it has not applied takes it, by what its rows count as.
    pub(crate) applies_for: Duration,
}

/// What a row of one kind counts as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowWorkView {
    /// Of what.
    pub written: Written,
    /// Rows told within the memory, which is a minute and a half.
    pub rows: f64,
    /// Looks that met it.
    pub looks: f64,
    /// What one of its rows is charged as.
    pub factor: f64,
}

/// How often what was seen is weighed. Work that a look meets is told within one, or is counted
/// against certainty.
const BLOCK: Duration = Duration::from_secs(1);
const HALF_A_BLOCK: Duration = Duration::from_millis(500);

/// What is left of a block with the next: half after a minute.
const MEMORY: f64 = 0.9885;

/// Pairs of table and kind.
const KEYS_MAX: usize = 256;

/// A pair of fewer rows is forgotten.
const ROWS_MIN: f64 = 0.5;

/// Fewer looks that met anything say nothing.
const LOOKS_MIN: f64 = 30.0;

/// Blocks before anything is said.
const BLOCKS_MIN: u32 = 10;

/// Deviations from which on a factor is certain, and below which it is not any more.
const CERTAIN: f64 = 4.0;
const UNCERTAIN: f64 = 2.0;

/// Nothing is applied when the lag grows by this part of the time; and for longer than what is there takes, and so
/// much on top, looks say nothing then.
const STANDS: f64 = 0.8;
const STANDS_FOR: Duration = Duration::from_millis(3_500);

/// A factor closer to one is one: before it is in force, and while it is. At one limit it came and went, and of two that
/// cost the same one had it while the other had not.
const MATTERS: f64 = 1.5;
const MATTERED: f64 = 1.2;

/// What is believed at most.
const FACTOR_MAX: f64 = 50.0;

/// How far a factor moves in one block.
const STEP: f64 = 1.5;

/// What the commit of a transaction takes for its size, of what its rows take: its events are written to the replica's own
/// log. Seen of 10,000 rows in a transaction: 0.14 for UPDATE and 0.21 for INSERT (MySQL 9.7).
const FOR_SIZE: f64 = 0.17;

/// Who makes less than this part of the work of the largest does not count for what a row would cost otherwise.
const NOTABLE: f64 = 0.05;

/// For how long what was learned holds without a look.
const KNOWN_FOR: Duration = Duration::from_secs(30);

/// Blocks of rows that wait for the lag to pass: two minutes. What is older counts at once.
const WAITING_MAX: usize = 120;

/// What rows cost, learned from looks at the appliers. Without looks every factor is one.
#[derive(Debug, Default)]
pub(crate) struct RowWork {
    accounts: BTreeMap<Written, Account>,
    totals: Totals,
    /// Told in the block under way.
    told: Told,
    /// Told in blocks whose work may not have been done yet, oldest first.
    waiting: VecDeque<(MonoTime, Told)>,
    /// Looks in the block under way: by what was met, at transactions of others, and those that met no table.
    met: BTreeMap<Written, Met>,
    elsewhere: f64,
    between: f64,
    /// All that is told, and the looks at what is done for transactions that are told, whatever these write.
    all: Sum,
    at_transactions: AtTransactions,
    by_transaction: ByTransaction,
    /// Rows applied in the block under way, whoever wrote them.
    applied: BTreeMap<Written, f64>,
    block_began: Option<MonoTime>,
    /// At the end of the block before this one; and for how long it has grown since nothing was applied.
    lag: Duration,
    stood_for: Duration,
    looked_at: MonoTime,
    blocks: u32,
}

/// Rows and transactions told, by what they write, if that is known.
type Told = BTreeMap<Option<Written>, Sum>;

impl RowWork {
    /// What a statement counts as.
    pub(crate) fn price(&self, written: Option<Written>) -> Price {
        Price {
            per_transaction: self.by_transaction.per_transaction(),
            per_row: self.by_transaction.per_row() * self.factor(written),
        }
    }

    /// What a row counts as among rows.
    fn factor(&self, written: Option<Written>) -> f64 {
        written.and_then(|written| self.accounts.get(&written)).map_or(1.0, |of| of.factor)
    }

    /// A transaction has told its rows.
    pub(crate) fn told(&mut self, written: Option<Written>, rows: f64) {
        // Else nobody looks.
        if rows <= 0.0 || self.block_began.is_none() {
            return;
        }
        let known = self.told.len() < KEYS_MAX || self.told.contains_key(&written);
        let sum = self.told.entry(written.filter(|_| known)).or_default();
        sum.rows += rows;
        sum.transactions += 1.0;
    }

    /// The appliers of a replica were looked at. By how much a row of the mean is dearer than before, where that may be.
    pub(crate) fn looked(
        &mut self,
        now: MonoTime,
        behind: Behind,
        seen: &Appliers<'_>,
    ) -> Option<f64> {
        let began = *self.block_began.get_or_insert(now);
        self.looked_at = now;
        // Where commits keep their order, who is alone at work holds up all others: it is one moment of the
        // replica's, whoever shares it.
        let sharers = if seen.keep_order { seen.busy.len() } else { 1 };
        let part = 1.0 / f64::from(u32::try_from(sharers).unwrap_or(u32::MAX).max(1));
        for applying in seen.busy {
            self.meet(applying, part);
        }
        if now.saturating_since(began) < BLOCK {
            return None;
        }
        self.block_began = Some(now);
        self.note_standing(behind, now.saturating_since(began));
        self.end_block(now, behind.lag)
    }

    /// So many rows were applied of late, whoever wrote them. Only of what was told is it kept.
    pub(crate) fn applied(&mut self, written: Written, rows: f64) {
        let of_any = Written { kind: WriteKind::Replace, ..written };
        for written in [written, of_any] {
            if self.accounts.contains_key(&written) || self.told.contains_key(&Some(written)) {
                *self.applied.entry(written).or_default() += rows;
            }
        }
    }

    /// Whether nobody has looked for so long, or there was so little to be seen, that what was learned does not hold.
    pub(crate) fn lapses(&self, now: MonoTime) -> bool {
        let unseen = self.block_began.is_some() && now.saturating_since(self.looked_at) > KNOWN_FOR;
        unseen
            || (self.looks() < LOOKS_MIN && (self.has_factors() || self.by_transaction.is_known()))
    }

    fn looks(&self) -> f64 {
        self.totals.looks + self.at_transactions.ours()
    }

    fn has_factors(&self) -> bool {
        self.accounts.values().any(|account| (account.factor - 1.0).abs() > 0.0)
    }

    /// What a row would cost, in rows of the mean, if all kinds of rows came in equal numbers, each in transactions as
    /// large as it has, and 1 at least. Who knows prices evens out the work, and cheap rows are most of all; a rate found
    /// at that is so many times what there is for those who go by rows, as without prices all do.
    pub(crate) fn evenly(&self) -> f64 {
        let price = self.price(None);
        let work = |of: &Account| {
            of.rows * price.per_row * of.factor + of.transactions * price.per_transaction
        };
        let largest = self.accounts.values().map(work).fold(0.0, f64::max);
        let counts = |of: &&Account| work(of) >= NOTABLE * largest;
        let (sum, number) = self
            .accounts
            .values()
            .filter(counts)
            .fold((0.0, 0.0), |(sum, number), of| (sum + work(of) / of.rows, number + 1.0));
        if number > 0.0 { f64::max(sum / number, 1.0) } else { 1.0 }
    }

    fn meet(&mut self, applying: &Applying<'_>, part: f64) {
        if applying.tables.is_empty() {
            self.between += part;
            return;
        }
        let accounts = &self.accounts;
        let of_kind = |written: &Written| match applying.step {
            Step::Rows(Some(kind)) => kind == written.kind || written.kind == WriteKind::Replace,
            Step::Rows(None) | Step::Transaction => true,
        };
        let of_table =
            || accounts.iter().filter(|(written, _)| applying.tables.contains(&written.table));
        let exact = of_table().any(|(written, _)| of_kind(written));
        let met = || of_table().filter(|(written, _)| !exact || of_kind(written));
        // By their rows, not by what these were found to cost: who was thought dear would get dearer.
        let weight = |of: &Account| of.rows + f64::MIN_POSITIVE;
        let total: f64 = met().map(|(_, of)| weight(of)).sum();
        if total <= 0.0 && applying.step == Step::Transaction {
            self.elsewhere += part;
        }
        for (written, of) in met() {
            let looks = self.met.entry(*written).or_default();
            let which = match applying.step {
                Step::Rows(_) => &mut looks.rows,
                Step::Transaction => &mut looks.transactions,
            };
            *which += part * weight(of) / total;
        }
    }

    /// While nothing at all is applied, the lag grows as time goes by. An applier that stands at one row for a minute,
    /// for a lock that a reader of the replica holds or for its disk, is not seen at it six hundred times. So it grows
    /// while one large statement is applied: for as long as that may take, nothing stands.
    fn note_standing(&mut self, behind: Behind, since: Duration) {
        let Behind { lag, applies_for } = behind;
        let grew = lag.saturating_sub(self.lag);
        self.lag = lag;
        let stands = grew >= since.mul_f64(STANDS);
        self.stood_for = if stands { self.stood_for.saturating_add(since) } else { Duration::ZERO };
        if self.stood_for > applies_for.saturating_add(STANDS_FOR) {
            self.forget_block();
        }
    }

    fn forget_block(&mut self) {
        self.met.clear();
        self.elsewhere = 0.0;
        self.between = 0.0;
    }

    fn end_block(&mut self, now: MonoTime, lag: Duration) -> Option<f64> {
        self.blocks = self.blocks.saturating_add(1);
        self.waiting.push_back((now, std::mem::take(&mut self.told)));
        let mut told: Told = BTreeMap::new();
        while let Some((at, _)) = self.waiting.front()
            && (at.saturating_add(lag) <= now.saturating_add(HALF_A_BLOCK)
                || self.waiting.len() > WAITING_MAX)
        {
            for (written, more) in self.waiting.pop_front().unwrap_or_default().1 {
                told.entry(written).or_default().add(more);
            }
        }
        self.take_in(&told);
        self.weigh();
        self.weigh_transactions(&told)
    }

    /// The block's rows and looks go to the accounts.
    fn take_in(&mut self, told: &Told) {
        for written in told.keys().flatten() {
            if self.accounts.len() < KEYS_MAX {
                self.accounts.entry(*written).or_default();
            }
        }
        let of = |written: &Written| told.get(&Some(*written)).copied().unwrap_or_default();
        let of =
            |written: &Written| (of(written), self.applied.get(written).copied().unwrap_or(0.0));
        // What of a table is applied may be whose rows are of any kind.
        let mut of_any: BTreeMap<TableKey, Part> = BTreeMap::new();
        for (written, account) in &mut self.accounts {
            let (told, applied) = of(written);
            account.tell(told, applied);
            if written.kind == WriteKind::Replace {
                of_any.insert(written.table, Part { rows: 0.0, ..account.part() });
            }
        }
        for (written, account) in &self.accounts {
            if let Some(part) = of_any.get_mut(&written.table) {
                part.rows += account.rows;
            }
        }
        let (mut block, mut totals) = (Totals::default(), Totals::default());
        // What is done for transactions: with their tables, of all there are, and ours.
        let (mut seen, mut ours) = (self.elsewhere, 0.0);
        for (written, account) in &mut self.accounts {
            let part = of_any.get(&written.table).copied().unwrap_or(account.part()).told();
            let met = self.met.get(written).copied().unwrap_or_default();
            account.see(met, part);
            seen += met.transactions;
            ours += met.transactions * part;
            if account.is_met() {
                block = block.and(account.block);
                totals = totals.and(Totals { rows: account.rows, looks: account.looks });
            }
        }
        self.at_transactions.take_in(AtTransactions { seen, ours, between: self.between });
        self.forget_block();
        self.applied.clear();
        self.totals = totals;
        for account in self.accounts.values_mut().filter(|account| account.is_met()) {
            account.end(&block, &totals);
        }
        self.accounts.retain(|_, account| account.rows >= ROWS_MIN);
    }

    fn weigh(&mut self) {
        let totals = self.totals;
        let enough = self.blocks >= BLOCKS_MIN && totals.looks >= LOOKS_MIN;
        let mut weighed = 0.0;
        for account in self.accounts.values_mut() {
            let is_known = enough && account.is_met();
            account.wanted = if is_known { account.wants(&totals) } else { 1.0 };
            weighed += if account.is_met() { account.rows * account.wanted } else { 0.0 };
        }
        // On the average a row told is a row.
        let scale = if weighed > 0.0 { totals.rows / weighed } else { 1.0 };
        let mut charged = 0.0;
        for account in self.accounts.values_mut() {
            if account.is_met() {
                account.move_to(account.wanted * scale);
                charged += account.rows * account.factor;
            } else {
                account.move_to(1.0);
            }
        }
        // Also while they move.
        if self.has_factors() {
            let scale = if charged > 0.0 { totals.rows / charged } else { 1.0 };
            for account in self.accounts.values_mut().filter(|account| account.is_met()) {
                account.factor = (account.factor * scale).clamp(1.0 / FACTOR_MAX, FACTOR_MAX);
            }
        }
    }

    /// What is done for transactions, and what for rows, of all that looks can tell of. By how much a row of the mean is
    /// dearer than before, where transactions have a price.
    fn weigh_transactions(&mut self, told: &Told) -> Option<f64> {
        self.all.forget();
        told.values().for_each(|sum| self.all.add(*sum));
        if self.all.transactions < ROWS_MIN {
            return None;
        }
        let rows_each = self.all.rows / self.all.transactions;
        let is_priced = self.by_transaction.is_known();
        let dearer = self.by_transaction.come_with(rows_each);
        if self.blocks >= BLOCKS_MIN && self.looks() >= LOOKS_MIN {
            let met = self.accounts.values().filter(|account| account.is_met());
            let transactions: f64 = met.map(|account| account.transactions).sum();
            // A large transaction takes longer to commit than a small one: that goes by its rows.
            let for_size = FOR_SIZE * self.totals.looks;
            let at_transactions = (self.at_transactions.ours() - for_size).max(0.0);
            let at_rows = self.totals.looks + for_size + 1.0;
            let by_transactions = at_transactions / transactions.max(ROWS_MIN) / rows_each;
            let by_rows = at_rows / self.totals.rows.max(ROWS_MIN);
            self.by_transaction.approach(by_transactions / (by_transactions + by_rows));
        }
        is_priced.then_some(dearer)
    }

    /// What is known, whoever costs most in all first.
    pub(crate) fn view(&self, most: usize) -> Vec<RowWorkView> {
        let mut views: Vec<_> = self
            .accounts
            .iter()
            .map(|(written, Account { rows, looks, factor, .. })| RowWorkView {
                written: *written,
                rows: *rows,
                looks: *looks,
                factor: *factor * self.by_transaction.per_row(),
            })
            .collect();
        views.sort_unstable_by(|a, b| {
            (b.rows * b.factor).total_cmp(&(a.rows * a.factor)).then(a.written.cmp(&b.written))
        });
        views.truncate(most);
        views
    }
}

#[cfg(test)]
mod tests;
