//! The words beside the balance of a lease.

use super::notice::RetryTime;
use crate::sync::{AtomicU64, Ordering};

/// The owner of a lease that belongs to no key.
pub(crate) const VACANT: u64 = 0;

/// The key that a lease belongs to.
#[derive(Debug)]
pub(super) struct Owner(AtomicU64);

impl Owner {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(VACANT))
    }

    #[inline]
    pub(super) fn read(&self) -> u64 {
        // Acquire: pairs with the Release in `write`; a reader of a key reads no word of a former owner.
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn write(&self, key: u64) {
        // Release: pairs with the Acquire in `read`.
        self.0.store(key, Ordering::Release);
    }
}

/// The end of a lease's term, in nanoseconds of the node's clock.
#[derive(Debug)]
pub(super) struct Term(AtomicU64);

impl Term {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(super) fn end(&self) -> u64 {
        // Relaxed: the caller has read the balance by Acquire, so this is the term of that balance or a newer one. A newer term
        // belongs to a later answer, and until that term ends the store also keeps the permits that this balance allows.
        self.0.load(Ordering::Relaxed)
    }

    /// Ends the term, before another owner is written.
    pub(super) fn end_now(&self) {
        // Relaxed: published with the owner.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Moves the end to a later time. The manager's lock orders two answers.
    pub(super) fn extend(&self, end: u64) {
        // Relaxed, both: published by the exchange of the balance that follows.
        if end > self.0.load(Ordering::Relaxed) {
            self.0.store(end, Ordering::Relaxed);
        }
    }
}

/// The word of a [`RetryTime`].
#[derive(Debug)]
pub(super) struct RetryWord(AtomicU64);

impl RetryWord {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn read(&self) -> RetryTime {
        // Relaxed: read after the notice that it belongs to; a newer value is as good.
        RetryTime(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn write(&self, time: RetryTime) {
        // Relaxed: published with the notice.
        self.0.store(time.0, Ordering::Relaxed);
    }
}

/// Permits that were requested and not covered.
#[derive(Debug)]
pub(super) struct Shortage(AtomicU64);

impl Shortage {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn add(&self, permits: u64) {
        // Relaxed: demand is an estimate.
        self.0.fetch_add(permits, Ordering::Relaxed);
    }

    pub(super) fn is_some(&self) -> bool {
        // Relaxed: as in `add`.
        self.0.load(Ordering::Relaxed) > 0
    }

    pub(super) fn take(&self) -> u64 {
        // Relaxed: as in `add`.
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// The permits that the store had left for others at its last answer. They are reported to clients, and no decision uses them.
#[derive(Debug)]
pub(super) struct Left(AtomicU64);

impl Left {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(super) fn read(&self) -> u64 {
        // Relaxed: only shown; it may belong to an earlier answer, or to an earlier owner.
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn write(&self, left: u64) {
        // Relaxed: as in `read`.
        self.0.store(left, Ordering::Relaxed);
    }
}
