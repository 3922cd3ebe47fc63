//! Configuration of a layer.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
#[cfg(feature = "observe")]
use alloc::{format, string::String};
use core::fmt;
use core::marker::PhantomData;
#[cfg(feature = "observe")]
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use ::http::Response;
use ::http::request::Parts;

use super::answer::{Rejection, RejectionReason, RejectionResponse, Statuses, respond};
use super::rules::{Options, RuleQueue};
use crate::time::jitter;

/// The rules and settings of a layer. `K` is the queue of the rules, `R` makes the responses to rejected requests, and `M` is the type
/// of response bodies.
pub(super) struct Config<K, R, M> {
    pub(super) settings: Settings<K>,
    pub(super) rejection_response: R,
    pub(super) metering: PhantomData<fn() -> M>,
}

// Not derived, because `M` need not be `Clone`.
impl<K: Clone, R: Clone, M> Clone for Config<K, R, M> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            rejection_response: self.rejection_response.clone(),
            metering: PhantomData,
        }
    }
}

/// The settings of a layer that do not depend on its responses.
#[derive(Clone)]
pub(super) struct Settings<K> {
    pub(super) rules: K,
    pub(super) options: Options,
    pub(super) statuses: Statuses,
    /// The time after which a request that needs a slot is told to retry.
    pub(super) slot_retry_after: Option<Duration>,
    /// The longest time that is added to `Retry-After`.
    pub(super) max_jitter: Duration,
    /// Select the requests that pass to the inner service without a decision.
    pub(super) skip: Vec<Arc<Skips>>,
    pub(super) on_rejected: Option<Arc<OnRejected>>,
    /// Whether it was logged that the server does not provide a key, and that a request states a key that cannot be read.
    #[cfg(feature = "observe")]
    pub(super) reported: Arc<[AtomicBool; 2]>,
}

/// A function that selects requests that are not limited.
pub(super) type Skips = dyn Fn(&Parts) -> bool + Send + Sync;
/// The response to a rejected request. The box keeps the futures of admitted requests small.
pub(super) type RejectedResponse<B> = Box<Response<B>>;

/// A function that is called with each rejection.
type OnRejected = dyn Fn(&Rejection<'_>) + Send + Sync;

impl<K: RuleQueue, R, M> Config<K, R, M> {
    /// Makes the response to a rejected request.
    #[cold]
    #[inline(never)]
    pub(super) fn reject<B>(&self, mut rejection: Rejection<'_>) -> RejectedResponse<B>
    where
        R: RejectionResponse<B>,
    {
        let settings = &self.settings;
        let reason = rejection.reason();
        rejection.jitter = jitter(settings.max_jitter);
        rejection.slot_retry_after = settings.slot_retry_after;
        rejection.status = settings.statuses.of(reason);
        if matches!(reason, RejectionReason::NoKeyFromServer | RejectionReason::NoKey) {
            rejection.cause = settings.rules.missing_cause(rejection.request());
        }
        #[cfg(feature = "observe")]
        settings.report(&rejection, reason);
        if let Some(on_rejected) = &settings.on_rejected {
            on_rejected(&rejection);
        }
        Box::new(respond(
            &rejection,
            settings.options.headers,
            &self.rejection_response,
        ))
    }
}

impl<K> Settings<K> {
    /// Whether a request passes to the inner service without a decision.
    #[inline(always)]
    pub(super) fn skips(&self, head: &Parts) -> bool {
        !self.skip.is_empty() && self.is_skipped(head)
    }

    #[inline(never)]
    fn is_skipped(&self, head: &Parts) -> bool {
        self.skip.iter().any(|skips| skips(head))
    }
}

#[cfg(feature = "observe")]
impl<K> Settings<K> {
    /// Logs the first rejection of each kind that the operator has to know of.
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
        let given = rejection.cause.as_ref().and_then(|cause| cause.given.as_deref());
        let given = given.map_or_else(String::new, |given| format!("; given: {given:?}"));
        tracing::error!(target: "ringgate", "{}: {detail}{given}", reason.text());
    }
}

impl<K, R: fmt::Debug, M> fmt::Debug for Config<K, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        f.debug_struct("Config")
            .field("rejection_response", &self.rejection_response)
            .field("headers", &settings.options.headers)
            .field("max_wait", &settings.options.max_wait)
            .field("statuses", &settings.statuses)
            .field("slot_retry_after", &settings.slot_retry_after)
            .field("max_jitter", &settings.max_jitter)
            .field("body_cost", &settings.options.body_cost)
            .finish_non_exhaustive()
    }
}
