use alloc::sync::Arc;
use alloc::vec::Vec;

use super::rule_metrics::{RuleGauges, RuleMetrics, RuleTotals};
use crate::rules::{RuleUsage, ShardedCounts};

/// The metrics of one rule name, and the counts that they are computed from.
///
/// A source is kept as long as a rule set, a decision in progress or a reservation can still count there. Then its last value is
/// added to `ended`. So no count is lost when a rule is removed, and no metric decreases when the rule is added again with fresh
/// counts.
pub(super) struct RuleSeries {
    rule: Arc<str>,
    metrics: RuleMetrics,
    gauges: RuleGauges,
    sources: Vec<CountSource>,
    ended: RuleTotals,
}

/// The counts of a rule in one rule set.
struct CountSource {
    counts: ShardedCounts,
    /// The part that was counted under another name.
    elsewhere: RuleTotals,
    /// As of the last call with the rule set that it belongs to.
    usage: RuleUsage,
}

impl RuleSeries {
    pub(super) fn new(rule: &Arc<str>) -> Self {
        Self {
            rule: Arc::clone(rule),
            gauges: RuleGauges::default(),
            metrics: RuleMetrics::register(rule),
            sources: Vec::new(),
            ended: RuleTotals::default(),
        }
    }

    pub(super) fn register_shared(&mut self, rule: &Arc<str>) {
        self.metrics.register_shared(rule);
    }

    pub(super) fn has(&self, counts: &ShardedCounts) -> bool {
        self.sources.iter().any(|source| source.is(counts))
    }

    /// Adds a source. Its part `elsewhere` was counted under another name.
    pub(super) fn add(&mut self, counts: &ShardedCounts, elsewhere: RuleTotals) {
        self.sources.push(CountSource {
            counts: counts.clone(),
            elsewhere,
            usage: RuleUsage::default(),
        });
    }

    pub(super) fn set_usage(&mut self, counts: &ShardedCounts, usage: RuleUsage) {
        for source in self.sources.iter_mut().filter(|source| source.is(counts)) {
            source.usage = usage;
        }
    }

    /// Removes a source, and returns its current totals. `None` if there is no such source.
    pub(super) fn remove(&mut self, counts: &ShardedCounts) -> Option<RuleTotals> {
        let at = self.sources.iter().position(|source| source.is(counts))?;
        let source = self.sources.swap_remove(at);
        let now = source.now();
        self.ended = self.ended.plus(now.minus(source.elsewhere));
        Some(now)
    }

    pub(super) fn publish(&mut self) {
        let mut live = RuleTotals::default();
        self.sources.retain_mut(|source| {
            // This is checked before the totals are read: without another clone, no count is added after the read.
            let ended = source.counts.is_only_clone();
            let totals = source.now().minus(source.elsewhere);
            if ended {
                self.ended = self.ended.plus(totals);
            } else {
                live = live.plus(totals);
            }
            !ended
        });
        self.metrics.set(self.ended.plus(live));
        let sources = || self.sources.iter();
        let in_flight = sources().filter(|source| source.usage.is_in_flight);
        let in_flight = in_flight.map(|source| source.counts.slots_in_flight());
        let tracked_keys = sources().filter_map(|source| source.usage.tracked_keys);
        self.gauges.set(
            &self.rule,
            in_flight.reduce(u64::saturating_add),
            tracked_keys.reduce(u64::saturating_add),
        );
    }
}

impl CountSource {
    fn is(&self, counts: &ShardedCounts) -> bool {
        self.counts.is(counts)
    }

    fn now(&self) -> RuleTotals {
        self.counts.sum().into()
    }
}
