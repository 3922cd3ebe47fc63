use core::fmt;
use core::time::Duration;

use super::peek::Peek;
use crate::algorithm::Algorithm;
use crate::time::Nanos;

/// A request was denied. Nothing was charged, and no wait was extended.
///
/// A denial costs one reading of the clock and one or two loads. It makes no compare-exchange, except to enter a new cell of a
/// wide ring or to finish the step of another thread. A [`StripedLimiter`](crate::StripedLimiter) has denials of another type,
/// and documents their cost. [`retry_after`](Self::retry_after) costs extra, and only when it is called.
///
/// It borrows the limiter, and computes the retry time on demand. To return an error that borrows
/// nothing, convert it:
///
/// ```
/// use core::time::Duration;
/// use ringgate::{Algorithm, Denied};
///
/// #[derive(Debug)]
/// enum ApiError {
///     /// Too many requests; with the time to wait, unless they are too many at once.
///     Limited(Option<Duration>),
/// }
///
/// impl<A: Algorithm> From<Denied<'_, A>> for ApiError {
///     fn from(denied: Denied<'_, A>) -> Self {
///         Self::Limited(denied.retry_after())
///     }
/// }
/// ```
pub struct Denied<'a, A> {
    peek: Peek<'a, A>,
    permits: u64,
}

impl<'a, A> Denied<'a, A> {
    #[inline(always)]
    pub(super) fn new(peek: Peek<'a, A>, permits: u64) -> Self {
        Self { peek, permits }
    }
}

impl<A: Algorithm> Denied<'_, A> {
    /// Returns the time at which the request was decided.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.peek.at()
    }

    /// Returns the number of requested permits.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// Returns whether the key had no entry in its table, so that [`OnFull`](crate::keyed::OnFull) decided. Always
    /// false for a limiter without keys.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        self.peek.is_overflow()
    }

    /// Returns the most permits that one request would get at the time of the decision. Computed on demand.
    ///
    /// # Concurrency
    ///
    /// The call reads the state, which includes permits taken since the decision.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.peek.remaining()
    }

    /// Returns the time from [`at`](Self::at) until the request would be admitted, if no other requests come.
    ///
    /// One nanosecond earlier (for counter rings, one cell) it would be denied. `None` means never: the request is
    /// for more permits than one request can get, or the limiter's time ends before (20 years after the clock's
    /// origin at the earliest). Computed on demand.
    ///
    /// # Concurrency
    ///
    /// The call reads the state, which includes permits taken or refunded since. Zero if the request would be
    /// admitted by now.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.peek.retry_after(self.permits)
    }
}

impl<A> fmt::Debug for Denied<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denied")
            .field("permits", &self.permits)
            .field("at", &self.peek)
            .finish_non_exhaustive()
    }
}

impl<A: Algorithm> fmt::Display for Denied<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.retry_after() {
            Some(after) => write!(f, "rate limit reached; try again in {after:?}"),
            None => never(f, self.permits, self.peek.algorithm().max_request()),
        }
    }
}

impl<A: Algorithm> core::error::Error for Denied<'_, A> {}

/// Writes why a request for `permits` is never admitted; one request can get `most`.
pub(crate) fn never(f: &mut fmt::Formatter<'_>, permits: u64, most: u64) -> fmt::Result {
    if permits > most {
        write!(
            f,
            "{permits} permits at once are never admitted; at most {most} are"
        )
    } else {
        f.write_str("rate limit reached until the limiter's time ends")
    }
}
