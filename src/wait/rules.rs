use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::time::Duration;

use super::acquire::{Acquire, Enqueue};
use super::error::CheckError;
use super::fair::Fair;
use super::queue::{Need, Needs, QueuedRequest, WaitQueues};
use super::runtime::Runtime;
use crate::clock::Clock;
use crate::receipt::Settled;
use crate::rules::{Admitted, Cost, LiveRules, NeededState, Reservation, RuleSet};
use crate::time::Nanos;

/// Rules that a [`Fair`] can wrap: a [`RuleSet`], [`LiveRules`], or one of them in an `Arc`. This trait is sealed.
pub trait RuleSource: RulesInForce {}

impl<S: RulesInForce> RuleSource for S {}

#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait RulesInForce {
    type Request: ?Sized;
    type Clock: Clock;

    /// Calls `work` with the rules that are in force now.
    fn with<O>(&self, work: impl FnOnce(&RuleSet<Self::Request, Self::Clock>) -> O) -> O;
}

impl<R: ?Sized, C: Clock> RulesInForce for RuleSet<R, C> {
    type Request = R;
    type Clock = C;

    fn with<O>(&self, work: impl FnOnce(&Self) -> O) -> O {
        work(self)
    }
}

impl<R: ?Sized, C: Clock + Clone> RulesInForce for LiveRules<R, C> {
    type Request = R;
    type Clock = C;

    fn with<O>(&self, work: impl FnOnce(&RuleSet<R, C>) -> O) -> O {
        work(&self.load())
    }
}

impl<S: RulesInForce> RulesInForce for Arc<S> {
    type Request = S::Request;
    type Clock = S::Clock;

    fn with<O>(&self, work: impl FnOnce(&RuleSet<S::Request, S::Clock>) -> O) -> O {
        (**self).with(work)
    }
}

impl<S: RuleSource, T: Runtime> Fair<S, T> {
    /// Charges the cost of the request if every rule has capacity and no request is waiting for one of its states.
    ///
    /// # Errors
    ///
    /// A rule has no capacity, or other requests are waiting for it. Nothing was charged.
    ///
    /// # Concurrency
    ///
    /// Does not overtake a request that was waiting before this call. A request that begins to wait concurrently may
    /// be served later.
    pub fn check(&self, request: &S::Request) -> Result<Admitted, CheckError> {
        if self.must_queue(&RulesRequest::<_, _, Admitted>::new(self, request)) {
            return Err(CheckError::Queued);
        }
        self.limiter.with(|rules| match rules.check(request) {
            Ok(admitted) => Ok(admitted),
            Err(denied) => Err(CheckError::Denied(denied.retry_after())),
        })
    }

    /// Charges a request that waits otherwise, unless other requests are waiting for one of its states.
    #[cfg(feature = "tower")]
    pub(crate) fn grant<G: RulesGranted<S::Request>>(&self, request: &S::Request) -> Option<G> {
        if self.must_queue(&RulesRequest::<_, _, G>::new(self, request)) {
            return None;
        }
        self.limiter.with(|rules| G::charge(rules, request))
    }

    /// Waits until every rule has capacity for the request.
    ///
    /// # Errors
    ///
    /// The request cannot wait, or its deadline has passed: see [`WaitError`](super::WaitError). Nothing was charged.
    pub fn until_ready<'a>(&'a self, request: &'a S::Request) -> Acquire<Borrowed<'a, S, T, Admitted>> {
        Acquire::new(RulesRequest::new(self, request))
    }

    /// Waits until every rule has capacity for the request, and returns a reservation to [`refund`](Self::refund) or
    /// [`settle`](Self::settle) later.
    ///
    /// # Errors
    ///
    /// The errors of [`until_ready`](Self::until_ready).
    pub fn acquire<'a>(
        &'a self,
        request: &'a S::Request,
    ) -> Acquire<Borrowed<'a, S, T, Reservation<S::Request>>> {
        Acquire::new(RulesRequest::new(self, request))
    }

    /// Waits as [`until_ready`](Self::until_ready) does. The future holds the limiter by its `Arc`, so that a task can be
    /// spawned with it.
    ///
    /// # Errors
    ///
    /// The errors of [`until_ready`](Self::until_ready).
    pub fn until_ready_owned<B: Borrow<S::Request> + Unpin>(
        self: Arc<Self>,
        request: B,
    ) -> Acquire<RulesRequest<Arc<Self>, B, Admitted>> {
        Acquire::new(RulesRequest::new(self, request))
    }

    /// Waits for a grant. The future holds the limiter by its `Arc`.
    #[cfg(feature = "tower")]
    pub(crate) fn grant_owned<B: Borrow<S::Request> + Unpin, G: RulesGranted<S::Request>>(
        self: Arc<Self>,
        request: B,
    ) -> Acquire<RulesRequest<Arc<Self>, B, G>> {
        Acquire::new(RulesRequest::new(self, request))
    }

    /// Waits as [`acquire`](Self::acquire) does. The future holds the limiter by its `Arc`, so that a task can be spawned with
    /// it.
    ///
    /// # Errors
    ///
    /// The errors of [`until_ready`](Self::until_ready).
    pub fn acquire_owned<B: Borrow<S::Request> + Unpin>(
        self: Arc<Self>,
        request: B,
    ) -> Acquire<RulesRequest<Arc<Self>, B, Reservation<S::Request>>> {
        Acquire::new(RulesRequest::new(self, request))
    }

    /// Wakes the first waiter of every state, so that it checks for capacity again.
    ///
    /// Call it after the rules were replaced, or after permits were refunded directly to the wrapped rules. Otherwise
    /// waiters are woken by timers that were set for the old rules.
    pub fn recheck(&self) {
        self.queues
            .wake_all_leaders(|| self.limiter.with(|rules| rules.clock().now()));
    }

    /// Refunds the charge of `request`, by [`RuleSet::refund`] of the rules in force. The first waiters of its states are woken
    /// to check for capacity.
    pub fn refund(&self, reservation: Reservation<S::Request>, request: &S::Request) -> Settled {
        let settled = self.limiter.with(|rules| rules.refund(reservation));
        self.wake_leaders_of(request);
        settled
    }

    /// Replaces the charge of the rules with this cost by the `actual` cost, by [`RuleSet::settle`] of the rules in force. The
    /// first waiters of the states of `request` are woken to check for capacity.
    pub fn settle(
        &self,
        reservation: Reservation<S::Request>,
        request: &S::Request,
        cost: &Cost<S::Request>,
        actual: u64,
    ) -> Settled {
        let settled = self.limiter.with(|rules| rules.settle(reservation, cost, actual));
        self.wake_leaders_of(request);
        settled
    }

    /// Wakes the first waiters of these states, after permits or slots of them were freed.
    #[cfg(feature = "tower")]
    pub(crate) fn recheck_states(&self, states: &[u64]) {
        let now = || self.limiter.with(|rules| rules.clock().now());
        self.queues.wake_leaders_in(states, now);
    }

    fn wake_leaders_of(&self, request: &S::Request) {
        self.queues
            .wake_leaders_of(&RulesRequest::<_, _, Admitted>::new(self, request));
    }
}

/// The result of a wait for rules: the admission, or a reservation.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait RulesGranted<R: ?Sized>: Sized {
    fn charge<C: Clock>(rules: &RuleSet<R, C>, request: &R) -> Option<Self>;
}

impl<R: ?Sized> RulesGranted<R> for Admitted {
    fn charge<C: Clock>(rules: &RuleSet<R, C>, request: &R) -> Option<Self> {
        rules.check_waiting(request)
    }
}

impl<R: ?Sized> RulesGranted<R> for Reservation<R> {
    fn charge<C: Clock>(rules: &RuleSet<R, C>, request: &R) -> Option<Self> {
        rules.reserve_waiting(request)
    }
}

/// A request to rules, as part of the type of an [`Acquire`].
///
/// `F` is a reference or an `Arc` to the [`Fair`]. `B` is the request or a reference to it. `G` is the result: the admission,
/// or a [`Reservation`].
pub struct RulesRequest<F, B, G> {
    fair: F,
    request: B,
    granted: PhantomData<fn() -> G>,
}

/// A request that borrows the [`Fair`] and the value that is checked.
type Borrowed<'a, S, T, G> = RulesRequest<&'a Fair<S, T>, &'a <S as RulesInForce>::Request, G>;

impl<F, B, G> RulesRequest<F, B, G> {
    const fn new(fair: F, request: B) -> Self {
        Self {
            fair,
            request,
            granted: PhantomData,
        }
    }
}

impl<F, B, G, S, T> QueuedRequest for RulesRequest<F, B, G>
where
    F: Deref<Target = Fair<S, T>>,
    B: Borrow<S::Request>,
    G: RulesGranted<S::Request>,
    S: RuleSource,
    T: Runtime,
{
    type Acquired = G;

    fn now(&self) -> Nanos {
        self.fair.limiter.with(|rules| rules.clock().now())
    }

    fn needs(&self) -> Needs {
        let need = |needed: NeededState| Need {
            state: needed.state,
            permits: needed.permits,
        };
        self.fair
            .limiter
            .with(|rules| rules.needed_states(self.request.borrow()).map(need).collect())
    }

    fn try_acquire(&self) -> Option<G> {
        self.fair
            .limiter
            .with(|rules| G::charge(rules, self.request.borrow()))
    }

    fn ready_in(&self, state: u64, permits: u64) -> Option<Duration> {
        self.fair
            .limiter
            .with(|rules| rules.ready_in(self.request.borrow(), state, permits))
    }

    fn earliest_in(&self, state: u64, queued: u64, permits: u64) -> Option<Duration> {
        self.fair
            .limiter
            .with(|rules| rules.earliest_in(self.request.borrow(), state, queued, permits))
    }
}

impl<F, B, G, S, T> Enqueue for RulesRequest<F, B, G>
where
    F: Deref<Target = Fair<S, T>>,
    B: Borrow<S::Request>,
    G: RulesGranted<S::Request>,
    S: RuleSource,
    T: Runtime,
{
    type Runtime = T;

    fn with_queues<O>(&self, work: impl FnOnce(&WaitQueues<T>) -> O) -> O {
        work(&self.fair.queues)
    }
}

impl<F, B: fmt::Debug, G> fmt::Debug for RulesRequest<F, B, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulesRequest")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
