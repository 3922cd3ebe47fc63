use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::rule::{Rule, RuleAlgorithm};
use crate::algorithm::{Algorithm, AnyAlgorithm, CounterRing, Gcra, TimestampRing};
use crate::error::ConfigError;
use crate::quota::Quota;

/// The algorithms that decide over one state: one for each tier, and the one that books debt.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// Over the same words, with the highest limit that these have room for: for booking what
    /// was spent elsewhere, and for reloads to raise the limit by.
    pub(super) roomy: AnyAlgorithm,
    /// The rule's own, and then those of its tiers.
    pub(super) tiers: Box<[AnyAlgorithm]>,
    layout: Layout,
}

/// What the words mean: policies with the same layout can decide over the same words.
#[derive(Clone, Debug, PartialEq)]
enum Layout {
    Counter {
        algorithm: RuleAlgorithm,
        cells: u64,
        windows: Vec<Duration>,
        roomy: u64,
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
                let log = TimestampRing::new(quotas[0])?;
                Ok(Self {
                    roomy: log.clone().into(),
                    tiers: Box::new([log.into()]),
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
        let mut algorithms = alloc::vec![roomy.lowered_to(&own.collect::<Vec<_>>())?.into()];
        for &limit in tiers {
            let tier = Quota::new(limit, quotas[0].window())?;
            algorithms.push(roomy.lowered_to(&[tier.limit()])?.into());
        }
        Ok(Self {
            tiers: algorithms.into_boxed_slice(),
            layout: Layout::Counter {
                algorithm,
                cells,
                windows: quotas.iter().map(|quota| quota.window()).collect(),
                roomy: roomy.limits()[0],
            },
            roomy: match algorithm {
                // The same words, without the shares, which leave less room than there is.
                RuleAlgorithm::Even => ring(RuleAlgorithm::Classic, &limits(roomy.limits()[0])?)?,
                _ => roomy,
            }
            .into(),
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
        Ok(Self::of_buckets(algorithms, Layout::Gcra { quota, burst, tiers }))
    }

    /// Of buckets over one word, so that each knows how far ahead the others may have left it.
    fn of_buckets(buckets: Vec<Gcra>, layout: Layout) -> Self {
        let aware = |bucket: &Gcra| {
            let all = buckets.iter();
            all.fold(bucket.clone(), |bucket, other| bucket.following(other))
        };
        Self {
            roomy: aware(&buckets[0]).bottomless().into(),
            tiers: buckets.iter().map(|bucket| aware(bucket).into()).collect(),
            layout,
        }
    }

    /// The same policy over words that `before` has written, if it can decide by them as if they were its
    /// own, whatever limits there were.
    pub(super) fn following(&self, before: &Self) -> Option<Self> {
        if self.layout == before.layout {
            // A bucket knows of all that there were before.
            let bucket = matches!(self.layout, Layout::Gcra { .. });
            return Some(if bucket { before } else { self }.clone());
        }
        let (Layout::Gcra { tiers, .. }, Layout::Gcra { tiers: old, .. }) = (&self.layout, &before.layout)
        else {
            return None;
        };
        let ([AnyAlgorithm::Gcra(bucket)], [AnyAlgorithm::Gcra(then)]) = (&*self.tiers, &*before.tiers)
        else {
            return None;
        };
        (tiers.is_empty() && old.is_empty() && bucket.can_follow(then)).then(|| {
            let bucket = bucket.clone().following(then);
            Self::of_buckets(alloc::vec![bucket], self.layout.clone())
        })
    }

    pub(super) fn words(&self) -> usize {
        self.roomy.words()
    }
}
