use crate::algorithm::{Algorithm, Attempt, CounterRing, Reclaim};
use crate::own_words::OwnWords;
use crate::sync::{Ordering, Shared, Words};
use crate::time::Nanos;

/// The ring behind the stripes, with its words.
pub(super) struct Ring {
    policy: CounterRing,
    words: OwnWords,
    /// Nanoseconds in a cell.
    cell: u64,
    /// The beginning of the last cell that there is: no later time can be published.
    last: Nanos,
}

/// Words that can be looked at only: every exchange fails.
#[derive(Clone, Copy)]
struct Sealed<W>(W);

impl<W: Words> Words for Sealed<W> {
    fn load(self, index: usize, order: Ordering) -> u64 {
        self.0.load(index, order)
    }

    fn exchange(
        self,
        index: usize,
        _current: u64,
        _new: u64,
        _success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        Err(self.0.load(index, failure))
    }
}

impl Ring {
    pub(super) fn new(policy: CounterRing) -> Self {
        let words = OwnWords::new(policy.words());
        let cell = Nanos::from_duration(policy.cell()).get();
        let last = policy.advance(0, Nanos::MAX);
        let last = last.map_or(Nanos::ZERO, |last| policy.latest_time(last));
        Self {
            policy,
            words,
            cell,
            last,
        }
    }

    pub(super) const fn policy(&self) -> &CounterRing {
        &self.policy
    }

    fn words(&self) -> Shared<'_> {
        Shared::new(self.words.get())
    }

    /// Takes `permits` at the time `now`, if there is room for all of them.
    pub(super) fn take(&self, now: Nanos, permits: u64) -> bool {
        self.policy.decide(self.words(), now, permits).is_some()
    }

    /// Whether there is no room for `permits`, by a look that costs as much as a decision and changes
    /// nothing. If it says no, there may be.
    pub(super) fn refuses(&self, now: Nanos, permits: u64) -> bool {
        let attempt = self.policy.attempt(Sealed(self.words()), now, permits);
        matches!(attempt, Attempt::Denied)
    }

    pub(super) fn remaining(&self, now: Nanos) -> u64 {
        self.policy.remaining(self.words(), now)
    }

    pub(super) fn ready_at(&self, now: Nanos, permits: u64) -> Option<Nanos> {
        self.policy.ready_at(self.words(), now, permits)
    }

    /// The time that has been published: every decision from now on is made as of that instant or later.
    pub(super) fn latest_time(&self) -> Nanos {
        self.policy.latest_time(self.first())
    }

    /// Publishes the time `now`, as far as that is told apart: the [beginning](Self::cell_start) of its
    /// cell. What is published afterwards.
    pub(super) fn reach(&self, now: Nanos) -> Nanos {
        // A ring of several words enters the cell, and a ring of one word does nothing: it publishes
        // the time with an admission only.
        let _ = self.policy.decide(self.words(), now, u64::MAX);
        if self.policy.words() == 1 {
            let first = self.first();
            let later = self.policy.advance(first, now);
            if let Some(later) = later.filter(|&later| self.policy.latest_time(later) <= now) {
                // Relaxed, both: the word is the whole state. If it has changed, somebody else has
                // published a time, and what that is is looked at below.
                let _ = self
                    .words()
                    .exchange(0, first, later, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
        self.latest_time()
    }

    /// The beginning of the cell that `at` falls into, or of the last one.
    pub(super) fn cell_start(&self, at: Nanos) -> Nanos {
        Nanos::new(at.get() - at.get() % self.cell).min(self.last)
    }

    /// The beginning of the first cell that begins at `at` or later; `None` when there is none.
    pub(super) fn next_cell_start(&self, at: Nanos) -> Option<Nanos> {
        let start = at.get().next_multiple_of(self.cell);
        (start <= self.last.get()).then_some(Nanos::new(start))
    }

    fn first(&self) -> u64 {
        // Relaxed: an older word is an earlier time, at which less is forgotten. That what is used
        // after that is decided no earlier follows from the order of this one word: whoever charges
        // it comes after `Stripe::forget`, and so finds this word or a later one.
        self.words().load(0, Ordering::Relaxed)
    }
}
