use core::fmt;
use core::ops::Deref;
use core::slice;

use super::policy::Policy;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::decision::{Admitted, Denied, Peek, StateRef, answer};
use crate::sync::{AtomicU64, Exclusive, Ordering, Shared};
use crate::time::Nanos;

/// A rate limiter of 16 bytes: a reference to a [`Policy`] that it shares with other limiters, and its state.
///
/// It is for very many limiters with one policy, such as one in each connection. `P` is a reference to the policy, or an `Arc` or
/// `Rc` of it. A [`RateLimiter`](crate::RateLimiter) has an algorithm and a clock of its own, and its state is alone on its cache
/// line. It can also refund, settle, pause and save.
///
/// # Guarantee
///
/// At most [`bound`](Algorithm::bound) permits are admitted in any interval of one window, by the times that the decisions used. A
/// denied request consumes nothing.
///
/// # Cost
///
/// A decision reads the clock and makes one load, and an admission also one compare-exchange. Nothing is allocated.
///
/// The state is inline, so it shares its cache line with the data next to it. That is free if one thread at a time uses them all, as
/// with the data of one connection. If threads use neighbouring limiters at the same time, each admission of one delays the others:
/// two threads with a limiter each took 29 to 37 ns per admission with both on one line, and 10 ns on two lines
/// (`benches/connections.rs`).
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use ringgate::limiter::Policy;
/// use ringgate::{Gcra, InlineLimiter, ManualClock, Quota};
///
/// struct Connection {
///     messages: InlineLimiter<Arc<Policy<Gcra, ManualClock>>>,
/// }
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let bucket = Gcra::token_bucket(Quota::per_second(10)?, 2)?;
/// let policy = Arc::new(Policy::with_clock(bucket, ManualClock::new())?);
/// let connect = || Connection {
///     messages: InlineLimiter::new(Arc::clone(&policy)),
/// };
/// let (mut first, mut second) = (connect(), connect());
/// assert!(first.messages.check_n_mut(2).is_ok());
/// assert!(first.messages.check_mut().is_err());
/// assert!(second.messages.check_mut().is_ok());
/// # Ok(())
/// # }
/// ```
///
/// An algorithm of several words is refused by the policy:
///
/// ```
/// use ringgate::limiter::Policy;
/// use ringgate::{ManualClock, Quota, TimestampRing};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let log = TimestampRing::new(Quota::per_second(10)?)?;
/// let error = Policy::with_clock(log, ManualClock::new()).expect_err("eleven words");
/// assert_eq!(
///     error.to_string(),
///     "invalid algorithm: 11 words (expected 1 word, as a Gcra or a fixed window has)"
/// );
/// # Ok(())
/// # }
/// ```
pub struct InlineLimiter<P> {
    policy: P,
    word: AtomicU64,
}

impl<A, C, P> InlineLimiter<P>
where
    A: Algorithm,
    C: Clock + 'static,
    P: Deref<Target = Policy<A, C>>,
{
    /// Creates a limiter with the given policy.
    pub fn new(policy: P) -> Self {
        Self {
            policy,
            word: AtomicU64::new(0),
        }
    }

    /// Takes one permit if there is capacity for it.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is no capacity left. Nothing is charged then.
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permit, and no other caller gets it.
    #[inline(always)]
    pub fn check(&self) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        self.check_n(1)
    }

    /// Takes `permits` permits if there is capacity for all of them. Zero permits are always admitted.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity. Nothing is charged then.
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        self.check_at(self.policy.clock().now(), permits)
    }

    /// Takes `permits` permits at the time `now`, a reading of the policy's clock. A loop can read the clock once for many
    /// decisions.
    ///
    /// The conditions for other readings are those of [`RateLimiter::check_at`](crate::RateLimiter::check_at).
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity at that time. Nothing is charged then.
    #[inline(always)]
    pub fn check_at(&self, now: Nanos, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        let algorithm = self.policy.algorithm();
        let words = Shared::new(slice::from_ref(&self.word));
        let receipt = algorithm.decide(words, now, permits);
        answer(algorithm, StateRef::Inline(&self.word), now, permits, receipt)
    }

    /// Takes one permit if there is capacity for it, without any locked instruction. This is for a limiter that one connection or
    /// one thread owns.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is no capacity left. Nothing is charged then.
    #[inline(always)]
    pub fn check_mut(&mut self) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        self.check_n_mut(1)
    }

    /// Takes `permits` permits if there is capacity for all of them, without any locked instruction.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity. Nothing is charged then.
    #[inline(always)]
    pub fn check_n_mut(&mut self, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        self.check_at_mut(self.policy.clock().now(), permits)
    }

    /// Takes `permits` permits at the time `now`, without any locked instruction.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity at that time. Nothing is charged then.
    #[inline(always)]
    pub fn check_at_mut(&mut self, now: Nanos, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        let algorithm = self.policy.algorithm();
        let words = Exclusive::new(slice::from_mut(&mut self.word));
        let receipt = algorithm.decide(words, now, permits);
        answer(algorithm, StateRef::Inline(&self.word), now, permits, receipt)
    }

    /// Charges `permits` at the time `now`, whether they fit or not, as debt that later decisions count.
    pub(crate) fn charge(&self, now: Nanos, permits: u64) {
        let words = Shared::new(slice::from_ref(&self.word));
        self.policy.algorithm().charge(words, now, permits);
    }

    /// Returns a read-only view of the limiter at the current time.
    ///
    /// # Concurrency
    ///
    /// This call reads only the clock. The methods of the [`Peek`] read the state.
    pub fn peek(&self) -> Peek<'_, A> {
        let policy = &*self.policy;
        Peek::new(
            policy.algorithm(),
            StateRef::Inline(&self.word),
            policy.clock().now(),
        )
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &Policy<A, C> {
        &self.policy
    }
}

/// Shows only the state, because the policy is that of many limiters.
impl<P> fmt::Debug for InlineLimiter<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineLimiter")
            // Relaxed: the word is the whole state, and publishes no other data.
            .field("word", &self.word.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}
