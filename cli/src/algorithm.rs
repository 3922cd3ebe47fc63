//! Algorithms as rules name them, each by itself.

use ringgate::{AnyAlgorithm, ConfigError, CounterRing, Gcra, Quota, TimestampRing};

use crate::args::AlgorithmName;

/// How a rule counts, whatever its quota is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counting {
    pub(crate) algorithm: AlgorithmName,
    pub(crate) cells: Option<u64>,
    pub(crate) burst: Option<u64>,
}

impl Counting {
    /// Cells per window.
    pub(crate) fn cells(self) -> u64 {
        self.cells.unwrap_or(CounterRing::DEFAULT_CELLS)
    }

    /// What decides by this quota.
    ///
    /// # Errors
    ///
    /// When the algorithm cannot have such a quota.
    pub(crate) fn build(self, quota: Quota) -> Result<AnyAlgorithm, ConfigError> {
        let ring = || CounterRing::builder(quota).cells(self.cells());
        Ok(match self.algorithm {
            AlgorithmName::Log => TimestampRing::new(quota)?.into(),
            AlgorithmName::Counter => ring().strict().build()?.into(),
            AlgorithmName::Classic => ring().classic().build()?.into(),
            AlgorithmName::Even => ring().even().build()?.into(),
            AlgorithmName::Fixed => CounterRing::fixed_window(quota)?.into(),
            AlgorithmName::Gcra => match self.burst {
                Some(burst) => Gcra::token_bucket(quota, burst)?.into(),
                None => Gcra::new(quota)?.into(),
            },
        })
    }

    /// The same by another algorithm: with these cells, and the limit as the burst.
    pub(crate) fn by(self, algorithm: AlgorithmName) -> Self {
        if algorithm == self.algorithm {
            return self;
        }
        Self {
            algorithm,
            cells: self.cells,
            burst: None,
        }
    }

    /// How many permits may be asked in two windows so that nobody is refused whatever the order: all of these.
    pub(crate) fn enough(self, asked: u64) -> u64 {
        match self.algorithm {
            // A cell has its share.
            AlgorithmName::Even => asked.saturating_mul(self.cells()),
            _ => asked,
        }
    }

    /// Whether a key that never asks for more in two windows is never refused.
    ///
    /// No algorithm sums more than what is less than two windows apart: the cells of a strict ring are one more than
    /// one window, and a bucket that holds so much runs empty in two.
    #[inline]
    pub(crate) fn never_refuses(self, limit: u64, asked: u64) -> bool {
        self.enough(asked) <= limit && asked <= self.burst.unwrap_or(limit)
    }
}
