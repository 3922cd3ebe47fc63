use core::fmt;
use core::time::Duration;

use super::owned_denied::{OwnedDenied, write_denial};
use super::peek::Peek;
use crate::algorithm::Algorithm;
use crate::time::Nanos;

/// The denial of a request. Nothing was charged, and the retry time of other requests is unchanged.
///
/// A denial costs one reading of the clock and one or two loads. It makes no compare-exchange, except to enter a new cell of a
/// counter ring of several words, or to finish the step of another thread. A [`StripedLimiter`](crate::StripedLimiter) has
/// denials of another type, and documents their cost.
///
/// The retry time is computed by [`retry_after`](Self::retry_after), so a denial borrows the limiter. To return an error that
/// borrows nothing, convert it into an [`OwnedDenied`]: by `OwnedDenied::from`, or by `?` in a function that returns one. The
/// conversion computes the retry time, and reads the state once more. So both include permits that were taken or refunded since the
/// decision.
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
    /// Returns the reading of the clock at which the request was denied.
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

    /// Returns the most permits that one request would get at the time of the decision. This call computes it.
    ///
    /// # Concurrency
    ///
    /// The call reads the state, which includes permits taken since the decision.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.peek.remaining()
    }

    /// Returns the time from [`at`](Self::at) until the request would be admitted, if no other request came before.
    ///
    /// One nanosecond earlier (for counter rings, one cell) it would be denied. `None` means that the request is never
    /// admitted: it is for more permits than one request can get, or the limiter's time ends before (at least 15 years after
    /// the clock's origin). This call computes the time, and the decision does not.
    ///
    /// # Concurrency
    ///
    /// The call reads the state, which includes permits that were taken or refunded since the decision. The result is zero if
    /// the request would now be admitted.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.peek.retry_after(self.permits)
    }
}

impl<A: Algorithm> From<Denied<'_, A>> for OwnedDenied {
    fn from(denied: Denied<'_, A>) -> Self {
        Self {
            permits: denied.permits,
            at: denied.at(),
            remaining: denied.remaining(),
            retry_after: denied.retry_after(),
            is_overflow: denied.is_overflow(),
            max_request: denied.peek.algorithm().max_request(),
        }
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
        write_denial(
            f,
            self.retry_after(),
            self.permits,
            self.peek.algorithm().max_request(),
        )
    }
}

impl<A: Algorithm> core::error::Error for Denied<'_, A> {}
