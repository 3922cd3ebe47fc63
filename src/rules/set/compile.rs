//! The construction of the states of rules.

use alloc::vec::Vec;

use super::clock_origin::ClockOrigin;
use super::validate::MAX_QUOTAS;
use crate::rules::evaluate::key_hashes::Seeds;
use crate::rules::evaluate::rule_state::{QuotaOfRule, RuleState};
use crate::rules::evaluate::state_algorithms::StateAlgorithms;
use crate::rules::rule::AnyRule;
use crate::rules::rule::error::RuleError;

/// A state, and the quotas that it is built from.
type Draft<'a, R> = (RuleState<R>, Vec<QuotaOfRule<'a, R>>);

/// Builds the states of valid rules. All states are empty. It fails only if memory cannot be allocated.
pub(crate) fn states<R: ?Sized>(
    rules: &[AnyRule<R>],
    seeds: &Seeds,
    origin: ClockOrigin,
) -> Result<Vec<RuleState<R>>, RuleError> {
    let mut drafts: Vec<Draft<'_, R>> = Vec::new();
    for (at, rule) in (0..).zip(rules) {
        let windows = rule.kind.quotas();
        for index in 0..windows.len() {
            let alone = [(at, rule, index)];
            // The quota shares the first state that it can, unless the words cannot hold one more window.
            let shared = drafts.iter_mut().find_map(|(state, quotas)| {
                let (_, first_rule, _) = quotas[0];
                if quotas.len() >= MAX_QUOTAS || !first_rule.shares_state_with(rule) {
                    return None;
                }
                let all: Vec<_> = quotas.iter().copied().chain(alone).collect();
                let of_all = RuleState::new(&all, seeds, origin).ok()?;
                // A unit is chosen by the largest limit. A smaller limit keeps its own state, in which it counts exactly.
                let unit = of_all.algorithms.unit();
                let of_quota = || StateAlgorithms::new(rule, &windows[index..=index], origin);
                if unit != state.algorithms.unit() || unit > 1 && of_quota().ok()?.unit() != unit {
                    return None;
                }
                (*state, *quotas) = (of_all, all);
                Some(())
            });
            if shared.is_none() {
                let state =
                    RuleState::new(&alone, seeds, origin).map_err(|error| RuleError::new(rule, error))?;
                drafts.push((state, alone.to_vec()));
            }
        }
    }
    // Blocks come last, so that a rule set of one rule with a block begins with the state of that rule.
    let blocks = (0..).zip(rules).filter_map(|(at, rule)| {
        let state = RuleState::of_block(at, rule, rule.block.as_ref()?, seeds);
        Some(state.map_err(|error| RuleError::new(rule, error)))
    });
    let states = drafts.into_iter().map(|(state, _)| Ok(state));
    states.chain(blocks).collect()
}
