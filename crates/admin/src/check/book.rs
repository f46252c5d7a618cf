//! What is remembered of checks: who asked lately, and for whom others give way.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use admission::MonoTime;
use axum::http::request::Parts;
use parking_lot::Mutex;

use crate::serving::Caller;

/// For so long after a normal check was refused for the load, checks with `p=low` give way.
const YIELD_FOR: Duration = Duration::from_secs(1);

/// A cluster that was checked within this time counts as recently checked.
const RECENTLY: Duration = Duration::from_secs(1);

/// Apps remembered, each with the address it asked from: clients choose both.
const RECENT_MAX: usize = 1_000;

/// Who has not asked for so long is forgotten.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Longest app and longest address that are remembered; of longer ones the beginning.
const PART_LEN_MAX: usize = 255;

/// Of all clusters.
#[derive(Debug)]
pub(crate) struct Book {
    clusters: Vec<ClusterBook>,
    nowhere: ClusterBook,
    pub(crate) recent: RecentApps,
    host: OnceLock<Option<String>>,
}

impl Book {
    pub(crate) fn new(clusters: usize) -> Self {
        let clusters = std::iter::repeat_with(ClusterBook::default).take(clusters).collect();
        Self {
            clusters,
            nowhere: ClusterBook::default(),
            recent: RecentApps::default(),
            host: OnceLock::new(),
        }
    }

    /// The name of this machine, as the kernel had it when it was first asked for.
    pub(crate) fn host(&self) -> Option<&str> {
        let read = || {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
            Some(name.trim().to_owned()).filter(|name| !name.is_empty())
        };
        self.host.get_or_init(read).as_deref()
    }

    /// Of the cluster with this place in the file.
    pub(crate) fn of(&self, index: usize) -> &ClusterBook {
        self.clusters.get(index).unwrap_or(&self.nowhere)
    }
}

/// Of one cluster. Times are nanoseconds of its clock, 0 is never.
#[derive(Debug, Default)]
pub(crate) struct ClusterBook {
    checked_at: AtomicU64,
    yield_until: AtomicU64,
}

impl ClusterBook {
    /// A check comes. Whether one had come shortly before.
    pub(crate) fn note_checked(&self, now: MonoTime) -> bool {
        let before = self.checked_at.swap(now.as_nanos().max(1), Ordering::Relaxed);
        before > 0 && now.saturating_since(MonoTime::from_nanos(before)) <= RECENTLY
    }

    /// Whether anybody has asked within the last second.
    pub(crate) fn is_recently_checked(&self, now: MonoTime) -> bool {
        let before = self.checked_at.load(Ordering::Relaxed);
        before > 0 && now.saturating_since(MonoTime::from_nanos(before)) <= RECENTLY
    }

    pub(crate) fn make_others_yield(&self, now: MonoTime) {
        let until = now.saturating_add(YIELD_FOR).as_nanos();
        self.yield_until.fetch_max(until, Ordering::Relaxed);
    }

    pub(crate) fn yields(&self, now: MonoTime) -> bool {
        now.as_nanos() < self.yield_until.load(Ordering::Relaxed)
    }
}

/// Who asked lately, and from where.
#[derive(Debug, Default)]
pub(crate) struct RecentApps(Mutex<HashMap<Box<[u8]>, Recent>>);

#[derive(Debug, Clone, Copy)]
struct Recent {
    at: MonoTime,
    /// Where the address begins.
    app_len: usize,
    status: u16,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecentApp {
    pub(crate) app: String,
    pub(crate) address: String,
    pub(crate) ago: Duration,
    pub(crate) status: u16,
}

impl RecentApps {
    pub(crate) fn note(&self, app: &[u8], request: &Parts, now: MonoTime, status: u16) {
        let forwarded = request.headers.get("x-forwarded-for");
        let peer = request.extensions.get::<Caller>().map(|caller| caller.peer.ip().to_string());
        let address = match (forwarded, &peer) {
            (Some(forwarded), _) => forwarded.as_bytes(),
            (None, Some(peer)) => peer.as_bytes(),
            (None, None) => &[],
        };
        self.note_from(app, address, now, status);
    }

    fn note_from(&self, app: &[u8], address: &[u8], now: MonoTime, status: u16) {
        let app = app.get(..PART_LEN_MAX).unwrap_or(app);
        let address = address.get(..PART_LEN_MAX).unwrap_or(address);
        let key = [app, b"/", address].concat();
        let recent = Recent { at: now, app_len: app.len(), status };
        let mut known = self.0.lock();
        if let Some(before) = known.get_mut(&*key) {
            *before = recent;
            return;
        }
        if known.len() >= RECENT_MAX {
            make_room(&mut known);
        }
        known.insert(key.into(), recent);
    }

    /// Those of this time, by app and address.
    pub(crate) fn within(&self, now: MonoTime, time: Duration) -> Vec<RecentApp> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let known = self.0.lock();
        let mut recent: Vec<RecentApp> = known
            .iter()
            .filter_map(|(key, recent)| {
                let ago = now.saturating_since(recent.at);
                let (app, address) = key.split_at_checked(recent.app_len)?;
                let address = text(address.get(1..)?);
                (ago <= time.min(KEPT_FOR)).then(|| RecentApp {
                    app: text(app),
                    address,
                    ago,
                    status: recent.status,
                })
            })
            .collect();
        drop(known);
        recent.sort_by(|a, b| (&a.app, &a.address).cmp(&(&b.app, &b.address)));
        recent
    }
}

/// Forgets the tenth of them that has not asked for longest.
fn make_room(known: &mut HashMap<Box<[u8]>, Recent>) {
    let mut times: Vec<MonoTime> = known.values().map(|recent| recent.at).collect();
    let (_, limit, _) = times.select_nth_unstable(RECENT_MAX / 10);
    let limit = *limit;
    let mut left = known.len().saturating_sub(RECENT_MAX / 10 * 9);
    known.retain(|_, recent| {
        let goes = left > 0 && recent.at <= limit;
        left = left.saturating_sub(usize::from(goes));
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonoTime {
        MonoTime::from_nanos(1).saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn however_many_apps_ask_the_latest_are_known_and_the_rest_forgotten() {
        let recent = RecentApps::default();
        for n in 0..10_000_u64 {
            recent.note_from(format!("app-{n}").as_bytes(), b"10.0.0.1", at(n / 10), 200);
            assert!(recent.0.lock().len() <= RECENT_MAX);
        }
        let known = recent.within(at(1_000), Duration::from_secs(3_600));
        assert!(known.len() >= RECENT_MAX / 10 * 9, "{}", known.len());
        assert!(known.iter().any(|known| known.app == "app-9999"));
        // All at once: times do not tell them apart.
        for n in 0..5_000_u64 {
            recent.note_from(format!("b-{n}").as_bytes(), b"", at(2_000), 200);
            assert!(recent.0.lock().len() <= RECENT_MAX);
        }
    }

    #[test]
    fn any_bytes_are_remembered_and_a_slash_in_an_app_is_its_own() {
        let recent = RecentApps::default();
        recent.note_from(b"a/b\xff\0", b"::1", at(0), 429);
        recent.note_from(&[b'x'; 4_000], &[b'y'; 4_000], at(30), 200);
        let known = recent.within(at(60), Duration::from_secs(3_600));
        let [odd, long] = &known[..] else { panic!("{known:?}") };
        assert_eq!((&*odd.app, &*odd.address, odd.status), ("a/b\u{fffd}\0", "::1", 429));
        assert_eq!((long.app.len(), long.address.len()), (PART_LEN_MAX, PART_LEN_MAX));
        assert_eq!(recent.within(at(60), Duration::from_secs(30)).len(), 1);
    }

    #[test]
    fn others_give_way_for_a_second() {
        let book = ClusterBook::default();
        assert!(!book.yields(at(0)) && !book.note_checked(at(0)));
        book.make_others_yield(at(1));
        assert!(book.yields(at(1)) && !book.yields(at(2)));
        assert!(book.is_recently_checked(at(1)) && !book.is_recently_checked(at(2)));
    }
}
