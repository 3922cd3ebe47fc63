use core::sync::atomic::Ordering;

use crate::sync::AtomicU64;
use crate::time::Nanos;

/// What the keys that share a home know of each other, beside their entries.
///
/// Both are times that only grow. That other keys write them too can make a key wait longer for an
/// entry of its own, or take a newer time for the present one: both make it stricter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home<'a> {
    /// Until when an admission by the catch-all may count.
    shared: &'a AtomicU64,
    /// The newest time at which a key has lost its entry.
    reclaimed: &'a AtomicU64,
}

impl<'a> Home<'a> {
    pub(super) const WORDS: usize = 2;

    #[inline]
    pub(super) fn new(words: &'a [AtomicU64]) -> Self {
        Self {
            shared: &words[0],
            reclaimed: &words[1],
        }
    }

    /// Reads until when an admission by the catch-all may count, at a meeting point: of two threads that
    /// each did something before it, the later one sees what the other did.
    pub(crate) fn meet(self) -> Nanos {
        // AcqRel: pairs with itself and with the one in `share_until`. All that happens to this
        // word are read-modify-writes, so each synchronizes with every one before it.
        Nanos::new(self.shared.fetch_or(0, Ordering::AcqRel))
    }

    /// As [`meet`](Self::meet), for a look beforehand.
    pub(crate) fn shared(self) -> Nanos {
        // Relaxed: only a guess, `meet` tells.
        Nanos::new(self.shared.load(Ordering::Relaxed))
    }

    /// Says that an admission by the catch-all counts until `end`; a meeting point too.
    pub(crate) fn share_until(self, end: Nanos) {
        // AcqRel: pairs with the one in `meet`.
        self.shared.fetch_max(end.get(), Ordering::AcqRel);
    }

    /// The newest time at which a key of this home has lost its entry.
    pub(crate) fn reclaimed(self) -> Nanos {
        // Relaxed: whoever has seen a key lose its entry (the Acquire in `Entry::look`) reads the
        // time that was written before, or a later one; nobody else is concerned.
        Nanos::new(self.reclaimed.load(Ordering::Relaxed))
    }

    /// Says that a key of this home is about to lose its entry at `now`.
    pub(crate) fn reclaim_at(self, now: Nanos) {
        // Relaxed: published by the Release of the claim that follows (`Entry::claim`).
        self.reclaimed.fetch_max(now.get(), Ordering::Relaxed);
    }
}
