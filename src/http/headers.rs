//! What a client is told in headers.

use alloc::string::String;
use core::time::Duration;

use ::http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use sfv::{ItemSerializer, StringRef};

use super::policy::{QuotaPolicy, printable, whole_seconds};

/// Which headers tell a client of its quotas, on admitted and refused answers.
///
/// `Retry-After` comes with every refusal that has an end, whichever of these is chosen.
///
/// # Examples
///
/// ```
/// use ringgate::http::{QuotaHeaders, RateLimitLayer};
/// use ringgate::{ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::new().rule(Rule::new("all", "2/s".parse()?)).build_with(ManualClock::new(), [1; 4])?;
/// // Nobody reads them, and they take longer than the decision.
/// let layer = RateLimitLayer::from(rules).headers(QuotaHeaders::Off).decision_extension(false);
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaHeaders {
    /// None. With [`decision_extension`](super::RateLimitLayer::decision_extension) off too, an admitted request
    /// allocates nothing.
    Off,
    /// `RateLimit-Policy` and `RateLimit`, of draft-ietf-httpapi-ratelimit-headers. The default.
    ///
    /// An item for each enforced quota that is about the request: `"burst";q=100;w=60` and `"burst";r=50;t=30`, under the
    /// [policy's name](QuotaPolicy::name) (what is not printable ASCII in it, and the percent sign, as `%C3%A9`). `q` is the
    /// limit, `r` how much of it one request would still get; `w` and `t` are seconds, rounded up, so of a window
    /// shorter than a second `w` is 1. `t` is how long until there is more, and left out when nothing is
    /// spent, or there never will be; it can be more than `w`, since a strict ring counts a cell more than the window.
    #[default]
    Standard,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` of the policy with the least left: the last
    /// is seconds until there is more, rounded up, or 0 when nothing is spent.
    Legacy,
    /// Both.
    Both,
}

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

impl QuotaHeaders {
    /// Says what there is to say of the policies.
    pub(super) fn tell(self, policies: &[QuotaPolicy<'_>], mut tell: impl FnMut(HeaderName, HeaderValue)) {
        if matches!(self, Self::Standard | Self::Both) {
            let (quotas, states) = lists(policies);
            for (name, list) in [(RATE_LIMIT_POLICY, quotas), (RATE_LIMIT, states)] {
                if !list.is_empty()
                    && let Ok(value) = HeaderValue::from_str(&list)
                {
                    tell(name, value);
                }
            }
        }
        if matches!(self, Self::Legacy | Self::Both)
            && let Some(scarcest) = policies.iter().min_by_key(|policy| policy.remaining())
        {
            for (name, value) in [
                (LIMIT, scarcest.limit()),
                (REMAINING, scarcest.remaining()),
                (RESET, scarcest.more_after().map_or(0, whole_seconds)),
            ] {
                tell(name, HeaderValue::from(value));
            }
        }
    }
}

/// Adds a header to what an answer has. A layer further inside may have added its own: a list may come in several lines,
/// and of the others the one from inside stays.
pub(super) fn put(name: HeaderName, value: HeaderValue, headers: &mut HeaderMap) {
    if name == RATE_LIMIT || name == RATE_LIMIT_POLICY {
        headers.append(name, value);
    } else {
        headers.entry(name).or_insert(value);
    }
}

/// Says when to come back.
pub(super) fn retry_after(wait: Option<Duration>, headers: &mut HeaderMap) {
    if let Some(wait) = wait {
        headers
            .entry(RETRY_AFTER)
            .or_insert_with(|| HeaderValue::from(whole_seconds(wait)));
    }
}

/// Writes two lists (RFC 9651, 4.1.1) with an item for each policy: what it allows, and what is left.
fn lists(policies: &[QuotaPolicy<'_>]) -> (String, String) {
    // As much as most names and numbers take.
    let text = || String::with_capacity(policies.len() * 32);
    let (mut quotas, mut states) = (text(), text());
    for policy in policies {
        // Always right by now; a name that is not is left out rather than to fail.
        let name = printable(policy.name());
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
        if let Some(wait) = policy.more_after() {
            push_parameter(&mut states, ";t=", whole_seconds(wait));
        }
    }
    (quotas, states)
}

/// Writes a parameter that is an integer, which has 15 digits at most (RFC 9651, 3.3.1). By hand, since there are four for
/// each policy of each request, and a formatter takes several times as long.
fn push_parameter(text: &mut String, key: &'static str, value: u64) {
    text.push_str(key);
    push_digits(text, value.min(999_999_999_999_999));
}

fn push_digits(text: &mut String, value: u64) {
    if value > 9 {
        push_digits(text, value / 10);
    }
    text.push(char::from(b'0' + (value % 10) as u8));
}
