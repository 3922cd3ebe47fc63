//! The algorithm of a quota, apart from a rule set.

use ringgate::algorithm::Reclaim;
use ringgate::rules::Cost;
use ringgate::{AnyAlgorithm, ConfigError, CounterRing, Key, Quota, Rule};

use crate::args::{AlgorithmName, Cells};

/// An algorithm and its parameters, without a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlgorithmSpec {
    pub(crate) algorithm: AlgorithmName,
    pub(crate) cells: Option<u64>,
    pub(crate) burst: Option<u64>,
    /// Whether requests have a cost, so that a large limit may count units of permits.
    pub(crate) has_cost: bool,
    /// Whether each key has its own counts.
    pub(crate) has_key: bool,
    /// Whether other quotas share the state, so that a sliding window counts in cells.
    pub(crate) shares_state: bool,
    /// The lowest and the highest limit of the tiers.
    pub(crate) tiers: Option<(u64, u64)>,
}

impl AlgorithmSpec {
    /// Cells per window, if they do not depend on the limit.
    pub(crate) const fn cells(self) -> Option<u64> {
        match (self.algorithm.cells(), self.cells) {
            (Cells::None, _) => None,
            (Cells::Default(cells), None) => Some(cells),
            (Cells::Chosen | Cells::Default(_), given) => given,
        }
    }

    /// Builds the algorithm for a quota, as a rule set does: a rule of the library chooses it.
    ///
    /// # Errors
    ///
    /// When the algorithm does not support the quota.
    pub(crate) fn build(self, quota: Quota) -> Result<AnyAlgorithm, ConfigError> {
        let mut rule = Rule::<()>::new("quota", quota).algorithm(self.algorithm.of_rule());
        let is_sliding_window = self.algorithm == AlgorithmName::SlidingWindow;
        let shared = (self.shares_state && is_sliding_window).then_some(CounterRing::DEFAULT_CELLS);
        if let Some(cells) = self.cells.or(shared) {
            rule = rule.cells(cells);
        }
        if let Some(burst) = self.burst {
            rule = rule.burst(burst);
        }
        if self.has_cost {
            rule = rule.cost(&Cost::new("cost", |()| 1));
        }
        if self.has_key {
            rule = rule.by(&Key::new("key", |(), _| {}));
        }
        // Only the choice of a sliding window depends on the limits of tiers.
        if let (true, Some((lowest, highest))) = (is_sliding_window, self.tiers) {
            rule = rule.tier("lowest", lowest).tier("highest", highest);
        }
        rule.algorithm_for(quota)
    }

    /// Replaces the algorithm: the cells stay unless it has none or chooses them, and the burst is the limit.
    pub(crate) fn by(self, algorithm: AlgorithmName) -> Self {
        if algorithm == self.algorithm {
            return self;
        }
        Self {
            algorithm,
            burst: None,
            cells: self
                .cells
                .filter(|_| matches!(algorithm.cells(), Cells::Default(_))),
            ..self
        }
    }

    /// The limit at which no request is denied if at most `demand` permits are requested in any two windows of `quota`.
    pub(crate) fn enough(self, demand: u64, quota: Quota) -> u64 {
        let mut limit = demand;
        loop {
            let policy = Quota::new(limit, quota.window()).and_then(|quota| self.build(quota));
            let needed = self.needed(demand, policy.as_ref().map_or(1, unit));
            if needed <= limit {
                return limit;
            }
            // A unit is a part of the limit, so the limits that are tried converge.
            limit = needed;
        }
    }

    /// Whether a key that requests at most `demand` permits in any two windows is never denied by `policy`, which was built for
    /// this limit.
    #[inline]
    pub(crate) fn never_denies(self, policy: &AnyAlgorithm, limit: u64, demand: u64) -> bool {
        self.needed(demand, unit(policy)) <= limit && demand <= self.burst.unwrap_or(limit)
    }

    /// The limit that admits `demand` permits in any two windows, for an algorithm that counts units of `unit` permits.
    ///
    /// No algorithm adds permits that are two windows or more apart: a strict ring has one cell more than the window, and a
    /// bucket drains within two windows. The oldest unit that a ring counts may have older permits, but not only such.
    fn needed(self, demand: u64, unit: u64) -> u64 {
        let shares = match self.algorithm.has_shares() {
            true => self.cells().unwrap_or(1),
            false => 1,
        };
        demand.saturating_mul(shares).saturating_add(unit - 1)
    }
}

/// The number of permits in a unit that the algorithm counts.
fn unit(policy: &AnyAlgorithm) -> u64 {
    policy.cells_and_unit().map_or(1, |(_, unit)| unit)
}
