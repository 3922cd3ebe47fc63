use core::fmt;
use core::time::Duration;

use super::limiter::StripedLimiter;
use crate::clock::Clock;
use crate::decision::write_denial;
use crate::time::Nanos;

/// The denial of a request to a [`StripedLimiter`]. Nothing was consumed.
///
/// # Examples
///
/// ```
/// use ringgate::{ManualClock, Quota, StripedLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = StripedLimiter::builder(Quota::per_second(10_000)?).build_with(ManualClock::new())?;
/// let denied = limiter.check_n(10_001).unwrap_err();
/// // The request is for more than the largest request that can be admitted.
/// assert_eq!(denied.retry_after(), None);
/// # Ok(())
/// # }
/// ```
pub struct StripedDenied<'a, C> {
    limiter: &'a StripedLimiter<C>,
    at: Nanos,
    permits: u64,
}

impl<'a, C> StripedDenied<'a, C> {
    pub(super) const fn new(limiter: &'a StripedLimiter<C>, at: Nanos, permits: u64) -> Self {
        Self { limiter, at, permits }
    }
}

impl<C: Clock> StripedDenied<'_, C> {
    /// Returns the clock reading of the decision.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// Returns the time from [`at`](Self::at) until the same request would be admitted, if no other request came before. One
    /// cell earlier it would be denied.
    ///
    /// Returns `None` if the request can never be admitted: it is for more permits than
    /// [`max_request`](StripedLimiter::max_request), or the limiter's time ends before (at least 20 years after the
    /// clock's origin). This call computes the time, and the decision does not.
    ///
    /// # Concurrency
    ///
    /// The result includes admissions since the denial. It is zero if the request would be admitted by now.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let ready = self.limiter.ready_at(self.at, self.permits)?;
        Some(ready.saturating_since(self.at))
    }
}

impl<C> fmt::Debug for StripedDenied<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripedDenied")
            .field("permits", &self.permits)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl<C: Clock> fmt::Display for StripedDenied<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_denial(f, self.retry_after(), self.permits, self.limiter.max_request())
    }
}

impl<C: Clock> core::error::Error for StripedDenied<'_, C> {}
