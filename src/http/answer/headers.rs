//! Quota headers of responses.

use core::cmp::Reverse;

use ::http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

use super::policy::{QuotaPolicy, whole_seconds};
use super::texts::PolicyTexts;
use crate::rules::KeyHashes;

/// The headers that tell a client its quotas, in responses to admitted and rejected requests.
///
/// `Retry-After` is independent of this choice: each rejection has it, unless the request is never admitted, waits for a slot in
/// flight without a [stated time](crate::http::RateLimitLayer::slot_retry_after), or could not be decided.
///
/// With shared rules, `t` and `X-RateLimit-Reset` are upper bounds, and a quota may be missing: see the
/// [guide](crate::guide::servers#limits-over-several-machines).
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
    /// `"burst";r=50;t=30`. A rule that limits [requests in flight](crate::Rule::in_flight) has the unit of the draft instead of a
    /// window, and no time at which a slot is free: `"uploads";q=2;qu="concurrent-requests"` and `"uploads";r=0`. An item has the
    /// name of the [policy](QuotaPolicy::name). In it, `%` and bytes that are not printable ASCII are percent-encoded, such as
    /// `%C3%A9`. The parameters are:
    ///
    /// | parameter | value |
    /// |---|---|
    /// | `q` | limit |
    /// | `qu` | unit of a limit of requests in flight |
    /// | `w` | window in seconds, rounded up |
    /// | `r` | permits that one request could take now |
    /// | `t` | seconds until `r` grows, rounded up |
    ///
    /// `t` is omitted if nothing was charged or `r` never grows. It can exceed `w`, because a strict ring counts up to one cell more
    /// than the window. For a calendar, `w` is the length of the current period.
    ///
    /// In a rejection, `r` of a violated quota is less than the cost of the request. All values are those that the decision saw,
    /// so a refund between the decision and the response does not change them. A rejection by the wait queue and a
    /// [`DenialResponse`](crate::http::DenialResponse) read them once, later: if permits were freed meanwhile, `r` is one less than
    /// the cost, and `t` is 1.
    #[default]
    Standard,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` of one policy.
    ///
    /// In the response to an admitted request it is the policy that binds first: the one that admits the fewest further requests of
    /// this cost. `X-RateLimit-Reset` is the time until more permits remain: seconds, rounded up, or 0 if nothing was charged. A
    /// rule of [requests in flight](crate::Rule::in_flight) is not in these headers then, because the end of the request
    /// frees its slot.
    ///
    /// In a rejection it is a violated policy, the one that rejects for the longest time. `X-RateLimit-Reset` is never below
    /// `Retry-After`. It is missing if no time is known after which more permits remain and the rejection ends, so for a slot in
    /// flight without a [stated time](crate::http::RateLimitLayer::slot_retry_after).
    Legacy,
    /// The headers of [`Standard`](Self::Standard) and of [`Legacy`](Self::Legacy).
    Both,
}

pub(in crate::http) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(in crate::http) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEGACY: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];

impl QuotaHeaders {
    /// Returns storage for the keys of a request, if the headers need them after the decision.
    #[inline]
    pub(in crate::http) fn key_hashes(self) -> Option<KeyHashes> {
        (self != Self::Off).then(KeyHashes::new)
    }

    /// Writes the values of these headers for the response to an admitted request.
    pub(in crate::http) fn write_admission(self, policies: &[QuotaPolicy<'_>], values: &mut HeaderValues) {
        self.write(policies, values, legacy_of_admission);
    }

    /// Adds these headers to the response to a rejected request, which has this `Retry-After` in seconds.
    pub(super) fn add_rejection(
        self,
        policies: &[QuotaPolicy<'_>],
        retry_after: Option<u64>,
        headers: &mut HeaderMap,
    ) {
        let mut values = HeaderValues::default();
        self.write(policies, &mut values, |policies| {
            legacy_of_rejection(policies, retry_after)
        });
        values.add_to(headers);
    }

    fn write(
        self,
        policies: &[QuotaPolicy<'_>],
        values: &mut HeaderValues,
        legacy: impl FnOnce(&[QuotaPolicy<'_>]) -> Option<LegacyValues>,
    ) {
        let (has_lists, has_legacy) = match self {
            Self::Off => (false, false),
            Self::Standard => (true, false),
            Self::Legacy => (false, true),
            Self::Both => (true, true),
        };
        if has_lists {
            // Two structured lists (RFC 9651, section 4.1.1) with an item for each policy: its quota and its state.
            PolicyTexts::with(policies, |texts| {
                values.state = texts.states(policies);
                values.policy = values.state.as_ref().map(|_| texts.header.clone());
            });
        }
        if has_legacy {
            values.legacy = legacy(policies);
        }
    }
}

/// Quota headers of one response.
#[derive(Debug, Default)]
pub(in crate::http) struct HeaderValues {
    /// `RateLimit-Policy`.
    policy: Option<HeaderValue>,
    /// `RateLimit`.
    state: Option<HeaderValue>,
    legacy: Option<LegacyValues>,
}

/// The values of the [`LEGACY`] headers.
type LegacyValues = [Option<u64>; 3];

/// The values of the policy that binds first.
fn legacy_of_admission(policies: &[QuotaPolicy<'_>]) -> Option<LegacyValues> {
    let with_window = policies.iter().filter(|policy| !policy.is_in_flight());
    let policy = with_window.min_by_key(|policy| policy.binding_order())?;
    let reset = policy.reset_after().map_or(0, whole_seconds);
    Some([Some(policy.limit()), Some(policy.remaining()), Some(reset)])
}

/// The values of the violated policy that rejects for the longest time. A policy that always rejects comes first, and one that
/// awaits a slot last.
fn legacy_of_rejection(policies: &[QuotaPolicy<'_>], retry_after: Option<u64>) -> Option<LegacyValues> {
    let violated = policies.iter().filter(|policy| policy.is_violated());
    let policy = violated.min_by_key(|policy| {
        let time = policy.rejects_for();
        (policy.awaits_slot(), time.is_some(), Reverse(time))
    })?;
    let reset = policy.rejects_for().map(whole_seconds).max(retry_after);
    Some([Some(policy.limit()), Some(policy.remaining()), reset])
}

impl HeaderValues {
    /// Adds the headers to a response, which may have quota headers of an inner layer.
    ///
    /// The standard headers are lists, so lines are added. Legacy headers describe one policy, so a response that has one of them
    /// keeps its own.
    ///
    /// The values are taken, and are `None` afterwards. Moving the whole struct out of its box would copy all of it.
    pub(in crate::http) fn add_to(&mut self, headers: &mut HeaderMap) {
        if let Some(policy) = self.policy.take() {
            headers.append(RATE_LIMIT_POLICY, policy);
        }
        if let Some(state) = self.state.take() {
            headers.append(RATE_LIMIT, state);
        }
        if let Some(values) = self.legacy.take()
            && !LEGACY.iter().any(|name| headers.contains_key(name))
        {
            for (name, value) in LEGACY.into_iter().zip(values) {
                if let Some(value) = value {
                    headers.insert(name, value.into());
                }
            }
        }
    }
}

/// Adds `Retry-After`, unless the response has one. Returns the seconds that the response states, if it states seconds.
pub(super) fn add_retry_after(seconds: Option<u64>, headers: &mut HeaderMap) -> Option<u64> {
    match headers.get(RETRY_AFTER) {
        Some(own) => own.to_str().ok()?.trim().parse().ok(),
        None => {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds?));
            seconds
        }
    }
}
