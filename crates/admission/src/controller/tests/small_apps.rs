//! Apps that ask for little, beside statements that wait for much room.

use super::asking::Path;
use super::*;
use crate::DigestKey;

/// Sessions of one app that write so many rows each time they are let, and think for a while after.
struct Sessions {
    identity: IdentityKey,
    rows: u32,
    think_ms: u64,
    /// When each asks next, in milliseconds.
    due: Vec<u64>,
    /// Those that wait, since when.
    waiting: BTreeMap<Ticket, u64>,
    waited_ms: Vec<u64>,
}

impl Sessions {
    fn new(count: usize, identity: IdentityKey, rows: u32, think_ms: u64) -> Self {
        let due = vec![1_000; count];
        let (waiting, waited_ms) = (BTreeMap::new(), Vec::new());
        Self { identity, rows, think_ms, due, waiting, waited_ms }
    }

    /// So much is written, and those who wait have waited for no longer than this.
    fn step(&mut self, path: &mut Path, ended: &[Ticket]) {
        let now = path.now_ms;
        let ended = ended.iter().filter_map(|ticket| self.waiting.remove(ticket));
        for since in ended.collect::<Vec<_>>() {
            self.wrote(path, since);
        }
        for _ in self.due.extract_if(.., |due| *due <= now).collect::<Vec<_>>() {
            let terms = Terms { max_delay: Duration::from_secs(3_600), ..Terms::default() };
            let mut request = path.lab.request(GATED, self.identity, terms);
            request.digest = Some(DigestKey(self.identity.0));
            let affected_rows = u64::from(self.rows);
            match path.lab.controller.request(path.lab.now, &request) {
                Decision::Queue(ticket) => {
                    self.waiting.insert(ticket, now);
                    path.lab.rows_of.insert(ticket, affected_rows);
                }
                Decision::Admit(permit) => {
                    let outcome = Outcome { affected_rows, ..Outcome::default() };
                    path.lab.controller.complete(path.lab.now, permit, outcome);
                    self.wrote(path, now);
                }
                Decision::Reject(_) | Decision::Observed(..) => panic!("refused"),
            }
        }
    }

    fn wrote(&mut self, path: &mut Path, since: u64) {
        path.write(f64::from(self.rows));
        self.waited_ms.push(path.now_ms - since);
        self.due.push(path.now_ms + self.think_ms);
    }
}

/// What each of these has waited for, in milliseconds, in the second half of two minutes at 500 rows
/// a second, and the highest lag of that time.
fn beside<const N: usize>(mut all: [Sessions; N]) -> ([Vec<u64>; N], f64) {
    let mut path = Path::new();
    for _ in 0..120_000 {
        path.step(500.0);
        let ended = path.lab.winners();
        all.iter_mut().for_each(|sessions| sessions.step(&mut path, &ended));
        if path.now_ms == 60_000 {
            path.lag_max = 0.0;
            all.iter_mut().for_each(|sessions| sessions.waited_ms.clear());
        }
    }
    (all.map(|sessions| sessions.waited_ms), path.lag_max)
}

const BATCH: IdentityKey = IdentityKey(7);
const SMALL: IdentityKey = IdentityKey(8);

#[test]
fn a_small_app_passes_wherever_it_stands_while_its_claim_covers_it() {
    // Whoever is first in line waits for a tenth of a second's work, or for seven tenths.
    let [few, more] = [Sessions::new(2, ETL, 1, 100), Sessions::new(3, DDL, 1, 200)];
    let [batch, small] = [Sessions::new(6, BATCH, 350, 0), Sessions::new(10, SMALL, 50, 5)];
    let ([batch, small, few, more], lag) = beside([batch, small, few, more]);
    for (name, waited, lone) in [("few", few, 1_200), ("more", more, 900)] {
        let at_once = waited.iter().filter(|ms| **ms < 20).count();
        assert!(waited.len() * 100 > lone * 95, "{name}: {} of {lone} rows", waited.len());
        assert!(at_once * 100 > waited.len() * 90, "{name}: {at_once} of {}", waited.len());
    }
    let (batch, small) = (batch.len() * 350, small.len() * 50);
    assert!(batch + small > 26_000, "{batch} and {small} of 27,900 that are left");
    assert!(small.abs_diff(batch) * 10 < batch, "{batch} : {small}");
    assert!(lag < 1.2, "the lag came to {lag:.2} s");
}

#[test]
fn who_asks_for_more_than_its_share_passes_by_turns() {
    // Each of them comes for the first time each time, as far as lines are concerned.
    let eager = Sessions::new(40, ETL, 1, 20);
    let ([batch, eager], lag) = beside([Sessions::new(6, BATCH, 100, 0), eager]);
    let (batch, eager) = (batch.len() * 100, eager.len());
    assert!(eager.abs_diff(batch) * 10 < eager, "{batch} : {eager}");
    assert!(lag < 1.0, "the lag came to {lag:.2} s");
}
