//! The rules that a layer decides by: in this process, or shared by many machines.

#[cfg(feature = "shared")]
mod live_shared;
pub(super) mod local;
#[cfg(feature = "shared")]
mod shared;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::pin::Pin;
use core::time::Duration;

use ::http::request::Parts;

use super::answer::{AdmittedHeaders, QuotaHeaders, Rejection};
use crate::rules::{Cost, MissingCause};
use crate::time::Nanos;

/// Rules that a [`RateLimitLayer`](super::RateLimitLayer) decides by: [`LiveRules`](crate::LiveRules), or `SharedRules` and
/// `LiveSharedRules` (feature `shared`). This trait is sealed.
#[expect(private_bounds, reason = "sealed: only this crate implements it")]
pub trait HttpRules: Decide {}

impl<S: Decide> HttpRules for S {}

/// The decision about a request, in the steps of the layer.
///
/// The layer calls [`decide`](Self::decide). If that does not decide, it calls [`resume`](Self::resume), and then
/// [`finish`](Self::finish) with the result. After the response it may call [`refund`](Self::refund) or
/// [`settle`](Self::settle).
pub(super) trait Decide: Sized + Send + Sync + 'static {
    /// The charge of an admitted request, to refund or settle.
    type Charge: Send + Sync;
    /// A request that could not be decided at once.
    type Undecided;
    /// The result of [`resume`](Self::resume).
    type Decided;
    /// The queue of the requests that wait.
    type Queue: Clone + Send + Sync;

    /// Decides a request, unless this needs a wait or a call of a store.
    fn decide<T>(
        self: &Arc<Self>,
        settings: &Settings<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<Self, T>;

    /// Decides a request by a wait or a call of a store.
    fn resume(
        self: &Arc<Self>,
        undecided: Self::Undecided,
        settings: &Settings<Self>,
        head: Arc<Parts>,
    ) -> DecisionFuture<Self>;

    /// Converts the result of [`resume`](Self::resume) to a grant or a rejection.
    fn finish<T>(
        self: &Arc<Self>,
        decided: Self::Decided,
        settings: &Settings<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Result<Grant<Self>, T>;

    /// Takes the slots in flight of a charge, which are released when they are dropped. `None` if it holds none.
    fn take_slots(charge: &mut Self::Charge) -> Option<Self::Charge>;

    /// Returns why a request lacks a key of a rule that rejects it, if the key knows it.
    fn missing_cause(&self, head: &Parts) -> Option<MissingCause>;

    /// Refunds a charge that holds no slots.
    fn refund(self: &Arc<Self>, queue: &Self::Queue, charge: Self::Charge);

    /// Settles the rules that have this cost: replaces their charge by the actual amount.
    fn settle(self: &Arc<Self>, queue: &Self::Queue, charge: Self::Charge, cost: &Cost<Parts>, actual: u64);

    /// Releases the slots that [`take_slots`](Self::take_slots) returned.
    fn release(queue: &Self::Queue, slots: Self::Charge);

    /// Creates a queue for at most this many requests, or for the default number.
    fn queue(self: &Arc<Self>, max_waiting: Option<usize>) -> Self::Queue;
}

/// The settings of a layer that its decisions need.
pub(super) struct Settings<S: Decide> {
    pub(super) headers: QuotaHeaders,
    /// Whether the charge of an admitted request may be refunded or settled.
    pub(super) reserves: bool,
    /// The longest wait of a request that has no capacity. `None`: it is rejected.
    pub(super) max_wait: Option<Duration>,
    pub(super) queue: S::Queue,
}

/// The decision about a request, if there is one. `T` is the response to a rejected request.
pub(super) enum Outcome<S: Decide, T> {
    Admitted(Grant<S>),
    Rejected(T),
    Undecided(S::Undecided),
}

/// An admission.
pub(super) struct Grant<S: Decide> {
    /// Present if the settings say that it is [reserved](Settings::reserves), or if a rule limits requests in flight.
    pub(super) charge: Option<S::Charge>,
    pub(super) at: Nanos,
    pub(super) limited: bool,
    pub(super) headers: AdmittedHeaders,
}

/// The future of a decision that a wait or a store delays.
pub(super) type DecisionFuture<S> = Pin<Box<dyn Future<Output = <S as Decide>::Decided> + Send>>;

impl<S: Decide> Settings<S> {
    /// Copies the settings, for other rules with the same queue.
    #[cfg(feature = "shared")]
    fn of<T: Decide<Queue = S::Queue>>(&self) -> Settings<T> {
        Settings {
            headers: self.headers,
            reserves: self.reserves,
            max_wait: self.max_wait,
            queue: self.queue.clone(),
        }
    }
}

impl<S: Decide> Clone for Settings<S> {
    fn clone(&self) -> Self {
        Self {
            headers: self.headers,
            reserves: self.reserves,
            max_wait: self.max_wait,
            queue: self.queue.clone(),
        }
    }
}
