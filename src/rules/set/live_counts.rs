use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::sharded_counts::ShardedCounts;
use crate::rules::evaluate::rule_states::{NamedCounts, RuleStates};

/// A handle to the current counts of rules, for an [`Observer`](crate::observe::Observer).
///
/// The observer keeps what it needs of it, so that it can follow the counts when the rules are gone. Returned by
/// [`RuleSet::live_counts`](crate::RuleSet::live_counts), and for shared rules by the method of that name.
///
/// # Cost
///
/// It borrows, and reads nothing until it is published.
#[derive(Clone, Copy)]
#[must_use = "counts are exported when an observer publishes them"]
pub struct LiveCounts<'a> {
    rules: &'a [NamedCounts],
    /// The states of this process. Those of shared rules are the limiters of this node.
    states: &'a dyn Usage,
    are_shared: bool,
}

/// Rules whose usage can be read, whatever the type of their requests.
trait Usage {
    /// The usage of each rule, in the order of the rules.
    fn of_rules(&self) -> Vec<RuleUsage>;
}

/// The values of a rule that can decrease.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RuleUsage {
    /// The keys with an entry in the table of the rule's first quota, if it has a table.
    pub(crate) tracked_keys: Option<u64>,
    /// Whether the rule limits requests in flight.
    pub(crate) is_in_flight: bool,
}

impl<R: ?Sized> Usage for RuleStates<R> {
    fn of_rules(&self) -> Vec<RuleUsage> {
        let mut of_rules = vec![RuleUsage::default(); self.rules.len()];
        // A retired state is of rules that are not in force any more.
        for state in self.states.iter().filter(|state| !state.retired) {
            for quota in state.quotas.iter().filter(|quota| quota.index == Some(0)) {
                of_rules[usize::from(quota.rule)] = RuleUsage {
                    tracked_keys: state.storage.tracked_keys(),
                    is_in_flight: state.is_in_flight(),
                };
            }
        }
        of_rules
    }
}

impl<'a> LiveCounts<'a> {
    pub(crate) const fn new<R: ?Sized>(states: &'a RuleStates<R>) -> Self {
        Self {
            rules: &states.rules,
            states,
            are_shared: false,
        }
    }

    /// Creates a handle to the counts of shared rules, whose limiters on this node have these states.
    pub(crate) const fn shared<R: ?Sized>(states: &'a RuleStates<R>) -> Self {
        Self {
            are_shared: true,
            ..Self::new(states)
        }
    }

    pub(crate) const fn are_shared(&self) -> bool {
        self.are_shared
    }

    /// The name, the counts and the usage of each rule.
    pub(crate) fn rules(
        &self,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a ShardedCounts, RuleUsage)> + use<'a> {
        let usage = self.states.of_rules();
        let rules = self.rules.iter().enumerate();
        rules.map(move |(at, rule)| {
            let usage = usage.get(at).copied().unwrap_or_default();
            (&rule.name, &rule.counts, usage)
        })
    }
}

impl fmt::Debug for LiveCounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.iter().map(|rule| (&rule.name, rule.counts.sum()));
        f.debug_map().entries(rules).finish()
    }
}
