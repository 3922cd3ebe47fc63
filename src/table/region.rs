use core::sync::atomic::Ordering;

use crate::sync::AtomicU64;
use crate::time::Nanos;

/// The record of a region, which many keys share: a table has one region for 64 entries. It holds the newest time at which one of
/// them was evicted, the keys that the catch-all may have admitted, and the number of rendezvous.
///
/// The times of the first two words only grow. The time of one key can bar another key for longer, or make its state begin
/// later. Both make the table only stricter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region<'a> {
    overflow: &'a AtomicU64,
    /// The newest time at which a key of the region was evicted or lost its mark, or a time that a reload has set.
    reclaimed: &'a AtomicU64,
    rendezvous: &'a AtomicU64,
}

/// The memory of a region.
pub(super) type RegionWords = [AtomicU64; 3];

/// The result of a *rendezvous*.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rendezvous {
    /// The number of earlier rendezvous in the region.
    pub(super) earlier: u64,
    /// The time until which an admission of the key by the catch-all may count.
    pub(super) overflow_until: Nanos,
}

/// Which keys the catch-all may have admitted, and until when that counts.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 51 | `until` | the time until which admissions may count, in units of 4,096 ns, rounded up |
/// | 13 | `marks` | one bit for each key, chosen by its hash |
#[derive(Clone, Copy)]
struct OverflowFilter(u64);

impl OverflowFilter {
    const MARKS: u32 = 13;
    /// log₂ of the unit in nanoseconds: 2^51 units cover every `Nanos`.
    const UNIT: u32 = 12;

    const fn mark(key: u64) -> u64 {
        // A product of the key chooses the region (`KeyBits::of`), so the keys of one region have all marks.
        1 << (key % Self::MARKS as u64)
    }

    const fn marks(self) -> u16 {
        (self.0 & ((1 << Self::MARKS) - 1)) as u16
    }

    const fn until(self) -> Nanos {
        Nanos::new((self.0 >> Self::MARKS) << Self::UNIT)
    }

    /// The time until which an admission of `key` may count.
    #[inline(always)]
    const fn until_of(self, key: u64) -> Nanos {
        if self.0 == 0 || self.0 & Self::mark(key) == 0 {
            Nanos::ZERO
        } else {
            self.until()
        }
    }

    /// The filter with one more admission, made at `now`, which counts until `end`.
    const fn with(self, key: u64, now: Nanos, end: Nanos) -> Self {
        let end = end.get().div_ceil(1 << Self::UNIT);
        let (until, marks) = if self.is_expired(now) {
            (0, 0)
        } else {
            (self.0 >> Self::MARKS, self.0 & ((1 << Self::MARKS) - 1))
        };
        let until = if end > until { end } else { until };
        let last = (1 << (u64::BITS - Self::MARKS)) - 1;
        let until = if until > last { last } else { until };
        Self((until << Self::MARKS) | marks | Self::mark(key))
    }

    /// Whether none of the admissions counts at `now`, so that their marks can be dropped.
    const fn is_expired(self, now: Nanos) -> bool {
        self.until().get() <= now.get()
    }
}

impl<'a> Region<'a> {
    #[inline(always)]
    pub(super) fn new(words: &'a RegionWords) -> Self {
        Self {
            overflow: &words[0],
            reclaimed: &words[1],
            rendezvous: &words[2],
        }
    }

    /// How many rendezvous there were. The caller sees what their threads had published before.
    #[inline(always)]
    pub(super) fn rendezvous_count(self) -> u64 {
        // Acquire: pairs with the Release in `rendezvous`.
        // Claim: table 4, a thread that counts a rendezvous sees what its thread had published.
        self.rendezvous.load(Ordering::Acquire)
    }

    /// *rendezvous*: of two threads that each published something before their rendezvous, the later one sees what the other
    /// published.
    #[inline(always)]
    pub(super) fn rendezvous(self, key: u64) -> Rendezvous {
        // AcqRel: pairs with itself. Every change of this word is a read-modify-write, so each synchronizes with all before it.
        // Claim: table 4, each rendezvous synchronizes with all before it.
        let earlier = self.rendezvous.fetch_add(1, Ordering::AcqRel);
        Rendezvous {
            earlier,
            overflow_until: self.overflow_until(key),
        }
    }

    /// The time until which an admission of `key` by the catch-all may count. Before the caller's rendezvous, the time is only a
    /// guess. After the rendezvous, it includes every mark that was published earlier.
    #[inline(always)]
    pub(crate) fn overflow_until(self, key: u64) -> Nanos {
        // Acquire: pairs with the Release in `mark_overflow`. A caller that finds a mark dropped also sees the time in `reclaimed`
        // that replaces it.
        OverflowFilter(self.overflow.load(Ordering::Acquire)).until_of(key)
    }

    /// *mark*: records that the catch-all has admitted `key` at `now`, followed by a rendezvous. The admission counts until `end`.
    pub(crate) fn mark_overflow(self, key: u64, now: Nanos, end: Nanos) {
        // Relaxed: only a guess, which the exchange validates.
        let mut seen = self.overflow.load(Ordering::Relaxed);
        loop {
            let filter = OverflowFilter(seen);
            if filter.is_expired(now) {
                // A key whose mark is dropped must not begin a state at a time at which its admission counted.
                self.reclaim_at(filter.until());
            }
            let marked = filter.with(key, now, end).0;
            // Release: pairs with the Acquire in `overflow_until`; publishes the time in `reclaimed`. Acquire: pairs with the
            // same Release; this thread sees the times of earlier marking threads. Relaxed on failure: the loop repeats.
            match self
                .overflow
                .compare_exchange(seen, marked, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(changed) => seen = changed,
            }
        }
        // Claim: table 8, a marking thread has its rendezvous after the mark.
        self.rendezvous(key);
    }

    /// The marks of the keys whose admissions by the catch-all may count at `now`.
    pub(super) fn marks(self, now: Nanos) -> u16 {
        // Relaxed: the caller has synchronized with every thread whose marks it needs.
        let filter = OverflowFilter(self.overflow.load(Ordering::Relaxed));
        if filter.is_expired(now) { 0 } else { filter.marks() }
    }

    /// Marks all keys with these marks, until `end`.
    pub(super) fn mark_all(self, marks: u16, now: Nanos, end: Nanos) {
        for key in (0..u64::from(OverflowFilter::MARKS)).filter(|key| marks & (1 << key) != 0) {
            self.mark_overflow(key, now, end);
        }
    }

    /// The newest time at which a key of this region was evicted or lost its mark, or a time that a reload has set.
    #[inline]
    pub(super) fn reclaimed(self) -> Nanos {
        // Relaxed: a thread that has seen its key lose an entry (the Acquire in `Bucket::fingerprint`) reads the time
        // that was written before, or a later one. No other thread relies on the value.
        Nanos::new(self.reclaimed.load(Ordering::Relaxed))
    }

    /// Records that a key of this region is about to lose its entry, or its mark, at `now`.
    pub(crate) fn reclaim_at(self, now: Nanos) {
        // A word that is already as new is not written, so that the cache line stays shared among evictions at one
        // reading.
        if self.reclaimed() < now {
            // Relaxed: published by the Release of the exchange that follows (`Entry::claim`, `mark_overflow`). If
            // nothing was written, the exchange publishes the load above: a thread that acquires it loads no older
            // time.
            self.reclaimed.fetch_max(now.get(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{OverflowFilter, Region, RegionWords};
    use crate::time::Nanos;

    /// A thread with an older reading finds the key's mark, or the time at which it expired.
    #[test]
    fn a_mark_that_is_dropped_leaves_its_time() {
        let words = RegionWords::default();
        let region = Region::new(&words);
        region.mark_overflow(1, Nanos::new(5_000), Nanos::new(8_192));
        assert_eq!(region.overflow_until(1), Nanos::new(8_192));
        assert_eq!(region.reclaimed(), Nanos::ZERO);
        region.mark_overflow(2, Nanos::new(8_192), Nanos::new(16_384));
        assert_eq!(
            (region.overflow_until(1), region.overflow_until(2)),
            (Nanos::ZERO, Nanos::new(16_384))
        );
        assert_eq!(region.reclaimed(), Nanos::new(8_192));
    }

    #[test]
    fn the_time_of_an_eviction_only_grows() {
        let words = RegionWords::default();
        let region = Region::new(&words);
        for (now, reclaimed) in [(5, 5), (3, 5), (5, 5), (6, 6)] {
            region.reclaim_at(Nanos::new(now));
            assert_eq!(region.reclaimed(), Nanos::new(reclaimed));
        }
    }

    #[test]
    fn an_admission_bars_its_own_key_until_it_no_longer_counts() {
        let (one, other) = (3, 4);
        let filter = OverflowFilter(0).with(one, Nanos::new(5_000), Nanos::new(9_000));
        assert_eq!(filter.until_of(one), Nanos::new(3 * 4_096));
        assert_eq!(filter.until_of(other), Nanos::ZERO);
        // A shorter admission of another key does not move the end back.
        let both = filter.with(other, Nanos::new(6_000), Nanos::new(7_000));
        assert_eq!(both.until_of(one), Nanos::new(3 * 4_096));
        assert_eq!(both.until_of(other), Nanos::new(3 * 4_096));
        // After the end of both, the marks are new.
        let later = both.with(one, Nanos::new(20_000), Nanos::new(30_000));
        assert_eq!(later.until_of(one), Nanos::new(8 * 4_096));
        assert_eq!(later.until_of(other), Nanos::ZERO);
        let last = filter.with(one, Nanos::MAX, Nanos::MAX).until_of(one);
        assert_eq!(last.get(), Nanos::MAX.get() - 4_095);
    }
}
