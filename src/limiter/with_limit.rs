use super::settle::settle;
use crate::algorithm::{Algorithm, Lowered, Reclaim};
use crate::clock::Clock;
use crate::decision::{Admitted, Denied, Peek, StateRef, answer};
use crate::own_words::OwnWords;
use crate::receipt::{Receipt, Settled};
use crate::sync::Shared;
use crate::time::Nanos;

/// Decisions of a [`RateLimiter`](crate::RateLimiter) with a lower limit, made by
/// [`RateLimiter::with_limit`](crate::RateLimiter::with_limit).
#[derive(Clone, Debug)]
#[must_use = "a limit takes effect by the decisions that are made with it"]
pub struct WithLimit<'a, A, C> {
    pub(super) algorithm: Lowered<'a, A>,
    pub(super) words: &'a OwnWords,
    pub(super) clock: &'a C,
}

impl<'a, A: Reclaim, C: Clock> WithLimit<'a, A, C> {
    /// Takes one permit if there is capacity for it.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is no capacity left. Nothing is charged then.
    #[inline(always)]
    pub fn check(&self) -> Result<Admitted<'_, Lowered<'a, A>>, Denied<'_, Lowered<'a, A>>> {
        self.check_n(1)
    }

    /// Takes `permits` permits if there is capacity for all of them. Zero permits are always admitted.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity. Nothing is charged then.
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<Admitted<'_, Lowered<'a, A>>, Denied<'_, Lowered<'a, A>>> {
        self.check_at(self.clock.now(), permits)
    }

    /// Takes `permits` permits at the time `now`, a reading of the limiter's clock.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity at that time. Nothing is charged then.
    #[inline(always)]
    pub fn check_at(
        &self,
        now: Nanos,
        permits: u64,
    ) -> Result<Admitted<'_, Lowered<'a, A>>, Denied<'_, Lowered<'a, A>>> {
        if self.words.is_paused(now, permits) {
            return answer(&self.algorithm, self.state(), now, permits, None);
        }
        let words = Shared::new(self.words.get());
        let receipt = self.algorithm.decide(words, now, permits);
        answer(&self.algorithm, self.state(), now, permits, receipt)
    }

    /// Returns a read-only view of the limiter with this limit, at the current time.
    pub fn peek(&self) -> Peek<'_, Lowered<'a, A>> {
        Peek::new(&self.algorithm, self.state(), self.clock.now())
    }

    /// Settles an estimate at its actual cost, as [`RateLimiter::settle`](crate::RateLimiter::settle) does. A cost of zero refunds
    /// all permits of the receipt.
    ///
    /// The receipt may be of another limit, or of the limiter itself.
    pub fn settle(&self, taken: impl Into<Receipt>, actual: u64) -> Settled {
        settle(&self.algorithm, self.words, self.clock, &taken.into(), actual)
    }

    const fn state(&self) -> StateRef<'_> {
        StateRef::Own(self.words)
    }
}
