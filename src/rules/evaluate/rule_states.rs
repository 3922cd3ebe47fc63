use alloc::boxed::Box;
use alloc::sync::Arc;

use super::key_hashes::Seeds;
use super::rule_state::RuleState;
use crate::rules::set::clock_origin::ClockOrigin;
use crate::rules::set::sharded_counts::ShardedCounts;

/// A rule set without its clock: the states that decide, and the names and counts of the rules.
pub(crate) struct RuleStates<R: ?Sized> {
    /// The names and counts, in the order in which the rules were added.
    pub(crate) rules: Box<[NamedCounts]>,
    pub(crate) states: Box<[Arc<RuleState<R>>]>,
    pub(crate) seeds: Seeds,
    pub(crate) origin: ClockOrigin,
    /// Whether a state limits requests in flight.
    pub(crate) has_slots: bool,
    /// Whether a state is the block of a rule.
    pub(crate) has_blocks: bool,
}

/// The name and the counts of a rule.
#[derive(Clone, Debug)]
pub(crate) struct NamedCounts {
    pub(crate) name: Arc<str>,
    pub(crate) counts: Arc<ShardedCounts>,
}

impl<R: ?Sized> Clone for RuleStates<R> {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
            states: self.states.clone(),
            seeds: self.seeds.clone(),
            origin: self.origin,
            has_slots: self.has_slots,
            has_blocks: self.has_blocks,
        }
    }
}
