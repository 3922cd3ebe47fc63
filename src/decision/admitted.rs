use core::fmt;

use super::peek::Peek;
use crate::algorithm::Algorithm;
use crate::receipt::Receipt;
use crate::time::Nanos;

/// The admission of a request.
///
/// Keep it, or convert it to a [`Receipt`], to refund or settle the charge. If it is dropped, the
/// permits stay spent.
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
/// // The request was not served, so its permits are refunded.
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

    /// Converts it to a receipt, which does not borrow the limiter.
    pub fn into_receipt(self) -> Receipt {
        // The name of the limiter is loaded here, so a decision without a receipt does not load it.
        match self.peek.limiter() {
            Some(limiter) => self.receipt.with_charged_to(limiter),
            None => self.receipt,
        }
    }
}

impl<A: Algorithm> Admitted<'_, A> {
    /// Returns the time that the decision used: the caller's reading, or a newer time that was published before.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.receipt.at()
    }

    /// Returns the number of permits that were taken.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.receipt.permits()
    }

    /// Returns whether the key had no entry in its table, so that [`OnFull`](crate::keyed::OnFull) decided. Always
    /// false for a limiter without keys.
    #[must_use]
    pub fn is_overflow(&self) -> bool {
        self.peek.is_overflow()
    }

    /// Returns the most permits that one further request would get at the time of the decision. This call computes it.
    ///
    /// # Concurrency
    ///
    /// The call reads the state, which includes permits taken since the decision.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.peek.remaining()
    }
}

impl<A> From<Admitted<'_, A>> for Receipt {
    fn from(admitted: Admitted<'_, A>) -> Self {
        admitted.into_receipt()
    }
}

impl<A> fmt::Debug for Admitted<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted")
            .field("receipt", &self.receipt)
            .finish_non_exhaustive()
    }
}
