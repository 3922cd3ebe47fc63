//! Configuration of a layer.

mod skip;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
#[cfg(feature = "observe")]
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use ::http::request::Parts;
use ::http::{Response, StatusCode, response};

pub(super) use self::skip::Skip;
use super::answer::{Decision, Rejection, RejectionReason, RejectionResponse, add_retry_after};
use super::rules::{HttpRules, Terms};
use crate::rules::Cost;
use crate::time::jitter;

/// Rules and options of a layer. `R` makes the responses to rejected requests.
pub(super) struct Config<S: HttpRules, R> {
    pub(super) rules: Arc<S>,
    pub(super) terms: Terms<S>,
    pub(super) rejection_response: R,
    pub(super) statuses: Statuses,
    /// The longest time that is added to `Retry-After`.
    pub(super) max_jitter: Duration,
    pub(super) decision_extension: bool,
    pub(super) skip: Skip,
    pub(super) charge_if: Option<Arc<ChargeIf>>,
    /// The cost that is settled by the bytes of the body.
    pub(super) body_cost: Option<Cost<Parts>>,
    pub(super) on_rejected: Option<Arc<OnRejected>>,
    /// Whether it was logged that the server does not provide a key, and that a request states a key that cannot be read.
    #[cfg(feature = "observe")]
    pub(super) reported: Arc<[AtomicBool; 2]>,
}

/// The statuses of rejections, by their reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statuses {
    pub(super) denied: StatusCode,
    pub(super) missing_key: StatusCode,
    pub(super) unavailable: StatusCode,
}

pub(super) type ChargeIf = dyn Fn(&response::Parts) -> bool + Send + Sync;
/// The response to a rejected request. The box keeps the futures of admitted requests small.
pub(super) type RejectedResponse<B> = Box<Response<B>>;

type OnRejected = dyn Fn(&Rejection<'_>) + Send + Sync;

impl<S: HttpRules, R> Config<S, R> {
    /// Makes the response to a rejected request.
    #[cold]
    #[inline(never)]
    pub(super) fn reject<B>(&self, mut rejection: Rejection<'_>) -> RejectedResponse<B>
    where
        R: RejectionResponse<B>,
    {
        let reason = rejection.reason();
        rejection.jitter = jitter(self.max_jitter);
        rejection.status = match reason {
            RejectionReason::NoKeyFromServer => StatusCode::INTERNAL_SERVER_ERROR,
            RejectionReason::NoKey => self.statuses.missing_key,
            RejectionReason::StoreUnavailable => self.statuses.unavailable,
            RejectionReason::QuotaExceeded => self.statuses.denied,
        };
        if matches!(reason, RejectionReason::NoKeyFromServer | RejectionReason::NoKey) {
            rejection.cause = self.rules.missing_cause(rejection.request());
        }
        #[cfg(feature = "observe")]
        self.report(&rejection, reason);
        if let Some(on_rejected) = &self.on_rejected {
            on_rejected(&rejection);
        }
        let mut response: Response<B> = self.rejection_response.response(&rejection);
        let headers = response.headers_mut();
        add_retry_after(rejection.retry_after_seconds(), headers);
        self.terms.headers.values(&rejection.policies).add_to(headers);
        response.extensions_mut().insert(Decision {
            at: rejection.at,
            admitted: false,
            limited: true,
        });
        Box::new(response)
    }

    /// Logs the first rejection of each kind that the operator has to know of.
    #[cfg(feature = "observe")]
    fn report(&self, rejection: &Rejection<'_>, reason: RejectionReason) {
        let Some(detail) = rejection.detail() else { return };
        let [server, request] = &*self.reported;
        let reported = match reason {
            RejectionReason::NoKeyFromServer => server,
            RejectionReason::NoKey | RejectionReason::StoreUnavailable | RejectionReason::QuotaExceeded => {
                request
            }
        };
        // Relaxed: the flag publishes no other memory.
        if reported.swap(true, Ordering::Relaxed) {
            return;
        }
        match rejection.cause.as_ref().and_then(|cause| cause.given.as_deref()) {
            Some(given) => {
                tracing::error!(target: "ringgate", "{}: {detail}; given: {given:?}", reason.text())
            }
            None => tracing::error!(target: "ringgate", "{}: {detail}", reason.text()),
        }
    }
}

impl<S: HttpRules, R: Clone> Clone for Config<S, R> {
    fn clone(&self) -> Self {
        Self {
            rules: Arc::clone(&self.rules),
            terms: self.terms.clone(),
            rejection_response: self.rejection_response.clone(),
            statuses: self.statuses,
            max_jitter: self.max_jitter,
            decision_extension: self.decision_extension,
            skip: self.skip.clone(),
            charge_if: self.charge_if.clone(),
            body_cost: self.body_cost.clone(),
            on_rejected: self.on_rejected.clone(),
            #[cfg(feature = "observe")]
            reported: Arc::clone(&self.reported),
        }
    }
}

impl<S: HttpRules, R: fmt::Debug> fmt::Debug for Config<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("rejection_response", &self.rejection_response)
            .field("statuses", &self.statuses)
            .field("max_jitter", &self.max_jitter)
            .field("headers", &self.terms.headers)
            .field("skip", &self.skip)
            .field("body_cost", &self.body_cost)
            .finish_non_exhaustive()
    }
}
