use core::time::Duration;

/// The permits that a limiter had spent when it was saved.
///
/// With the `serde` feature it can be written to a file and read back:
/// `{"spent": 12, "idle_after_nanos": 48000000000}`.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::limiter::SavedState;
/// use ringgate::{CounterRing, ManualClock, Quota, RateLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = || -> Result<_, ringgate::ConfigError> {
///     Ok(RateLimiter::with_clock(CounterRing::new(Quota::per_minute(10)?)?, ManualClock::new()))
/// };
/// let before = limiter()?;
/// assert!(before.check_n(8).is_ok());
/// let saved = before.save();
///
/// // A saved state is two numbers. Store them in any form, or use the feature `serde`.
/// let SavedState { spent, idle_after_nanos } = saved;
/// let after = limiter()?;
/// after.restore(&SavedState { spent, idle_after_nanos }, Duration::ZERO);
/// assert_eq!(after.peek().remaining(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[must_use = "a saved state must be stored to be restored later"]
pub struct SavedState {
    /// The permits that counted when the state was saved.
    pub spent: u64,
    /// The nanoseconds after saving from which on none of the permits counts.
    pub idle_after_nanos: u64,
}

impl SavedState {
    /// A state of `spent` permits, of which none counts after `idle_after`.
    pub(crate) fn new(spent: u64, idle_after: Duration) -> Self {
        let idle_after_nanos = u64::try_from(idle_after.as_nanos()).unwrap_or(u64::MAX);
        Self {
            spent,
            idle_after_nanos,
        }
    }

    pub(crate) const fn idle_after(&self) -> Duration {
        Duration::from_nanos(self.idle_after_nanos)
    }

    /// The permits to charge `elapsed` after the state was saved.
    pub(crate) fn spent_after(&self, elapsed: Duration) -> u64 {
        if elapsed.as_nanos() >= u128::from(self.idle_after_nanos) {
            0
        } else {
            self.spent
        }
    }
}
