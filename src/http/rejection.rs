use alloc::vec::Vec;
use core::time::Duration;

use ::http::request::Parts;
use ::http::{Response, StatusCode};

use super::policy::{QuotaPolicy, whole_seconds};

/// Rejected request, from which a [`RejectionResponse`] makes the response.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rejection<'a> {
    pub(super) request: &'a Parts,
    pub(super) policies: Vec<QuotaPolicy<'a>>,
    pub(super) retry_after: Option<Duration>,
    pub(super) status: StatusCode,
}

impl<'a> Rejection<'a> {
    /// Returns the head of the request.
    #[must_use]
    pub const fn request(&self) -> &'a Parts {
        self.request
    }

    /// Returns all enforced policies that apply to the request.
    #[must_use]
    pub fn policies(&self) -> &[QuotaPolicy<'a>] {
        &self.policies
    }

    /// Iterates over the policies that rejected the request.
    pub fn violated(&self) -> impl Iterator<Item = &QuotaPolicy<'a>> {
        self.policies.iter().filter(|policy| policy.is_violated())
    }

    /// Returns the time until the request would be admitted if no other request were charged.
    ///
    /// Returns `None` if the request is never admitted.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the value of `Retry-After`: [`retry_after`](Self::retry_after) in seconds, rounded up, at least 1.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(whole_seconds)
    }

    /// Returns whether the request was rejected because it has no key for a rule that requires one.
    #[must_use]
    pub fn lacks_key(&self) -> bool {
        self.violated().any(QuotaPolicy::lacks_key)
    }

    /// Returns the status that the layer is configured to reject with.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
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
