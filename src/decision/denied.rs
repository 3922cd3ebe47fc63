use core::fmt;
use core::time::Duration;

use super::Peek;
use crate::algorithm::Algorithm;
use crate::time::Nanos;

/// A request was denied. Nothing was consumed, and nothing was extended.
///
/// It borrows the limiter, to work out the retry time when asked. To return it as an error that
/// borrows nothing, take what is of use out of it:
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
    /// The reading that the request was judged at.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.peek.at()
    }

    /// How many permits were asked for.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// Whether the key's table had no entry for it, so that its [`OnFull`](crate::keyed::OnFull) rule
    /// decided. Never for one limiter.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        self.peek.is_overflow()
    }

    /// The most permits that one request would get, at the time of the decision. Worked out when
    /// asked for.
    ///
    /// # Concurrency
    ///
    /// The state is read at the call, and includes permits taken since the decision.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.peek.remaining()
    }

    /// How long after [`at`](Self::at) the same request would be admitted without other requests;
    /// `None`: never, since it is for more permits than one request can get, or the limiter's time ends
    /// before (20 years after the clock's origin at the earliest). One nanosecond earlier (for counter
    /// rings, one cell) it would not be. Worked out when asked for.
    ///
    /// # Concurrency
    ///
    /// The state is read at the call, and includes permits taken or refunded since. Zero if the request would be
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

/// Why so many `permits` are never admitted, of which one request can get `max_request`.
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
