use alloc::sync::Arc;
use core::convert::identity;
use core::marker::PhantomData;
use core::ops::Deref;
use core::time::Duration;

use super::ask::{Ask, Case, Claim, Claims};
use super::error::TurnError;
use super::fair::Fair;
use super::room::Room;
use super::runtime::Runtime;
use super::until::Until;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

impl<A: Algorithm, C: Clock, T: Runtime> Fair<RateLimiter<A, C>, T> {
    /// Takes one permit if there is room and nobody waits.
    ///
    /// # Errors
    ///
    /// When there is no room, or others wait. Nothing was taken.
    ///
    /// # Concurrency
    ///
    /// Whoever stood in line before this call goes before it. Who enters it at the same moment may come after.
    pub fn check(&self) -> Result<Receipt, TurnError> {
        self.check_n(1)
    }

    /// Takes `permits` permits if there is room for all of them and nobody waits.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn check_n(&self, permits: u64) -> Result<Receipt, TurnError> {
        if self.gives_way(&Direct::new(self, permits, drop)) {
            return Err(TurnError::Queued);
        }
        match self.limiter.check_n(permits) {
            Ok(admitted) => Ok(admitted.into_receipt()),
            Err(denied) => Err(TurnError::Denied(denied.retry_after())),
        }
    }

    /// Takes one permit, as soon as it is its turn and there is room.
    ///
    /// # Errors
    ///
    /// When it cannot wait, or waits no longer: [`WaitError`](super::WaitError) says why. Nothing was taken.
    pub fn until_ready(&self) -> Until<impl Ask<Taken = (), Runtime = T> + Unpin> {
        self.until_n_ready(1)
    }

    /// Takes `permits` permits at once, as soon as it is its turn and there is room for all of them.
    ///
    /// # Errors
    ///
    /// As [`until_ready`](Self::until_ready). More than the limit (for an even ring, than the largest share; for GCRA,
    /// than the burst) is refused at once.
    pub fn until_n_ready(&self, permits: u64) -> Until<impl Ask<Taken = (), Runtime = T> + Unpin> {
        Until::new(Direct::new(self, permits, drop))
    }

    /// As [`until_n_ready`](Self::until_n_ready), with what is needed to give the permits back or to settle them later.
    ///
    /// # Errors
    ///
    /// As [`until_n_ready`](Self::until_n_ready).
    pub fn acquire(&self, permits: u64) -> Until<impl Ask<Taken = Receipt, Runtime = T> + Unpin> {
        Until::new(Direct::new(self, permits, identity))
    }

    /// As [`acquire`](Self::acquire), with the limiter by its `Arc`: for a task that is spawned.
    ///
    /// # Errors
    ///
    /// As [`until_n_ready`](Self::until_n_ready).
    pub fn acquire_owned(
        self: Arc<Self>,
        permits: u64,
    ) -> Until<impl Ask<Taken = Receipt, Runtime = T> + Unpin + use<A, C, T>> {
        Until::new(Direct::new(self, permits, identity))
    }

    /// Gives back what was taken, as [`RateLimiter::refund`]; those who wait look again.
    pub fn refund(&self, taken: impl Into<Receipt>) -> Settled {
        self.settle(taken, 0)
    }

    /// Settles an estimate at its actual cost, as [`RateLimiter::settle`]; those who wait look again for what was given
    /// back.
    pub fn settle(&self, taken: impl Into<Receipt>, actual: u64) -> Settled {
        let taken = taken.into();
        let excess = taken.permits().saturating_sub(actual);
        let settled = self.limiter.settle(taken, actual);
        if excess > 0 && settled == Settled::Exact {
            self.room.given_back(&Direct::new(self, excess, drop));
        }
        settled
    }
}

/// A request to one limiter.
pub(super) struct Direct<H, L, O> {
    fair: H,
    permits: u64,
    /// What is made of the receipt.
    answer: fn(Receipt) -> O,
    limiter: PhantomData<fn(&L)>,
}

impl<H, L, O> Direct<H, L, O> {
    pub(super) const fn new(fair: H, permits: u64, answer: fn(Receipt) -> O) -> Self {
        Self {
            fair,
            permits,
            answer,
            limiter: PhantomData,
        }
    }
}

/// The one state that there is.
const STATE: u64 = 0;

impl<H, A, C, T, O> Case for Direct<H, RateLimiter<A, C>, O>
where
    H: Deref<Target = Fair<RateLimiter<A, C>, T>>,
    A: Algorithm,
    C: Clock,
    T: Runtime,
{
    type Taken = O;
    type Runtime = T;

    fn room(&self) -> &Room<T> {
        &self.fair.room
    }

    fn now(&self) -> Nanos {
        self.fair.limiter.clock().now()
    }

    fn claims(&self) -> Claims {
        let permits = self.permits;
        let needed = (permits > 0).then_some(Claim {
            state: STATE,
            permits,
        });
        needed.into_iter().collect()
    }

    fn take(&self) -> Option<O> {
        let answer = self.fair.limiter.check_n(self.permits);
        Some((self.answer)(answer.ok()?.into_receipt()))
    }

    fn ready_in(&self, _: u64, permits: u64) -> Option<Duration> {
        self.fair.limiter.peek().retry_after(permits)
    }

    fn earliest_in(&self, _: u64, before: u64, permits: u64) -> Option<Duration> {
        let all = before.saturating_add(permits);
        self.fair.limiter.peek().earliest_after(all)
    }
}
