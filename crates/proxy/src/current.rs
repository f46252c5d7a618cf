//! What is in force, for many who mostly have it already.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::{ArcSwap, Guard};

/// A value that is exchanged now and then. To find that it is the one that is known is one load: an
/// [`ArcSwap`]'s own load, which keeps the value alive meanwhile, writes twice for that.
#[derive(Debug)]
pub(crate) struct Current<T> {
    value: ArcSwap<T>,
    /// Where it is. Whoever has the value of this address keeps any other from being there.
    address: AtomicUsize,
}

impl<T> Current<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        let address = AtomicUsize::new(address(&value));
        Self { value: ArcSwap::new(value), address }
    }

    /// It.
    pub(crate) fn load(&self) -> Guard<Arc<T>> {
        self.value.load()
    }

    /// Whether it is this one, or was a moment ago.
    #[inline]
    pub(crate) fn is(&self, known: &Arc<T>) -> bool {
        self.address.load(Ordering::SeqCst) == address(known)
    }

    /// Puts another one in force, and gives the one before. One caller at a time: whoever asks finds
    /// it when this has returned.
    pub(crate) fn replace(&self, value: Arc<T>) -> Arc<T> {
        let address = address(&value);
        let before = self.value.swap(value);
        self.address.store(address, Ordering::SeqCst);
        before
    }
}

fn address<T>(value: &Arc<T>) -> usize {
    Arc::as_ptr(value).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_it_is_told_when_it_is_another() {
        let first = Arc::new(1);
        let current = Current::new(first.clone());
        assert!(current.is(&first) && !current.is(&Arc::new(1)));
        let second = Arc::new(2);
        assert_eq!(current.replace(second.clone()), first);
        assert!(current.is(&second) && !current.is(&first));
        assert_eq!(**current.load(), 2);
    }
}
