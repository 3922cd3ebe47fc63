//! The transfer of counts from old rules to new rules, by [the protocol](super).

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::evaluate::extractor::Extractor;
use super::evaluate::key_hashes::Seeds;
use super::evaluate::rule_state::RuleState;
use super::evaluate::rule_states::{NamedCounts, RuleStates};
use super::rule::AnyRule;
use super::rule::error::RuleError;
use super::set::clock_origin::ClockOrigin;
use super::set::compile;
use super::set::sharded_counts::ShardedCounts;
use super::set::validate::{self, Reason};

pub(crate) mod carry_over;
mod reuse_state;
mod successor;

use carry_over::CarryOver;
use successor::Successors;

/// The states of new rules, and the carry-overs that complete the reload.
pub(crate) struct Migration<R: ?Sized> {
    pub(crate) states: RuleStates<R>,
    /// The old states that are enforced in addition until then.
    pub(crate) retired: Vec<Arc<RuleState<R>>>,
    pub(crate) carry_overs: Vec<CarryOver<R>>,
    /// For each retained state: itself, with the names of the new rules, if it stays retained, and otherwise `None`. It stays if
    /// a new state reuses the words into which its permits did not fit.
    pub(crate) retained: Vec<Option<Arc<RuleState<R>>>>,
}

/// Builds the states of new rules, which continue the states of `old` and the `retained` states.
pub(crate) fn migrate<R: ?Sized>(
    rules: &[AnyRule<R>],
    old: Option<&RuleStates<R>>,
    retained: &[Arc<RuleState<R>>],
    seeds: Seeds,
    origin: ClockOrigin,
) -> Result<Migration<R>, RuleError> {
    Reason::all(validate::reasons(rules, rules, origin), rules)?;
    let counts: Vec<ShardedCounts> = rules
        .iter()
        .map(|rule| {
            old.and_then(|old| counts_of(old, rule))
                .unwrap_or_else(ShardedCounts::new)
        })
        .collect();
    let successors = &Successors(rules);
    let old_states = old.iter().flat_map(|old| &old.states);
    let old_states: Vec<&Arc<RuleState<R>>> = old_states.collect();
    let mut still_retained: Vec<_> = retained.iter().map(|_| None).collect();
    let mut retired = RetiredStates(Vec::new());
    let (mut states, mut carry_overs) = (Vec::new(), Vec::new());
    for mut state in compile::states(rules, &seeds, origin)? {
        let predecessors = old_states.iter().copied();
        let predecessors: Vec<&Arc<RuleState<R>>> = predecessors
            .filter(|old| state.succeeds(old, successors))
            .collect();
        let is_reused = state.reuse_state(&predecessors, successors);
        let (mut replaced, mut earlier) = (Vec::new(), Vec::new());
        // Slots that another state holds are released there. Charging them here would hold them for ever. A block is continued in its
        // own words.
        // Claim: rules 8, slots are never charged to other words.
        let carries_over = !state.is_in_flight() && !state.is_block();
        for old in predecessors.into_iter().filter(|_| carries_over) {
            if !old.retired && is_reused && !state.is_renamed_onto(old) {
                continue;
            }
            let list = if old.retired { &mut earlier } else { &mut replaced };
            let old = retired.of(old, successors, &state.extractor);
            if !list.iter().any(|other| Arc::ptr_eq(other, &old)) {
                list.push(old);
            }
        }
        for (old, retained) in retained.iter().zip(&mut still_retained) {
            if !carries_over || !state.succeeds(old, successors) {
                continue;
            }
            // Claim: rules reloading, words that are reused get no permits twice.
            if is_reused {
                *retained = Some(Arc::new(old.retire(successors, &state.extractor)));
                continue;
            }
            let old = retired.of(old, successors, &state.extractor);
            if !earlier.iter().any(|other| Arc::ptr_eq(other, &old)) {
                earlier.push(old);
            }
        }
        let new = Arc::new(state.with_counts(&counts));
        states.push(Arc::clone(&new));
        if !(replaced.is_empty() && earlier.is_empty()) {
            carry_overs.push(CarryOver::new(new, replaced, earlier));
        }
    }
    let named = rules.iter().zip(counts).map(|(rule, counts)| NamedCounts {
        name: Arc::clone(&rule.name),
        counts,
    });
    let states = RuleStates {
        has_slots: states.iter().any(|state| state.is_in_flight()),
        has_blocks: states.iter().any(|state| state.is_block()),
        rules: named.collect(),
        states: states.into_boxed_slice(),
        seeds,
        origin,
    };
    Ok(Migration {
        states,
        retired: retired.0,
        carry_overs,
        retained: still_retained,
    })
}

/// The old states that are enforced in addition to the new ones, one for each storage and scope.
struct RetiredStates<R: ?Sized>(Vec<Arc<RuleState<R>>>);

impl<R: ?Sized> RetiredStates<R> {
    /// Returns the retired copy of `old` for this scope, and adds it if there is none.
    fn of(
        &mut self,
        old: &RuleState<R>,
        successors: &Successors<'_, R>,
        scope: &Extractor<R>,
    ) -> Arc<RuleState<R>> {
        let is_of = |retired: &&Arc<RuleState<R>>| {
            retired.shares_storage_with(old) && retired.extractor.has_scope_of(scope)
        };
        if let Some(retired) = self.0.iter().find(is_of) {
            return Arc::clone(retired);
        }
        let retired = Arc::new(old.retire(successors, scope));
        self.0.push(Arc::clone(&retired));
        retired
    }
}

/// The counts of the old rule with this rule's name, or with the name that it was renamed from.
fn counts_of<R: ?Sized>(old: &RuleStates<R>, rule: &AnyRule<R>) -> Option<ShardedCounts> {
    let of = |name: &Arc<str>| old.rules.iter().find(|old| old.name == *name);
    of(&rule.name)
        .or_else(|| of(rule.renamed_from.as_ref()?))
        .map(|old| old.counts.clone())
}
