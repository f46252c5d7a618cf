//! Read buffers that no stream of this thread needs now.
//!
//! A stream needs a buffer from when bytes have come until they are taken. So one that only waits
//! has none: it gives its own to whoever of its thread reads next, without a lock, and without
//! asking the allocator. That is why these belong to a thread and to nobody else: behind a lock they
//! would cost each statement one, and a connection's task may not hold what cannot leave its thread.
//! They carry nothing from one to the next but memory: each is empty.

use std::cell::RefCell;

use super::BUFFER_LEN;
use super::buffer::Buffer;

/// Buffers kept for each thread. No more than two are in use at once but for bytes that wait: for
/// the rest of their packet, for their turn in a queue, for a peer that does not read.
const SPARE_MAX: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<Buffer>> = const { RefCell::new(Vec::new()) };
}

/// A buffer with room for a read.
#[inline]
pub(super) fn take() -> Buffer {
    let spare = SPARE.with_borrow_mut(Vec::pop);
    spare.unwrap_or_else(|| Buffer::with_len(BUFFER_LEN))
}

/// Nothing is in it. One that has grown is not kept.
#[inline]
pub(super) fn give_back(buffer: Buffer) {
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < SPARE_MAX && buffer.memory_len() == BUFFER_LEN {
            spare.push(buffer);
        }
    });
}

/// How many there are.
#[cfg(test)]
pub(super) fn len() -> usize {
    SPARE.with_borrow(Vec::len)
}
