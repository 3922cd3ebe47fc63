use crate::debug::debug_fields;

/// The word of a stripe, as a value. From the lowest bit:
///
/// | bits | field | meaning |
/// |---|---|---|
/// | 13 | count | permits that the stripe admitted and has not charged to the ring |
/// | 1 | expiring | no permit of the count was admitted after the period in `tick` |
/// | 1 | claimed | one thread charges the count, and no other thread changes the word |
/// | 49 | tick | the period that the last charge, or the last denied charge, has stored; 0 before the first |
///
/// A zeroed word is a fresh stripe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StripeWord(u64);

impl StripeWord {
    const COUNT_BITS: u32 = 13;
    const COUNT: u64 = (1 << Self::COUNT_BITS) - 1;
    const EXPIRING: u64 = 1 << Self::COUNT_BITS;
    const CLAIMED: u64 = Self::EXPIRING << 1;
    const TICK_SHIFT: u32 = Self::COUNT_BITS + 2;

    /// The largest batch of a stripe: half of the largest count, rounded up. One in 4096 admissions then charges the ring, so a
    /// larger batch would save almost nothing.
    pub(super) const MAX_BATCH: u64 = 1 << (Self::COUNT_BITS - 1);

    /// The last period that the word can represent. All later times are in it.
    pub(super) const LAST_TICK: u64 = u64::MAX >> Self::TICK_SHIFT;

    pub(super) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    pub(super) const fn raw(self) -> u64 {
        self.0
    }

    pub(super) const fn count(self) -> u64 {
        self.0 & Self::COUNT
    }

    pub(super) const fn is_expiring(self) -> bool {
        self.0 & Self::EXPIRING != 0
    }

    pub(super) const fn is_claimed(self) -> bool {
        self.0 & Self::CLAIMED != 0
    }

    pub(super) const fn tick(self) -> u64 {
        self.0 >> Self::TICK_SHIFT
    }

    /// Returns the remaining permits of the batch, and zero while the stripe is claimed.
    pub(super) const fn capacity(self, batch: u64) -> u64 {
        if self.is_claimed() {
            0
        } else {
            batch.saturating_sub(self.count())
        }
    }

    /// Returns the remaining permits of the batch for a caller without a clock reading, and zero while the stripe is
    /// claimed or expiring. The count of an expiring stripe may have expired, and an admission would make all of it
    /// current again.
    pub(super) const fn capacity_unless_expiring(self, batch: u64) -> u64 {
        if self.0 & (Self::CLAIMED | Self::EXPIRING) == 0 {
            batch.saturating_sub(self.count())
        } else {
            0
        }
    }

    /// Whether the stripe has a count that any thread may claim and charge.
    pub(super) const fn is_chargeable(self) -> bool {
        !self.is_claimed() && self.count() > 0
    }

    /// `{ t, c }` → `{ t, c + permits }`, and claimed if this fills the batch. `permits` is at most the remaining batch. The
    /// result is not expiring.
    pub(super) const fn used(self, permits: u64, batch: u64) -> Self {
        let used = Self((self.0 & !Self::EXPIRING) + permits);
        if used.count() == batch {
            used.claimed()
        } else {
            used
        }
    }

    /// `{ t, c }` → `{ t, c, claimed }`.
    pub(super) const fn claimed(self) -> Self {
        Self(self.0 | Self::CLAIMED)
    }

    /// `{ t, c, claimed }` → `{ t, c }`: the count is still uncharged, and an expiring stripe stays expiring.
    pub(super) const fn released(self) -> Self {
        Self(self.0 & !Self::CLAIMED)
    }

    /// `{ t, c, claimed }` → `{ tick, 0 }`: the count was charged to the ring.
    pub(super) const fn charged(self, tick: u64) -> Self {
        Self(tick << Self::TICK_SHIFT)
    }

    /// `{ t, c, claimed }` → `{ tick, c, expiring }`: the ring had no capacity in the period `tick`, and every permit was
    /// admitted in that period or earlier. A stripe that is already expiring keeps its older period.
    pub(super) const fn kept(self, tick: u64) -> Self {
        if self.is_expiring() {
            self.released()
        } else {
            Self(tick << Self::TICK_SHIFT | Self::EXPIRING | self.count())
        }
    }

    /// `{ t, c, expiring }` → `{ t, 0 }`: the count has expired.
    pub(super) const fn forgotten(self) -> Self {
        Self(self.tick() << Self::TICK_SHIFT)
    }
}

debug_fields!(StripeWord {
    tick,
    count,
    is_expiring,
    is_claimed
});

#[cfg(test)]
mod tests {
    use super::StripeWord;

    #[test]
    fn fields_do_not_overlap() {
        for tick in [0, 1, StripeWord::LAST_TICK] {
            for count in [0, 1, StripeWord::MAX_BATCH - 1] {
                let open = StripeWord::from_raw(0)
                    .charged(tick)
                    .used(count, StripeWord::MAX_BATCH);
                assert_eq!((open.tick(), open.count()), (tick, count));
                assert!(!open.is_expiring() && !open.is_claimed());
                assert_eq!(
                    open.capacity(StripeWord::MAX_BATCH),
                    StripeWord::MAX_BATCH - count
                );
                let kept = open.claimed().kept(StripeWord::LAST_TICK);
                assert_eq!((kept.tick(), kept.count()), (StripeWord::LAST_TICK, count));
                assert!(kept.is_expiring() && !kept.is_claimed());
                assert_eq!(kept.claimed().kept(0), kept, "an older period stays");
                assert!(!kept.used(1, StripeWord::MAX_BATCH).is_expiring());
                assert_eq!(kept.forgotten().raw(), StripeWord::LAST_TICK << 15);
            }
        }
    }

    #[test]
    fn the_last_permit_claims() {
        let full = StripeWord::from_raw(0).used(StripeWord::MAX_BATCH, StripeWord::MAX_BATCH);
        assert_eq!(full.count(), StripeWord::MAX_BATCH);
        assert!(full.is_claimed() && !full.is_chargeable());
        assert_eq!(full.capacity(StripeWord::MAX_BATCH), 0);
        assert_eq!(full.charged(7).raw(), 7 << 15);
        let one_less = StripeWord::from_raw(0).used(StripeWord::MAX_BATCH - 1, StripeWord::MAX_BATCH);
        assert!(one_less.is_chargeable());
    }
}
