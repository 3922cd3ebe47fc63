use core::fmt;

use super::Peek;
use crate::algorithm::Algorithm;
use crate::receipt::Receipt;
use crate::time::Nanos;

/// A request was admitted.
///
/// Keep it, or the [`Receipt`] that it turns into, to refund or settle the charge; dropping it
/// leaves the permits spent.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, ManualClock, Quota, RateLimiter, Settled};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_second(10)?)?, ManualClock::new());
/// let admitted = limiter.check_n(3).expect("ten are free");
/// assert_eq!((admitted.permits(), admitted.remaining()), (3, 7));
/// // Not served after all.
/// assert_eq!(limiter.refund(admitted), Settled::Exact);
/// # Ok(())
/// # }
/// ```
pub struct Admitted<'a, A> {
    peek: Peek<'a, A>,
    receipt: Receipt,
}

impl<'a, A> Admitted<'a, A> {
    #[inline(always)]
    pub(super) fn new(peek: Peek<'a, A>, receipt: Receipt) -> Self {
        Self { peek, receipt }
    }

    /// The receipt, which from here on says which limiter it is of: a caller that keeps none need not wait for that.
    fn named(self) -> Receipt {
        match self.peek.limiter() {
            Some(limiter) => self.receipt.paid_by(limiter),
            None => self.receipt,
        }
    }
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

    /// Whether the key's table had no entry for it, so that its [`OnFull`](crate::keyed::OnFull) rule
    /// decided. Never for one limiter.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        self.peek.is_overflow()
    }

    /// The most permits that one further request would get, at the time of the decision. Worked out
    /// when asked for.
    ///
    /// # Concurrency
    ///
    /// The state is read at the call, and includes permits taken since the decision.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.peek.remaining()
    }

    /// Leaves the limiter's borrow behind.
    pub fn into_receipt(self) -> Receipt {
        self.named()
    }
}

impl<A> From<Admitted<'_, A>> for Receipt {
    fn from(admitted: Admitted<'_, A>) -> Self {
        admitted.named()
    }
}

impl<A> fmt::Debug for Admitted<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted")
            .field("receipt", &self.receipt)
            .finish_non_exhaustive()
    }
}
