use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::rule::{Rule, RuleAlgorithm};
use crate::algorithm::{Algorithm, AnyAlgorithm, CounterRing, Gcra, TimestampRing};
use crate::error::ConfigError;
use crate::quota::Quota;

/// The algorithms that decide over one state.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// The rule's own, and then those of its tiers.
    pub(super) tiers: Box<[AnyAlgorithm]>,
    /// For each of them, the same without regard to its limit: books what was spent elsewhere.
    bookers: Box<[AnyAlgorithm]>,
    /// The place of the booker to which a permit means most.
    slowest: usize,
    /// Says what was spent, no less than under any policy that the words were written by.
    pub(super) gauge: AnyAlgorithm,
    layout: Layout,
}

/// What the words mean: policies with the same layout can decide over the same words.
#[derive(Clone, Debug)]
enum Layout {
    Counter {
        algorithm: RuleAlgorithm,
        cells: u64,
        windows: Vec<Duration>,
        /// With the highest limit that the words have room for: all others are lowered from it.
        roomy: Box<CounterRing>,
    },
    Log(Quota),
    Gcra {
        quota: Quota,
        burst: u64,
        tiers: Vec<u64>,
    },
}

impl Policy {
    /// What a rule says, for some of its quotas and those of rules that share a state with it.
    pub(super) fn new<R: ?Sized>(rule: &Rule<R>, quotas: &[Quota]) -> Result<Self, ConfigError> {
        let only = |field, given: Option<u64>, allowed: &str| match given {
            Some(given) => Err(ConfigError::new(field, format!("{given}"), allowed)),
            None => Ok(()),
        };
        match rule.algorithm {
            RuleAlgorithm::Gcra => only("cells", rule.cells, "nothing for a gcra rule")?,
            RuleAlgorithm::Log => only("cells", rule.cells, "nothing for a log rule")?,
            RuleAlgorithm::Fixed => only(
                "cells",
                rule.cells,
                "nothing for a fixed window, which is one cell",
            )?,
            _ => {}
        }
        if rule.algorithm != RuleAlgorithm::Gcra {
            only("burst", rule.burst, "nothing but for a gcra rule")?;
        }
        let tiers: Vec<u64> = rule.tiers.iter().map(|&(_, limit)| limit).collect();
        match rule.algorithm {
            RuleAlgorithm::Log => {
                if let Some(limit) = tiers.first() {
                    return Err(ConfigError::new(
                        "tiers",
                        format!("a tier of {limit} permits"),
                        "no tiers for a log rule, which has one slot per permit",
                    ));
                }
                let log = AnyAlgorithm::from(TimestampRing::new(quotas[0])?);
                Ok(Self {
                    tiers: Box::new([log.clone()]),
                    bookers: Box::new([log.clone()]),
                    slowest: 0,
                    gauge: log,
                    layout: Layout::Log(quotas[0]),
                })
            }
            RuleAlgorithm::Gcra => Self::gcra(quotas[0], rule.burst, tiers),
            algorithm => Self::counter(algorithm, rule.cells_or_default(), quotas, &tiers),
        }
    }

    fn counter(
        algorithm: RuleAlgorithm,
        cells: u64,
        quotas: &[Quota],
        tiers: &[u64],
    ) -> Result<Self, ConfigError> {
        let ring = |algorithm, quotas: &[Quota]| {
            let mut ring = CounterRing::builder(quotas[0]).cells(cells);
            for &quota in &quotas[1..] {
                ring = ring.also(quota);
            }
            match algorithm {
                RuleAlgorithm::Classic => ring.classic().build(),
                RuleAlgorithm::Even => ring.even().build(),
                RuleAlgorithm::Fixed => ring.classic().cells(1).build(),
                _ => ring.build(),
            }
        };
        let own = quotas.iter().map(|quota| quota.limit());
        let highest = own.clone().chain(tiers.iter().copied()).max().unwrap_or(1);
        let limits = |limit| -> Result<Vec<Quota>, ConfigError> {
            let with_limit = |quota: &Quota| Quota::new(limit, quota.window());
            quotas.iter().map(with_limit).collect()
        };
        // What is wrong with the limits that were given is said of them.
        ring(algorithm, quotas)?;
        let least = ring(algorithm, &limits(highest)?)?;
        let roomy = (1..=40)
            .rev()
            .map(|bits| Quota::MAX_LIMIT.min((1 << bits) - 1))
            .take_while(|&limit| limit > highest)
            .find_map(|limit| {
                let ring = ring(algorithm, &limits(limit).ok()?).ok()?;
                (ring.words() == least.words()).then_some(ring)
            })
            .unwrap_or(least);
        for &limit in tiers {
            Quota::new(limit, quotas[0].window())?;
        }
        // An even ring's shares leave less room than there is; a classic one has the same words and no shares.
        let booker = match algorithm {
            RuleAlgorithm::Even => ring(RuleAlgorithm::Classic, &limits(roomy.limits()[0])?)?,
            _ => roomy.clone(),
        };
        let layout = Layout::Counter {
            algorithm,
            cells,
            windows: quotas.iter().map(|quota| quota.window()).collect(),
            roomy: Box::new(roomy),
        };
        Self::of_rings(layout, booker.into(), own.collect(), tiers)
    }

    /// Of rings over one state, with their own limits and those of tiers.
    fn of_rings(
        layout: Layout,
        booker: AnyAlgorithm,
        own: Vec<u64>,
        tiers: &[u64],
    ) -> Result<Self, ConfigError> {
        let Layout::Counter { roomy, .. } = &layout else {
            unreachable!("of rings")
        };
        let mut algorithms = alloc::vec![AnyAlgorithm::from(roomy.with_limits(&own)?)];
        for &limit in tiers {
            algorithms.push(roomy.with_limits(&[limit])?.into());
        }
        Ok(Self {
            bookers: algorithms.iter().map(|_| booker.clone()).collect(),
            tiers: algorithms.into_boxed_slice(),
            slowest: 0,
            gauge: booker,
            layout,
        })
    }

    fn gcra(quota: Quota, burst: Option<u64>, tiers: Vec<u64>) -> Result<Self, ConfigError> {
        let burst = burst.unwrap_or(quota.limit());
        let own = Gcra::token_bucket(quota, burst)?;
        let mut algorithms = alloc::vec![own];
        for &limit in &tiers {
            // In proportion, as far as there are whole permits.
            let burst = u128::from(burst) * u128::from(limit) / u128::from(quota.limit());
            let burst = u64::try_from(burst).unwrap_or(u64::MAX).max(1);
            let tier = Quota::new(limit, quota.window())?;
            algorithms.push(Gcra::token_bucket(tier, burst)?);
        }
        let gauge = algorithms.iter().fold(&algorithms[0], Gcra::faster).clone();
        Ok(Self::of_buckets(
            algorithms,
            &gauge,
            Layout::Gcra { quota, burst, tiers },
        ))
    }

    /// Of buckets over one word, so that each knows how far ahead the others may have left it.
    fn of_buckets(buckets: Vec<Gcra>, gauge: &Gcra, layout: Layout) -> Self {
        let aware = |bucket: &Gcra| {
            let all = buckets.iter();
            all.fold(bucket.clone(), |bucket, other| bucket.following(other))
        };
        let slowest = (0..buckets.len()).max_by_key(|&at| buckets[at].time_per_permit());
        Self {
            bookers: buckets
                .iter()
                .map(|bucket| aware(bucket).bottomless().into())
                .collect(),
            tiers: buckets.iter().map(|bucket| aware(bucket).into()).collect(),
            slowest: slowest.unwrap_or(0),
            gauge: aware(gauge).bottomless().into(),
            layout,
        }
    }

    /// The same policy over words that `before` has written, if it can decide by them as if they were its
    /// own, whatever limits there were.
    pub(super) fn following(&self, before: &Self) -> Option<Self> {
        match (&self.layout, &before.layout) {
            (
                Layout::Counter {
                    algorithm,
                    cells,
                    windows,
                    ..
                },
                Layout::Counter {
                    algorithm: old_algorithm,
                    cells: old_cells,
                    windows: old_windows,
                    ..
                },
            ) => {
                let limits = |algorithm: &AnyAlgorithm| match algorithm {
                    AnyAlgorithm::Counter(ring) => ring.limits(),
                    _ => Vec::new(),
                };
                let tiers: Vec<u64> = self.tiers[1..].iter().flat_map(limits).collect();
                let same = (algorithm, cells, windows) == (old_algorithm, old_cells, old_windows);
                let (layout, booker) = (before.layout.clone(), before.gauge.clone());
                // In the old words, whatever the limits are now, as long as they have room for them.
                let policy = || Self::of_rings(layout, booker, limits(&self.tiers[0]), &tiers).ok();
                same.then(policy)?
            }
            (Layout::Log(quota), Layout::Log(old)) => (quota == old).then(|| self.clone()),
            (
                Layout::Gcra { quota, burst, tiers },
                Layout::Gcra {
                    quota: old_quota,
                    burst: old_burst,
                    tiers: old_tiers,
                },
            ) => {
                if (quota, burst, tiers) == (old_quota, old_burst, old_tiers) {
                    // It knows of all that there were before.
                    return Some(before.clone());
                }
                let ([AnyAlgorithm::Gcra(bucket)], [AnyAlgorithm::Gcra(then)]) =
                    (&*self.tiers, &*before.tiers)
                else {
                    return None;
                };
                let AnyAlgorithm::Gcra(fastest) = &before.gauge else {
                    return None;
                };
                bucket.can_follow(then, fastest).then(|| {
                    let bucket = bucket.clone().following(then);
                    let gauge = bucket.faster(fastest).clone();
                    Self::of_buckets(alloc::vec![bucket], &gauge, self.layout.clone())
                })
            }
            _ => None,
        }
    }

    /// The same, where some of the rules that it is made of hold no longer.
    pub(super) fn without(&self, gone: impl Fn(usize) -> bool) -> Self {
        let (AnyAlgorithm::Counter(ring), Layout::Counter { roomy, .. }) = (&self.tiers[0], &self.layout)
        else {
            return self.clone();
        };
        let limits = ring.limits().into_iter().zip(roomy.limits());
        let limits: Vec<u64> = limits
            .enumerate()
            .map(|(place, (own, roomy))| if gone(place) { roomy } else { own })
            .collect();
        let mut policy = self.clone();
        if let Ok(ring) = roomy.with_limits(&limits) {
            policy.tiers[0] = ring.into();
        }
        policy
    }

    /// Books debt of somebody in this tier; `None`: of nobody knows which.
    pub(super) fn booker(&self, tier: Option<usize>) -> &AnyAlgorithm {
        &self.bookers[tier.unwrap_or(self.slowest)]
    }

    pub(super) fn words(&self) -> usize {
        self.tiers[0].words()
    }
}
