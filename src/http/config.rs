//! Configuration of a layer, and the decision that its services share.

mod skip;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use ::http::request::Parts;
use ::http::{Response, StatusCode, response};

pub(super) use self::skip::Skip;
use super::decision::Decision;
use super::headers::{HeaderValues, QuotaHeaders, add_retry_after};
use super::policy;
use super::rejection::{Rejection, RejectionResponse};
use crate::clock::Clock;
use crate::rules::{Admitted, Denied, KeyHashes, LiveRules, Reservation, RuleSet};
use crate::time::Nanos;
#[cfg(feature = "tokio")]
use crate::wait::Fair;

/// Rules and options of a layer. `R` makes the responses to rejected requests.
pub(super) struct Config<C, R> {
    pub(super) rules: Arc<LiveRules<Parts, C>>,
    pub(super) rejection_response: R,
    pub(super) status: StatusCode,
    pub(super) missing_key_status: StatusCode,
    pub(super) headers: QuotaHeaders,
    pub(super) decision_extension: bool,
    pub(super) skip: Skip,
    pub(super) charge_if: Option<Arc<ChargeIf>>,
    pub(super) on_rejected: Option<Arc<OnRejected>>,
}

pub(super) type ChargeIf = dyn Fn(&response::Parts) -> bool + Send + Sync;
type OnRejected = dyn Fn(&Denied<'_, Parts>) + Send + Sync;

/// Queue of the requests that wait for permits.
#[cfg(feature = "tokio")]
pub(super) type Queue<C> = Arc<Fair<Arc<LiveRules<Parts, C>>>>;

/// Quota headers for the response to an admitted request. The box keeps the futures of requests small.
pub(super) type AdmittedHeaders = Option<Box<HeaderValues>>;

/// Response to a rejected request. The box keeps the futures of admitted requests small.
pub(super) type RejectedResponse<B> = Box<Response<B>>;

/// Charge of an admitted request.
pub(super) trait Charge {
    fn at(&self) -> Nanos;
    fn is_limited(&self) -> bool;
}

impl Charge for Admitted {
    fn at(&self) -> Nanos {
        self.at()
    }

    fn is_limited(&self) -> bool {
        self.is_limited()
    }
}

impl Charge for Reservation<Parts> {
    fn at(&self) -> Nanos {
        self.at()
    }

    fn is_limited(&self) -> bool {
        self.is_limited()
    }
}

impl<C: Clock + Clone, R> Config<C, R> {
    /// Decides about a request by `decide`.
    ///
    /// # Errors
    ///
    /// Returns the response if the request is rejected.
    #[inline]
    pub(super) fn check<B, T: Charge>(
        &self,
        request: &mut Parts,
        decide: impl for<'a> FnOnce(
            &'a RuleSet<Parts, C>,
            &'a Parts,
            Option<&mut KeyHashes>,
        ) -> Result<T, Denied<'a, Parts>>,
    ) -> Result<(T, AdmittedHeaders), RejectedResponse<B>>
    where
        R: RejectionResponse<B>,
    {
        let rules = self.rules.load();
        let mut hashes = self.key_hashes();
        let charge = match decide(&rules, request, hashes.as_mut()) {
            Ok(charge) => charge,
            Err(denied) => return Err(self.reject_denied(&rules, &denied, request)),
        };
        let headers = self.admit(&rules, request, hashes.as_mut(), &charge);
        Ok((charge, headers))
    }

    /// Returns storage for the keys of a request, if the headers need them after the decision.
    #[inline]
    pub(super) fn key_hashes(&self) -> Option<KeyHashes> {
        match self.headers {
            QuotaHeaders::Off => None,
            QuotaHeaders::Standard | QuotaHeaders::Legacy | QuotaHeaders::Both => Some(KeyHashes::new()),
        }
    }

    /// Records the decision in an admitted request, and returns the headers of its response.
    #[inline]
    pub(super) fn admit(
        &self,
        rules: &RuleSet<Parts, C>,
        request: &mut Parts,
        hashes: Option<&mut KeyHashes>,
        charge: &impl Charge,
    ) -> AdmittedHeaders {
        let headers =
            hashes.map(|hashes| admitted_headers(self.headers, rules, request, charge.at(), hashes));
        if self.decision_extension {
            request.extensions.insert(Decision {
                at: charge.at(),
                admitted: true,
                limited: charge.is_limited(),
            });
        }
        headers
    }

    #[cold]
    #[inline(never)]
    fn reject_denied<'a, B>(
        &self,
        rules: &'a RuleSet<Parts, C>,
        denied: &Denied<'a, Parts>,
        request: &'a Parts,
    ) -> RejectedResponse<B>
    where
        R: RejectionResponse<B>,
    {
        if let Some(on_rejected) = &self.on_rejected {
            on_rejected(denied);
        }
        let rejection = Rejection {
            request,
            policies: policy::denied(rules, denied, request),
            retry_after: denied.retry_after(),
            status: self.status,
        };
        self.reject(rejection, denied.at())
    }

    /// Makes the response to a rejected request.
    pub(super) fn reject<B>(&self, mut rejection: Rejection<'_>, at: Nanos) -> RejectedResponse<B>
    where
        R: RejectionResponse<B>,
    {
        if rejection.lacks_key() {
            rejection.status = self.missing_key_status;
        }
        let mut response = self.rejection_response.response(&rejection);
        let headers = response.headers_mut();
        add_retry_after(rejection.retry_after, headers);
        self.headers.values(&rejection.policies).add_to(headers);
        response.extensions_mut().insert(Decision {
            at,
            admitted: false,
            limited: true,
        });
        Box::new(response)
    }
}

#[inline(never)]
fn admitted_headers<C: Clock>(
    headers: QuotaHeaders,
    rules: &RuleSet<Parts, C>,
    request: &Parts,
    at: Nanos,
    hashes: &mut KeyHashes,
) -> Box<HeaderValues> {
    Box::new(headers.values(&policy::policies(rules, request, at, hashes)))
}

impl<C, R: Clone> Clone for Config<C, R> {
    fn clone(&self) -> Self {
        Self {
            rules: Arc::clone(&self.rules),
            rejection_response: self.rejection_response.clone(),
            status: self.status,
            missing_key_status: self.missing_key_status,
            headers: self.headers,
            decision_extension: self.decision_extension,
            skip: self.skip.clone(),
            charge_if: self.charge_if.clone(),
            on_rejected: self.on_rejected.clone(),
        }
    }
}

impl<C, R: fmt::Debug> fmt::Debug for Config<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("rejection_response", &self.rejection_response)
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("skip", &self.skip)
            .finish_non_exhaustive()
    }
}
