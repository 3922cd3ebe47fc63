use core::time::Duration;

use smallvec::{SmallVec, smallvec};

use super::waitable::{IntoRequest, Need, Needs, WaitRequest, Waitable};
use crate::algorithm::Reclaim;
use crate::clock::Clock;
use crate::keyed::{KeyedRateLimiter, Keys};
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

/// A request for permits of one key of a [`KeyedRateLimiter`], as it is stored while it waits.
///
/// It holds the bits that identify the key, and not the key.
#[derive(Clone, Copy, Debug)]
pub struct KeyRequest {
    fingerprint: u64,
    tier: usize,
    permits: u64,
}

/// The charge of an admitted request for a key, which [`Fair::refund`](super::Fair::refund) and
/// [`Fair::settle`](super::Fair::settle) accept. [`KeyedRateLimiter::refund`] accepts it with the key, too.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyReceipt {
    fingerprint: u64,
    tier: usize,
    receipt: Receipt,
}

impl From<KeyReceipt> for Receipt {
    fn from(charge: KeyReceipt) -> Self {
        charge.receipt
    }
}

impl KeyRequest {
    const fn charge(self, receipt: Receipt) -> KeyReceipt {
        KeyReceipt {
            fingerprint: self.fingerprint,
            tier: self.tier,
            receipt,
        }
    }
}

impl<A: Reclaim, C: Clock, K> Waitable for KeyedRateLimiter<A, C, K> {
    type Admitted = KeyReceipt;
    type Charge = KeyReceipt;
    type Actual<'a>
        = u64
    where
        Self: 'a;

    fn now(&self) -> Nanos {
        self.clock().now()
    }

    fn states_of(&self, charge: &KeyReceipt) -> Option<SmallVec<[u64; 4]>> {
        let of_key = !charge.receipt.is_of_catch_all();
        of_key.then(|| smallvec![charge.fingerprint])
    }

    fn refund(&self, charge: KeyReceipt) -> Settled {
        Waitable::settle(self, charge, 0)
    }

    fn settle(&self, charge: KeyReceipt, actual: u64) -> Settled {
        let decider = self.decider_in(charge.tier);
        decider.settle(charge.fingerprint, &charge.receipt, actual, || self.clock().now())
    }
}

impl<A: Reclaim, C: Clock, K> WaitRequest<KeyedRateLimiter<A, C, K>> for KeyRequest {
    fn needs(&self, _: &KeyedRateLimiter<A, C, K>) -> Needs {
        Need::of(self.fingerprint, self.permits)
    }

    fn check(&self, limiter: &KeyedRateLimiter<A, C, K>) -> Result<KeyReceipt, Option<Duration>> {
        let decider = limiter.decider_in(self.tier);
        match decider.decide(self.fingerprint, || limiter.clock().now(), self.permits) {
            Ok(admitted) => Ok(self.charge(admitted.into_receipt())),
            Err(denied) => Err(denied.retry_after()),
        }
    }

    fn try_acquire(&self, limiter: &KeyedRateLimiter<A, C, K>) -> Option<KeyReceipt> {
        self.check(limiter).ok()
    }

    fn ready_in(&self, limiter: &KeyedRateLimiter<A, C, K>, _: u64, permits: u64) -> Option<Duration> {
        let decider = limiter.decider_in(self.tier);
        decider
            .peek(self.fingerprint, limiter.clock().now())
            .retry_after(permits)
    }

    fn has_one_limit(&self, limiter: &KeyedRateLimiter<A, C, K>, _: u64) -> bool {
        !limiter.has_tiers()
    }

    fn earliest_in(
        &self,
        limiter: &KeyedRateLimiter<A, C, K>,
        _: u64,
        queued: u64,
        permits: u64,
    ) -> Option<Duration> {
        let decider = limiter.decider_in(self.tier);
        let peek = decider.peek(self.fingerprint, limiter.clock().now());
        peek.earliest_after(queued.saturating_add(permits))
    }
}

/// One permit of a key.
impl<Q: ?Sized, A: Reclaim, C: Clock, K: Keys<Q>> IntoRequest<KeyedRateLimiter<A, C, K>> for &Q {
    type Request = KeyRequest;

    fn into_request(self, limiter: &KeyedRateLimiter<A, C, K>) -> KeyRequest {
        (self, 1).into_request(limiter)
    }
}

/// Permits of a key.
impl<Q: ?Sized, A: Reclaim, C: Clock, K: Keys<Q>> IntoRequest<KeyedRateLimiter<A, C, K>> for (&Q, u64) {
    type Request = KeyRequest;

    fn into_request(self, limiter: &KeyedRateLimiter<A, C, K>) -> KeyRequest {
        let (key, permits) = self;
        KeyRequest {
            fingerprint: limiter.fingerprint(key),
            tier: limiter.tier(key),
            permits,
        }
    }
}
