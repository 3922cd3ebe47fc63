use alloc::boxed::Box;

use crate::sync::{AtomicU64, Ordering};

/// The leases that the flusher looks at before their period is over: a bit for each.
#[derive(Debug)]
pub(super) struct DirtySet(Box<[AtomicU64]>);

impl DirtySet {
    pub(super) fn new(leases: usize) -> Self {
        Self((0..leases.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds a lease.
    pub(super) fn insert(&self, at: usize) {
        // Release: pairs with the Acquire in `drain`; a thread that finds the bit finds the use or shortage before it.
        self.0[at / 64].fetch_or(1 << (at % 64), Ordering::Release);
    }

    /// Removes every lease, and hands each one over.
    pub(super) fn drain(&self, mut each: impl FnMut(usize)) {
        for (word, bits) in self.0.iter().enumerate() {
            // Relaxed: a bit that this load misses was set later; the thread that sets it wakes the flusher, or can wait.
            if bits.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // Acquire: pairs with the Release in `insert`.
            let mut dirty = bits.swap(0, Ordering::Acquire);
            while dirty != 0 {
                each(64 * word + dirty.trailing_zeros() as usize);
                dirty &= dirty - 1;
            }
        }
    }
}
