//! What an algorithm says about one request, as plain values.

use crate::time::Nanos;

/// A request was admitted, and this is what was charged.
///
/// Plain data that may outlive the limiter's borrow: hand it back to the limiter that made it to
/// [refund](crate::RateLimiter::refund) or [settle](crate::RateLimiter::settle) the charge. It can be
/// handed back once; that is why it is not `Clone`.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, ManualClock, Quota, RateLimiter, Receipt, Settled};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_second(10)?)?, ManualClock::new());
/// // It borrows nothing, so it can be kept beside the request, or sent to another thread.
/// let receipt: Receipt = limiter.check_n(3).expect("ten are free").into_receipt();
/// assert_eq!(limiter.settle(receipt, 1), Settled::Exact);
/// assert_eq!(limiter.peek().spent(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a receipt is the proof of admission, and what a refund needs"]
pub struct Receipt {
    at: Nanos,
    permits: u64,
    mark: u64,
    payer: Payer,
}

/// Whose state a charge is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payer {
    /// The words that the algorithm was given, of no limiter that is known.
    Words,
    /// The limiter's, whose words have this number.
    Limiter(u64),
    /// The key's, in the entry with this number in this generation of the table.
    #[cfg(feature = "keyed")]
    Entry(usize, u32),
    /// The catch-all's that keys share when the table is full, in this generation of the table.
    #[cfg(feature = "keyed")]
    Shared(u32),
    /// Nobody's.
    #[cfg(feature = "keyed")]
    Nobody,
}

impl Receipt {
    /// States that `permits` were charged at the time `at`. `mark` is the algorithm's own, for
    /// recognising the charge when it is handed back.
    pub const fn new(at: Nanos, permits: u64, mark: u64) -> Self {
        Self {
            at,
            permits,
            mark,
            payer: Payer::Words,
        }
    }

    /// The charge, in the state of `payer`.
    pub(crate) fn paid_by(self, payer: Payer) -> Self {
        Self { payer, ..self }
    }

    pub(crate) const fn payer(&self) -> Payer {
        self.payer
    }

    /// The time that the decision used: the caller's reading, or a newer one that was published
    /// before it. Any interval of length W of these times holds at most the promised bound.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// How many permits were charged.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The algorithm's own mark.
    #[must_use]
    pub const fn mark(&self) -> u64 {
        self.mark
    }
}

/// What became of a charge that was settled at its actual cost. May be ignored: the state is right
/// either way.
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
/// // Another cell has begun, and somebody was decided in it: what is not used stays spent.
/// clock.advance(Duration::from_millis(200));
/// assert!(limiter.check().is_ok());
/// assert_eq!(limiter.settle(receipt, 2), Settled::Forfeited(3));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settled {
    /// The estimate was exact, or the difference was booked in full.
    Exact,
    /// The actual cost was lower, but this many permits could not be given back and stay spent:
    /// what came after the charge has been decided with them counted.
    Forfeited(u64),
    /// The actual cost was higher, and this many permits could not be booked as debt: the state
    /// already counts as much as it can hold.
    Forgiven(u64),
}
