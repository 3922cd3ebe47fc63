use core::sync::atomic::Ordering;

use crate::sync::AtomicU64;
use crate::time::Nanos;

/// What the keys that share a home know of each other, beside their entries.
///
/// Both words hold times that only grow. That other keys write them too can make a key wait longer for an
/// entry of its own, or take a newer time for the present one: both make it stricter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home<'a> {
    /// Until when admissions by the catch-all may count, and of which keys.
    shared: &'a AtomicU64,
    /// The newest time at which a key has lost its entry.
    reclaimed: &'a AtomicU64,
}

/// Until when admissions by the catch-all may count, and a mark for each key that had one.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 51 | `until` | the end of the last one's time, in 4,096 ns, rounded up |
/// | 13 | `marks` | one of them for each key, by its hash |
#[derive(Clone, Copy)]
struct Served(u64);

impl Served {
    const MARKS: u32 = 13;
    /// log₂ of the unit: 2^51 of them are as long as time is.
    const UNIT: u32 = 12;

    const fn mark(key: u64) -> u64 {
        // The upper bits choose the home.
        1 << (key % Self::MARKS as u64)
    }

    const fn until(self) -> Nanos {
        Nanos::new((self.0 >> Self::MARKS) << Self::UNIT)
    }

    /// Until when an admission of `key` may count.
    const fn until_of(self, key: u64) -> Nanos {
        if self.0 & Self::mark(key) == 0 {
            Nanos::ZERO
        } else {
            self.until()
        }
    }

    /// The same with one more admission, made at `now`, which counts until `end`.
    const fn with(self, key: u64, now: Nanos, end: Nanos) -> Self {
        let end = end.get().div_ceil(1 << Self::UNIT);
        let (until, marks) = if self.is_over(now) {
            (0, 0)
        } else {
            (self.0 >> Self::MARKS, self.0 & ((1 << Self::MARKS) - 1))
        };
        let until = if end > until { end } else { until };
        let last = (1 << (u64::BITS - Self::MARKS)) - 1;
        let until = if until > last { last } else { until };
        Self((until << Self::MARKS) | marks | Self::mark(key))
    }

    /// Whether none of the admissions counts at `now`, so that their marks can be forgotten.
    const fn is_over(self, now: Nanos) -> bool {
        self.until().get() <= now.get()
    }
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

    /// Reads until when an admission of `key` by the catch-all may count, at a meeting point: of two threads
    /// that each did something before it, the later one sees what the other did.
    pub(crate) fn meet(self, key: u64) -> Nanos {
        // AcqRel: pairs with itself and with the one in `share`. All that happens to this word are
        // read-modify-writes, so each synchronizes with every one before it.
        Served(self.shared.fetch_or(0, Ordering::AcqRel)).until_of(key)
    }

    /// As [`meet`](Self::meet), for a look beforehand.
    pub(crate) fn shared(self, key: u64) -> Nanos {
        // Relaxed: only a guess, `meet` tells.
        Served(self.shared.load(Ordering::Relaxed)).until_of(key)
    }

    /// Says that the catch-all has admitted `key` at `now`, which counts until `end`; a meeting
    /// point too.
    pub(crate) fn share(self, key: u64, now: Nanos, end: Nanos) {
        // Relaxed: only a guess, which the exchange validates.
        let mut seen = self.shared.load(Ordering::Relaxed);
        loop {
            let new = Served(seen).with(key, now, end).0;
            if Served(seen).is_over(now) {
                // The keys whose marks go must not come back to a time at which they counted.
                self.reclaim_at(Served(seen).until());
            }
            // AcqRel: pairs with the one in `meet`. Relaxed on failure: the loop tries again.
            match self
                .shared
                .compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(changed) => seen = changed,
            }
        }
    }

    /// Gives all keys that `other` has a mark for one of this home, until `end`.
    #[cfg(feature = "rules")]
    pub(super) fn share_marks_of(self, other: Self, now: Nanos, end: Nanos) {
        // Relaxed: whoever asks for this has seen all that was shared there.
        let served = Served(other.shared.load(Ordering::Relaxed));
        if !served.is_over(now) {
            for key in (0..u64::from(Served::MARKS)).filter(|&key| served.0 & Served::mark(key) != 0) {
                self.share(key, now, end);
            }
        }
    }

    /// The newest time at which a key of this home has lost its entry.
    pub(crate) fn reclaimed(self) -> Nanos {
        // Relaxed: whoever has seen a key lose its entry (the Acquire in `Entry::look`) reads the
        // time that was written before, or a later one; nobody else is concerned.
        Nanos::new(self.reclaimed.load(Ordering::Relaxed))
    }

    /// Says that a key of this home is about to lose its entry, or its mark, at `now`.
    pub(crate) fn reclaim_at(self, now: Nanos) {
        // Relaxed: published by the Release of the exchange that follows (`Entry::claim`, `share`).
        self.reclaimed.fetch_max(now.get(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Home, Served};
    use crate::sync::AtomicU64;
    use crate::time::Nanos;

    /// Whoever comes with an older reading finds the key's mark, or the time when it was over.
    #[test]
    fn a_mark_that_is_dropped_leaves_its_time() {
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        let home = Home::new(&words);
        home.share(1, Nanos::new(5_000), Nanos::new(8_192));
        assert_eq!(home.meet(1), Nanos::new(8_192));
        assert_eq!(home.reclaimed(), Nanos::ZERO);
        home.share(2, Nanos::new(8_192), Nanos::new(16_384));
        assert_eq!((home.meet(1), home.meet(2)), (Nanos::ZERO, Nanos::new(16_384)));
        assert_eq!(home.reclaimed(), Nanos::new(8_192));
    }

    #[test]
    fn an_admission_bars_its_own_key_until_it_no_longer_counts() {
        let (one, other) = (3, 4);
        let served = Served(0).with(one, Nanos::new(5_000), Nanos::new(9_000));
        assert_eq!(served.until_of(one), Nanos::new(3 * 4_096));
        assert_eq!(served.until_of(other), Nanos::ZERO);
        // A shorter one of another key takes nothing back.
        let both = served.with(other, Nanos::new(6_000), Nanos::new(7_000));
        assert_eq!(both.until_of(one), Nanos::new(3 * 4_096));
        assert_eq!(both.until_of(other), Nanos::new(3 * 4_096));
        // After the end of both, the marks are new.
        let later = both.with(one, Nanos::new(20_000), Nanos::new(30_000));
        assert_eq!(later.until_of(one), Nanos::new(8 * 4_096));
        assert_eq!(later.until_of(other), Nanos::ZERO);
        let last = served.with(one, Nanos::MAX, Nanos::MAX).until_of(one);
        assert_eq!(last.get(), Nanos::MAX.get() - 4_095);
    }
}
