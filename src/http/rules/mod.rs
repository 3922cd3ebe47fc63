//! The rules that a layer decides by: in this process, or shared by many machines.

mod decision;
mod local;
mod queue;
#[cfg(feature = "shared")]
mod shared;
#[cfg(feature = "shared")]
mod shared_queue;

use alloc::boxed::Box;
use alloc::sync::Arc;

use ::http::request::Parts;

use self::decision::Undecided;
pub(super) use self::decision::{DecisionFuture, Options, Outcome, Refusal};
pub(super) use self::queue::{LocalQueue, Queueable, RuleQueue};
use super::answer::Rejection;
use crate::clock::Clock;
use crate::rules::MissingCause;

/// Rules that a [`RateLimitLayer`](super::RateLimitLayer) decides by: [`LiveRules`](crate::LiveRules), or `SharedRules` and
/// `LiveSharedRules` (feature `shared`). This trait is sealed.
#[expect(private_bounds, reason = "sealed: only this crate implements it")]
pub trait HttpRules: Queueable {}

impl<S: Queueable> HttpRules for S {}

impl<C: Clock + Clone + Send + Sync + 'static> RuleQueue<C> {
    /// Decides a request, unless this needs a wait or a call of a store.
    #[inline(always)]
    pub(super) fn decide<T>(
        &self,
        options: &Options,
        head: &mut Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<T> {
        match self {
            Self::Local(queue) => local::decide(queue, options, head, reject),
            #[cfg(feature = "shared")]
            Self::Shared(queue) => shared::decide(queue, options, head, reject),
        }
    }

    /// Decides a request by a wait or a call of a store.
    pub(super) fn delay(&self, undecided: Undecided, options: Options, head: Parts) -> DecisionFuture<C> {
        match undecided {
            Undecided::Waits => match self {
                Self::Local(queue) => Box::pin(local::wait(Arc::clone(queue), options, head)),
                #[cfg(feature = "shared")]
                Self::Shared(queue) => Box::pin(shared::wait(Arc::clone(queue), options, head)),
            },
            #[cfg(feature = "shared")]
            Undecided::Asks(ask) => Box::pin(shared::ask(ask, options, head)),
        }
    }

    /// Lets the first request of each queue check for capacity again, after the rules were replaced.
    pub(super) fn recheck(&self) {
        match self {
            Self::Local(queue) => queue.recheck(),
            #[cfg(feature = "shared")]
            Self::Shared(queue) => queue.recheck(),
        }
    }

    /// Returns why a request lacks a key of a rule that rejects it, if the key knows it.
    pub(super) fn missing_cause(&self, head: &Parts) -> Option<MissingCause> {
        match self {
            Self::Local(queue) => queue.limiter().load().states.missing_cause(head),
            #[cfg(feature = "shared")]
            Self::Shared(queue) => queue.rules().with_rules(|rules| rules.missing_cause(head)),
        }
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> Refusal<C> {
    /// Passes the rejection to `reject`.
    pub(super) fn reject<T>(self, head: &Parts, reject: impl FnOnce(Rejection<'_>) -> T) -> T {
        match self {
            Self::Local(queue, error) => local::reject(&queue, error, head, reject),
            #[cfg(feature = "shared")]
            Self::Shared(rules, denied) => shared::reject(&rules, &denied, head, reject),
        }
    }
}
