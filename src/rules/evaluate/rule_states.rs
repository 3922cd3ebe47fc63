use alloc::boxed::Box;
use alloc::sync::Arc;

use super::key_hashes::Seeds;
use super::rule_state::RuleState;
use crate::rules::set::sharded_counts::ShardedCounts;

/// The states by which the rules of a set decide, and the rules' names and counts: a rule set without its clock.
pub(crate) struct RuleStates<R: ?Sized> {
    /// In the order in which the rules were added.
    pub(crate) rules: Box<[NamedCounts]>,
    pub(crate) states: Box<[Arc<RuleState<R>>]>,
    pub(crate) seeds: Seeds,
}

/// The name of a rule, and what it has counted.
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
        }
    }
}
