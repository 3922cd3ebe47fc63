//! Constructors of striped limiters with the default clock.

use super::builder::StripedBuilder;
use super::limiter::StripedLimiter;
use crate::clock::QuantaClock;
use crate::error::ConfigError;
use crate::quota::Quota;

impl StripedBuilder {
    /// Builds the limiter with its own clock.
    ///
    /// The first clock of a process calibrates the processor's counter, for up to 200 ms.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`build_with`](Self::build_with).
    pub fn build(self) -> Result<StripedLimiter, ConfigError> {
        self.build_with(QuantaClock::new())
    }
}

impl StripedLimiter<QuantaClock> {
    /// Creates a limiter with its own clock and as many stripes as there are cores.
    ///
    /// The first clock of a process calibrates the processor's counter, for up to 200 ms.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`StripedBuilder::build_with`].
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::builder(quota).build()
    }
}
