use alloc::sync::Arc;
use alloc::vec::Vec;

use metrics::{Counter, Gauge, Unit, counter, describe_counter, describe_gauge, gauge};

use crate::rules::RuleCounts;

const DECISIONS: &str = "ringgate_decisions_total";
const PERMITS: &str = "ringgate_permits_total";
const BLOCKS: &str = "ringgate_blocks_total";

const IN_FLIGHT: &str = "ringgate_in_flight";
const TRACKED_KEYS: &str = "ringgate_tracked_keys";

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
const METRICS: [RuleMetric; 8] = {
    const fn metric(name: &'static str, outcome: &'static str, of: fn(&RuleCounts) -> u64) -> RuleMetric {
        RuleMetric { name, outcome, of }
    }
    [
        metric(DECISIONS, "admitted", |counts| counts.admitted),
        metric(DECISIONS, "denied", |counts| counts.denied),
        metric(DECISIONS, "shadow_denied", |counts| counts.shadow_denied),
        metric(DECISIONS, "overflowed", |counts| counts.overflowed),
        metric(PERMITS, "charged", |counts| counts.charged),
        metric(PERMITS, "refunded", |counts| counts.refunded),
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

/// The gauges of one rule. Each is registered with the recorder when the rule first has a value for it.
#[derive(Default)]
pub(super) struct RuleGauges {
    in_flight: Option<Gauge>,
    tracked_keys: Option<Gauge>,
}

impl RuleGauges {
    /// Sets the gauges that have a value. A gauge that was set before becomes zero if it has no value now.
    pub(super) fn set(&mut self, rule: &Arc<str>, in_flight: Option<u64>, tracked_keys: Option<u64>) {
        set_gauge(&mut self.in_flight, IN_FLIGHT, rule, in_flight);
        set_gauge(&mut self.tracked_keys, TRACKED_KEYS, rule, tracked_keys);
    }
}

fn set_gauge(own: &mut Option<Gauge>, name: &'static str, rule: &Arc<str>, value: Option<u64>) {
    if value.is_some() || own.is_some() {
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let value = value.unwrap_or(0) as f64;
        own.get_or_insert_with(|| gauge!(name, "rule" => Arc::clone(rule)))
            .set(value);
    }
}

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
        "Permits of the rule. charged: for admitted requests; refunded: given back by these requests; forfeited: \
         could not be refunded."
    );
    describe_counter!(
        BLOCKS,
        Unit::Count,
        "Blocks of keys that violated the rule too often. begun: since the rule came into force."
    );
    describe_gauge!(
        IN_FLIGHT,
        Unit::Count,
        "Requests in flight that hold a slot of the rule in this process."
    );
    describe_gauge!(
        TRACKED_KEYS,
        Unit::Count,
        "Keys with an entry in the table of the rule's first quota, idle keys that no other key has replaced included."
    );
}
