//! The receipt of an admitted request, and the outcome of its settlement.

use crate::time::Nanos;

/// The charge of an admitted request.
///
/// A receipt borrows nothing. Return it to the limiter that made it to
/// [refund](crate::RateLimiter::refund) or [settle](crate::RateLimiter::settle) the charge. It is not `Clone`, so that
/// it can be returned only once.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, ManualClock, Quota, RateLimiter, Receipt, Settled};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_second(10)?)?, ManualClock::new());
/// // It borrows nothing, so it can be stored with the request, or sent to another thread.
/// let receipt: Receipt = limiter.check_n(3).expect("ten are free").into_receipt();
/// assert_eq!(limiter.settle(receipt, 1), Settled::Exact);
/// assert_eq!(limiter.peek().spent(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Receipt {
    at: Nanos,
    permits: u64,
    mark: u64,
    /// The time per permit of the token bucket that was charged, in its units; 0 for other algorithms.
    permit_time: u64,
    charged_to: ChargedTo,
}

/// The state that was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargedTo {
    /// The words that were passed to an algorithm. They belong to no known limiter.
    Words,
    /// The limiter whose words have this number.
    Limiter(u64),
    /// The entry with this number in this generation of the table.
    Entry(usize, u32),
    /// The catch-all in this generation of the table.
    CatchAll(u32),
    /// No state: the request was admitted uncounted.
    Uncounted,
}

impl Receipt {
    /// Creates the receipt of `permits` that were charged at the time `at`. `mark` is private to the algorithm, which
    /// recognizes the charge by it.
    pub const fn new(at: Nanos, permits: u64, mark: u64) -> Self {
        Self {
            at,
            permits,
            mark,
            permit_time: 0,
            charged_to: ChargedTo::Words,
        }
    }

    /// The receipt of the same charge, by a bucket with this time per permit.
    #[inline]
    pub(crate) const fn with_permit_time(self, permit_time: u64) -> Self {
        Self { permit_time, ..self }
    }

    pub(crate) const fn permit_time(&self) -> u64 {
        self.permit_time
    }

    /// The receipt of the same charge, with the state that was charged.
    pub(crate) fn with_charged_to(self, charged_to: ChargedTo) -> Self {
        Self { charged_to, ..self }
    }

    pub(crate) const fn charged_to(&self) -> ChargedTo {
        self.charged_to
    }

    /// Whether the charge was made to the catch-all of a table, which decides requests of several keys.
    pub(crate) const fn is_of_catch_all(&self) -> bool {
        matches!(self.charged_to, ChargedTo::CatchAll(_))
    }

    /// Returns the time that the decision used: the caller's reading, or a newer time that was published before. By these
    /// times, any interval of one window holds at most the bound.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// Returns the number of permits that were charged.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// Returns the mark of the algorithm.
    #[must_use]
    pub const fn mark(&self) -> u64 {
        self.mark
    }
}

/// The outcome of settling a charge at its actual cost.
///
/// It may be ignored: the state is correct in each case. Of several outcomes, the [maximum](Ord::max) is the worst: any forfeited
/// permits are worse than forgiven ones.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::{CounterRing, ManualClock, Quota, RateLimiter, Settled};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let clock = ManualClock::new();
/// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_second(10)?)?, clock.clone());
/// let receipt = limiter.check_n(5).expect("ten are free").into_receipt();
/// // Unused permits are refunded as long as their cell counts, even after other decisions.
/// clock.advance(Duration::from_millis(900));
/// assert!(limiter.check().is_ok());
/// assert_eq!(limiter.settle(receipt, 2), Settled::Exact);
/// assert_eq!(limiter.peek().spent(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Settled {
    /// The estimate was exact, or the whole difference was refunded or charged.
    Exact,
    /// The actual cost was higher, and this many permits could not be charged, because the state cannot hold more.
    Forgiven(u64),
    /// The actual cost was lower, but this many permits could not be refunded. They stay spent, or they no longer count.
    Forfeited(u64),
}
