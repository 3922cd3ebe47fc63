use alloc::sync::Arc;
use core::borrow::Borrow;
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
use crate::algorithm::Reclaim;
use crate::clock::Clock;
use crate::keyed::{KeyedRateLimiter, Keys};
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

impl<A: Reclaim, C: Clock, K, T: Runtime> Fair<KeyedRateLimiter<A, C, K>, T> {
    /// Charges one permit to `key` if it has capacity and no request is waiting for the same key.
    ///
    /// # Errors
    ///
    /// The key has no capacity, or other requests are waiting for it. Nothing was charged.
    ///
    /// # Concurrency
    ///
    /// Does not overtake a request that was waiting before this call. A request that begins to wait concurrently may
    /// be served later.
    pub fn check<Q: ?Sized>(&self, key: &Q) -> Result<Receipt, CheckError>
    where
        K: Keys<Q>,
    {
        self.check_n(key, 1)
    }

    /// Charges `permits` permits to `key` if it has capacity for all of them and no request is waiting for the same
    /// key.
    ///
    /// # Errors
    ///
    /// The key has no capacity, or other requests are waiting for it. Nothing was charged.
    pub fn check_n<Q: ?Sized>(&self, key: &Q, permits: u64) -> Result<Receipt, CheckError>
    where
        K: Keys<Q>,
    {
        if self.must_queue(&KeyRequest::<_, _, (), Q>::new(self, key, permits)) {
            return Err(CheckError::Queued);
        }
        match self.limiter.check_n(key, permits) {
            Ok(admitted) => Ok(admitted.into_receipt()),
            Err(denied) => Err(CheckError::Denied(denied.retry_after())),
        }
    }

    /// Waits for one permit of `key`, behind the requests that wait for the same key.
    ///
    /// # Errors
    ///
    /// The request cannot wait, or its deadline has passed: see [`WaitError`](super::WaitError). Nothing was charged.
    pub fn until_ready<'a, Q: ?Sized>(&'a self, key: &'a Q) -> Acquire<KeyRequest<&'a Self, &'a Q, (), Q>>
    where
        K: Keys<Q>,
    {
        self.until_n_ready(key, 1)
    }

    /// Waits until `permits` permits of `key` can be charged at once.
    ///
    /// # Errors
    ///
    /// The request cannot wait, or its deadline has passed: see [`WaitError`](super::WaitError). Nothing was charged.
    /// A request for more permits than the limit (for an even ring the largest share, for GCRA the burst) fails at once with
    /// [`WaitError::Never`](super::WaitError::Never).
    pub fn until_n_ready<'a, Q: ?Sized>(
        &'a self,
        key: &'a Q,
        permits: u64,
    ) -> Acquire<KeyRequest<&'a Self, &'a Q, (), Q>>
    where
        K: Keys<Q>,
    {
        Acquire::new(KeyRequest::new(self, key, permits))
    }

    /// Waits until `permits` permits of `key` can be charged at once, and returns a receipt to refund them later.
    ///
    /// # Errors
    ///
    /// The errors of [`until_n_ready`](Self::until_n_ready).
    pub fn acquire<'a, Q: ?Sized>(
        &'a self,
        key: &'a Q,
        permits: u64,
    ) -> Acquire<KeyRequest<&'a Self, &'a Q, Receipt, Q>>
    where
        K: Keys<Q>,
    {
        Acquire::new(KeyRequest::new(self, key, permits))
    }

    /// Waits as [`acquire`](Self::acquire) does. The future holds the limiter by its `Arc` and the key by value, so that a task
    /// can be spawned with it.
    ///
    /// # Errors
    ///
    /// The errors of [`until_n_ready`](Self::until_n_ready).
    pub fn acquire_owned<Q: Unpin>(self: Arc<Self>, key: Q, permits: u64) -> Acquire<KeyRequest<Arc<Self>, Q>>
    where
        K: Keys<Q>,
    {
        Acquire::new(KeyRequest::new(self, key, permits))
    }

    /// Refunds a charge to `key` by [`KeyedRateLimiter::refund`], and wakes the first waiter of the key to check for
    /// capacity.
    pub fn refund<Q: ?Sized>(&self, key: &Q, receipt: impl Into<Receipt>) -> Settled
    where
        K: Keys<Q>,
    {
        self.settle(key, receipt, 0)
    }

    /// Replaces a charge to `key` by the `actual` cost, by [`KeyedRateLimiter::settle`]. If permits were refunded, the
    /// first waiter of the key is woken to check for capacity.
    pub fn settle<Q: ?Sized>(&self, key: &Q, receipt: impl Into<Receipt>, actual: u64) -> Settled
    where
        K: Keys<Q>,
    {
        let receipt = receipt.into();
        let excess = receipt.permits().saturating_sub(actual);
        let settled = self.limiter.settle(key, receipt, actual);
        if excess > 0 && settled == Settled::Exact {
            self.queues
                .wake_leaders_of(&KeyRequest::<_, _, (), Q>::new(self, key, excess));
        }
        settled
    }
}

/// A request for permits of one key of a [`KeyedRateLimiter`], as part of the type of an [`Acquire`].
///
/// `F` is a reference or an `Arc` to the [`Fair`]. `B` is the key or a reference to it, and `Q` is the type of the key. `G` is
/// the result: a [`Receipt`], or `()`.
pub struct KeyRequest<F, B, G = Receipt, Q: ?Sized = B> {
    fair: F,
    key: B,
    permits: u64,
    fingerprint: u64,
    granted: PhantomData<fn(&Q) -> G>,
}

impl<F, B, G, Q, A, C, K, T> KeyRequest<F, B, G, Q>
where
    F: Deref<Target = Fair<KeyedRateLimiter<A, C, K>, T>>,
    B: Borrow<Q>,
    Q: ?Sized,
    A: Reclaim,
    C: Clock,
    K: Keys<Q>,
    T: Runtime,
{
    fn new(fair: F, key: B, permits: u64) -> Self {
        let fingerprint = fair.limiter.fingerprint(key.borrow());
        Self {
            fair,
            key,
            permits,
            fingerprint,
            granted: PhantomData,
        }
    }
}

impl<F, B, G, Q, A, C, K, T> QueuedRequest for KeyRequest<F, B, G, Q>
where
    F: Deref<Target = Fair<KeyedRateLimiter<A, C, K>, T>>,
    B: Borrow<Q>,
    G: Granted,
    Q: ?Sized,
    A: Reclaim,
    C: Clock,
    K: Keys<Q>,
    T: Runtime,
{
    type Acquired = G;

    fn now(&self) -> Nanos {
        self.fair.limiter.clock().now()
    }

    fn needs(&self) -> Needs {
        let need = (self.permits > 0).then_some(Need {
            state: self.fingerprint,
            permits: self.permits,
        });
        need.into_iter().collect()
    }

    fn try_acquire(&self) -> Option<G> {
        let answer = self.fair.limiter.check_n(self.key.borrow(), self.permits);
        Some(G::from_receipt(answer.ok()?.into_receipt()))
    }

    fn ready_in(&self, _: u64, permits: u64) -> Option<Duration> {
        self.fair.limiter.peek(self.key.borrow()).retry_after(permits)
    }

    fn earliest_in(&self, _: u64, queued: u64, permits: u64) -> Option<Duration> {
        let all = queued.saturating_add(permits);
        self.fair.limiter.peek(self.key.borrow()).earliest_after(all)
    }
}

impl<F, B, G, Q, A, C, K, T> Enqueue for KeyRequest<F, B, G, Q>
where
    F: Deref<Target = Fair<KeyedRateLimiter<A, C, K>, T>>,
    B: Borrow<Q>,
    G: Granted,
    Q: ?Sized,
    A: Reclaim,
    C: Clock,
    K: Keys<Q>,
    T: Runtime,
{
    type Runtime = T;

    fn with_queues<O>(&self, work: impl FnOnce(&WaitQueues<T>) -> O) -> O {
        work(&self.fair.queues)
    }
}

impl<F, B, G, Q: ?Sized> fmt::Debug for KeyRequest<F, B, G, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRequest")
            .field("permits", &self.permits)
            .finish_non_exhaustive()
    }
}
