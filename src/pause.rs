use core::sync::atomic::Ordering;

use crate::sync::AtomicU64;
use crate::time::Nanos;

/// The time until which one limiter denies every request. `src/limiter/protocol.md` has its protocol.
///
/// If there is such a time, a decision compares its reading with this time before it reads the words of the algorithm.
#[derive(Debug)]
pub(crate) struct Pause {
    /// In nanoseconds of the limiter's clock. Zero: no pause, since no reading is earlier.
    until: AtomicU64,
}

impl Pause {
    pub(crate) fn new() -> Self {
        Self {
            until: AtomicU64::new(0),
        }
    }

    /// The time from which on requests are decided by the algorithm.
    pub(crate) fn until(&self) -> Nanos {
        Nanos::new(self.load())
    }

    /// Whether a pause was set that [`end`](Self::end) has not ended, even if its time is over. A decision of a limiter without a
    /// pause computes nothing else.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.load() != 0
    }

    /// Whether the pause denies a request for `permits` at `now`. Not inlined, because the comparison would make every decision
    /// clamp its reading twice.
    #[cold]
    #[inline(never)]
    pub(crate) fn denies(&self, now: Nanos, permits: u64) -> bool {
        permits > 0 && self.ends_after(now)
    }

    /// Whether the pause ends after `now`.
    pub(crate) fn ends_after(&self, now: Nanos) -> bool {
        // Claim: pause 1, a reading before the time is denied.
        now < self.until()
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        // Relaxed: pairs with `extend` and `end`. This time is the only data. A decision that begins after the return of
        // `extend` observes its time or a newer value, by coherence.
        self.until.load(Ordering::Relaxed)
    }

    /// Extends the pause to `time`. A later time that is already set remains.
    pub(crate) fn extend(&self, time: Nanos) {
        // Relaxed: publishes no other data. One read-modify-write keeps the later of two concurrent times.
        // Claim: pause 2, the latest time wins.
        self.until.fetch_max(time.get(), Ordering::Relaxed);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        // Relaxed: publishes no other data.
        self.until.store(0, Ordering::Relaxed);
    }
}
