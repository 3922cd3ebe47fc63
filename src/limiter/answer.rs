use core::fmt;
use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Receipt, Refusal};
use crate::sync::{AtomicU64, Shared};
use crate::time::Nanos;

/// Joins a plain decision with the state that it was about.
#[inline(always)]
pub(super) fn answer<'a, A>(
    algorithm: &'a A,
    words: &'a [AtomicU64],
    decision: Result<Receipt, Refusal>,
) -> Result<Admitted<'a, A>, Denied<'a, A>> {
    match decision {
        Ok(receipt) => Ok(Admitted {
            peek: Peek::new(algorithm, words, receipt.at()),
            receipt,
        }),
        Err(refusal) => Err(Denied {
            peek: Peek::new(algorithm, words, refusal.at()),
            permits: refusal.permits(),
        }),
    }
}

/// A look at a limiter at one time, which works out what it is asked for, when it is asked.
///
/// # Concurrency
///
/// Each method looks at the state as it is when it is called, as of the time of the peek. What others
/// take in between shows; the answer may be old when you read it. Where the state is several words, a
/// look starts over when an admission comes in between, so under load it can take many times as long
/// as a decision.
#[must_use = "a peek works out nothing until it is asked"]
pub struct Peek<'a, A> {
    algorithm: &'a A,
    words: &'a [AtomicU64],
    now: Nanos,
}

impl<'a, A> Peek<'a, A> {
    #[inline]
    pub(super) fn new(algorithm: &'a A, words: &'a [AtomicU64], now: Nanos) -> Self {
        Self {
            algorithm,
            words,
            now,
        }
    }
}

impl<A: Algorithm> Peek<'_, A> {
    /// The time of the peek.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.now
    }

    /// The most permits that one request would get.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.algorithm.remaining(Shared::new(self.words), self.now)
    }

    /// The permits that still count. With debt, more than the limit.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.algorithm.spent(Shared::new(self.words), self.now)
    }

    /// How long until `permits` would be admitted if nobody else asked: zero if they would be now, `None` if
    /// they never will be, because they are more than the limit.
    #[must_use]
    pub fn retry_after(&self, permits: u64) -> Option<Duration> {
        self.algorithm
            .ready_at(Shared::new(self.words), self.now, permits)
            .map(|ready| ready.saturating_since(self.now))
    }
}

impl<A> fmt::Debug for Peek<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peek")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// A request was admitted.
///
/// Keep it, or the [`Receipt`] that it turns into, to refund or settle the charge; dropping it
/// leaves the permits spent.
pub struct Admitted<'a, A> {
    peek: Peek<'a, A>,
    receipt: Receipt,
}

impl<A: Algorithm> Admitted<'_, A> {
    /// The time that the decision used: the reading, or a newer one that was published before it.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.receipt.at()
    }

    /// How many permits were taken.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.receipt.permits()
    }

    /// The most permits that one further request would get, at the time of the decision. Worked out
    /// when asked for.
    ///
    /// # Concurrency
    ///
    /// What others have taken since shows.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.peek.remaining()
    }

    /// Leaves the limiter's borrow behind.
    pub fn into_receipt(self) -> Receipt {
        self.receipt
    }
}

impl<A> From<Admitted<'_, A>> for Receipt {
    fn from(admitted: Admitted<'_, A>) -> Self {
        admitted.receipt
    }
}

impl<A> fmt::Debug for Admitted<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted")
            .field("receipt", &self.receipt)
            .finish_non_exhaustive()
    }
}

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

impl<A: Algorithm> Denied<'_, A> {
    /// The reading that the request was judged at.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.peek.now
    }

    /// How many permits were asked for.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The most permits that one request would get, at the time of the decision. Worked out when
    /// asked for.
    ///
    /// # Concurrency
    ///
    /// What others have taken since shows.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.peek.remaining()
    }

    /// How long after [`at`](Self::at) the same request would be admitted if nobody else asked;
    /// `None`: never, it is for more permits than the limit. One nanosecond earlier (for counter
    /// rings, one cell) it would not be. Worked out when asked for.
    ///
    /// # Concurrency
    ///
    /// What others have taken or given back since shows; zero when it would be admitted by now.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.peek.retry_after(self.permits)
    }
}

impl<A> fmt::Debug for Denied<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denied")
            .field("permits", &self.permits)
            .field("at", &self.peek.now)
            .finish_non_exhaustive()
    }
}

impl<A: Algorithm> fmt::Display for Denied<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.retry_after() {
            Some(after) => write!(f, "rate limit reached; try again in {after:?}"),
            None => write!(
                f,
                "{} permits at once are never admitted; at most {} are",
                self.permits,
                self.peek.algorithm.most()
            ),
        }
    }
}

impl<A: Algorithm> core::error::Error for Denied<'_, A> {}
