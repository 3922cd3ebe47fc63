use core::time::Duration;

use super::word::Word;
use super::{Gcra, LAST_TIME, MAX_TIME, UNITS};
use crate::algorithm::attempt::Attempt;
use crate::algorithm::traits::{Algorithm, Reclaim, lowered_limit};
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::{Divider, Nanos};

impl Gcra {
    /// The first instant, in units, that is after the time of the word and of every word that a refund has replaced.
    const fn passes_at(&self, word: Word) -> u64 {
        let replaced = if word.is_lowered() { self.ahead } else { 0 };
        word.time() + replaced + 1
    }

    /// This bucket with a valid lower limit. It keeps the divisor of this limit, because a decision about one request, for which
    /// it is made, uses none.
    #[inline(always)]
    fn lowered(&self, limit: u64) -> Self {
        let quota = self.quota.with_limit(limit);
        let window = quota.window_nanos() * UNITS;
        let permit = window.div_ceil(limit);
        let burst = self.share_of_burst(limit);
        // Suppose that the last admission in a window is by the lower limit. The permits before it take less than W and the time
        // of `burst - 1` permits, and each at least T. They are fewer than the bound if the sum is at most T times the bound.
        let longest = self.bound() * self.permit - window;
        // Without the comparison there would be a second division.
        let burst = if (burst - 1) * permit > longest {
            longest / permit + 1
        } else {
            burst
        };
        Self {
            quota,
            burst,
            permit,
            tolerance: burst * permit,
            limit: self.limit,
            ahead: self.ahead,
        }
    }

    /// ⌊b·`limit`/L⌋, but not below one permit.
    #[inline(always)]
    fn share_of_burst(&self, limit: u64) -> u64 {
        if self.burst == self.quota.limit() {
            return limit;
        }
        let product = u128::from(self.burst) * u128::from(limit);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the product is below 2^63, or the share is at most the burst"
        )]
        let share = if product >> 63 == 0 {
            self.limit.quotient(product as u64)
        } else {
            (product / u128::from(self.limit.divisor())) as u64
        };
        share.max(1)
    }
}

impl Gcra {
    /// Whether the time per permit, which is rounded up, lowers the rate by more than one percent.
    pub(crate) const fn rounds_coarsely(&self) -> bool {
        let window = self.quota.window_nanos() * UNITS;
        (self.permit * self.quota.limit() - window) * 100 > window
    }
}

impl Reclaim for Gcra {
    fn span(&self) -> Duration {
        Duration::from_nanos(self.tolerance.div_ceil(UNITS))
    }

    fn counts_until<W: Words>(&self, words: W, at: Nanos, permits: u64) -> Nanos {
        let full = self.after(Word::read(words).time(), Self::units(at), permits);
        Self::instant(full).min(at.saturating_add(self.span()))
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        if permits == 0 {
            return Attempt::Admitted(Receipt::new(now, 0, 0));
        }
        let lowered = limit.map(|limit| self.lowered(limit));
        let bucket = lowered.as_ref().unwrap_or(self);
        bucket
            .attempt_once(words, Self::units(now), permits)
            .map(|before| Receipt::new(now, permits, before).with_permit_time(bucket.permit))
    }

    /// A state is idle as soon as its bucket is full. After a refund it is idle later, by two windows, or for a longer burst by
    /// four, eight and so on. Until then, a word that a refund has replaced may be above `now`.
    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        first == 0 || self.passes_at(Word(first)) <= Self::units(now)
    }

    /// If the state is not idle, the result is above `first`, but it may be below a word that a refund has replaced. So a
    /// table that reuses words before they are idle must reject refunds that lower [`latest_time`](Reclaim::latest_time).
    #[inline(always)]
    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        let word = Word(first);
        let later = Self::units(now).max(word.time() + 1);
        let lowered = word.is_lowered() && self.passes_at(word) > later;
        (later <= MAX_TIME).then(|| Word::new(later, lowered).0)
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        if first == 0 {
            return Some(Nanos::ZERO);
        }
        let idle = self.passes_at(Word(first));
        (idle <= LAST_TIME).then(|| Self::instant(idle))
    }

    /// For an older reading the word is further ahead, so the decision is stricter.
    fn latest_time(&self, first: u64) -> Nanos {
        Self::instant(Word(first).time())
    }

    /// The burst is lowered in proportion to the limit, rounded down, but not below one permit.
    ///
    /// A window holds at most the [`bound`](Algorithm::bound) of this bucket, whichever of its lower limits its admissions have.
    /// The time per permit is rounded up, so a burst in proportion could take longer than the burst of this bucket. Then
    /// the burst is lowered by one permit for each 2·W/L permits (W in nanoseconds), rounded up.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        lowered_limit(limit, self.quota.limit())?;
        Ok(Self {
            limit: Divider::new(limit),
            ..self.lowered(limit)
        })
    }

    #[inline(always)]
    fn lower_limits(&self) -> (u64, u64) {
        (1, self.quota.limit())
    }
}
