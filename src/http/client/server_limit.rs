use core::cmp::Reverse;
use core::time::Duration;
use std::time::SystemTime;

use ::http::StatusCode;
use ::http::header::{DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

use super::list::{Items, add_items};
use super::retry_after;
use crate::http::answer::{RATE_LIMIT, RATE_LIMIT_POLICY};

/// The rate limit that a server states in the headers of a response.
///
/// [`from_headers`](Self::from_headers) reads it, and [`wait`](Self::wait) says how long to send no request. Any server may have
/// sent the headers. All fields are `None` if there are none.
///
/// | header | read as |
/// |---|---|
/// | `Retry-After` | seconds, or a date |
/// | `RateLimit` | a list of draft-ietf-httpapi-ratelimit-headers, such as `"burst";r=0;t=30` |
/// | `RateLimit-Policy` | a list such as `"burst";q=100;w=60` |
///
/// The time until a date is that from `Date` of the same response, or from the wall clock without it.
/// If `RateLimit` has several items, the one that delays the client most is chosen: of those with `r=0` the one with the largest
/// `t`, otherwise the one with the smallest `r`. The limit and the window are those of the policy with the same name. Without
/// an item in `RateLimit`, they are those of the first policy.
///
/// # Malformed headers
///
/// No header leads to a panic. A time is rounded up to whole seconds.
///
/// - `Retry-After` may have decimals, a unit, quotation marks or several values: `1.5`, `3s`, `1m30s`, `500 ms`, `3, 7`. The longest of
///   several values counts. A date in the past is a time of zero.
///   Any other text is a time of 60 seconds, if no line states a time. An empty line is ignored.
/// - A line of `RateLimit` or `RateLimit-Policy` that is no structured list (RFC 9651) is ignored. Other lines still count.
/// - An item that is not named by a string is ignored. An item of `RateLimit` without `r` counts only if no item has one, and then only
///   after a rejection.
/// - A parameter that is no number is ignored. Permits are rounded down, and times up. A negative `r` is 0, and other negative numbers
///   are ignored. A number may have any number of digits.
/// - `Retry-After` and `t` are at most 24 hours. A longer time is shortened to that, so a client that obeys a wrong or hostile header
///   asks again after a day at the latest. Other numbers, also the window, are at most 2^64 − 1.
///
/// `X-RateLimit-Reset`, `X-Rate-Limit-Reset`, `RateLimit-Reset` and `Retry-After-Ms` are not read, because servers do not agree on their
/// units. If a rejection has one of them, or a `RateLimit` without an item that is read, and states no time otherwise, its time is
/// 60 seconds.
///
/// # Cost
///
/// Up to eight lookups in the header map. Reading takes time in proportion to the length of the headers. More than four items in
/// one header allocate.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use std::time::SystemTime;
///
/// use http::{HeaderMap, HeaderValue, StatusCode};
/// use ringgate::http::ServerLimit;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("ratelimit-policy", HeaderValue::from_static("\"burst\";q=100;w=60"));
/// headers.insert("ratelimit", HeaderValue::from_static("\"burst\";r=0;t=12"));
/// let limit = ServerLimit::from_headers(&headers, SystemTime::now());
/// assert_eq!((limit.limit, limit.remaining), (Some(100), Some(0)));
/// assert_eq!(limit.window, Some(Duration::from_secs(60)));
/// // This request was admitted, and the next one would not be.
/// assert_eq!(limit.wait(StatusCode::OK), Some(Duration::from_secs(12)));
///
/// headers.insert("retry-after", HeaderValue::from_static("30"));
/// let limit = ServerLimit::from_headers(&headers, SystemTime::now());
/// assert_eq!(limit.wait(StatusCode::TOO_MANY_REQUESTS), Some(Duration::from_secs(30)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLimit {
    /// The time of `Retry-After`, 0 to 24 hours.
    pub retry_after: Option<Duration>,
    /// The permits of a window: `q`.
    pub limit: Option<u64>,
    /// The window: `w`, in whole seconds.
    pub window: Option<Duration>,
    /// The permits that remain: `r`.
    pub remaining: Option<u64>,
    /// The time until more permits remain: `t`, 0 to 24 hours, in whole seconds.
    pub reset_after: Option<Duration>,
    /// Whether the headers state a time in an unknown form.
    states_unknown: bool,
}

/// The longest wait that is read from a response.
const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

/// The wait after a rejection whose headers state a time in an unknown form.
const UNKNOWN_WAIT: Duration = Duration::from_secs(60);

/// The headers that state a time in a unit that servers do not agree on.
const OF_UNKNOWN_UNIT: [HeaderName; 4] = [
    HeaderName::from_static("x-ratelimit-reset"),
    HeaderName::from_static("x-rate-limit-reset"),
    HeaderName::from_static("ratelimit-reset"),
    HeaderName::from_static("retry-after-ms"),
];

impl ServerLimit {
    /// Reads the headers of a response.
    ///
    /// `now` is the time of the wall clock. It is used only for a date in `Retry-After` if `Date` is missing or malformed.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap, now: SystemTime) -> Self {
        let states = items(headers, RATE_LIMIT);
        let policies = items(headers, RATE_LIMIT_POLICY);
        let state = states
            .iter()
            .filter(|state| state.remaining.is_some() || state.reset.is_some())
            .min_by_key(|state| (state.remaining.is_none(), state.remaining, Reverse(state.reset)));
        let policy = match state {
            Some(state) => policies.iter().find(|policy| policy.name == state.name),
            None => policies.first(),
        };
        Self {
            retry_after: retry_after(headers, now),
            limit: policy.and_then(|policy| policy.limit),
            window: policy.and_then(|policy| policy.window).map(Duration::from_secs),
            remaining: state.and_then(|state| state.remaining),
            reset_after: state
                .and_then(|state| state.reset)
                .map(|seconds| Duration::from_secs(seconds).min(MAX_WAIT)),
            states_unknown: state.is_none() && headers.contains_key(RATE_LIMIT)
                || OF_UNKNOWN_UNIT.iter().any(|name| headers.contains_key(name)),
        }
    }

    /// Returns how long the server asks the client to send no request, after a response with this status.
    ///
    /// - With status 429 or 503 it is [`retry_after`](Self::retry_after), or [`reset_after`](Self::reset_after) without that. Without both
    ///   it is 60 seconds if the headers state a time in an unknown form.
    /// - With any other status it is `reset_after` if no permits remain.
    /// - Otherwise it is `None`.
    ///
    /// `Retry-After` of other statuses is not about rates: with a redirection, it is the time until the other address is available.
    #[must_use]
    pub fn wait(&self, status: StatusCode) -> Option<Duration> {
        let is_rejection = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        if is_rejection {
            let unknown = self.states_unknown.then_some(UNKNOWN_WAIT);
            self.retry_after.or(self.reset_after).or(unknown)
        } else {
            self.reset_after.filter(|_| self.remaining == Some(0))
        }
    }
}

fn items(headers: &HeaderMap, name: HeaderName) -> Items<'_> {
    let mut items = Items::new();
    for line in headers.get_all(name) {
        add_items(line.as_bytes(), &mut items);
    }
    items
}

fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let lines = headers.get_all(RETRY_AFTER).iter().map(HeaderValue::as_bytes);
    let mut lines = lines.filter(|line| !line.trim_ascii().is_empty()).peekable();
    lines.peek()?;
    let sent = headers
        .get(DATE)
        .and_then(|date| retry_after::date(date.to_str().ok()?.trim()))
        .unwrap_or(now);
    let longest = lines.filter_map(|line| retry_after::read(line, sent)).max();
    Some(longest.unwrap_or(UNKNOWN_WAIT).min(MAX_WAIT))
}
