//! Configuration of a layer.

mod skip;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
#[cfg(feature = "observe")]
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use ::http::request::Parts;
use ::http::{Response, response};

pub(super) use self::skip::Skip;
use super::answer::{Rejection, RejectionReason, RejectionResponse, Statuses, respond};
use super::rules::{HttpRules, Settings};
use crate::rules::Cost;
use crate::time::jitter;

/// Rules and options of a layer. `R` makes the responses to rejected requests.
pub(super) struct Config<S: HttpRules, R> {
    pub(super) rules: Arc<S>,
    pub(super) settings: Settings<S>,
    pub(super) rejection_response: R,
    pub(super) statuses: Statuses,
    /// The time after which a request that needs a slot is told to retry.
    pub(super) slot_retry_after: Option<Duration>,
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

/// The function that decides by the response whether a request is charged.
pub(super) type ChargeIf = dyn Fn(&response::Parts) -> bool + Send + Sync;
/// The response to a rejected request. The box keeps the futures of admitted requests small.
pub(super) type RejectedResponse<B> = Box<Response<B>>;

/// A function that is called with each rejection.
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
        rejection.slot_retry_after = self.slot_retry_after;
        rejection.status = self.statuses.of(reason);
        if matches!(reason, RejectionReason::NoKeyFromServer | RejectionReason::NoKey) {
            rejection.cause = self.rules.missing_cause(rejection.request());
        }
        #[cfg(feature = "observe")]
        self.report(&rejection, reason);
        if let Some(on_rejected) = &self.on_rejected {
            on_rejected(&rejection);
        }
        Box::new(respond(
            &rejection,
            self.settings.headers,
            &self.rejection_response,
        ))
    }

    /// Logs the first rejection of each kind that the operator has to know of.
    #[cfg(feature = "observe")]
    fn report(&self, rejection: &Rejection<'_>, reason: RejectionReason) {
        let Some(detail) = rejection.detail() else { return };
        let [server, request] = &*self.reported;
        let reported = match reason {
            RejectionReason::NoKeyFromServer => server,
            RejectionReason::NoKey => request,
            // The client is told, and the operator need not know.
            RejectionReason::StoreUnavailable | RejectionReason::QuotaExceeded | RejectionReason::NoSlot => {
                return;
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
            settings: self.settings.clone(),
            rejection_response: self.rejection_response.clone(),
            statuses: self.statuses,
            slot_retry_after: self.slot_retry_after,
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
            .field("slot_retry_after", &self.slot_retry_after)
            .field("max_jitter", &self.max_jitter)
            .field("headers", &self.settings.headers)
            .field("skip", &self.skip)
            .field("body_cost", &self.body_cost)
            .finish_non_exhaustive()
    }
}
