use core::fmt;
use core::time::Duration;

use crate::time::Nanos;

/// The denial of a request, as an error that borrows nothing.
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
/// assert!(denied.retry_after().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedDenied {
    pub(super) permits: u64,
    pub(super) at: Nanos,
    pub(super) remaining: u64,
    pub(super) retry_after: Option<Duration>,
    pub(super) is_overflow: bool,
    pub(super) max_request: u64,
}

impl OwnedDenied {
    /// Returns the reading of the clock at which the request was denied.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// Returns the number of requested permits.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// Returns whether the key had no entry in its table, so that [`OnFull`](crate::keyed::OnFull) decided.
    #[must_use]
    pub const fn is_overflow(&self) -> bool {
        self.is_overflow
    }

    /// Returns the most permits that one request would have got.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns the time from [`at`](Self::at) until the request would be admitted, if no other request came before. `None`
    /// means that it is never admitted.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for OwnedDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.retry_after {
            Some(after) => write!(f, "rate limit reached; try again in {after:?}"),
            None => never(f, self.permits, self.max_request),
        }
    }
}

impl core::error::Error for OwnedDenied {}

/// Writes why a request for `permits` is never admitted.
pub(crate) fn never(f: &mut fmt::Formatter<'_>, permits: u64, max_request: u64) -> fmt::Result {
    if permits > max_request {
        write!(
            f,
            "{permits} permits at once are never admitted; at most {max_request} are"
        )
    } else {
        f.write_str("rate limit reached until the limiter's time ends")
    }
}
