//! The decisions about a request.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::pin::Pin;
use core::time::Duration;

use ::http::request::Parts;

use crate::http::admission::{Charge, ChargeIf, OnResponse};
use crate::http::answer::{Decision, QuotaHeaders, QuotaPolicy};
use crate::rules::Cost;

/// The options of a layer that its decisions need.
#[derive(Clone)]
pub(in crate::http) struct Options {
    pub(in crate::http) headers: QuotaHeaders,
    /// The longest wait of a request that has no capacity. `None`: it is rejected.
    pub(in crate::http) max_wait: Option<Duration>,
    /// Whether admitted requests get the decision in their extensions.
    pub(in crate::http) decision_extension: bool,
    pub(in crate::http) charge_if: Option<Arc<ChargeIf>>,
    /// The cost that is settled by the bytes of the body.
    pub(in crate::http) body_cost: Option<Cost<Parts>>,
}

impl Options {
    /// Whether the charge of an admitted request may be refunded or settled.
    #[inline(always)]
    pub(super) const fn reserves(&self) -> bool {
        self.charge_if.is_some() || self.body_cost.is_some()
    }

    /// Whether a request is admitted or rejected at once, and an admission is final.
    #[inline(always)]
    pub(super) const fn decides_at_once(&self) -> bool {
        !self.reserves() && self.max_wait.is_none()
    }

    /// Records a decision in an admitted request.
    #[inline(always)]
    pub(super) fn record(&self, decision: Decision, head: &mut Parts) {
        if self.decision_extension {
            head.extensions.insert(decision);
        }
    }
}

/// The decision about a request, if there is one. `T` is the response to a rejected request. `U` says how an undecided request is
/// decided. With a `T` of one word and an empty `U`, as for local rules, it is returned in registers.
pub(in crate::http) enum Outcome<T, U> {
    /// The request is admitted, or skipped. This work is left for its response.
    Admitted(Option<Box<OnResponse>>),
    Rejected(T),
    Undecided(U),
}

/// The decision that a request is admitted.
pub(super) struct Admission {
    limited: bool,
    /// Present if the response gets headers, if the charge is [reserved](Options::reserves), or if a rule limits requests in flight. The
    /// box keeps the futures of requests small.
    on_response: Option<Box<OnResponse>>,
}

impl Admission {
    #[inline(always)]
    pub(super) const fn new(limited: bool) -> Self {
        Self {
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

    /// Records the decision in the request, and returns the work that is left for its response.
    pub(super) fn record(self, options: &Options, head: &mut Parts) -> Option<Box<OnResponse>> {
        options.record(Decision::admission(self.limited), head);
        let mut on_response = self.on_response;
        if let Some(on_response) = &mut on_response {
            let (charge_if, cost) = (options.charge_if.as_ref(), options.body_cost.as_ref());
            on_response.reserve(charge_if, cost, head);
        }
        on_response
    }
}

/// A decision that a wait or a store delays.
pub(in crate::http) type DecisionFuture<R> = Pin<Box<dyn Future<Output = Delayed<R>> + Send>>;

/// The head of a request whose decision was delayed, and the work that is left for its response, or the reason of its rejection.
pub(super) type Delayed<R> = (Parts, Result<Option<Box<OnResponse>>, R>);
