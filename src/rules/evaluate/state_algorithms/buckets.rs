//! The algorithms of a gcra rule.

use alloc::vec::Vec;

use super::StateAlgorithms;
use super::word_layout::WordLayout;
use crate::algorithm::{AnyAlgorithm, Gcra};
use crate::error::ConfigError;
use crate::quota::Quota;

impl StateAlgorithms {
    pub(super) fn gcra(quota: Quota, burst: Option<u64>, tiers: Vec<u64>) -> Result<Self, ConfigError> {
        let burst = burst.unwrap_or(quota.limit());
        let own = Gcra::token_bucket(quota, burst)?;
        let mut buckets = alloc::vec![own];
        for &limit in &tiers {
            // The burst is proportional to the limit, rounded down.
            let burst = u128::from(burst) * u128::from(limit) / u128::from(quota.limit());
            let burst = u64::try_from(burst).unwrap_or(u64::MAX).max(1);
            let tier = Quota::new(limit, quota.window())?;
            buckets.push(Gcra::token_bucket(tier, burst)?);
        }
        let usage = buckets.iter().fold(&buckets[0], Gcra::faster).clone();
        let layout = WordLayout::Gcra { quota, burst, tiers };
        Ok(Self::of_buckets(&buckets, &usage, layout))
    }

    /// Buckets over one word. Each takes into account how far ahead of the clock the others may leave the word.
    fn of_buckets(buckets: &[Gcra], usage: &Gcra, layout: WordLayout) -> Self {
        let informed = |bucket: &Gcra| {
            let all = buckets.iter();
            all.fold(bucket.clone(), |bucket, other| bucket.following(other))
        };
        let slowest = (0..buckets.len()).max_by_key(|&at| buckets[at].time_per_permit());
        let unlimited = buckets.iter().map(|bucket| informed(bucket).bottomless().into());
        Self {
            unlimited: unlimited.collect(),
            tiers: buckets.iter().map(|bucket| informed(bucket).into()).collect(),
            slowest: slowest.unwrap_or(0),
            usage: informed(usage).bottomless().into(),
            layout,
            units: None,
        }
    }

    /// The permits that are charged to these algorithms for `spent` permits that count in a state of `before`.
    ///
    /// A bucket whose rate was lowered pays the debt of the old rate in the time in which the old bucket would have paid it. So
    /// it is charged fewer permits, each of which takes longer. This requires that the burst takes no longer to refill than that
    /// of `before`.
    pub(crate) fn carried(&self, before: &Self, spent: u64) -> u64 {
        let ([own], [old]) = (&*self.tiers, &*before.tiers) else {
            return spent;
        };
        let (Some((bucket, unit)), Some((old, old_unit))) = (own.bucket(), old.bucket()) else {
            return spent;
        };
        let Some((usage, _)) = before.usage.bucket() else {
            return spent;
        };
        if !bucket.can_keep_time_of(old) {
            return spent;
        }
        // All factors are below 2^63, and the product of a unit and a time per permit is below 2^63, too: it is at most a window.
        let time = u128::from(spent.div_ceil(old_unit)) * u128::from(usage.time_per_permit());
        let units = time.div_ceil(u128::from(bucket.time_per_permit()));
        let permits = units.saturating_mul(u128::from(unit));
        u64::try_from(permits).map_or(spent, |permits| permits.min(spent))
    }

    /// These algorithms, over the words of another bucket. `None` if they would read less from the words than was charged.
    pub(super) fn bucket_over(&self, before: &Self) -> Option<Self> {
        let ([AnyAlgorithm::Gcra(bucket)], [AnyAlgorithm::Gcra(old)]) = (&*self.tiers, &*before.tiers) else {
            return None;
        };
        let AnyAlgorithm::Gcra(fastest) = &before.usage else {
            return None;
        };
        bucket.can_follow(old, fastest).then(|| {
            let bucket = bucket.clone().following(old);
            let usage = bucket.faster(fastest).clone();
            Self::of_buckets(&[bucket], &usage, self.layout.clone())
        })
    }
}
