use alloc::boxed::Box;
use alloc::sync::Arc;

/// The tiers of a rule by their names: a request compares at most log₂ n + 1 of n names.
#[derive(Clone, Debug)]
pub(super) struct TierIndex {
    /// In the order of the rule.
    limits: Box<[u64]>,
    /// In the order of the names, each with the number of its tier, from 1.
    numbers: Box<[(Arc<str>, usize)]>,
}

impl TierIndex {
    /// Indexes tiers whose names differ.
    pub(super) fn new(tiers: &[(Arc<str>, u64)]) -> Self {
        let names = tiers.iter().map(|(name, _)| Arc::clone(name));
        let mut numbers: Box<[_]> = names.zip(1..).collect();
        numbers.sort_unstable();
        Self {
            limits: tiers.iter().map(|&(_, limit)| limit).collect(),
            numbers,
        }
    }

    #[cfg(feature = "tokio")]
    pub(super) const fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// The number of the tier with this name, from 1.
    pub(super) fn number(&self, name: &str) -> Option<usize> {
        let found = self.numbers.binary_search_by(|(tier, _)| (**tier).cmp(name));
        found.ok().map(|index| self.numbers[index].1)
    }

    /// The limit of the tier with this number; `None` for 0, which is no tier.
    pub(super) fn limit(&self, number: usize) -> Option<u64> {
        Some(self.limits[number.checked_sub(1)?])
    }
}
