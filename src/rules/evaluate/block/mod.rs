//! The block of a rule: a state of its own, which counts violations of the rule and denies requests of blocked keys.

pub(super) mod filter;

use alloc::boxed::Box;
use alloc::sync::Arc;

use smallvec::SmallVec;

use self::filter::BlockFilter;
use crate::algorithm::Violations;
use crate::error::ConfigError;
use crate::keyed::{KeyStates, OnFull};
use crate::rules::decided_by::DecidedBy;
use crate::rules::evaluate::admitted::Admitted;
use crate::rules::evaluate::denied::{Denied, Violation};
use crate::rules::evaluate::evidence::Evidence;
use crate::rules::evaluate::extractor::{Extracted, Extractor, Handling};
use crate::rules::evaluate::key_hashes::{KeyHashes, Seeds};
use crate::rules::evaluate::rule_state::{RuleState, StateQuota};
use crate::rules::evaluate::rule_states::RuleStates;
use crate::rules::evaluate::state_algorithms::StateAlgorithms;
use crate::rules::evaluate::storage::StateStorage;
use crate::rules::rule::AnyRule;
use crate::rules::rule::block::Block;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};
use crate::time::Nanos;

/// The keys of a rule for each entry of the table of violations.
const KEYS_PER_ENTRY: u64 = 4;

impl<R: ?Sized> RuleState<R> {
    /// Creates the state of the block of the rule with the index `at`.
    pub(crate) fn of_block(
        at: u16,
        rule: &AnyRule<R>,
        block: &Block,
        seeds: &Seeds,
    ) -> Result<Self, ConfigError> {
        let quota = StateQuota {
            rule: at,
            name: Arc::clone(&rule.name),
            index: None,
            quota: block.after,
        };
        let algorithms = StateAlgorithms::block(block);
        let entries = rule.keys().div_ceil(KEYS_PER_ENTRY);
        Ok(Self::with_storage(
            Box::new([quota]),
            Extractor::of_block(rule, seeds)?,
            rule.keys(),
            // A key without an entry is not blocked, and its violations are not counted.
            OnFull::Admit,
            algorithms,
            StateStorage::Keyed(KeyStates::new(entries, 1)?),
        ))
    }

    pub(crate) fn is_block(&self) -> bool {
        self.extractor.handling == Handling::Block
    }

    /// The end of the key's block, if the key is blocked at `now`.
    fn blocked_until(&self, key: u64, now: Nanos) -> Option<Nanos> {
        let peek = self.usage_peek(key, now);
        let remaining = peek.retry_after(1).filter(|after| !after.is_zero())?;
        Some(now.saturating_add(remaining))
    }

    /// Counts a denial of the key, which may begin a block or extend it.
    #[inline(never)]
    fn count_violation(&self, extracted: &Extracted, now: Nanos) {
        let denial = Extracted {
            permits: 1,
            ..*extracted
        };
        let counted = self.charge(&denial, self.find(&denial), now);
        // A key without an entry has no violations. The receipt of the overflow policy has no mark.
        if counted.is_ok_and(|counted| counted.receipt.mark() == Violations::BEGAN) {
            self.count_state(ShardId::current(), RuleEvent::Blocked);
        }
        // Also if another thread began the block, because it may not have raised the filter yet.
        self.raise_filter(extracted.key, now);
    }

    fn raise_filter(&self, key: u64, now: Nanos) {
        if let Some(end) = self.blocked_until(key, now)
            && let Some(filter) = &self.extractor.blocked
        {
            filter.raise(key, end);
        }
    }

    /// The number of blocked keys. Reads every entry.
    fn blocked_keys(&self, now: Nanos) -> u64 {
        let mut blocked = 0;
        if let StateStorage::Keyed(states) = &*self.storage {
            states.table().for_each_key(|key| {
                blocked += u64::from(self.blocked_until(key, now).is_some());
            });
        }
        blocked
    }
}

impl<R: ?Sized> RuleStates<R> {
    /// Decides a request by the state of the only rule, unless its key may be blocked. The only two states are `state`, of the rule,
    /// and `block`.
    #[inline(always)]
    pub(super) fn check_one_with_block<'a, E: Evidence<'a>>(
        &'a self,
        (state, block, filter): (&RuleState<R>, &RuleState<R>, &BlockFilter),
        request: &'a R,
        now: impl FnOnce() -> Nanos,
        mut hashes: Option<&mut KeyHashes>,
        evidence: &mut E,
    ) -> Result<Admitted, Denied<'a, R>> {
        let extracted = match hashes.as_deref_mut() {
            Some(hashes) => state.extractor.extract_with(request, &self.seeds, hashes),
            None => state.extractor.extract(request, &self.seeds),
        };
        let Some(extracted) = extracted else {
            return Ok(Admitted::new(DecidedBy::Rules, now()));
        };
        if !extracted.enforced || extracted.handling != Handling::Charge {
            return self.check_all(request, now, hashes, evidence);
        }
        let end = filter.end(extracted.key);
        let now = now();
        if end > now && extracted.permits > 0 && block.blocked_until(extracted.key, now).is_some() {
            if E::KEPT {
                return self.check_all(request, || now, hashes, evidence);
            }
            return Err(self.deny_blocked(&extracted, request, now, evidence));
        }
        self.check_one(state, &extracted, request, || now, evidence)
    }

    /// Denies a request of a blocked key. The only two states are that of the rule and that of its block.
    #[cold]
    #[inline(never)]
    fn deny_blocked<'a, E: Evidence<'a>>(
        &'a self,
        extracted: &Extracted,
        request: &'a R,
        now: Nanos,
        evidence: &mut E,
    ) -> Denied<'a, R> {
        let mut violations = SmallVec::new();
        self.add_violations(0, extracted, now, false, |violation| violations.push(violation));
        violations.push(Violation { state: 1, quota: 0 });
        self.denied(ShardId::current(), request, now, violations, evidence)
    }

    /// Counts a denial by these quotas: once for each of their rules, and unless the request waits, as a violation of rules with
    /// a block.
    #[inline(always)]
    pub(super) fn denied<'a, E: Evidence<'a>>(
        &'a self,
        shard: ShardId,
        request: &'a R,
        now: Nanos,
        violations: SmallVec<[Violation; 8]>,
        evidence: &mut E,
    ) -> Denied<'a, R> {
        self.count_denied(shard, &violations, |violation| self.rule_of(violation));
        if E::COUNTS_VIOLATIONS && self.has_blocks {
            self.count_violations(request, &violations, now);
            evidence.update_blocks(self, request, now);
        }
        Denied::new(self, request, now, violations)
    }

    /// Counts a denial as a violation of each rule that denied the request, and extends the blocks that denied it.
    #[cold]
    #[inline(never)]
    fn count_violations(&self, request: &R, violations: &[Violation], now: Nanos) {
        for block in self.states.iter().filter(|state| state.is_block()) {
            let rule = block.quotas[0].rule;
            let of_rule = violations
                .iter()
                .filter(|violation| self.rule_of(violation) == rule);
            let denied_by = of_rule.map(|violation| &self.states[usize::from(violation.state)]);
            let Some(first) = denied_by.clone().next() else {
                continue;
            };
            let is_retry = denied_by.clone().any(|state| state.is_block());
            if is_retry && !block.algorithms.extends_blocks() {
                continue;
            }
            let Some(extracted) = block.extractor.extract_for_block(request, &self.seeds) else {
                continue;
            };
            if is_retry || extracted.enforced && self.is_violation(first, request, now) {
                block.count_violation(&extracted, now);
            }
        }
    }

    /// Whether a denial by this state is a violation: the words of the key have denied it.
    fn is_violation(&self, state: &RuleState<R>, request: &R, now: Nanos) -> bool {
        let extracted = state.extractor.extract(request, &self.seeds);
        extracted.is_some_and(|extracted| {
            !extracted.is_denied() && !state.peek(&extracted, now).get().is_overflow()
        })
    }

    /// Forgets the violations and blocks of the request's keys. Returns the number of rules that had blocked them.
    pub(crate) fn unblock(&self, request: &R, now: Nanos) -> usize {
        let blocks = self.states.iter().filter(|state| state.is_block());
        let unblocked = blocks.filter(|block| {
            let extracted = block.extractor.extract_for_block(request, &self.seeds);
            extracted.is_some_and(|extracted| {
                let was_blocked = block.blocked_until(extracted.key, now).is_some();
                block.reset(&extracted, now) && was_blocked
            })
        });
        unblocked.count()
    }

    /// The name of each rule with a block, and the number of its blocked keys.
    pub(crate) fn blocked(&self, now: Nanos) -> impl Iterator<Item = (&str, u64)> {
        let blocks = self.states.iter().filter(|state| state.is_block());
        blocks.map(move |block| (&*block.quotas[0].name, block.blocked_keys(now)))
    }
}
