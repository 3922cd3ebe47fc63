use core::fmt;

use alloc::sync::Arc;

use super::Named;
use super::counts::{RuleCounts, Tallies};

/// The counts of some rules as they go on: what an [`Observer`](crate::Observer) follows, even when the rules are gone.
///
/// Of a [`RuleSet`](crate::RuleSet) by [`live_counts`](crate::RuleSet::live_counts), of rules that many machines share by
/// the method of the same name of `redis::SharedRules` and `redis::SharedLimiter`.
///
/// # Cost
///
/// It borrows, and looks at nothing until it is published.
#[derive(Clone, Copy)]
#[must_use = "counts are shown when an observer publishes them"]
pub struct LiveCounts<'a> {
    names: &'a [Named],
    shared: bool,
}

impl<'a> LiveCounts<'a> {
    pub(super) const fn new(names: &'a [Named]) -> Self {
        Self { names, shared: false }
    }

    /// Of rules that many machines share.
    #[cfg(feature = "redis")]
    pub(super) const fn shared(names: &'a [Named]) -> Self {
        Self { names, shared: true }
    }

    /// Whether many machines share the rules.
    pub(crate) const fn are_shared(&self) -> bool {
        self.shared
    }

    pub(crate) fn tallies(&self) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Tallies>)> + use<'a> {
        self.names.iter().map(|rule| (&rule.name, &rule.tallies))
    }
}

impl fmt::Debug for LiveCounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = |rule: &Named| -> RuleCounts { rule.tallies.sum() };
        let rules = self.names.iter().map(|rule| (&rule.name, counts(rule)));
        f.debug_map().entries(rules).finish()
    }
}
