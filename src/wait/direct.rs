use alloc::sync::Arc;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::time::Duration;

use super::acquire::{Acquire, Enqueue};
use super::error::CheckError;
use super::fair::Fair;
use super::granted::Granted;
use super::queue::{Need, Needs, QueuedRequest, WaitQueues};
use super::runtime::Runtime;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

impl<A: Algorithm, C: Clock, T: Runtime> Fair<RateLimiter<A, C>, T> {
    /// Charges one permit if the limiter has capacity and no request is waiting.
    ///
    /// # Errors
    ///
    /// The limiter has no capacity, or other requests are waiting. Nothing was charged.
    ///
    /// # Concurrency
    ///
    /// Does not overtake a request that was waiting before this call. A request that begins to wait concurrently may
    /// be served later.
    pub fn check(&self) -> Result<Receipt, CheckError> {
        self.check_n(1)
    }

    /// Charges `permits` permits if the limiter has capacity for all of them and no request is waiting.
    ///
    /// # Errors
    ///
    /// The limiter has no capacity, or other requests are waiting. Nothing was charged.
    pub fn check_n(&self, permits: u64) -> Result<Receipt, CheckError> {
        if self.must_queue(&PermitRequest::<_>::new(self, permits)) {
            return Err(CheckError::Queued);
        }
        match self.limiter.check_n(permits) {
            Ok(admitted) => Ok(admitted.into_receipt()),
            Err(denied) => Err(CheckError::Denied(denied.retry_after())),
        }
    }

    /// Waits for one permit.
    ///
    /// # Errors
    ///
    /// The request cannot wait, or its deadline has passed: see [`WaitError`](super::WaitError). Nothing was charged.
    pub fn until_ready(&self) -> Acquire<PermitRequest<&Self, ()>> {
        self.until_n_ready(1)
    }

    /// Waits until `permits` permits can be charged at once.
    ///
    /// # Errors
    ///
    /// The request cannot wait, or its deadline has passed: see [`WaitError`](super::WaitError). Nothing was charged.
    /// A request for more permits than the limit (for an even ring the largest share, for GCRA the burst) fails at once with
    /// [`WaitError::Never`](super::WaitError::Never).
    pub fn until_n_ready(&self, permits: u64) -> Acquire<PermitRequest<&Self, ()>> {
        Acquire::new(PermitRequest::new(self, permits))
    }

    /// Waits until `permits` permits can be charged at once, and returns a receipt to refund or settle them later.
    ///
    /// # Errors
    ///
    /// The errors of [`until_n_ready`](Self::until_n_ready).
    pub fn acquire(&self, permits: u64) -> Acquire<PermitRequest<&Self>> {
        Acquire::new(PermitRequest::new(self, permits))
    }

    /// Waits as [`acquire`](Self::acquire) does. The future holds the limiter by its `Arc`, so that a task can be spawned with
    /// it.
    ///
    /// # Errors
    ///
    /// The errors of [`until_n_ready`](Self::until_n_ready).
    pub fn acquire_owned(self: Arc<Self>, permits: u64) -> Acquire<PermitRequest<Arc<Self>>> {
        Acquire::new(PermitRequest::new(self, permits))
    }

    /// Refunds a charge by [`RateLimiter::refund`], and wakes the first waiter to check for capacity.
    pub fn refund(&self, receipt: impl Into<Receipt>) -> Settled {
        self.settle(receipt, 0)
    }

    /// Replaces a charge by the `actual` cost, by [`RateLimiter::settle`]. If permits were refunded, the first waiter
    /// is woken to check for capacity.
    pub fn settle(&self, receipt: impl Into<Receipt>, actual: u64) -> Settled {
        let receipt = receipt.into();
        let excess = receipt.permits().saturating_sub(actual);
        let settled = self.limiter.settle(receipt, actual);
        if excess > 0 && settled == Settled::Exact {
            self.queues
                .wake_leaders_of(&PermitRequest::<_>::new(self, excess));
        }
        settled
    }

    /// Ends a pause by [`RateLimiter::resume`], and wakes the first waiter to check for capacity.
    pub fn resume(&self) {
        self.limiter.resume();
        self.queues.wake_leaders_of(&PermitRequest::<_>::new(self, 1));
    }
}

/// A request for permits of a [`RateLimiter`], as part of the type of an [`Acquire`].
///
/// `F` is a reference or an `Arc` to the [`Fair`]. `G` is the result: a [`Receipt`], or `()`.
pub struct PermitRequest<F, G = Receipt> {
    fair: F,
    permits: u64,
    granted: PhantomData<fn() -> G>,
}

impl<F, G> PermitRequest<F, G> {
    pub(super) const fn new(fair: F, permits: u64) -> Self {
        Self {
            fair,
            permits,
            granted: PhantomData,
        }
    }
}

/// The number of the limiter's state. There is only one.
const STATE: u64 = 0;

impl<F, G, A, C, T> QueuedRequest for PermitRequest<F, G>
where
    F: Deref<Target = Fair<RateLimiter<A, C>, T>>,
    G: Granted,
    A: Algorithm,
    C: Clock,
    T: Runtime,
{
    type Acquired = G;

    fn now(&self) -> Nanos {
        self.fair.limiter.clock().now()
    }

    fn needs(&self) -> Needs {
        let permits = self.permits;
        let need = (permits > 0).then_some(Need {
            state: STATE,
            permits,
        });
        need.into_iter().collect()
    }

    fn try_acquire(&self) -> Option<G> {
        let admitted = self.fair.limiter.check_n(self.permits).ok()?;
        Some(G::from_receipt(admitted.into_receipt()))
    }

    fn ready_in(&self, _: u64, permits: u64) -> Option<Duration> {
        self.fair.limiter.peek().retry_after(permits)
    }

    fn earliest_in(&self, _: u64, queued: u64, permits: u64) -> Option<Duration> {
        let all = queued.saturating_add(permits);
        self.fair.limiter.peek().earliest_after(all)
    }
}

impl<F, G, A, C, T> Enqueue for PermitRequest<F, G>
where
    F: Deref<Target = Fair<RateLimiter<A, C>, T>>,
    G: Granted,
    A: Algorithm,
    C: Clock,
    T: Runtime,
{
    type Runtime = T;

    fn with_queues<O>(&self, work: impl FnOnce(&WaitQueues<T>) -> O) -> O {
        work(&self.fair.queues)
    }
}

impl<F, G> fmt::Debug for PermitRequest<F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitRequest")
            .field("permits", &self.permits)
            .finish_non_exhaustive()
    }
}
