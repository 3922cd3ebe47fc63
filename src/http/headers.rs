//! Quota headers of responses.

use alloc::string::String;
use core::time::Duration;

use ::http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use sfv::{ItemSerializer, StringRef};

use super::policy::{QuotaPolicy, percent_encode, whole_seconds};

/// Headers that tell a client its quotas, on responses to admitted and rejected requests.
///
/// `Retry-After` is independent of this choice: each rejection has it, unless the request is never admitted.
///
/// # Examples
///
/// ```
/// use ringgate::http::{QuotaHeaders, RateLimitLayer};
/// use ringgate::{ManualClock, Rule, RuleSetBuilder};
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
    /// `"burst";r=50;t=30`. An item is named after the [policy](QuotaPolicy::name); `%` and bytes that are not
    /// printable ASCII are written as `%C3%A9`. The parameters are:
    ///
    /// | parameter | value |
    /// |---|---|
    /// | `q` | limit |
    /// | `w` | window in seconds, rounded up |
    /// | `r` | permits that one request could take now |
    /// | `t` | seconds until `r` grows, rounded up; omitted if nothing was charged or `r` never grows |
    ///
    /// `t` can exceed `w`, because a strict ring counts up to one cell more than the window.
    #[default]
    Standard,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` of the policy with the fewest remaining permits.
    ///
    /// `X-RateLimit-Reset` is the time until more permits remain: seconds, rounded up, or 0 if nothing was charged.
    Legacy,
    /// The headers of [`Standard`](Self::Standard) and of [`Legacy`](Self::Legacy).
    Both,
}

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

impl QuotaHeaders {
    /// Passes each header for these policies to `add`.
    pub(super) fn for_each(self, policies: &[QuotaPolicy<'_>], mut add: impl FnMut(HeaderName, HeaderValue)) {
        if matches!(self, Self::Standard | Self::Both) {
            let (quotas, states) = lists(policies);
            for (name, list) in [(RATE_LIMIT_POLICY, quotas), (RATE_LIMIT, states)] {
                if !list.is_empty()
                    && let Ok(value) = HeaderValue::from_str(&list)
                {
                    add(name, value);
                }
            }
        }
        if matches!(self, Self::Legacy | Self::Both)
            && let Some(scarcest) = policies.iter().min_by_key(|policy| policy.remaining())
        {
            for (name, value) in [
                (LIMIT, scarcest.limit()),
                (REMAINING, scarcest.remaining()),
                (RESET, scarcest.reset_after().map_or(0, whole_seconds)),
            ] {
                add(name, HeaderValue::from(value));
            }
        }
    }
}

/// Adds a quota header to a response that may have headers of an inner layer.
///
/// The standard headers are lists, which may have several lines. Of the other headers the inner value is kept.
pub(super) fn add(name: HeaderName, value: HeaderValue, headers: &mut HeaderMap) {
    if name == RATE_LIMIT || name == RATE_LIMIT_POLICY {
        headers.append(name, value);
    } else {
        headers.entry(name).or_insert(value);
    }
}

/// Adds `Retry-After`, unless the response has one.
pub(super) fn add_retry_after(retry_after: Option<Duration>, headers: &mut HeaderMap) {
    if let Some(retry_after) = retry_after {
        headers
            .entry(RETRY_AFTER)
            .or_insert_with(|| HeaderValue::from(whole_seconds(retry_after)));
    }
}

/// Writes two structured lists (RFC 9651, section 4.1.1) with an item for each policy: its quota and its state.
fn lists(policies: &[QuotaPolicy<'_>]) -> (String, String) {
    // Long enough for most names and numbers.
    let list = || String::with_capacity(policies.len() * 32);
    let (mut quotas, mut states) = (list(), list());
    for policy in policies {
        // Percent-encoded names are valid strings.
        let name = percent_encode(policy.name());
        let Ok(name) = StringRef::from_str(&name) else {
            continue;
        };
        if !quotas.is_empty() {
            quotas.push_str(", ");
            states.push_str(", ");
        }
        let start = quotas.len();
        let _ = ItemSerializer::with_buffer(&mut quotas).bare_item(name).finish();
        states.push_str(&quotas[start..]);
        push_parameter(&mut quotas, ";q=", policy.limit());
        push_parameter(&mut quotas, ";w=", whole_seconds(policy.window()));
        push_parameter(&mut states, ";r=", policy.remaining());
        if let Some(reset_after) = policy.reset_after() {
            push_parameter(&mut states, ";t=", whole_seconds(reset_after));
        }
    }
    (quotas, states)
}

/// Writes an integer parameter, which has at most 15 digits (RFC 9651, section 3.3.1).
///
/// Each request writes up to four for each policy. `core::fmt` takes several times as long as these digits.
fn push_parameter(list: &mut String, key: &'static str, value: u64) {
    list.push_str(key);
    push_digits(list, value.min(999_999_999_999_999));
}

fn push_digits(list: &mut String, value: u64) {
    if value > 9 {
        push_digits(list, value / 10);
    }
    list.push(char::from(b'0' + (value % 10) as u8));
}
