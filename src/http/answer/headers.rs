//! Quota headers of responses.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ::http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

use super::policy::{QuotaPolicy, whole_seconds};
use super::texts::PolicyTexts;
use crate::rules::KeyHashes;

/// The headers that tell a client its quotas, in responses to admitted and rejected requests.
///
/// `Retry-After` is independent of this choice: each rejection has it, unless the request is never admitted.
///
/// # Examples
///
/// ```
/// use ringgate::http::{QuotaHeaders, RateLimitLayer};
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("total", "2/s".parse()?))
///     .build_with(ManualClock::new(), [1; 4])?;
/// // The headers cost more than the decision.
/// let layer = RateLimitLayer::from(rules).headers(QuotaHeaders::Off).decision_extension(false);
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaHeaders {
    /// No quota headers.
    Off,
    /// `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers. The default.
    ///
    /// Both are lists with one item for each enforced quota that applies to the request, such as `"burst";q=100;w=60` and
    /// `"burst";r=50;t=30`. An item has the name of the [policy](QuotaPolicy::name). In it, `%` and bytes that are not
    /// printable ASCII are percent-encoded, such as `%C3%A9`. The parameters are:
    ///
    /// | parameter | value |
    /// |---|---|
    /// | `q` | limit |
    /// | `w` | window in seconds, rounded up; for a calendar, the length of the current period |
    /// | `r` | permits that one request could take now |
    /// | `t` | seconds until `r` grows, rounded up; omitted if nothing was charged or `r` never grows |
    ///
    /// `t` can exceed `w`, because a strict ring counts up to one cell more than the window. A rule that limits
    /// [requests in flight](crate::Rule::in_flight) has no item here, and is not the policy of the other headers: it has no
    /// window, and no time frees a slot.
    #[default]
    Standard,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` of the policy with the fewest remaining permits.
    ///
    /// `X-RateLimit-Reset` is the time until more permits remain: seconds, rounded up, or 0 if nothing was charged.
    Legacy,
    /// The headers of [`Standard`](Self::Standard) and of [`Legacy`](Self::Legacy).
    Both,
}

pub(in crate::http) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(in crate::http) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Quota headers for the response to an admitted request. The box keeps the futures of requests small.
pub(in crate::http) type AdmittedHeaders = Option<Box<HeaderValues>>;

impl QuotaHeaders {
    /// Returns storage for the keys of a request, if the headers need them after the decision.
    #[inline]
    pub(in crate::http) fn key_hashes(self) -> Option<KeyHashes> {
        match self {
            Self::Off => None,
            Self::Standard | Self::Legacy | Self::Both => Some(KeyHashes::new()),
        }
    }

    /// Returns the values of these headers for a response. They are written in place, because they are too large to move.
    pub(in crate::http) fn values(self, policies: &[QuotaPolicy<'_>]) -> Box<HeaderValues> {
        if policies.iter().any(QuotaPolicy::is_in_flight) {
            let with_window = policies.iter().filter(|policy| !policy.is_in_flight());
            return self.values(&with_window.cloned().collect::<Vec<_>>());
        }
        let mut values = Box::<HeaderValues>::default();
        match self {
            Self::Standard | Self::Both => write_lists(policies, &mut values),
            Self::Off | Self::Legacy => {}
        }
        match self {
            Self::Legacy | Self::Both => values.legacy = scarcest(policies),
            Self::Off | Self::Standard => {}
        }
        values
    }
}

/// Quota headers of one response.
#[derive(Debug, Default)]
pub(in crate::http) struct HeaderValues {
    /// `RateLimit-Policy`.
    policy: Option<HeaderValue>,
    /// `RateLimit`.
    state: Option<HeaderValue>,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`.
    legacy: Option<[HeaderValue; 3]>,
}

impl HeaderValues {
    /// Adds the headers to a response, which may have quota headers of an inner layer.
    ///
    /// The standard headers are lists, so lines are added. Legacy headers that the response already has are kept.
    ///
    /// The values are taken, and are `None` afterwards. Moving the whole struct out of its box would copy all of it.
    pub(in crate::http) fn add_to(&mut self, headers: &mut HeaderMap) {
        if let Some(policy) = self.policy.take() {
            headers.append(RATE_LIMIT_POLICY, policy);
        }
        if let Some(state) = self.state.take() {
            headers.append(RATE_LIMIT, state);
        }
        if let Some([limit, remaining, reset]) = self.legacy.take() {
            headers.entry(LIMIT).or_insert(limit);
            headers.entry(REMAINING).or_insert(remaining);
            headers.entry(RESET).or_insert(reset);
        }
    }
}

/// Adds `Retry-After`, unless the response has one.
pub(in crate::http) fn add_retry_after(seconds: Option<u64>, headers: &mut HeaderMap) {
    if let Some(seconds) = seconds {
        headers
            .entry(RETRY_AFTER)
            .or_insert_with(|| HeaderValue::from(seconds));
    }
}

/// Returns limit, remaining permits and reset time of the policy with the fewest remaining permits.
fn scarcest(policies: &[QuotaPolicy<'_>]) -> Option<[HeaderValue; 3]> {
    let policy = policies.iter().min_by_key(|policy| policy.remaining())?;
    let reset = policy.reset_after().map_or(0, whole_seconds);
    Some([policy.limit(), policy.remaining(), reset].map(HeaderValue::from))
}

/// Writes two structured lists (RFC 9651, section 4.1.1) with an item for each policy: its quota and its state. Without a policy,
/// nothing is written.
fn write_lists(policies: &[QuotaPolicy<'_>], values: &mut HeaderValues) {
    PolicyTexts::with(policies, |texts| {
        values.state = texts.states(policies);
        if values.state.is_some() {
            values.policy = Some(texts.header.clone());
        }
    });
}
