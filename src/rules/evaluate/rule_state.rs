use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use super::extractor::{Extracted, Extractor, Handling};
use super::key_hashes::Seeds;
use super::request_limit::{RequestLimit, StatePeek};
use super::state_algorithms::StateAlgorithms;
use super::state_decision::StateDecision;
use super::storage::{StateStorage, StorageLookup};
use crate::algorithm::{AnyAlgorithm, Lowered};
use crate::decision::Peek;
use crate::error::ConfigError;
use crate::keyed::{CapacityLeft, Charged, KeyStates, OnFull};
use crate::own_words::OwnWords;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::rules::rule::AnyRule;
use crate::rules::set::clock_origin::ClockOrigin;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId, ShardedCounts};
use crate::time::Nanos;

/// One state, and the quotas that it decides in one step.
#[derive(Debug)]
pub(crate) struct RuleState<R: ?Sized> {
    /// The quotas: one for each window of the algorithms, in the same order.
    pub(crate) quotas: Box<[StateQuota]>,
    /// The counts of the rules whose first quota is in this state.
    counts: Box<[ShardedCounts]>,
    /// The counts of the other rules that have a quota in this state.
    other_counts: Box<[ShardedCounts]>,
    pub(crate) extractor: Extractor<R>,
    pub(crate) table_capacity: u64,
    pub(crate) on_full: OnFull,
    pub(crate) algorithms: Arc<StateAlgorithms>,
    pub(crate) storage: Arc<StateStorage>,
    /// Whether the state is enforced only until its counts have been charged to its successors.
    pub(crate) retired: bool,
}

/// A copy of the words of one key.
pub(crate) type CopiedWords = smallvec::SmallVec<[crate::sync::AtomicU64; 2]>;

/// One quota of one rule.
#[derive(Clone, Debug)]
pub(crate) struct StateQuota {
    /// The rule's index in its rule set.
    pub(crate) rule: u16,
    pub(crate) name: Arc<str>,
    /// The index of the quota in its rule. `None` for the violations that begin a block.
    pub(crate) index: Option<usize>,
    pub(crate) quota: Quota,
}

/// One quota of a rule, before it has a state: the rule's index, the rule, and the quota's index in the rule.
pub(crate) type QuotaOfRule<'a, R> = (u16, &'a AnyRule<R>, usize);

impl<R: ?Sized> RuleState<R> {
    /// Creates an empty state for these quotas, whose rules agree in all but their windows and limits.
    pub(crate) fn new(
        quotas: &[QuotaOfRule<'_, R>],
        seeds: &Seeds,
        origin: ClockOrigin,
    ) -> Result<Self, ConfigError> {
        let (_, rule, _) = quotas[0];
        let quotas: Box<[StateQuota]> = quotas
            .iter()
            .map(|&(rule_index, rule, index)| StateQuota {
                rule: rule_index,
                name: Arc::clone(&rule.name),
                index: Some(index),
                quota: rule.kind.quotas()[index],
            })
            .collect();
        let windows: Vec<Quota> = quotas.iter().map(|quota| quota.quota).collect();
        let algorithms = StateAlgorithms::new(rule, &windows, origin)?;
        let storage = match rule.key {
            None => StateStorage::Single(OwnWords::new(algorithms.words())),
            Some(_) => StateStorage::Keyed(KeyStates::new(rule.keys(), algorithms.words())?),
        };
        Ok(Self::with_storage(
            quotas,
            Extractor::new(rule, seeds)?,
            rule.keys(),
            rule.on_full,
            algorithms,
            storage,
        ))
    }

    pub(super) fn with_storage(
        quotas: Box<[StateQuota]>,
        extractor: Extractor<R>,
        table_capacity: u64,
        on_full: OnFull,
        algorithms: StateAlgorithms,
        storage: StateStorage,
    ) -> Self {
        Self {
            quotas,
            counts: Box::new([]),
            other_counts: Box::new([]),
            extractor,
            table_capacity,
            on_full,
            algorithms: Arc::new(algorithms),
            storage: Arc::new(storage),
            retired: false,
        }
    }

    /// Returns the state with the counts of its rules. `counts` has those of all rules.
    pub(crate) fn with_counts(self, counts: &[ShardedCounts]) -> Self {
        let (mut first, mut others): (Vec<u16>, Vec<u16>) = Default::default();
        for quota in &self.quotas {
            if quota.index == Some(0) {
                first.push(quota.rule);
            }
        }
        for quota in &self.quotas {
            if !first.contains(&quota.rule) && !others.contains(&quota.rule) {
                others.push(quota.rule);
            }
        }
        let of = |rules: Vec<u16>| {
            let rules = rules.into_iter();
            rules.map(|rule| counts[usize::from(rule)].clone()).collect()
        };
        Self {
            counts: of(first),
            other_counts: of(others),
            ..self
        }
    }

    /// Returns a retired copy over the same storage, with other quotas, scope and algorithms. It counts no events.
    pub(crate) fn as_retired(
        &self,
        quotas: Box<[StateQuota]>,
        scope: &Extractor<R>,
        algorithms: StateAlgorithms,
    ) -> Self {
        Self {
            quotas,
            counts: Box::new([]),
            other_counts: Box::new([]),
            extractor: self.extractor.with_scope_of(scope),
            table_capacity: self.table_capacity,
            on_full: self.on_full,
            algorithms: Arc::new(algorithms),
            storage: Arc::clone(&self.storage),
            retired: true,
        }
    }

    /// Counts an event of a request for each rule whose first quota is in this state. So each rule counts it once, even if its
    /// quotas are in several states.
    #[inline]
    pub(crate) fn count(&self, shard: ShardId, event: RuleEvent) {
        match &*self.counts {
            [counts] => counts.add(shard, event),
            all => all.iter().for_each(|counts| counts.add(shard, event)),
        }
    }

    /// Counts an event of this state for each rule that has a quota in it.
    pub(crate) fn count_state(&self, shard: ShardId, event: RuleEvent) {
        for counts in self.all_counts() {
            counts.add(shard, event);
        }
    }

    fn all_counts(&self) -> impl Iterator<Item = &ShardedCounts> {
        self.counts.iter().chain(&self.other_counts)
    }

    /// Looks up the words of a key.
    #[inline(always)]
    pub(crate) fn find(&self, extracted: &Extracted) -> StorageLookup<'_> {
        self.storage.find(extracted.key)
    }

    /// The most permits that one request of this key would now be granted. Another thread may take them first.
    #[inline(always)]
    pub(crate) fn capacity_left<'a>(
        &'a self,
        extracted: &Extracted,
        found: StorageLookup<'a>,
        now: Nanos,
    ) -> CapacityLeft {
        let mut lower = None;
        let algorithm = self.algorithms.of(extracted.limit, &mut lower);
        found.capacity_left(algorithm, &self.on_full, extracted.key, now)
    }

    /// Decides at the time that `now` returns. `now` is called while memory is being prefetched. There is no receipt.
    #[inline(always)]
    pub(crate) fn decide(&self, extracted: &Extracted, now: impl FnOnce() -> Nanos) -> StateDecision {
        let Extracted {
            key, permits, limit, ..
        } = *extracted;
        let (storage, on_full) = (&*self.storage, &self.on_full);
        let algorithm = &self.algorithms.tiers[limit.tier()];
        match limit.lowered() {
            None => storage.decide(algorithm, on_full, key, now, permits),
            Some(at_most) => {
                let lower = Lowered::at_most(algorithm, at_most);
                storage.decide(&lower, on_full, key, now, permits)
            }
        }
    }

    /// Charges all permits of the request or none. The error is whether the overflow policy denied, because the key had no entry.
    #[inline(always)]
    pub(crate) fn charge<'a>(
        &'a self,
        extracted: &Extracted,
        found: StorageLookup<'a>,
        now: Nanos,
    ) -> Result<Charged, bool> {
        let mut lower = None;
        let algorithm = self.algorithms.of(extracted.limit, &mut lower);
        found.charge(algorithm, &self.on_full, extracted.key, now, extracted.permits)
    }

    /// Refunds a charge. Returns false if the algorithm can no longer refund it.
    pub(crate) fn refund(&self, extracted: &Extracted, receipt: &Receipt, permits: u64) -> bool {
        let mut lower = None;
        let algorithm = self.algorithms.of(extracted.limit, &mut lower);
        self.storage
            .refund(algorithm, &self.on_full, extracted.key, receipt, permits)
    }

    /// Refunds the charge of a request that is not admitted.
    pub(super) fn undo(&self, shard: ShardId, extracted: &Extracted, receipt: &Receipt) {
        // Claim: rules 2, a denied request refunds its charges.
        if !self.refund(extracted, receipt, extracted.permits) {
            self.count_state(shard, RuleEvent::Forfeited(extracted.permits));
        }
    }

    /// Removes the counts of the request's key. Returns false if it has no entry.
    pub(crate) fn reset(&self, extracted: &Extracted, now: Nanos) -> bool {
        let mut lower = None;
        let algorithm = self.algorithms.of(extracted.limit, &mut lower);
        self.storage.reset(algorithm, extracted.key, now)
    }

    pub(crate) fn peek(&self, extracted: &Extracted, now: Nanos) -> StatePeek<'_> {
        // The lookup does not depend on the limit, so a lower limit is applied to its result.
        StatePeek::new(
            self.peek_of_tier(extracted, now),
            self.algorithms.lowered(extracted.limit),
        )
    }

    /// A view of the key's state, with the limit of the request's tier.
    fn peek_of_tier(&self, extracted: &Extracted, now: Nanos) -> Peek<'_, AnyAlgorithm> {
        let algorithm = &self.algorithms.tiers[extracted.limit.tier()];
        self.storage.peek(algorithm, &self.on_full, extracted.key, now)
    }

    /// Copies the words of the key, so that several values are of one moment. `None` if it has none of its own, or too many.
    pub(crate) fn copy_words(&self, extracted: &Extracted, now: Nanos) -> Option<CopiedWords> {
        let copy = self.with_peek(extracted, now, None, |peek| {
            peek.copy_words::<smallvec::SmallVec<[u64; 2]>>()
        });
        Some(copy?.into_iter().map(crate::sync::AtomicU64::new).collect())
    }

    /// Passes a view of the key's words, or of a copy of them, to `read`. The algorithm is borrowed, and not copied as by
    /// [`peek`](Self::peek).
    pub(crate) fn with_peek<T>(
        &self,
        extracted: &Extracted,
        now: Nanos,
        copy: Option<&CopiedWords>,
        read: impl FnOnce(&Peek<'_, AnyAlgorithm>) -> T,
    ) -> T {
        let peek = self.peek_of_tier(extracted, now);
        let lowered = self.algorithms.lowered(extracted.limit);
        let algorithm = lowered.as_ref().unwrap_or_else(|| peek.algorithm());
        let peek = peek.with_algorithm(algorithm);
        match copy {
            Some(words) => read(&peek.with_words(words)),
            None => read(&peek),
        }
    }

    /// A hash of the key and of the state's first quota. A reload that reuses the state does not change it.
    pub(crate) fn id(&self, extracted: &Extracted, seeds: &Seeds) -> u64 {
        let first = self.quotas.first().map(|quota| (&quota.name, quota.index));
        seeds.tables.hash_one((first, extracted.key))
    }

    /// A view of the permits that a key has spent, including debt.
    pub(crate) fn usage_peek(&self, key: u64, now: Nanos) -> Peek<'_, AnyAlgorithm> {
        self.storage
            .peek(&self.algorithms.usage, &OnFull::Share, key, now)
    }

    /// Charges the key as many of `permits` as its words can hold, independent of the limit, and returns this number. `limit` is
    /// that of the request.
    pub(crate) fn charge_debt(&self, key: u64, limit: RequestLimit, now: Nanos, permits: u64) -> u64 {
        let limit = (Some(limit.tier()), limit.lowered());
        self.algorithms
            .charge_debt(&self.storage, key, limit, now, permits)
    }

    /// Charges debt as [`charge_debt`](Self::charge_debt) does, for a request whose tier in this state is unknown. `at_most` is
    /// the lower limit of the request, if it has one.
    pub(crate) fn charge_debt_of_any_tier(
        &self,
        key: u64,
        at_most: Option<u64>,
        now: Nanos,
        permits: u64,
    ) -> u64 {
        self.algorithms
            .charge_debt(&self.storage, key, (None, at_most), now, permits)
    }

    pub(crate) fn limit(&self, quota: usize, extracted: &Extracted) -> u64 {
        let own = || self.quotas[quota].quota.limit();
        let of_tier = self
            .extractor
            .tier_limit(extracted.limit.tier())
            .unwrap_or_else(own);
        extracted.limit.permits(of_tier)
    }

    pub(crate) fn is_in_flight(&self) -> bool {
        self.extractor.handling == Handling::Hold
    }

    pub(crate) fn shares_storage_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Whether a rule of the other state also counts in this state, by the same key.
    pub(crate) fn shares_counts_with(&self, other: &Self) -> bool {
        let here = |theirs| self.all_counts().any(|own| own.is(theirs));
        self.extractor.has_key_of(&other.extractor) && self.is_of_kind(other) && other.all_counts().any(here)
    }

    /// Whether both count permits, both count slots in flight, or both are blocks. Counts of one kind are never charged to another.
    pub(crate) fn is_of_kind(&self, other: &Self) -> bool {
        self.extractor.handling == other.extractor.handling
    }
}
