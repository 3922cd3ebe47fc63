//! The algorithm of a quota, apart from a rule set.

use ringgate::{AnyAlgorithm, ConfigError, CounterRing, Gcra, Quota, TimestampRing};

use crate::args::AlgorithmName;

/// An algorithm and its parameters, without a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlgorithmSpec {
    pub(crate) algorithm: AlgorithmName,
    pub(crate) cells: Option<u64>,
    pub(crate) burst: Option<u64>,
    /// Whether requests have a cost, so that a large limit may count units of permits.
    pub(crate) has_cost: bool,
}

impl AlgorithmSpec {
    /// Cells per window.
    pub(crate) fn cells(self) -> u64 {
        self.cells.unwrap_or(match self.algorithm {
            AlgorithmName::Classic | AlgorithmName::Even => CounterRing::DEFAULT_CLASSIC_CELLS,
            _ => CounterRing::DEFAULT_CELLS,
        })
    }

    /// Builds the algorithm for a quota.
    ///
    /// # Errors
    ///
    /// When the algorithm does not support the quota.
    pub(crate) fn build(self, quota: Quota) -> Result<AnyAlgorithm, ConfigError> {
        if self.has_cost {
            AnyAlgorithm::for_costs(quota, |units, unit| self.build_units(units, unit))
        } else {
            self.build_units(quota, 1)
        }
    }

    /// Builds the algorithm for a quota in units of `unit` permits.
    fn build_units(self, quota: Quota, unit: u64) -> Result<AnyAlgorithm, ConfigError> {
        let ring = || CounterRing::builder(quota).cells(self.cells());
        Ok(match self.algorithm {
            AlgorithmName::Log => TimestampRing::new(quota)?.into(),
            AlgorithmName::Counter => ring().strict().build()?.into(),
            AlgorithmName::Classic => ring().classic().build()?.into(),
            AlgorithmName::Even => ring().even().build()?.into(),
            AlgorithmName::Fixed => CounterRing::fixed_window(quota)?.into(),
            AlgorithmName::Gcra => match self.burst {
                Some(burst) => Gcra::token_bucket(quota, burst / unit)?.into(),
                None => Gcra::new(quota)?.into(),
            },
        })
    }

    /// Replaces the algorithm: the cells stay, and the burst is the limit.
    pub(crate) fn by(self, algorithm: AlgorithmName) -> Self {
        if algorithm == self.algorithm {
            return self;
        }
        Self {
            algorithm,
            burst: None,
            ..self
        }
    }

    /// The limit at which no request is denied if at most `demand` permits are requested in any two windows.
    pub(crate) fn enough(self, demand: u64) -> u64 {
        match self.algorithm {
            // Each cell has an equal share of the limit.
            AlgorithmName::Even => demand.saturating_mul(self.cells()),
            AlgorithmName::Log
            | AlgorithmName::Counter
            | AlgorithmName::Classic
            | AlgorithmName::Gcra
            | AlgorithmName::Fixed => demand,
        }
    }

    /// Whether a key that requests at most `demand` permits in any two windows is never denied.
    ///
    /// No algorithm adds permits that are two windows or more apart: a strict ring has one cell more than the window, and a
    /// bucket drains within two windows.
    #[inline]
    pub(crate) fn never_denies(self, limit: u64, demand: u64) -> bool {
        self.enough(demand) <= limit && demand <= self.burst.unwrap_or(limit)
    }
}
