//! The rules that a layer decides by: in this process, or shared by many machines.

mod decision;
mod local;
#[cfg(feature = "shared")]
mod shared;

use alloc::sync::Arc;

use ::http::request::Parts;

pub(super) use self::decision::{DecisionFuture, Options, Outcome};
use super::answer::Rejection;
use crate::rules::MissingCause;

/// Rules that a [`RateLimitLayer`](super::RateLimitLayer) decides by: [`LiveRules`](crate::LiveRules), or `SharedRules` and
/// `LiveSharedRules` (feature `shared`). This trait is sealed.
#[expect(private_bounds, reason = "sealed: only this crate implements it")]
pub trait HttpRules: Queueable {}

impl<S: Queueable> HttpRules for S {}

/// Rules for which requests can wait.
pub(in crate::http) trait Queueable: Sized + Send + Sync + 'static {
    type Queue: RuleQueue;

    /// Adds a queue for at most this many requests.
    fn with_queue(self: Arc<Self>, max_waiting: usize) -> Self::Queue;
}

/// The rules of a layer, with the queue of the requests that wait.
pub(in crate::http) trait RuleQueue: Clone + Send + Sync + 'static {
    /// How a request that could not be decided at once is decided.
    type Undecided;
    /// The reason for which a request is rejected after a wait or a call of a store.
    type Refusal: Send;

    /// Decides a request, unless this needs a wait or a call of a store.
    fn decide<T>(
        &self,
        options: &Options,
        head: &mut Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<T, Self::Undecided>;

    /// Decides a request by a wait or a call of a store.
    fn delay(
        &self,
        undecided: Self::Undecided,
        options: Options,
        head: Parts,
    ) -> DecisionFuture<Self::Refusal>;

    /// Passes the rejection of a request that was delayed to `reject`.
    fn reject<T>(&self, refusal: Self::Refusal, head: &Parts, reject: impl FnOnce(Rejection<'_>) -> T) -> T;

    /// The number of requests that wait.
    fn waiting(&self) -> usize;

    /// Lets the first waiting request of each queue check for capacity again.
    fn recheck(&self);

    /// Returns why a request lacks a key of a rule that rejects it, if the key knows it.
    fn missing_cause(&self, head: &Parts) -> Option<MissingCause>;
}
