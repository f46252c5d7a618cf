#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use super::*;

const DEAR: Written = Written { table: TableKey(1), kind: WriteKind::Delete };
const CHEAP: Written = Written { table: TableKey(2), kind: WriteKind::Update };
/// A table that nobody names: of a cascade.
const CHILD: TableKey = TableKey(3);

/// Ten looks a second, each at one applier: the next that has work left.
struct Lab {
    work: RowWork,
    now: MonoTime,
    lag: Duration,
    applies_for: Duration,
    keep_order: bool,
}

impl Lab {
    fn new() -> Self {
        let mut lab = Self {
            work: RowWork::default(),
            now: MonoTime::ZERO,
            lag: Duration::ZERO,
            applies_for: Duration::ZERO,
            keep_order: true,
        };
        lab.look(None);
        lab
    }

    fn look(&mut self, at: Option<(&[TableKey], Option<WriteKind>)>) -> f64 {
        let seen: Vec<Applying<'_>> =
            at.into_iter().map(|(tables, kind)| Applying { tables, step: step(kind) }).collect();
        self.look_at(&seen)
    }

    /// By how much a row of the mean is dearer than before.
    fn look_at(&mut self, busy: &[Applying<'_>]) -> f64 {
        let seen = Appliers { busy, idle: busy.is_empty(), keep_order: self.keep_order };
        let behind = Behind { lag: self.lag, applies_for: self.applies_for };
        let dearer = self.work.looked(self.now, behind, &seen);
        self.now = self.now.saturating_add(Duration::from_millis(100));
        dearer.unwrap_or(1.0)
    }

    /// Both told so many rows in each tenth of a second; of ten looks so many meet the dear one.
    fn runs(&mut self, seconds: u32, rows: (f64, f64), dear_in_ten: u32) {
        for n in 0..seconds * 10 {
            self.work.told(Some(DEAR), rows.0);
            self.work.told(Some(CHEAP), rows.1);
            if n * 7 % 10 < dear_in_ten {
                self.look(Some((&[CHILD, DEAR.table], Some(WriteKind::Delete))));
            } else {
                self.look(Some((&[CHEAP.table], Some(WriteKind::Update))));
            }
        }
    }

    fn factors(&self) -> (f64, f64) {
        (self.work.factor(Some(DEAR)), self.work.factor(Some(CHEAP)))
    }
}

/// Rows of a kind, or what is done for a transaction.
fn step(kind: Option<WriteKind>) -> Step {
    kind.map_or(Step::Transaction, |kind| Step::Rows(Some(kind)))
}

#[test]
fn rows_of_which_replicas_have_more_work_count_for_more() {
    let mut lab = Lab::new();
    // Ten times the rows take a tenth of the time: ninety to one.
    lab.runs(60, (1.0, 10.0), 9);
    let (dear, cheap) = lab.factors();
    assert!((6.0..11.0).contains(&dear) && (0.05..0.3).contains(&cheap), "{dear} {cheap}");
    let mean = (dear + 10.0 * cheap) / 11.0;
    assert!((mean - 1.0).abs() < 0.01, "a row is a row on the average: {mean}");
    assert_eq!(lab.work.factor(None), 1.0, "what nobody knows");
    let views = lab.work.view(1);
    assert_eq!(views.first().map(|view| view.written), Some(DEAR));
}

#[test]
fn who_is_alone_at_work_is_at_it_for_all_where_the_order_is_kept() {
    let (dear, cheap) = one_of_four_at_dear_rows(true);
    assert!((3.3..4.5).contains(&(dear / cheap)), "the others wait for it: {dear} {cheap}");
    assert_eq!(one_of_four_at_dear_rows(false), (1.0, 1.0), "they have nothing to do");
}

/// Every other moment one applier is at a dear row, and the others at none.
fn one_of_four_at_dear_rows(keep_order: bool) -> (f64, f64) {
    let mut lab = Lab { keep_order, ..Lab::new() };
    for n in 0..900_u32 {
        lab.work.told(Some(DEAR), 1.0);
        lab.work.told(Some(CHEAP), 4.0);
        let at = |tables| Applying { tables, step: step(Some(WriteKind::Update)) };
        let seen = if n % 2 == 0 {
            vec![at(&[DEAR.table])]
        } else {
            vec![at(&[CHEAP.table]), at(&[CHEAP.table]), at(&[CHEAP.table]), at(&[CHEAP.table])]
        };
        lab.look_at(&seen);
    }
    lab.factors()
}

#[test]
fn rows_of_a_table_that_no_look_meets_are_rows() {
    let mut lab = Lab::new();
    // Half of the work is told under a name that the replica does not have: of a view.
    for n in 0..1_200_u32 {
        lab.work.told(Some(DEAR), 1.0);
        lab.work.told(Some(CHEAP), 1.0);
        let table = if n % 2 == 0 { CHILD } else { CHEAP.table };
        lab.look(Some((&[table], Some(WriteKind::Update))));
        assert_eq!(lab.factors(), (1.0, 1.0));
    }
}

#[test]
fn of_upserts_what_others_write_to_the_table_is_taken_off() {
    let upsert = Written { kind: WriteKind::Replace, ..DEAR };
    let update = Written { kind: WriteKind::Update, ..DEAR };
    let mut lab = Lab::new();
    for n in 0..1_200_u32 {
        // Others update four rows beside one that is told, and all cost the same.
        lab.work.told(Some(upsert), 1.0);
        lab.work.told(Some(CHEAP), 1.0);
        lab.work.applied(update, 5.0);
        lab.work.applied(CHEAP, 1.0);
        let table = if n % 6 == 0 { CHEAP.table } else { DEAR.table };
        lab.look(Some((&[table], Some(WriteKind::Update))));
        let factors = (lab.work.factor(Some(upsert)), lab.work.factor(Some(CHEAP)));
        assert_eq!(factors, (1.0, 1.0), "{n}");
    }
}

#[test]
fn rows_that_cost_the_same_are_rows_for_ever() {
    let mut lab = Lab::new();
    for _ in 0..30 {
        // The mix changes all the time.
        lab.runs(5, (1.0, 9.0), 1);
        lab.runs(5, (9.0, 1.0), 9);
        assert_eq!(lab.factors(), (1.0, 1.0));
    }
}

#[test]
fn without_looks_nothing_is_known_and_what_was_is_forgotten() {
    let mut lab = Lab::new();
    lab.runs(60, (1.0, 10.0), 9);
    let lapses = |seconds| lab.work.lapses(lab.now.saturating_add(Duration::from_secs(seconds)));
    assert!(!lapses(20), "a server that restarts is not forgotten at once");
    assert!(lapses(31));
    let mut nobody_looks = RowWork::default();
    nobody_looks.told(Some(DEAR), 5.0);
    assert!(nobody_looks.told.is_empty());
    assert!(!nobody_looks.lapses(lab.now));
}

#[test]
fn looks_at_tables_that_nobody_was_admitted_to_write_say_nothing() {
    let mut lab = Lab::new();
    for _ in 0..600 {
        lab.work.told(Some(DEAR), 1.0);
        lab.work.told(Some(CHEAP), 1.0);
        lab.look(Some((&[CHILD], Some(WriteKind::Delete))));
    }
    assert_eq!(lab.factors(), (1.0, 1.0));
    // A server that does not name locks looks busy with nothing.
    for _ in 0..600 {
        lab.work.told(Some(DEAR), 1.0);
        lab.work.told(Some(CHEAP), 10.0);
        lab.look(Some((&[], None)));
    }
    assert_eq!(lab.factors(), (1.0, 1.0));
}

#[test]
fn an_applier_that_stands_is_seen_once() {
    for stands in [5, 12, 20, 40] {
        let mut lab = Lab::new();
        lab.runs(60, (1.0, 1.0), 5);
        // Somebody on the replica holds a lock, and its state says nothing of that.
        for n in 0..10 * stands {
            lab.lag = Duration::from_millis(100) * n;
            lab.look(Some((&[DEAR.table], Some(WriteKind::Delete))));
        }
        lab.lag = Duration::ZERO;
        for _ in 0..60 {
            lab.runs(1, (1.0, 1.0), 5);
            assert_eq!(lab.factors(), (1.0, 1.0), "{stands} s");
        }
    }
}

#[test]
fn a_factor_that_is_in_force_stays_so_a_little_below_where_it_began() {
    let mut lab = Lab::new();
    lab.runs(120, (1.0, 1.0), 6);
    assert_eq!(lab.factors(), (1.0, 1.0), "1.2 and 0.8 do not matter");
    lab.runs(120, (1.0, 1.0), 8);
    assert!(lab.factors().1 < 0.6, "{:?}", lab.factors());
    lab.runs(240, (1.0, 1.0), 6);
    assert!((0.7..0.9).contains(&lab.factors().1), "{:?}", lab.factors());
    lab.runs(240, (1.0, 1.0), 5);
    assert_eq!(lab.factors(), (1.0, 1.0));
}

#[test]
fn a_large_statement_that_is_applied_is_no_applier_that_stands() {
    let run = |applies_for: u64| {
        let mut lab = Lab::new();
        for _ in 0..30 {
            // Ten seconds' work at once, and as many rows one by one.
            lab.work.told(Some(DEAR), 1_000.0);
            lab.applies_for = Duration::from_secs(applies_for);
            for n in 0..100 {
                lab.lag = Duration::from_millis(100) * n;
                lab.look(Some((&[DEAR.table], Some(WriteKind::Delete))));
            }
            lab.lag = Duration::ZERO;
            lab.applies_for = Duration::ZERO;
            lab.runs(10, (0.0, 10.0), 0);
        }
        let dear = lab.work.view(2).into_iter().find(|of| of.written == DEAR);
        (lab.factors(), dear.map_or(0.0, |of| of.looks))
    };
    let (factors, all) = run(10);
    assert_eq!(factors, (1.0, 1.0));
    let (_, some) = run(0);
    assert!(some < all / 2.0, "what takes longer than it was to take does not count: {some} {all}");
}

#[test]
fn a_dear_job_that_begins_beside_others_is_known_soon() {
    let mut lab = Lab::new();
    lab.runs(120, (0.0, 20.0), 0);
    lab.runs(30, (1.0, 10.0), 9);
    let (dear, cheap) = lab.factors();
    assert!(dear > 3.0 && cheap < 1.0, "{dear} {cheap}");
}

#[test]
fn a_lock_on_the_table_of_others_does_not_make_them_pay_for_all() {
    let mut lab = Lab::new();
    for n in 0..1_800_u32 {
        lab.work.told(Some(DEAR), 10.0);
        lab.work.told(Some(CHEAP), 10.0);
        let both = [DEAR.table, CHEAP.table];
        let tables = if n % 2 == 0 { &both } else { &both[1..] };
        lab.look(Some((tables, Some(WriteKind::Update))));
    }
    let (who_locks, others) = lab.factors();
    assert!(who_locks >= 0.45 && others <= 1.55, "{who_locks} {others}");
}

#[test]
fn a_rate_found_with_factors_is_less_for_those_without() {
    let mut lab = Lab::new();
    assert_eq!(lab.work.evenly(), 1.0);
    // Twenty rows of the cheap take as long as one of the dear: 21 rows in 40 units of work, where 2 rows would take 21.
    lab.runs(120, (1.0, 20.0), 5);
    let evenly = lab.work.evenly();
    assert!((4.5..6.0).contains(&evenly), "{evenly}");
}

#[test]
fn a_transaction_has_a_price_whatever_it_writes() {
    let mut lab = Lab::new();
    let (bulk, single) = (DEAR.table, CHEAP.table);
    let mut rate = 1.0;
    for n in 0..1_200_u32 {
        // A hundred rows in one transaction, and ten of one row: nine tenths of the work is for transactions.
        lab.work.told(Some(DEAR), 100.0);
        (0..10).for_each(|_| lab.work.told(Some(CHEAP), 1.0));
        let at: (&[TableKey], _) = match n % 110 {
            0..10 => (&[bulk], Some(WriteKind::Delete)),
            10 => (&[single], Some(WriteKind::Update)),
            11..20 => (&[bulk], None),
            20..60 => (&[], None),
            _ => (&[single], None),
        };
        rate *= lab.look(Some(at));
    }
    let price = lab.work.price(Some(CHEAP));
    assert_eq!(price, lab.work.price(Some(DEAR)), "rows cost the same");
    assert_eq!(price, lab.work.price(None));
    let mean = (price.of(100.0) + 10.0 * price.of(1.0)) / 110.0;
    assert!((mean - 1.0).abs() < 1e-6, "a row is a row on the average: {mean}");
    let ratio = price.per_transaction / price.per_row;
    assert!((70.0..120.0).contains(&ratio), "{ratio} rows");
    assert_eq!(price.rows_for(price.of(7.0)).round(), 7.0);
    assert!((rate - 1.0).abs() < 1e-6, "the mix has not changed: {rate}");
    let in_equal_numbers = f64::midpoint(price.of(100.0) / 100.0, price.of(1.0));
    assert!((lab.work.evenly() / in_equal_numbers - 1.0).abs() < 0.05, "{price:?}");
    // Bulks end. What singles cost stays what it was, in rows of a mean that is dearer.
    for n in 0..6_000_u32 {
        (0..10).for_each(|_| lab.work.told(Some(CHEAP), 1.0));
        let kind = (n % 90 == 0).then_some(WriteKind::Update);
        rate *= lab.look(Some((&[single], kind)));
    }
    let now = lab.work.price(Some(CHEAP)).of(1.0);
    let same = now * rate / price.of(1.0);
    assert!((now - 1.0).abs() < 0.2 && (0.8..1.3).contains(&same), "{now} {same}");
}

#[test]
fn transactions_of_others_are_no_part_of_the_price() {
    let mut lab = Lab::new();
    for n in 0..900_u32 {
        lab.work.told(Some(CHEAP), 10.0);
        lab.work.applied(CHEAP, 10.0);
        match n % 10 {
            0 => lab.look(Some((&[CHEAP.table], Some(WriteKind::Update)))),
            1 => lab.look(Some((&[CHEAP.table], None))),
            2..6 => lab.look(Some((&[], None))),
            _ => lab.look(Some((&[CHILD], None))),
        };
    }
    let price = lab.work.price(Some(CHEAP));
    // Of four looks that met no table one fifth is ours; and a little goes by rows: 1.63 to 1.17.
    assert!((12.0..16.0).contains(&(price.per_transaction / price.per_row)), "{price:?}");
}

#[test]
fn the_work_of_those_who_pass_no_gate_is_not_charged_to_who_writes_the_same_table() {
    let mut lab = Lab::new();
    for n in 0..900_u32 {
        lab.work.told(Some(DEAR), 1.0);
        lab.work.told(Some(CHEAP), 1.0);
        // Nine rows in ten of that table are of others.
        lab.work.applied(DEAR, 10.0);
        lab.work.applied(CHEAP, 1.0);
        let at = if n * 7 % 11 < 10 { DEAR.table } else { CHEAP.table };
        lab.look(Some((&[at], Some(WriteKind::Update))));
    }
    assert_eq!(lab.factors(), (1.0, 1.0));
}

#[test]
fn what_clients_make_up_takes_no_room() {
    let mut lab = Lab::new();
    for n in 0..5_000 {
        let written = Written { table: TableKey(n), kind: WriteKind::Insert };
        lab.work.told(Some(written), 1.0);
        lab.look(Some((&[TableKey(n)], Some(WriteKind::Insert))));
    }
    assert!(lab.work.accounts.len() <= KEYS_MAX && lab.work.told.len() <= KEYS_MAX);
}
