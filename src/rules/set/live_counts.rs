use core::fmt;

use alloc::sync::Arc;

use super::sharded_counts::ShardedCounts;
use crate::rules::evaluate::rule_states::NamedCounts;

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
    shared: bool,
}

impl<'a> LiveCounts<'a> {
    pub(crate) const fn new(rules: &'a [NamedCounts]) -> Self {
        Self { rules, shared: false }
    }

    /// Creates a handle to the counts of shared rules.
    #[cfg(feature = "shared")]
    pub(crate) const fn shared(rules: &'a [NamedCounts]) -> Self {
        Self { rules, shared: true }
    }

    pub(crate) const fn are_shared(&self) -> bool {
        self.shared
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<ShardedCounts>)> + use<'a> {
        self.rules.iter().map(|rule| (&rule.name, &rule.counts))
    }
}

impl fmt::Debug for LiveCounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.iter().map(|rule| (&rule.name, rule.counts.sum()));
        f.debug_map().entries(rules).finish()
    }
}
