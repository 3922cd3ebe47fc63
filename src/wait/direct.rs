use core::time::Duration;

use smallvec::{SmallVec, smallvec};

use super::fair::Fair;
use super::runtime::Runtime;
use super::waitable::{IntoRequest, Need, Needs, WaitRequest, Waitable};
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

/// The number of the limiter's state. There is only one.
const STATE: u64 = 0;

impl<A: Algorithm, C: Clock> Waitable for RateLimiter<A, C> {
    type Admitted = Receipt;
    type Charge = Receipt;
    type Actual<'a>
        = u64
    where
        Self: 'a;

    fn now(&self) -> Nanos {
        self.clock().now()
    }

    fn states_of(&self, _: &Receipt) -> Option<SmallVec<[u64; 4]>> {
        Some(smallvec![STATE])
    }

    fn refund(&self, charge: Receipt) -> Settled {
        self.refund(charge)
    }

    fn settle(&self, charge: Receipt, actual: u64) -> Settled {
        self.settle(charge, actual)
    }
}

/// Permits of a limiter.
impl<A: Algorithm, C: Clock> WaitRequest<RateLimiter<A, C>> for u64 {
    fn needs(&self, _: &RateLimiter<A, C>) -> Needs {
        Need::of(STATE, *self)
    }

    fn check(&self, limiter: &RateLimiter<A, C>) -> Result<Receipt, Option<Duration>> {
        match limiter.check_n(*self) {
            Ok(admitted) => Ok(admitted.into_receipt()),
            Err(denied) => Err(denied.retry_after()),
        }
    }

    fn try_acquire(&self, limiter: &RateLimiter<A, C>) -> Option<Receipt> {
        Some(limiter.check_n(*self).ok()?.into_receipt())
    }

    fn ready_in(&self, limiter: &RateLimiter<A, C>, _: u64, permits: u64) -> Option<Duration> {
        limiter.peek().retry_after(permits)
    }

    fn has_one_limit(&self, _: &RateLimiter<A, C>, _: u64) -> bool {
        true
    }

    fn earliest_in(
        &self,
        limiter: &RateLimiter<A, C>,
        _: u64,
        queued: u64,
        permits: u64,
    ) -> Option<Duration> {
        limiter.peek().earliest_after(queued.saturating_add(permits))
    }
}

impl<A: Algorithm, C: Clock> IntoRequest<RateLimiter<A, C>> for u64 {
    type Request = Self;

    fn into_request(self, _: &RateLimiter<A, C>) -> Self {
        self
    }
}

impl<A: Algorithm, C: Clock, T: Runtime> Fair<RateLimiter<A, C>, T> {
    /// Ends a pause by [`RateLimiter::resume`], and wakes the first waiter to check for capacity.
    pub fn resume(&self) {
        self.limiter.resume();
        self.recheck();
    }
}
