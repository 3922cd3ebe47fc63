use core::time::Duration;

use super::any::AnyAlgorithm;
use super::attempt::{Attempt, opaque_copy, until_decided};
use super::forward::{forward_algorithm, forward_first_word, inner};
use super::traits::{Algorithm, Reclaim, lowered_limit};
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// An algorithm with a lower limit, as a reference to the algorithm and the limit.
///
/// It decides for [`RateLimiter::with_limit`](crate::RateLimiter::with_limit) and
/// [`KeyedRateLimiter::with_limit`](crate::KeyedRateLimiter::with_limit). It is an algorithm itself, so that decisions, answers and
/// tables need no second form for a lower limit.
///
/// # Cost
///
/// A decision is [an attempt in place](Reclaim::attempt). `is_inline`, `is_idle`, `advance`, `idle_from`, `latest_time`,
/// `finish_step`, `cells_and_unit` and `lower_limits` do not need the algorithm with the limit, and `with_limit` only if a limit is
/// outside of `lower_limits`. Every other method first makes it [by `with_limit`](Reclaim::with_limit), which allocates for a variant
/// of [`AnyAlgorithm`] in a box.
#[derive(Clone, Debug)]
pub struct Lowered<'a, A> {
    algorithm: &'a A,
    limit: u64,
}

impl<'a, A: Reclaim> Lowered<'a, A> {
    /// The algorithm with the limit `limit`. The error is that of [`Reclaim::with_limit`].
    #[inline(always)]
    pub(crate) fn new(algorithm: &'a A, limit: u64) -> Result<Self, ConfigError> {
        let (lowest, highest) = algorithm.lower_limits();
        if !(lowest..=highest).contains(&limit) {
            validate(algorithm, limit)?;
        }
        Ok(Self { algorithm, limit })
    }

    /// Makes the algorithm with the limit, and returns what `query` returns for it.
    fn with_lowered<T>(&self, query: impl FnOnce(&A) -> T) -> T {
        match self.algorithm.with_limit(self.limit) {
            Ok(lowered) => query(&lowered),
            Err(_) => query(self.algorithm),
        }
    }
}

impl<'a> Lowered<'a, AnyAlgorithm> {
    /// The algorithm with the limit `at_most`, or with its own limit if that is lower: after a reload, a state may have a lower
    /// limit than the rule that a request was read by. A limit below one unit becomes one unit. A limit of zero does, too,
    /// but has denied its request already.
    #[inline(always)]
    pub(crate) fn at_most(algorithm: &'a AnyAlgorithm, at_most: u64) -> Self {
        let (lowest, highest) = algorithm.lower_limits();
        let limit = at_most.min(highest).max(lowest);
        Self { algorithm, limit }
    }

    #[inline(always)]
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }
}

/// Returns the error of a limit that is not valid.
#[cold]
#[inline(never)]
fn validate<A: Reclaim>(algorithm: &A, limit: u64) -> Result<(), ConfigError> {
    algorithm.with_limit(limit).map(|_| ())
}

/// Runs an expression on the algorithm with the limit.
macro_rules! each {
    ($lowered:expr, $algorithm:ident => $work:expr) => {
        $lowered.with_lowered(|$algorithm| $work)
    };
}

/// Repeats the attempt until it decides. The fields of [`Lowered`] are separate arguments, because a reference to it would keep
/// it in memory.
#[cold]
#[inline(never)]
fn retry<A: Reclaim, W: Words>(
    algorithm: &A,
    limit: u64,
    words: W,
    now: Nanos,
    permits: u64,
) -> Option<Receipt> {
    until_decided(|| algorithm.attempt(Some(limit), words, now, permits))
}

impl<A: Reclaim> Algorithm for Lowered<'_, A> {
    forward_algorithm!(each);

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        self.attempt(None, words, now, permits)
            .or_else(|| retry(self.algorithm, self.limit, opaque_copy(words), now, permits))
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.with_lowered(|lowered| lowered.remaining(words, now))
    }
}

impl<A: Reclaim> Reclaim for Lowered<'_, A> {
    fn span(&self) -> Duration {
        self.with_lowered(A::span)
    }

    fn counts_until<W: Words>(&self, words: W, at: Nanos, permits: u64) -> Nanos {
        self.with_lowered(|lowered| lowered.counts_until(words, at, permits))
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        let limit = limit.unwrap_or(self.limit);
        self.algorithm.attempt(Some(limit), words, now, permits)
    }

    #[inline(always)]
    fn is_inline(&self) -> bool {
        self.algorithm.is_inline()
    }

    forward_first_word!(inner);

    fn finish_step<W: Words>(&self, words: W) {
        self.algorithm.finish_step(words);
    }

    fn cells_and_unit(&self) -> Option<(u64, u64)> {
        self.algorithm.cells_and_unit()
    }

    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        lowered_limit(limit, self.limit)?;
        Self::new(self.algorithm, limit)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_limit_of_a_request_never_exceeds_that_of_the_state() {
        use super::{Algorithm, AnyAlgorithm, Lowered, Nanos};
        use crate::algorithm::{CounterRing, Gcra, TimestampRing, UnitRing};
        use crate::quota::Quota;
        use crate::sync::{AtomicU64, Shared};

        let quota = Quota::per_minute(50).expect("a quota");
        for algorithm in [
            AnyAlgorithm::from(UnitRing::new(quota).expect("a ring")),
            CounterRing::new(quota).expect("a ring").into(),
            TimestampRing::new(quota).expect("a ring").into(),
            Gcra::new(quota).expect("a bucket").into(),
        ] {
            for at_most in [0, 1, 20, 50, 70] {
                let words: alloc::vec::Vec<_> = (0..algorithm.words()).map(|_| AtomicU64::new(0)).collect();
                let lowered = Lowered::at_most(&algorithm, at_most);
                let decide = |_: &u64| lowered.decide(Shared::new(&words), Nanos::ZERO, 1).is_some();
                let admitted = (0..100).take_while(decide).count() as u64;
                assert_eq!(admitted, at_most.clamp(1, 50), "{algorithm:?}");
                assert_eq!(lowered.bound() == algorithm.bound(), at_most >= 50);
            }
        }
    }
}
