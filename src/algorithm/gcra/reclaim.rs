use core::time::Duration;

use super::state::{State, Word};
use super::{Gcra, LAST_TIME, MAX_TIME, UNITS};
use crate::algorithm::attempt::Attempt;
use crate::algorithm::traits::{Algorithm, Reclaim, lowered_limit};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

impl Gcra {
    /// The first instant, in units, that is after the time of the word and of every word that a refund has replaced.
    const fn passes_at(&self, word: Word) -> u64 {
        let replaced = if word.is_lowered() { self.ahead } else { 0 };
        word.time() + replaced + 1
    }
}

impl Reclaim for Gcra {
    fn span(&self) -> Duration {
        Duration::from_nanos(self.tolerance().div_ceil(UNITS))
    }

    fn counts_until<W: Words>(&self, words: W, at: Nanos, permits: u64) -> Nanos {
        let full = self.after(State(words).observe().time(), Self::units(at), permits);
        Self::instant(full).min(at.saturating_add(self.span()))
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Attempt {
        if permits == 0 {
            return Attempt::Admitted(Receipt::new(now, 0, 0));
        }
        self.attempt_once(words, Self::units(now), permits)
            .map(|before| Receipt::new(now, permits, before).with_permit_time(self.permit))
    }

    /// A state is idle as soon as its bucket is full. After a refund it is idle later, by the [`span`](Reclaim::span) or by the
    /// window if that is longer. Until then, a word that a refund has replaced may be above `now`.
    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        first == 0 || self.passes_at(Word(first)) <= Self::units(now)
    }

    /// If the state is not idle, the result is above `first`, but it may be below a word that a refund has replaced. So a
    /// table that reuses words before they are idle must reject refunds that lower [`latest_time`](Reclaim::latest_time).
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
        let current = self.quota.limit();
        lowered_limit(limit, current)?;
        let quota = Quota::new(limit, self.quota.window())?;
        let window = quota.window_nanos() * UNITS;
        let permit = window.div_ceil(limit);
        #[expect(clippy::cast_possible_truncation, reason = "at most the burst")]
        let burst = (u128::from(self.burst) * u128::from(limit) / u128::from(current)) as u64;
        // Suppose that the last of the admissions in a window is by the lower limit. All others take less than W and this burst
        // without one permit. They are at most one fewer than the bound if this time is at most T per permit.
        let others = (self.bound() * self.permit - window) / permit;
        Ok(Self {
            quota,
            burst: burst.min(others + 1).max(1),
            permit,
            ahead: self.ahead,
        })
    }
}
