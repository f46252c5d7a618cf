//! The texts that the sessions of this thread have sent of late.
//!
//! They belong to a thread and to nobody else: behind a lock each statement would pay for one, and a
//! connection's task may not hold what cannot leave its thread. What they say depends on nothing but
//! the text, so a connection that moves to another thread finds the same there, or reads it again.

use std::rc::Rc;

use session::KnownTexts;

thread_local! {
    static TEXTS: Rc<KnownTexts> = Rc::default();
}

/// This thread's. Not to be kept while anybody else's turn may come.
#[inline]
pub(crate) fn of_thread() -> Rc<KnownTexts> {
    TEXTS.with(Rc::clone)
}
