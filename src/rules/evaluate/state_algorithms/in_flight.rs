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
        let highest = AnyAlgorithm::from(InFlight::highest());
        Ok(Self {
            unlimited: algorithms.iter().map(|_| highest.clone()).collect(),
            tiers: algorithms.into_boxed_slice(),
            slowest: 0,
            usage: highest,
            layout: WordLayout::InFlight,
            units: None,
        })
    }
}
