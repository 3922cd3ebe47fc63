use crate::algorithm::{Algorithm, CounterRing, Reclaim};
use crate::own_words::OwnWords;
use crate::sync::{Ordering, Shared, Words};
use crate::time::Nanos;

/// The strict ring that the stripes charge, with its words.
pub(super) struct Ring {
    algorithm: CounterRing,
    words: OwnWords,
    /// The width of a cell in nanoseconds.
    cell: u64,
    /// The beginning of the last cell, which is the last time that can be published.
    last: Nanos,
}

impl Ring {
    pub(super) fn new(algorithm: CounterRing) -> Self {
        let words = OwnWords::new(algorithm.words());
        let cell = Nanos::from_duration(algorithm.cell()).get();
        let last = algorithm.advance(0, Nanos::MAX);
        let last = last.map_or(Nanos::ZERO, |last| algorithm.latest_time(last));
        Self {
            algorithm,
            words,
            cell,
            last,
        }
    }

    pub(super) const fn algorithm(&self) -> &CounterRing {
        &self.algorithm
    }

    fn words(&self) -> Shared<'_> {
        Shared::new(self.words.get())
    }

    /// Charges `permits` at the time `now` if there is capacity for all of them, and returns whether it did.
    pub(super) fn take(&self, now: Nanos, permits: u64) -> bool {
        self.algorithm.decide(self.words(), now, permits).is_some()
    }

    pub(super) fn remaining(&self, now: Nanos) -> u64 {
        self.algorithm.remaining(self.words(), now)
    }

    pub(super) fn ready_at(&self, now: Nanos, permits: u64) -> Option<Nanos> {
        self.algorithm.ready_at(self.words(), now, permits)
    }

    /// Returns the published time. Every decision after this call is made at that time or later.
    pub(super) fn latest_time(&self) -> Nanos {
        self.algorithm.latest_time(self.first())
    }

    /// Publishes the time `now`, rounded down to the [beginning](Self::cell_start) of its cell. Returns the time that is
    /// published afterwards.
    pub(super) fn publish(&self, now: Nanos) -> Nanos {
        // This denied decision makes a ring of several words enter the cell. A ring of one word enters cells by admissions
        // only, so it does not change.
        let _ = self.algorithm.decide(self.words(), now, u64::MAX);
        if self.algorithm.words() == 1 {
            let first = self.first();
            let later = self.algorithm.advance(first, now);
            if let Some(later) = later.filter(|&later| self.algorithm.latest_time(later) <= now) {
                // Relaxed: the word is the whole state. If the exchange fails, another thread has published a time, which is
                // loaded below.
                let _ = self.words().exchange(0, first, later, Ordering::Relaxed);
            }
        }
        self.latest_time()
    }

    /// Returns the beginning of the cell that contains `at`, or of the last cell.
    pub(super) fn cell_start(&self, at: Nanos) -> Nanos {
        Nanos::new(at.get() - at.get() % self.cell).min(self.last)
    }

    /// Returns the beginning of the first cell that begins at `at` or later, if there is one.
    pub(super) fn next_cell_start(&self, at: Nanos) -> Option<Nanos> {
        let start = at.get().next_multiple_of(self.cell);
        (start <= self.last.get()).then_some(Nanos::new(start))
    }

    /// Loads word 0 of the ring, which has the published time.
    fn first(&self) -> u64 {
        // Relaxed: an older word is an earlier time, at which fewer counts have expired. A count is removed by
        // `Stripe::forget` after this load. A thread that charges later admissions of that stripe comes after `forget`,
        // so by the order of this word it loads the value that was loaded here or a later one.
        self.words().load(0, Ordering::Relaxed)
    }
}
