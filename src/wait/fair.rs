use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use super::error::CheckError;
use super::queue::WaitQueues;
use super::runtime::{Runtime, TokioRuntime};
use super::waitable::{IntoRequest, WaitRequest, Waitable};
use crate::receipt::Settled;

/// A limiter with wait queues. A request waits until there is capacity, first come, first served.
///
/// `Fair` wraps a [`RateLimiter`](crate::RateLimiter), a [`KeyedRateLimiter`](crate::KeyedRateLimiter), a
/// [`RuleSet`](crate::RuleSet) or [`LiveRules`](crate::LiveRules). Share it by reference or in an `Arc`. `SharedFair` wraps
/// `SharedRules`: a call of their store cannot be made in the poll that has its turn. With any other limiter, sleep for its
/// `retry_after` and try again.
///
/// # Requests
///
/// A request to a [`RateLimiter`](crate::RateLimiter) is a number of permits, and one to a
/// [`KeyedRateLimiter`](crate::KeyedRateLimiter) is `&key`, for one permit, or `(&key, permits)`. A request to rules is the value
/// that they check, or a reference to it.
///
/// # Guarantees
///
/// - The bound is that of the limiter. Permits are charged in the poll that returns them, so a dropped wait has charged
///   nothing, and nothing has to be refunded.
/// - Waiters of one state (of the limiter, of a key, of a rule) are served in order of arrival, for any numbers of permits. So
///   requests for one permit do not starve a request for 50. If there is capacity for several waiters, up to 64 are woken
///   together, and the runtime chooses the order in which they run.
/// - With rules, a request waits in the queue of one state at a time: the one that takes longest to admit it. It does not delay
///   requests that do not need this state. If another state has no capacity when its turn comes, the request moves to the queue
///   of that state, in order of arrival. It holds no permits meanwhile.
/// - Calls that do not wait, such as [`check`](Self::check), do not overtake waiters, unless
///   [`allow_barging`](Self::allow_barging) was called. Calls of the wrapped limiter itself do.
/// - A task in a tight loop yields after four admissions without waiting. (The future of `block_on` or of `main` is not
///   a task, and does not yield.)
///
/// # Panics
///
/// A wait without capacity panics if it is polled outside of a tokio runtime with a time driver: see [`TokioRuntime`].
///
/// # Caveats
///
/// - A request that needs two states may wait for each in turn. This lasts as long as requests that need only one of the two
///   states keep both exhausted.
/// - Keys that share the catch-all of a full table ([`OnFull::Share`](crate::keyed::OnFull)) have separate queues. Their first
///   waiters compete for the catch-all.
/// - For a rule with tiers, the estimate of whether a deadline can be met does not count the waiters ahead, because they may
///   have other limits.
///
/// # Cost
///
/// Without waiters, `check` costs the decision of the limiter and one load. A wait with capacity costs the decision, and at most
/// three loads and one store.
///
/// With waiters, a wait also costs a lock (held briefly, never across an `.await`) and one or two reads of the state. The first
/// waiter of a queue and each deadline need a timer. Each wait is woken about once. A wait with a deadline is also woken when half of
/// its time is left, a quarter and so on, down to 20 ms. It then counts up to 256 waiters ahead.
///
/// A queued wait uses about 100 bytes in addition to its future, and twice as many with a deadline. The queue of a single
/// waiter uses about 1 KB. A key without waiters uses no memory.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::wait::{TokioClock, WaitError};
/// use ringgate::{Fair, Gcra, Quota, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // A hundred requests per second, evenly spaced.
/// let pace = Gcra::token_bucket(Quota::per_second(100)?, 1)?;
/// let limiter = Fair::new(RateLimiter::with_clock(pace, TokioClock::new()));
/// for _ in 0..3 {
///     limiter.acquire(1).await?;
///     // Send the request.
/// }
/// // The next permit is due in 10 ms, so this fails at once.
/// let wait = limiter.acquire(1).within(Duration::from_millis(1)).await;
/// assert!(matches!(wait, Err(WaitError::TooLate { .. })));
/// # Ok(())
/// # }
/// ```
pub struct Fair<L, T: Runtime = TokioRuntime> {
    pub(super) limiter: L,
    pub(super) queues: WaitQueues<T>,
    allow_barging: bool,
}

impl<L> Fair<L> {
    /// Adds wait queues to a limiter, with tokio's timers.
    pub fn new(limiter: L) -> Self {
        Self::with_runtime(limiter, TokioRuntime)
    }
}

impl<L, T: Runtime> Fair<L, T> {
    /// Adds wait queues to a limiter, with the timers of the given runtime.
    pub fn with_runtime(limiter: L, runtime: T) -> Self {
        Self {
            limiter,
            queues: WaitQueues::new(runtime),
            allow_barging: false,
        }
    }

    /// Sets the maximum number of waiters in all queues together. The default is 1,000,000. With 0, no request waits.
    ///
    /// A request that would exceed it fails with [`WaitError::QueueFull`](super::WaitError::QueueFull).
    #[must_use]
    pub fn max_waiting(mut self, max_waiting: usize) -> Self {
        self.queues.max_waiting = max_waiting;
        self
    }

    /// Delays each wake-up by a random time of up to `max_jitter`. The default is no delay.
    ///
    /// Jitter spreads the requests of many processes that would otherwise resume at the same time. The target
    /// `wasm32-unknown-unknown` has no random numbers, and so no jitter.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    #[must_use]
    pub fn jitter(mut self, max_jitter: Duration) -> Self {
        self.queues.max_jitter = max_jitter;
        self
    }

    /// Lets calls that do not wait, such as `check`, overtake waiters.
    #[must_use]
    pub fn allow_barging(mut self) -> Self {
        self.allow_barging = true;
        self
    }

    /// Returns the wrapped limiter.
    pub const fn limiter(&self) -> &L {
        &self.limiter
    }

    /// Returns the number of waiters in all queues together.
    ///
    /// # Concurrency
    ///
    /// This is a single load. Waiters may have joined or left before the caller uses the result.
    #[must_use]
    pub fn waiting(&self) -> usize {
        usize::try_from(self.queues.waiting()).unwrap_or(usize::MAX)
    }
}

impl<L: Waitable, T: Runtime> Fair<L, T> {
    /// Charges a [request](Self#requests) if the limiter has capacity and no request is waiting for the same state.
    ///
    /// # Errors
    ///
    /// The limiter has no capacity, or other requests are waiting. Nothing was charged.
    ///
    /// # Concurrency
    ///
    /// Does not overtake a request that was waiting before this call. A request that begins to wait concurrently may
    /// be served later.
    pub fn check<Q: IntoRequest<L>>(&self, request: Q) -> Result<L::Admitted, CheckError> {
        let request = request.into_request(&self.limiter);
        if self.must_queue(&request) {
            return Err(CheckError::Queued);
        }
        request.check(&self.limiter).map_err(CheckError::Denied)
    }

    /// Refunds a charge, by the `refund` of the limiter or of the rules in force. The first waiters of its states are woken to check
    /// for capacity.
    pub fn refund(&self, charge: L::Charge) -> Settled {
        self.end(charge, L::refund)
    }

    /// Replaces a charge by its actual cost, by the `settle` of the limiter or of the rules in force. The first waiters of its
    /// states are woken to check for capacity.
    ///
    /// `actual` is a number of permits. With rules, it is the cost whose rules are settled, and a number: `(&cost, 180)`.
    pub fn settle(&self, charge: L::Charge, actual: L::Actual<'_>) -> Settled {
        self.end(charge, |limiter, charge| limiter.settle(charge, actual))
    }

    fn end(&self, charge: L::Charge, end: impl FnOnce(&L, L::Charge) -> Settled) -> Settled {
        let states = self.limiter.states_of(&charge);
        let settled = end(&self.limiter, charge);
        match states {
            Some(states) => self.queues.wake_leaders_in(&states, || self.limiter.now()),
            None => self.recheck(),
        }
        settled
    }

    /// Wakes the first waiter of every state, so that it checks for capacity again.
    ///
    /// Call it after rules were replaced, or after permits were refunded directly to the wrapped limiter. Otherwise
    /// waiters are woken by timers that were set before.
    pub fn recheck(&self) {
        self.queues.wake_all_leaders(|| self.limiter.now());
    }

    /// Whether a request that does not wait is denied because others wait.
    pub(crate) fn must_queue<Q: WaitRequest<L>>(&self, request: &Q) -> bool {
        // Claim: wait 7, a call that does not wait sees earlier waiters.
        !self.allow_barging && self.queues.is_contended(|| request.needs(&self.limiter))
    }
}

impl<L: fmt::Debug, T: Runtime> fmt::Debug for Fair<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fair")
            .field("limiter", &self.limiter)
            .field("queues", &self.queues)
            .field("allow_barging", &self.allow_barging)
            .finish()
    }
}

/// A [`Fair`], or a reference or an `Arc` to one. This trait is sealed.
///
/// An [`Acquire`](super::Acquire), a [`PacedStream`](super::PacedStream), a [`PacedSink`](super::PacedSink) and the layer of an HTTP
/// client hold their limiter in this form.
#[expect(
    private_bounds,
    reason = "sealed: an implementation returns the same `Fair` in each call"
)]
pub trait FairRef: SameFair {
    /// The limiter.
    type Limiter: Waitable;
    /// The runtime of the limiter.
    type Runtime: Runtime;

    /// Returns the limiter with its queues.
    fn fair(&self) -> &Fair<Self::Limiter, Self::Runtime>;
}

/// Implemented only here, so that each call of [`FairRef::fair`] returns the same `Fair`.
trait SameFair {}

impl<L, T: Runtime> SameFair for Fair<L, T> {}

impl<F: SameFair> SameFair for &F {}

impl<F: SameFair> SameFair for Arc<F> {}

impl<L: Waitable, T: Runtime> FairRef for Fair<L, T> {
    type Limiter = L;
    type Runtime = T;

    fn fair(&self) -> &Self {
        self
    }
}

impl<F: FairRef> FairRef for &F {
    type Limiter = F::Limiter;
    type Runtime = F::Runtime;

    fn fair(&self) -> &Fair<F::Limiter, F::Runtime> {
        (**self).fair()
    }
}

impl<F: FairRef> FairRef for Arc<F> {
    type Limiter = F::Limiter;
    type Runtime = F::Runtime;

    fn fair(&self) -> &Fair<F::Limiter, F::Runtime> {
        (**self).fair()
    }
}
