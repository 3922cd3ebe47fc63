//! The rules that a layer decides by: in this process, or shared by many machines.

mod decision;
mod local;
mod queue;
#[cfg(feature = "shared")]
mod shared;
#[cfg(feature = "shared")]
mod shared_queue;

use alloc::boxed::Box;

use ::http::request::Parts;

pub(super) use self::decision::{Admission, DecisionFuture, Options, Outcome, Refusal, Undecided};
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
    #[inline]
    pub(super) fn decide<T>(
        &self,
        options: Options,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<C, T> {
        match self {
            Self::Local(queue) => local::decide(queue, options, head, reject),
            #[cfg(feature = "shared")]
            Self::Shared(queue) => shared::decide(queue, options, head, reject),
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
            Self::Local(queue) => queue.limiter().load().missing_cause(head),
            #[cfg(feature = "shared")]
            Self::Shared(queue) => queue.rules().with_rules(|rules| rules.missing_cause(head)),
        }
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> Undecided<C> {
    /// Decides a request by a wait or a call of a store.
    pub(super) fn decide(self, options: Options, head: Parts) -> DecisionFuture<C> {
        match self {
            Self::Local(queue) => Box::pin(local::wait(queue, options, head)),
            #[cfg(feature = "shared")]
            Self::Shared(queue) => Box::pin(shared::wait(queue, options, head)),
            #[cfg(feature = "shared")]
            Self::Planned(queue, rules, plan) => Box::pin(shared::ask(queue, rules, plan, options, head)),
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
