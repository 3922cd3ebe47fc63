use alloc::sync::Arc;
use core::borrow::Borrow;
use core::marker::PhantomData;
use core::ops::Deref;
use core::time::Duration;

use super::ask::{Ask, Case, Claim, Claims};
use super::error::TurnError;
use super::fair::Fair;
use super::room::Room;
use super::runtime::Runtime;
use super::until::Until;
use crate::clock::Clock;
use crate::receipt::Settled;
use crate::rules::{Cost, LiveRules, Passed, Reservation, RuleSet, Waited};
use crate::time::Nanos;

/// A [`RuleSet`], [`LiveRules`], or one of them in an `Arc`: what a line can be put before that judges requests.
/// Sealed.
pub trait Judge: Sealed {}

impl<J: Sealed> Judge for J {}

#[expect(unnameable_types, reason = "sealed: nobody else is to have one")]
pub trait Sealed {
    type Request: ?Sized;
    type Clock: Clock;

    /// Does something with the rules in force.
    fn with<O>(&self, work: impl FnOnce(&RuleSet<Self::Request, Self::Clock>) -> O) -> O;
}

impl<R: ?Sized, C: Clock> Sealed for RuleSet<R, C> {
    type Request = R;
    type Clock = C;

    fn with<O>(&self, work: impl FnOnce(&Self) -> O) -> O {
        work(self)
    }
}

impl<R: ?Sized, C: Clock + Clone> Sealed for LiveRules<R, C> {
    type Request = R;
    type Clock = C;

    fn with<O>(&self, work: impl FnOnce(&RuleSet<R, C>) -> O) -> O {
        work(&self.load())
    }
}

impl<J: Sealed> Sealed for Arc<J> {
    type Request = J::Request;
    type Clock = J::Clock;

    fn with<O>(&self, work: impl FnOnce(&RuleSet<J::Request, J::Clock>) -> O) -> O {
        (**self).with(work)
    }
}

impl<J: Judge, T: Runtime> Fair<J, T> {
    /// Takes what the request costs, if all rules have room and nobody waits for one of their states.
    ///
    /// # Errors
    ///
    /// When one has not, or others wait for it. Nothing was taken.
    ///
    /// # Concurrency
    ///
    /// Whoever stood in line before this call goes before it. Who enters it at the same moment may come after.
    pub fn check(&self, request: &J::Request) -> Result<Passed, TurnError> {
        if self.gives_way(&Request::new(self, request, pass::<J>)) {
            return Err(TurnError::Queued);
        }
        self.limiter.with(|rules| {
            let refused = match rules.check(request) {
                Ok(passed) => return Ok(passed),
                Err(refused) => refused,
            };
            Err(TurnError::Denied(refused.retry_after()))
        })
    }

    /// Takes what the request costs, as soon as it is its turn and all rules have room.
    ///
    /// # Errors
    ///
    /// When it cannot wait, or waits no longer: [`WaitError`](super::WaitError) says why. Nothing was taken.
    pub fn until_ready<'a>(
        &'a self,
        request: &'a J::Request,
    ) -> Until<impl Ask<Taken = Passed, Runtime = T> + Unpin + use<'a, J, T>> {
        Until::new(Request::new(self, request, pass::<J>))
    }

    /// As [`until_ready`](Self::until_ready), with what is needed to give the charge back or to settle it later:
    /// [`refund`](Self::refund), [`settle`](Self::settle).
    ///
    /// # Errors
    ///
    /// As [`until_ready`](Self::until_ready).
    pub fn acquire<'a>(
        &'a self,
        request: &'a J::Request,
    ) -> Until<impl Ask<Taken = Reservation<J::Request>, Runtime = T> + Unpin + use<'a, J, T>> {
        Until::new(Request::new(self, request, reserve::<J>))
    }

    /// As [`until_ready`](Self::until_ready), with the limiter by its `Arc`: for a task that is spawned.
    ///
    /// # Errors
    ///
    /// As [`until_ready`](Self::until_ready).
    pub fn until_ready_owned<B: Borrow<J::Request> + Unpin>(
        self: Arc<Self>,
        request: B,
    ) -> Until<impl Ask<Taken = Passed, Runtime = T> + Unpin + use<J, T, B>> {
        Until::new(Request::new(self, request, pass::<J>))
    }

    /// As [`acquire`](Self::acquire), with the limiter by its `Arc`: for a task that is spawned.
    ///
    /// # Errors
    ///
    /// As [`until_ready`](Self::until_ready).
    pub fn acquire_owned<B: Borrow<J::Request> + Unpin>(
        self: Arc<Self>,
        request: B,
    ) -> Until<impl Ask<Taken = Reservation<J::Request>, Runtime = T> + Unpin + use<J, T, B>> {
        Until::new(Request::new(self, request, reserve::<J>))
    }

    /// Has those look again who are first in their lines: for whoever has just replaced the rules, or given back what
    /// it took past the lines. Otherwise they look when their alarms ring, which were set for when the old rules had
    /// room.
    pub fn look_again(&self) {
        self.room
            .look_again(|| self.limiter.with(|rules| rules.clock().now()));
    }

    /// Gives back what the `request` was charged, as [`RuleSet::refund`], by the rules in force; those who wait for one
    /// of its states look again.
    pub fn refund(&self, taken: Reservation<J::Request>, request: &J::Request) -> Settled {
        let settled = self.limiter.with(|rules| rules.refund(taken));
        self.room.given_back(&Request::new(self, request, pass::<J>));
        settled
    }

    /// Settles the rules with this cost at the `actual` one, as [`RuleSet::settle`], by the rules in force; those who
    /// wait for one of the states of the `request` look again.
    pub fn settle(
        &self,
        taken: Reservation<J::Request>,
        request: &J::Request,
        cost: &Cost<J::Request>,
        actual: u64,
    ) -> Settled {
        let settled = self.limiter.with(|rules| rules.settle(taken, cost, actual));
        self.room.given_back(&Request::new(self, request, pass::<J>));
        settled
    }
}

fn pass<J: Judge>(rules: &RuleSet<J::Request, J::Clock>, request: &J::Request) -> Option<Passed> {
    rules.check(request).ok()
}

fn reserve<J: Judge>(
    rules: &RuleSet<J::Request, J::Clock>,
    request: &J::Request,
) -> Option<Reservation<J::Request>> {
    rules.reserve(request).ok()
}

/// A request to some rules.
struct Request<J: Judge, H, B, O> {
    fair: H,
    request: B,
    take: Take<J, O>,
    judge: PhantomData<fn(&J)>,
}

/// How a request is charged.
type Take<J, O> =
    fn(&RuleSet<<J as Sealed>::Request, <J as Sealed>::Clock>, &<J as Sealed>::Request) -> Option<O>;

impl<J: Judge, H, B, O> Request<J, H, B, O> {
    fn new(fair: H, request: B, take: Take<J, O>) -> Self {
        Self {
            fair,
            request,
            take,
            judge: PhantomData,
        }
    }
}

impl<J, T, H, B, O> Case for Request<J, H, B, O>
where
    J: Judge,
    T: Runtime,
    H: Deref<Target = Fair<J, T>>,
    B: Borrow<J::Request>,
{
    type Taken = O;
    type Runtime = T;

    fn room(&self) -> &Room<T> {
        &self.fair.room
    }

    fn now(&self) -> Nanos {
        self.fair.limiter.with(|rules| rules.clock().now())
    }

    fn claims(&self) -> Claims {
        let claim = |waited: Waited| Claim {
            state: waited.state,
            permits: waited.permits,
        };
        self.fair
            .limiter
            .with(|rules| rules.waited(self.request.borrow()).map(claim).collect())
    }

    fn take(&self) -> Option<O> {
        self.fair
            .limiter
            .with(|rules| (self.take)(rules, self.request.borrow()))
    }

    fn ready_in(&self, state: u64, permits: u64) -> Option<Duration> {
        self.fair
            .limiter
            .with(|rules| rules.ready_in(self.request.borrow(), state, permits))
    }

    fn earliest_in(&self, state: u64, before: u64, permits: u64) -> Option<Duration> {
        self.fair
            .limiter
            .with(|rules| rules.earliest_in(self.request.borrow(), state, before, permits))
    }
}
