//! What a session is told from outside: at most one message of each kind, the gravest first.
//!
//! A session looks whenever it waits for anything, several times for each statement, and there is
//! hardly ever anything: so looking is one load, of a number that all mailboxes of a cluster share.
//! While that stays the same nobody has been told anything, and no session looks at its own.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::control::Control;

/// The two ends of a mailbox, one of those that share `told`.
pub(super) fn mailbox(told: &Arc<Told>) -> (Outbox, Inbox) {
    let mailbox = Arc::new(Mailbox { told: told.clone(), pending: Mutex::default() });
    let (told, seen) = (told.clone(), told.0.load(Ordering::Relaxed));
    (Outbox(mailbox.clone()), Inbox { told, seen, mailbox, registered: None })
}

/// How often anybody has been told anything.
#[derive(Debug, Default)]
pub(super) struct Told(AtomicU64);

#[derive(Debug)]
struct Mailbox {
    /// Counts what is put into this one too: behind that, and before the reader is woken.
    told: Arc<Told>,
    pending: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    close: bool,
    kill: bool,
    refuse: bool,
    drain: bool,
    new_limits: bool,
    /// When the latest KILL QUERY was sent.
    kill_query: Option<Instant>,
    /// Who waits; taken when it is woken.
    reader: Option<Waker>,
}

/// The end that writes. It never blocks for long and is never full: what is said twice is heard
/// once.
#[derive(Clone, Debug)]
pub(super) struct Outbox(Arc<Mailbox>);

impl Outbox {
    pub(super) fn tell(&self, control: Control) {
        let mut pending = self.0.pending.lock();
        match control {
            Control::Close => pending.close = true,
            Control::Kill => pending.kill = true,
            Control::Refuse => pending.refuse = true,
            Control::Drain => pending.drain = true,
            Control::NewLimits => pending.new_limits = true,
            Control::KillQuery { sent } => pending.kill_query = pending.kill_query.max(Some(sent)),
        }
        self.0.told.0.fetch_add(1, Ordering::Release);
        let reader = pending.reader.take();
        drop(pending);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    pub(super) fn is_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Pending {
    fn take(&mut self) -> Option<Control> {
        if std::mem::take(&mut self.close) {
            return Some(Control::Close);
        }
        if std::mem::take(&mut self.kill) {
            return Some(Control::Kill);
        }
        if let Some(sent) = self.kill_query.take() {
            return Some(Control::KillQuery { sent });
        }
        if std::mem::take(&mut self.new_limits) {
            return Some(Control::NewLimits);
        }
        if std::mem::take(&mut self.refuse) {
            return Some(Control::Refuse);
        }
        std::mem::take(&mut self.drain).then_some(Control::Drain)
    }
}

/// The end that reads.
#[derive(Debug)]
pub struct Inbox {
    /// The mailbox has it too, and lies apart.
    told: Arc<Told>,
    /// What that was when there was nothing in the mailbox.
    seen: u64,
    mailbox: Arc<Mailbox>,
    /// Who will be woken: as long as it is the same, nothing has to be written down again.
    registered: Option<Waker>,
}

impl Inbox {
    /// The next message. Wakes the task of the last call when there is one.
    pub(crate) fn poll_told(&mut self, cx: &mut Context<'_>) -> Poll<Control> {
        let Self { told, seen, mailbox, registered } = self;
        let is_registered = registered.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        let now = told.0.load(Ordering::Acquire);
        if is_registered && now == *seen {
            return Poll::Pending;
        }
        let mut pending = mailbox.pending.lock();
        if let Some(control) = pending.take() {
            // Looked at again with the lock before the next wait.
            *registered = None;
            return Poll::Ready(control);
        }
        // What is told from here on counts beyond this, and wakes.
        *seen = now;
        pending.reader = Some(cx.waker().clone());
        drop(pending);
        *registered = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next message.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn told(&mut self) -> Control {
        poll_fn(|cx| self.poll_told(cx)).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;
    use std::time::Duration;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn poll(inbox: &mut Inbox, wakes: &Arc<Wakes>) -> Poll<Control> {
        inbox.poll_told(&mut Context::from_waker(&wakes.clone().into()))
    }

    #[test]
    fn the_gravest_is_heard_first_and_what_is_said_twice_once() {
        let (outbox, mut inbox) = mailbox(&Arc::default());
        let wakes = Arc::default();
        let sent = Instant::now();
        let later = sent + Duration::from_secs(1);
        for control in [
            Control::Drain,
            Control::NewLimits,
            Control::KillQuery { sent: later },
            Control::KillQuery { sent },
            Control::Close,
            Control::Drain,
        ] {
            outbox.tell(control);
        }
        assert_eq!(poll(&mut inbox, &wakes), Poll::Ready(Control::Close));
        assert_eq!(poll(&mut inbox, &wakes), Poll::Ready(Control::KillQuery { sent: later }));
        assert_eq!(poll(&mut inbox, &wakes), Poll::Ready(Control::NewLimits));
        assert_eq!(poll(&mut inbox, &wakes), Poll::Ready(Control::Drain));
        assert_eq!(poll(&mut inbox, &wakes), Poll::Pending);
    }

    #[test]
    fn a_reader_that_waits_is_woken_once_for_each_wait() {
        let (outbox, mut inbox) = mailbox(&Arc::default());
        let wakes: Arc<Wakes> = Arc::default();
        for round in 1..=3 {
            assert_eq!(poll(&mut inbox, &wakes), Poll::Pending);
            assert_eq!(poll(&mut inbox, &wakes), Poll::Pending);
            outbox.tell(Control::Kill);
            outbox.tell(Control::Kill);
            assert_eq!(wakes.0.load(Ordering::SeqCst), round);
            assert_eq!(poll(&mut inbox, &wakes), Poll::Ready(Control::Kill));
        }
    }

    #[test]
    fn the_task_that_looked_last_is_woken() {
        let (outbox, mut inbox) = mailbox(&Arc::default());
        let (first, second): (Arc<Wakes>, Arc<Wakes>) = Default::default();
        assert_eq!(poll(&mut inbox, &first), Poll::Pending);
        assert_eq!(poll(&mut inbox, &second), Poll::Pending);
        outbox.tell(Control::Drain);
        assert_eq!(first.0.load(Ordering::SeqCst), 0);
        assert_eq!(second.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_another_is_told_hides_nothing() {
        let told = Arc::default();
        let (outbox, mut inbox) = mailbox(&told);
        let (other, mut others) = mailbox(&told);
        let wakes = Arc::default();
        for _ in 0..3 {
            assert_eq!(poll(&mut inbox, &wakes), Poll::Pending);
            other.tell(Control::Drain);
            outbox.tell(Control::Kill);
            other.tell(Control::Drain);
            assert_eq!(poll(&mut inbox, &wakes), Poll::Ready(Control::Kill));
            assert_eq!(poll(&mut inbox, &wakes), Poll::Pending);
            assert_eq!(poll(&mut others, &wakes), Poll::Ready(Control::Drain));
            assert_eq!(poll(&mut others, &wakes), Poll::Pending);
        }
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        const MESSAGES: usize = 2_000;
        let told = Arc::default();
        let (outbox, mut inbox) = mailbox(&told);
        let (other, _others) = mailbox(&told);
        let heard = AtomicUsize::new(0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let tell_all = || {
            for message in 0..MESSAGES {
                outbox.tell(Control::Drain);
                other.tell(Control::Drain);
                while heard.load(Ordering::SeqCst) == message {
                    std::thread::yield_now();
                }
            }
        };
        let hear_all = async {
            for _ in 0..MESSAGES {
                assert_eq!(inbox.told().await, Control::Drain);
                heard.fetch_add(1, Ordering::SeqCst);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(tell_all);
            runtime.block_on(hear_all);
        });
    }
}
