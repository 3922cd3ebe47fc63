//! The decisions about a request.

use alloc::boxed::Box;
#[cfg(feature = "shared")]
use alloc::sync::Arc;
use core::pin::Pin;
use core::time::Duration;

use ::http::request::Parts;

use super::queue::LocalQueue;
#[cfg(feature = "shared")]
use super::shared_queue::SharedQueue;
use crate::http::admission::{Charge, OnResponse};
use crate::http::answer::{QuotaHeaders, QuotaPolicy};
#[cfg(feature = "shared")]
use crate::shared::{CheckPlan, Denied, SharedRules};
use crate::time::Nanos;
use crate::wait::WaitError;

/// The options of a layer that its decisions need.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) struct Options {
    pub(in crate::http) headers: QuotaHeaders,
    /// Whether the charge of an admitted request may be refunded or settled.
    pub(in crate::http) reserves: bool,
    /// The longest wait of a request that has no capacity. `None`: it is rejected.
    pub(in crate::http) max_wait: Option<Duration>,
}

/// The decision about a request, if there is one. `T` is the response to a rejected request.
pub(in crate::http) enum Outcome<C, T> {
    Admitted(Admission),
    Rejected(T),
    Undecided(Undecided<C>),
}

/// The decision that a request is admitted.
pub(in crate::http) struct Admission {
    pub(in crate::http) at: Nanos,
    pub(in crate::http) limited: bool,
    /// Present if the response gets headers, if the options say that the charge is [reserved](Options::reserves), or if a rule limits
    /// requests in flight. The box keeps the futures of requests small.
    pub(in crate::http) on_response: Option<Box<OnResponse>>,
}

impl Admission {
    #[inline(always)]
    pub(super) const fn new(at: Nanos, limited: bool) -> Self {
        Self {
            at,
            limited,
            on_response: None,
        }
    }

    pub(super) fn reserve(&mut self, charge: impl Charge + 'static) {
        self.on_response.get_or_insert_default().charge = Some(Box::new(charge));
    }

    /// Adds the quota headers. They are written in place, because they are too large to move.
    pub(super) fn add_headers(&mut self, headers: QuotaHeaders, policies: &[QuotaPolicy<'_>]) {
        let on_response = self.on_response.get_or_insert_default();
        headers.write_admission(policies, &mut on_response.headers);
    }
}

/// A request that could not be decided at once.
pub(in crate::http) enum Undecided<C> {
    /// It joins the queue of local rules.
    Local(LocalQueue<C>),
    /// It waits for shared rules.
    #[cfg(feature = "shared")]
    Shared(SharedQueue),
    /// The rules that it was planned by, and the plan that the store decides by. It does not wait.
    #[cfg(feature = "shared")]
    Planned(SharedQueue, Arc<SharedRules<Parts>>, Box<CheckPlan>),
}

/// The reason for which a request is rejected after a wait or a call of a store.
pub(in crate::http) enum Refusal<C> {
    Local(LocalQueue<C>, WaitError),
    /// The denial, and the rules that have denied the request.
    #[cfg(feature = "shared")]
    Shared(Arc<SharedRules<Parts>>, Denied<'static>),
}

/// A decision that a wait or a store delays. It returns the head of the request.
pub(in crate::http) type DecisionFuture<C> =
    Pin<Box<dyn Future<Output = (Parts, Result<Admission, Refusal<C>>)> + Send>>;
