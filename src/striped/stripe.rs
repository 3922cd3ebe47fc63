use core::fmt;

use super::word::StripeWord;
use crate::sync::{AtomicU64, Ordering};

/// One stripe: its word. Every atomic operation on it is in this module.
pub(super) struct Stripe {
    word: AtomicU64,
}

/// The result of an attempt to take permits from the batch of a stripe.
#[derive(Clone, Copy, Debug)]
pub(super) enum TakeResult {
    /// The permits were taken.
    Taken,
    /// The permits were taken, and the batch is full. The caller has claimed the stripe and must charge it.
    Filled(StripeWord),
    /// No permit was taken: too little of the batch remains, or another thread has claimed the stripe.
    Exhausted,
}

impl Stripe {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn load(&self) -> StripeWord {
        // Relaxed: a compare-exchange validates the value before a permit is taken. A denial relies on the order of the
        // reads in its search.
        StripeWord::from_raw(self.word.load(Ordering::Relaxed))
    }

    /// Takes `permits` from the batch if `capacity` of the stripe word and the batch is at least `permits`. If that fills the
    /// batch, the same exchange claims the stripe.
    #[inline(always)]
    pub(super) fn take(
        &self,
        permits: u64,
        batch: u64,
        capacity: impl Fn(StripeWord, u64) -> u64,
    ) -> TakeResult {
        let mut seen = self.load();
        loop {
            if permits > capacity(seen, batch) {
                return TakeResult::Exhausted;
            }
            let used = seen.used(permits, batch);
            // Release: pairs with the Acquire in `claim` and below. The admission happens before the clock reading of the
            // charge.
            // Acquire, for the exchange that fills the batch: pairs with the Release here and in `release`. All
            // earlier admissions happen before that clock reading.
            // Claim: striped 2, a use comes before the charge that counts it.
            match self
                .word
                // Relaxed on failure: the next compare-exchange validates the value.
                .compare_exchange(seen.raw(), used.raw(), Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if used.is_claimed() => return TakeResult::Filled(used),
                Ok(_) => return TakeResult::Taken,
                Err(newer) => seen = StripeWord::from_raw(newer),
            }
        }
    }

    /// Claims the stripe, to charge the count of `seen`. `None` if the word has changed.
    pub(super) fn claim(&self, seen: StripeWord) -> Option<StripeWord> {
        let claimed = seen.claimed();
        // Acquire: pairs with the Release in `take` and `release`. All admissions happen before the clock reading of
        // the charge. The claim publishes nothing: `release` does.
        // Relaxed on failure: the value is not used.
        // Claim: striped 2, a thread that claims a stripe sees all its uses.
        self.word
            .compare_exchange(seen.raw(), claimed.raw(), Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| claimed)
    }

    /// Ends a claim. A store suffices, because only the claiming thread writes the word of a claimed stripe.
    pub(super) fn release(&self, word: StripeWord) {
        // Release: pairs with the Acquire in `take` and `claim`. An admission by the emptied batch happens after the
        // charge. A thread that charges a kept count reads the clock after the admissions of that count.
        self.word.store(word.raw(), Ordering::Release);
    }

    /// Removes an expired count from the stripe. Returns false if the word has changed.
    pub(super) fn forget(&self, seen: StripeWord) -> bool {
        // Release: pairs with the Acquire in `take` and `claim`. A thread that charges later admissions of the stripe
        // loads a published time of the ring that is not before the one that this thread loaded.
        // Relaxed on failure: the value is not used.
        // Claim: striped 4, a thread that uses a forgotten stripe sees the published time.
        self.word
            .compare_exchange(
                seen.raw(),
                seen.forgotten().raw(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}
