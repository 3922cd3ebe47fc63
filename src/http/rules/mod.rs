//! The rules that a layer decides by: in this process, or shared by many machines.

pub(super) mod local;
#[cfg(feature = "shared")]
pub(super) mod shared;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::pin::Pin;
use core::time::Duration;

use ::http::request::Parts;

use self::local::LocalQueue;
#[cfg(feature = "shared")]
use self::shared::SharedQueue;
use super::answer::{QuotaHeaders, QuotaPolicy, Rejection};
use super::service::OnResponse;
use crate::clock::Clock;
use crate::rules::{Cost, MissingCause};
#[cfg(feature = "shared")]
use crate::shared::{CheckPlan, Denied, SharedRules};
use crate::time::Nanos;
use crate::wait::WaitError;

/// Rules that a [`RateLimitLayer`](super::RateLimitLayer) decides by: [`LiveRules`](crate::LiveRules), or `SharedRules` and
/// `LiveSharedRules` (feature `shared`). This trait is sealed.
#[expect(private_bounds, reason = "sealed: only this crate implements it")]
pub trait HttpRules: Queueable {}

impl<S: Queueable> HttpRules for S {}

/// Rules for which requests can wait.
pub(super) trait Queueable: Sized + Send + Sync + 'static {
    type Clock: Clock + Clone + Send + Sync + 'static;

    /// Adds a queue for at most this many requests.
    fn with_queue(self: Arc<Self>, max_waiting: usize) -> RuleQueue<Self::Clock>;
}

/// The rules of a layer, with the queue of the requests that wait.
#[derive(Clone)]
pub(super) enum RuleQueue<C> {
    Local(LocalQueue<C>),
    #[cfg(feature = "shared")]
    Shared(SharedQueue),
}

/// The options of a layer that its decisions need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) headers: QuotaHeaders,
    /// Whether the charge of an admitted request may be refunded or settled.
    pub(super) reserves: bool,
    /// The longest wait of a request that has no capacity. `None`: it is rejected.
    pub(super) max_wait: Option<Duration>,
}

/// The decision about a request, if there is one. `T` is the response to a rejected request.
pub(super) enum Outcome<C, T> {
    Admitted(Admission),
    Rejected(T),
    Undecided(Undecided<C>),
}

/// The decision that a request is admitted.
pub(super) struct Admission {
    pub(super) at: Nanos,
    pub(super) limited: bool,
    /// Present if the response gets headers, if the options say that the charge is [reserved](Options::reserves), or if a rule limits
    /// requests in flight. The box keeps the futures of requests small.
    pub(super) on_response: Option<Box<OnResponse>>,
}

impl Admission {
    #[inline(always)]
    const fn new(at: Nanos, limited: bool) -> Self {
        Self {
            at,
            limited,
            on_response: None,
        }
    }

    fn reserve(&mut self, charge: impl Charge + 'static) {
        self.on_response.get_or_insert_default().charge = Some(Box::new(charge));
    }

    /// Adds the quota headers. They are written in place, because they are too large to move.
    fn add_headers(&mut self, headers: QuotaHeaders, policies: &[QuotaPolicy<'_>]) {
        let on_response = self.on_response.get_or_insert_default();
        headers.write_admission(policies, &mut on_response.headers);
    }
}

/// A request that could not be decided at once.
pub(super) enum Undecided<C> {
    /// It joins the queue of local rules.
    Local(LocalQueue<C>),
    /// The rules that it was planned by, and the denial of this node, after which it waits, or the plan that the store decides by.
    #[cfg(feature = "shared")]
    Shared(
        SharedQueue,
        Arc<SharedRules<Parts>>,
        Result<Box<Denied>, Box<CheckPlan>>,
    ),
}

/// The reason for which a request is rejected after a wait or a call of a store.
pub(super) enum Refusal<C> {
    Local(LocalQueue<C>, WaitError),
    /// The denial, and the rules that have denied the request.
    #[cfg(feature = "shared")]
    Shared(Arc<SharedRules<Parts>>, Denied),
}

/// A decision that a wait or a store delays. It returns the head of the request.
pub(super) type DecisionFuture<C> =
    Pin<Box<dyn Future<Output = (Parts, Result<Admission, Refusal<C>>)> + Send>>;

/// The charge of an admitted request, with the rules that it belongs to.
pub(super) trait Charge: Send + Sync {
    /// Takes the slots in flight. `None` if it holds none.
    fn take_slots(&mut self) -> Option<Slots>;

    /// Refunds a charge that holds no slots.
    fn refund(self: Box<Self>);

    /// Settles the rules that have this cost: replaces their charge by the actual amount.
    fn settle(self: Box<Self>, cost: &Cost<Parts>, actual: u64);
}

/// The slots in flight of a request. Dropping the last reference releases them, and wakes the requests that wait for them.
pub(super) type Slots = Arc<dyn Any + Send + Sync>;

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

    /// Returns why a request lacks a key of a rule that rejects it, if the key knows it.
    pub(super) fn missing_cause(&self, head: &Parts) -> Option<MissingCause> {
        match self {
            Self::Local(queue) => queue.limiter().load().missing_cause(head),
            #[cfg(feature = "shared")]
            Self::Shared(queue) => queue.with_rules(|rules| rules.missing_cause(head)),
        }
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> Undecided<C> {
    /// Decides a request by a wait or a call of a store.
    pub(super) fn decide(self, options: Options, head: Parts) -> DecisionFuture<C> {
        match self {
            Self::Local(queue) => Box::pin(local::wait(queue, options, head)),
            #[cfg(feature = "shared")]
            Self::Shared(queue, rules, denied) => Box::pin(shared::wait(queue, rules, denied, options, head)),
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
