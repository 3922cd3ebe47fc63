//! Constructors of limiters with the default clock.

use super::{Policy, RateLimiter};
use crate::algorithm::{Algorithm, SlidingWindow};
use crate::clock::QuantaClock;
use crate::error::ConfigError;
use crate::quota::Quota;

impl RateLimiter<SlidingWindow, QuantaClock> {
    /// Creates a limiter of `limit` permits in any second.
    ///
    /// # Errors
    ///
    /// `limit`: 0 or more than [`Quota::MAX_LIMIT`], or more than the cells of the window can count.
    pub fn per_second(limit: u64) -> Result<Self, ConfigError> {
        Ok(Self::new(SlidingWindow::new(Quota::per_second(limit)?)?))
    }

    /// Creates a limiter of `limit` permits in any minute.
    ///
    /// # Errors
    ///
    /// `limit`: 0 or more than [`Quota::MAX_LIMIT`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::RateLimiter;
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let limiter = RateLimiter::per_minute(100)?;
    /// assert!(limiter.check().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn per_minute(limit: u64) -> Result<Self, ConfigError> {
        Ok(Self::new(SlidingWindow::new(Quota::per_minute(limit)?)?))
    }
}

impl<A: Algorithm> RateLimiter<A, QuantaClock> {
    /// Creates a limiter with a new clock.
    ///
    /// The first clock of a process calibrates the processor's counter, for up to 200 ms, so create it before you serve
    /// requests. To share one clock between limiters, pass clones of it to [`with_clock`](Self::with_clock).
    pub fn new(algorithm: A) -> Self {
        Self::with_clock(algorithm, QuantaClock::new())
    }
}

impl<A: Algorithm> Policy<A, QuantaClock> {
    /// Creates a policy with a new clock.
    ///
    /// The first clock of a process calibrates the processor's counter, for up to 200 ms.
    ///
    /// # Errors
    ///
    /// `algorithm`: the algorithm has not one word. See [`with_clock`](Self::with_clock).
    pub fn new(algorithm: A) -> Result<Self, ConfigError> {
        Self::with_clock(algorithm, QuantaClock::new())
    }
}
