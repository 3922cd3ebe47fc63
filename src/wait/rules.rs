use alloc::sync::Arc;
use core::borrow::Borrow;
use core::time::Duration;

use smallvec::SmallVec;

use super::waitable::{IntoRequest, Need, Needs, WaitRequest, Waitable};
use crate::clock::Clock;
use crate::receipt::Settled;
use crate::rules::{Admitted, Cost, LiveRules, Reservation, RuleSet};
use crate::time::Nanos;

/// Rules that a [`Fair`](super::Fair) can wrap: a [`RuleSet`], [`LiveRules`], one of them in an `Arc`, or another holder of a
/// [`RuleSet`].
pub trait RuleSource {
    /// The value that the rules check.
    type Request: ?Sized;
    /// The clock of the rules.
    type Clock: Clock;

    /// Calls `work` with the rules that are in force now.
    fn with_rules<O>(&self, work: impl FnOnce(&RuleSet<Self::Request, Self::Clock>) -> O) -> O;
}

impl<R: ?Sized, C: Clock> RuleSource for RuleSet<R, C> {
    type Request = R;
    type Clock = C;

    fn with_rules<O>(&self, work: impl FnOnce(&Self) -> O) -> O {
        work(self)
    }
}

impl<R: ?Sized, C: Clock + Clone> RuleSource for LiveRules<R, C> {
    type Request = R;
    type Clock = C;

    fn with_rules<O>(&self, work: impl FnOnce(&RuleSet<R, C>) -> O) -> O {
        work(&self.load())
    }
}

impl<S: RuleSource> RuleSource for Arc<S> {
    type Request = S::Request;
    type Clock = S::Clock;

    fn with_rules<O>(&self, work: impl FnOnce(&RuleSet<S::Request, S::Clock>) -> O) -> O {
        (**self).with_rules(work)
    }
}

impl<S: RuleSource> Waitable for S {
    type Admitted = Admitted;
    type Charge = Reservation<S::Request>;
    type Actual<'a>
        = (&'a Cost<S::Request>, u64)
    where
        Self: 'a;

    fn now(&self) -> Nanos {
        self.with_rules(|rules| rules.clock().now())
    }

    fn states_of(&self, charge: &Reservation<S::Request>) -> Option<SmallVec<[u64; 4]>> {
        self.with_rules(|rules| rules.state_ids(charge))
    }

    fn refund(&self, charge: Reservation<S::Request>) -> Settled {
        self.with_rules(|rules| rules.refund(charge))
    }

    fn settle(&self, charge: Reservation<S::Request>, (cost, actual): (&Cost<S::Request>, u64)) -> Settled {
        self.with_rules(|rules| rules.settle(charge, cost, actual))
    }
}

/// The value that rules check.
impl<S: RuleSource, B: Borrow<S::Request>> WaitRequest<S> for B {
    fn needs(&self, limiter: &S) -> Needs {
        limiter.with_rules(|rules| {
            let needed = rules.needed_states(self.borrow());
            needed
                .map(|needed| Need {
                    state: needed.state,
                    permits: needed.permits,
                })
                .collect()
        })
    }

    fn check(&self, limiter: &S) -> Result<Admitted, Option<Duration>> {
        limiter.with_rules(|rules| rules.check(self.borrow()).map_err(|denied| denied.retry_after()))
    }

    fn try_acquire(&self, limiter: &S) -> Option<Reservation<S::Request>> {
        limiter.with_rules(|rules| rules.reserve_waiting(self.borrow()))
    }

    fn ready_in(&self, limiter: &S, state: u64, permits: u64) -> Option<Duration> {
        limiter.with_rules(|rules| rules.ready_in(self.borrow(), state, permits))
    }

    fn has_one_limit(&self, limiter: &S, state: u64) -> bool {
        limiter.with_rules(|rules| rules.has_one_limit(self.borrow(), state))
    }

    fn may_be_admitted(&self, limiter: &S) -> bool {
        let request = self.borrow();
        limiter.with_rules(|rules| {
            let mut needed = rules.needed_states(request);
            needed.all(|needed| rules.ready_in(request, needed.state, needed.permits).is_some())
        })
    }

    fn earliest_in(&self, limiter: &S, state: u64, queued: u64, permits: u64) -> Option<Duration> {
        limiter.with_rules(|rules| rules.earliest_in(self.borrow(), state, queued, permits))
    }
}

impl<S: RuleSource, B: Borrow<S::Request>> IntoRequest<S> for B {
    type Request = B;

    fn into_request(self, _: &S) -> B {
        self
    }
}
