//! The timer of a connection, for deadlines that hardly ever come.
//!
//! Theory. Where a rule limits how long statements may run, each has a deadline and next to none
//! meets it. To arm a timer for each of them, and to take it down a millisecond later, costs more
//! than to relay the statement. So the timer stays armed behind a statement that is over. Whoever
//! waits next leaves it as it is while it rings no later than the new deadline, and arms it anew
//! when it has rung too early. A connection that is always busy does so once in the time that its
//! rule allows a statement, and a timer that rings for one that is idle wakes it for nothing, once.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::time::{Instant, Sleep, sleep_until};

/// The timer, once somebody has had a deadline.
#[derive(Debug, Default)]
pub(crate) struct Alarm(Option<Armed>);

#[derive(Debug)]
struct Armed {
    timer: Pin<Box<Sleep>>,
    /// Whom it wakes.
    waker: Waker,
}

impl Alarm {
    /// What comes of a future before the deadline; `None`: nothing has, and it has passed.
    ///
    /// # Cancellation
    /// As safe as the future's own.
    pub(crate) fn within<F: Future>(
        &mut self,
        due: Instant,
        mut future: Pin<&mut F>,
    ) -> impl Future<Output = Option<F::Output>> {
        poll_fn(move |cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.poll_due(cx, due).map(|()| None),
        })
    }

    /// Whether this deadline is known not to have passed, without a look at the clock: the timer
    /// rings before it, and has not.
    pub(crate) fn is_ahead_of(&self, due: Instant) -> bool {
        self.0.as_ref().is_some_and(|armed| armed.is_ahead_of(due))
    }

    fn poll_due(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
        let Some(armed) = &mut self.0 else {
            let timer = Box::pin(sleep_until(due));
            return self.0.insert(Armed { timer, waker: cx.waker().clone() }).poll(cx);
        };
        let wakes = armed.waker.will_wake(cx.waker());
        if wakes && armed.is_ahead_of(due) {
            return Poll::Pending;
        }
        if !wakes {
            armed.waker = cx.waker().clone();
        }
        armed.timer.as_mut().reset(due);
        armed.poll(cx)
    }
}

impl Armed {
    fn is_ahead_of(&self, due: Instant) -> bool {
        self.timer.deadline() <= due && !self.timer.is_elapsed()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.timer.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn rings_at(alarm: &Alarm) -> Option<Instant> {
        alarm.0.as_ref().map(|armed| armed.timer.deadline())
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_was_armed_for_a_statement_before_does_not_end_the_next_one_early() {
        let mut alarm = Alarm::default();
        let begun = Instant::now();
        let at_once = alarm.within(begun + MINUTE, pin!(ready(1))).await;
        assert_eq!((at_once, rings_at(&alarm)), (Some(1), None), "nobody has waited");
        let slow = tokio::time::sleep(Duration::from_secs(1));
        assert_eq!(alarm.within(begun + MINUTE, pin!(slow)).await, Some(()));
        assert_eq!(rings_at(&alarm), Some(begun + MINUTE));
        tokio::time::advance(Duration::from_secs(39)).await;
        // It rings 40 s before this deadline, and is armed anew.
        let due = Instant::now() + MINUTE;
        assert_eq!(alarm.within(due, pin!(pending::<()>())).await, None);
        assert_eq!(Instant::now(), due);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_deadline_than_the_timer_was_armed_for_is_met() {
        let mut alarm = Alarm::default();
        let due = Instant::now() + MINUTE;
        let slow = tokio::time::sleep(Duration::from_secs(1));
        assert_eq!(alarm.within(due, pin!(slow)).await, Some(()));
        let due = Instant::now() + Duration::from_secs(2);
        assert_eq!(alarm.within(due, pin!(pending::<()>())).await, None);
        assert_eq!(Instant::now(), due);
        // One that has passed is met at once.
        assert_eq!(alarm.within(due - Duration::from_secs(1), pin!(pending::<()>())).await, None);
        assert_eq!(Instant::now(), due);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_rang_while_nobody_waited_is_armed_anew() {
        let mut alarm = Alarm::default();
        let due = Instant::now() + MINUTE;
        let slow = tokio::time::sleep(Duration::from_secs(1));
        assert_eq!(alarm.within(due, pin!(slow)).await, Some(()));
        tokio::time::advance(10 * MINUTE).await;
        assert!(!alarm.is_ahead_of(Instant::now() + MINUTE), "it has rung");
        let due = Instant::now() + MINUTE;
        assert_eq!(alarm.within(due, pin!(pending::<()>())).await, None);
        assert_eq!(Instant::now(), due);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_the_timer_has_not_reached_has_not_passed() {
        let mut alarm = Alarm::default();
        let begun = Instant::now();
        assert!(!alarm.is_ahead_of(begun + MINUTE), "no timer knows");
        let slow = tokio::time::sleep(Duration::from_secs(1));
        assert_eq!(alarm.within(begun + MINUTE, pin!(slow)).await, Some(()));
        assert!(alarm.is_ahead_of(begun + MINUTE) && alarm.is_ahead_of(begun + 2 * MINUTE));
        assert!(!alarm.is_ahead_of(begun + Duration::from_secs(30)), "it rings behind that");
    }

    /// The timer would wake whoever waited with it first.
    #[tokio::test(start_paused = true)]
    async fn whoever_waits_with_it_now_is_woken() {
        let mut alarm = Alarm::default();
        let due = Instant::now() + MINUTE;
        let [first, second] = [Arc::<Count>::default(), Arc::<Count>::default()];
        for count in [&first, &second] {
            let waker = Arc::clone(count).into();
            let mut never = pin!(pending::<()>());
            let mut waiting = pin!(alarm.within(due, never.as_mut()));
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        tokio::time::advance(2 * MINUTE).await;
        assert_eq!(first.0.load(Ordering::Relaxed), 0);
        assert_eq!(second.0.load(Ordering::Relaxed), 1);
    }
}
