//! The algorithms of a rule that limits requests in flight.

use super::StateAlgorithms;
use super::word_layout::WordLayout;
use crate::algorithm::{AnyAlgorithm, InFlight};
use crate::error::ConfigError;

impl StateAlgorithms {
    /// The algorithms with this limit of requests in flight, and with the limits of these tiers.
    pub(super) fn in_flight(limit: u64, tiers: &[u64]) -> Result<Self, ConfigError> {
        let mut algorithms = alloc::vec![AnyAlgorithm::from(InFlight::new(limit, "in_flight")?)];
        for &limit in tiers {
            algorithms.push(InFlight::new(limit, "tiers")?.into());
        }
        let highest = InFlight::highest().into();
        Ok(Self::over_words(algorithms, highest, WordLayout::InFlight))
    }
}
