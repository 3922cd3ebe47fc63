use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use ::http::request::Parts;
use ::http::{Response, StatusCode};

use super::policy::{QuotaPolicy, whole_seconds};
use crate::rules::{Denial, MissingCause, QuotaStatus};
use crate::time::Nanos;

/// A rejected request, from which a [`RejectionResponse`] makes the response.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rejection<'a> {
    pub(super) request: &'a Parts,
    pub(in crate::http) policies: Vec<QuotaPolicy<'a>>,
    pub(in crate::http) retry_after: Option<Duration>,
    /// The time after which a request that needs a slot is told to retry, as the layer has it.
    pub(in crate::http) slot_retry_after: Option<Duration>,
    /// The time that is added to `retry_after` in the response.
    pub(in crate::http) jitter: Duration,
    pub(in crate::http) status: StatusCode,
    pub(in crate::http) at: Nanos,
    /// Whether the store of shared rules does not answer.
    pub(in crate::http) unavailable: bool,
    /// Why the request lacks a key, if the key knows it.
    pub(in crate::http) cause: Option<MissingCause>,
}

/// The reason of a rejection. Of several reasons, the first one in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectionReason {
    /// The request lacks a key that the server should have provided
    /// ([`OnMissingKey::Fail`](crate::rules::OnMissingKey::Fail)), such as the address of the client. The default status is 500.
    NoKeyFromServer,
    /// The request lacks a key that a rule requires ([`OnMissingKey::Deny`](crate::rules::OnMissingKey::Deny)), or a header states no
    /// [client address](crate::http::ClientIp#requests-without-a-client). The default status is 400.
    NoKey,
    /// The store of shared rules does not answer, and a rule has [`OnError::Deny`](crate::rules::OnError::Deny). The default status is
    /// 503.
    StoreUnavailable,
    /// A quota is exceeded, or a list denies the key. The default status is 429.
    QuotaExceeded,
    /// No quota is exceeded, but the request needs a slot [in flight](crate::Rule::in_flight). The default status is 429.
    NoSlot,
}

impl RejectionReason {
    pub(super) const fn default_status(self) -> StatusCode {
        match self {
            Self::NoKeyFromServer => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoKey => StatusCode::BAD_REQUEST,
            Self::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::QuotaExceeded | Self::NoSlot => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// The reason in a few words.
    pub(in crate::http) const fn text(self) -> &'static str {
        match self {
            Self::NoKeyFromServer => "server gives requests no key for a rate limit",
            Self::NoKey => "request lacks the key of a rate limit",
            Self::StoreUnavailable => "rate limit cannot be decided",
            Self::QuotaExceeded => "rate limit exceeded",
            Self::NoSlot => "too many requests in flight",
        }
    }

    /// The explanation of the reason: the advice to the operator, or to a client that is told no time.
    const fn detail(self) -> Option<&'static str> {
        match self {
            Self::NoKeyFromServer => Some(HELP),
            Self::NoSlot => Some("try again when one of the requests in flight has ended"),
            Self::NoKey | Self::StoreUnavailable | Self::QuotaExceeded => None,
        }
    }
}

impl<'a> Rejection<'a> {
    pub(in crate::http) const fn new(
        request: &'a Parts,
        policies: Vec<QuotaPolicy<'a>>,
        retry_after: Option<Duration>,
        at: Nanos,
    ) -> Self {
        Self {
            request,
            policies,
            retry_after,
            slot_retry_after: None,
            jitter: Duration::ZERO,
            status: StatusCode::TOO_MANY_REQUESTS,
            at,
            unavailable: false,
            cause: None,
        }
    }

    /// Returns the head of the request.
    #[must_use]
    pub const fn request(&self) -> &'a Parts {
        self.request
    }

    /// Iterates over the policies that rejected the request.
    pub fn violated(&self) -> impl Iterator<Item = &QuotaPolicy<'a>> {
        self.policies.iter().filter(|policy| policy.is_violated())
    }

    /// Returns the time until the request would be admitted if no further request were charged. A rejection by the wait queue
    /// includes the requests that are queued.
    ///
    /// Returns `None` if the request is never admitted, or if it needs a slot [in flight](crate::Rule::in_flight), which no time
    /// frees.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the value of `Retry-After`: [`retry_after`](Self::retry_after) and the layer's
    /// [jitter](crate::http::RateLimitLayer::jitter) in seconds, rounded up, at least 1.
    ///
    /// If the request needs a slot in flight, it is the time of
    /// [`slot_retry_after`](crate::http::RateLimitLayer::slot_retry_after), but not less than the time for which the violated
    /// quotas reject it. `None` if there is neither. `None` also if the request is never admitted.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.jittered_retry_after().map(whole_seconds)
    }

    /// The time after which the client is told to retry.
    pub(super) fn jittered_retry_after(&self) -> Option<Duration> {
        let after = self.retry_after.or_else(|| self.retry_for_slot())?;
        Some(after.saturating_add(self.jitter))
    }

    /// Whether the request needs a slot in flight, perhaps beside permits.
    pub(in crate::http) fn awaits_slot(&self) -> bool {
        self.violated().any(QuotaPolicy::awaits_slot)
    }

    /// The time after which a request that needs a slot is told to retry. Before it, the other violated quotas would reject it.
    fn retry_for_slot(&self) -> Option<Duration> {
        if !self.awaits_slot() {
            return None;
        }
        let mut after = self.slot_retry_after;
        for policy in self.violated().filter(|policy| !policy.awaits_slot()) {
            // A quota that always rejects has no time.
            after = after.max(Some(policy.retry_after()?));
        }
        after
    }

    /// Returns an explanation beside the reason. If the request lacks a key and the cause is known, it says what the request lacks and
    /// what is accepted: the server provides no address, or a header states no address. If the request only needs a slot in
    /// flight, it says when to try again.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match &self.cause {
            Some(cause) => Some(&cause.text),
            None => self.reason().detail(),
        }
    }

    /// Returns the reason of the rejection.
    #[must_use]
    pub fn reason(&self) -> RejectionReason {
        if self.violated().any(QuotaPolicy::lacks_required_key) {
            RejectionReason::NoKeyFromServer
        } else if self.violated().any(QuotaPolicy::lacks_key) {
            RejectionReason::NoKey
        } else if self.unavailable {
            RejectionReason::StoreUnavailable
        } else if self.violated().next().is_some() && self.violated().all(QuotaPolicy::awaits_slot) {
            RejectionReason::NoSlot
        } else {
            RejectionReason::QuotaExceeded
        }
    }

    /// Returns the status of the response, which the layer has for the reason.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }
}

/// The advice to the operator if requests lack a key that the server has to provide.
const HELP: &str = "requests lack a key that the server has to provide. If it is the address of the client: start axum with `into_make_service_with_connect_info::<SocketAddr>` \
    (feature `axum` of ringgate), serve tonic over TCP (feature `tonic`), or insert the extension `ringgate::http::PeerAddress`";

impl Denial for Rejection<'_> {
    fn denied_at(&self) -> Nanos {
        self.at
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    fn violated_quotas(&self) -> Vec<QuotaStatus> {
        self.violated().map(QuotaPolicy::status).collect()
    }

    fn is_unavailable(&self) -> bool {
        self.unavailable
    }
}

impl fmt::Display for Rejection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason().text())?;
        for (index, policy) in self.violated().enumerate() {
            f.write_str(if index == 0 { ": " } else { ", " })?;
            let (remaining, limit, per_window) = (policy.remaining(), policy.limit(), policy.per_window());
            write!(f, "{} ({remaining} of {limit} {per_window} left)", policy.rule())?;
        }
        match self.retry_after {
            Some(after) => write!(f, "; try again in {after:?}"),
            None if self.reason() == RejectionReason::NoSlot => {
                f.write_str("; try again when a request has ended")
            }
            None => Ok(()),
        }
    }
}

/// Makes the response to a rejected request.
///
/// [`Problem`](super::Problem), [`Grpc`](super::Grpc) and functions of a [`Rejection`] implement it. The layer adds
/// `Retry-After`, unless the response has one, and the [quota headers](super::QuotaHeaders).
///
/// # Examples
///
/// ```
/// use http::Response;
/// use ringgate::http::{RateLimitLayer, Rejection, RejectionResponse};
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// /// Names the violated rules in plain text.
/// #[derive(Clone)]
/// struct Plain;
///
/// impl RejectionResponse<String> for Plain {
///     fn response(&self, rejection: &Rejection<'_>) -> Response<String> {
///         let rules: Vec<_> = rejection.violated().map(|policy| policy.rule()).collect();
///         let mut response = Response::new(format!("too many requests: {}", rules.join(", ")));
///         *response.status_mut() = rejection.status();
///         response
///     }
/// }
///
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("total", "2/s".parse()?))
///     .build_with(ManualClock::new(), [1; 4])?;
/// let layer = RateLimitLayer::from(rules).rejection_response(Plain);
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
pub trait RejectionResponse<B> {
    /// Makes the response.
    fn response(&self, rejection: &Rejection<'_>) -> Response<B>;
}

impl<B, F: Fn(&Rejection<'_>) -> Response<B>> RejectionResponse<B> for F {
    fn response(&self, rejection: &Rejection<'_>) -> Response<B> {
        self(rejection)
    }
}
