use core::fmt;
use core::time::Duration;

use crate::time::Nanos;

/// The denial of a request, as an error that borrows nothing. It is made from a [`Denied`](crate::Denied).
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, ManualClock, OwnedDenied, Quota, RateLimiter};
///
/// #[derive(Debug)]
/// enum ApiError {
///     Limited(OwnedDenied),
/// }
///
/// impl<D: Into<OwnedDenied>> From<D> for ApiError {
///     fn from(denied: D) -> Self {
///         Self::Limited(denied.into())
///     }
/// }
///
/// fn call(limiter: &RateLimiter<CounterRing, ManualClock>) -> Result<(), ApiError> {
///     limiter.check()?;
///     Ok(())
/// }
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let ring = CounterRing::new(Quota::per_second(1)?)?;
/// let limiter = RateLimiter::with_clock(ring, ManualClock::new());
/// assert!(call(&limiter).is_ok());
/// let Err(ApiError::Limited(denied)) = call(&limiter) else {
///     unreachable!("one per second, and this is the second at once")
/// };
/// // The limiter may be gone by now.
/// drop(limiter);
/// assert!(denied.retry_after.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedDenied {
    /// The number of requested permits.
    pub permits: u64,
    /// The reading of the clock at which the request was denied.
    pub at: Nanos,
    /// The most permits that one request would have got.
    pub remaining: u64,
    /// The time from `at` until the request would be admitted, if no other request came before. `None` means that it is never
    /// admitted.
    pub retry_after: Option<Duration>,
    /// Whether the key had no entry in its table, so that [`OnFull`](crate::keyed::OnFull) decided.
    pub is_overflow: bool,
    /// The most permits that are ever admitted at once.
    pub max_request: u64,
}

impl fmt::Display for OwnedDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_denial(f, self.retry_after, self.permits, self.max_request)
    }
}

impl core::error::Error for OwnedDenied {}

/// Writes the message of a denial of `permits`.
pub(crate) fn write_denial(
    f: &mut fmt::Formatter<'_>,
    retry_after: Option<Duration>,
    permits: u64,
    max_request: u64,
) -> fmt::Result {
    match retry_after {
        Some(after) => write!(f, "rate limit reached; try again in {after:?}"),
        None if permits > max_request => write!(
            f,
            "{permits} permits at once are never admitted; at most {max_request} are"
        ),
        None => f.write_str("rate limit reached until the limiter's time ends"),
    }
}
