use alloc::sync::Arc;
use alloc::vec::Vec;

use metrics::{Counter, Unit, counter, describe_counter};

use crate::rules::RuleCounts;

/// Requests, by outcome.
const DECISIONS: &str = "ringgate_decisions_total";
/// Permits, by outcome.
const PERMITS: &str = "ringgate_permits_total";
/// Blocks of keys.
const BLOCKS: &str = "ringgate_blocks_total";

/// A counter that each rule has.
struct RuleMetric {
    name: &'static str,
    outcome: &'static str,
    of: fn(&RuleCounts) -> u64,
}

impl RuleMetric {
    fn register(&self, rule: &Arc<str>) -> Counter {
        counter!(self.name, "rule" => Arc::clone(rule), "outcome" => self.outcome)
    }
}

/// The metrics of every rule.
const METRICS: [RuleMetric; 7] = {
    const fn metric(name: &'static str, outcome: &'static str, of: fn(&RuleCounts) -> u64) -> RuleMetric {
        RuleMetric { name, outcome, of }
    }
    [
        metric(DECISIONS, "admitted", |counts| counts.admitted),
        metric(DECISIONS, "denied", |counts| counts.denied),
        metric(DECISIONS, "shadow_denied", |counts| counts.shadow_denied),
        metric(DECISIONS, "overflowed", |counts| counts.overflowed),
        metric(PERMITS, "charged", |counts| counts.charged),
        metric(PERMITS, "forfeited", |counts| counts.forfeited),
        metric(BLOCKS, "begun", |counts| counts.blocks),
    ]
};

/// The metrics that only shared rules have.
const SHARED_METRICS: [RuleMetric; 1] = [RuleMetric {
    name: DECISIONS,
    outcome: "by_node",
    of: |counts| counts.by_node,
}];

const ALL: usize = METRICS.len() + SHARED_METRICS.len();

/// The counts of a rule in the order of the metrics: those of every rule, then those of shared rules.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RuleTotals([u64; ALL]);

impl RuleTotals {
    pub(super) fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    fn with(mut self, other: Self, change: fn(u64, u64) -> u64) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = change(*own, other);
        }
        self
    }
}

impl From<RuleCounts> for RuleTotals {
    fn from(counts: RuleCounts) -> Self {
        let mut totals = [0; ALL];
        for (total, metric) in totals.iter_mut().zip(METRICS.iter().chain(&SHARED_METRICS)) {
            *total = (metric.of)(&counts);
        }
        Self(totals)
    }
}

/// The counters of one rule that are registered with the recorder.
pub(super) struct RuleMetrics(Vec<Counter>);

impl RuleMetrics {
    pub(super) fn register(rule: &Arc<str>) -> Self {
        Self(METRICS.iter().map(|metric| metric.register(rule)).collect())
    }

    /// Registers the metrics of shared rules, unless they are registered.
    pub(super) fn register_shared(&mut self, rule: &Arc<str>) {
        if self.0.len() < ALL {
            self.0
                .extend(SHARED_METRICS.iter().map(|metric| metric.register(rule)));
        }
    }

    pub(super) fn set(&self, totals: RuleTotals) {
        for (counter, total) in self.0.iter().zip(totals.0) {
            counter.absolute(total);
        }
    }
}

/// Describes the metrics to the recorder.
pub(super) fn describe() {
    describe_counter!(
        DECISIONS,
        Unit::Count,
        "Requests to which the rule applied. admitted; denied: by this rule, alone or among others; shadow_denied: would be \
         denied if the rule were enforced; overflowed: also one of these, decided without a table entry; by_node: also \
         admitted or denied, by this node alone because the store did not answer."
    );
    describe_counter!(
        PERMITS,
        Unit::Count,
        "Permits of the rule. charged: for admitted requests; forfeited: could not be refunded."
    );
    describe_counter!(
        BLOCKS,
        Unit::Count,
        "Blocks of keys that violated the rule too often. begun: since the rule came into force."
    );
}
