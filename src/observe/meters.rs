use alloc::sync::Arc;
use alloc::vec::Vec;

use metrics::{Counter, Unit, counter, describe_counter};

use crate::rules::RuleCounts;

/// Requests, by what became of them.
const DECISIONS: &str = "ringgate_decisions_total";
/// Permits, by what became of them.
const PERMITS: &str = "ringgate_permits_total";

/// One of the counters of a rule.
struct Meter {
    name: &'static str,
    outcome: &'static str,
    of: fn(&RuleCounts) -> u64,
}

impl Meter {
    fn register(&self, rule: &Arc<str>) -> Counter {
        counter!(self.name, "rule" => Arc::clone(rule), "outcome" => self.outcome)
    }
}

/// Those of all rules.
const METERS: [Meter; 6] = {
    const fn meter(name: &'static str, outcome: &'static str, of: fn(&RuleCounts) -> u64) -> Meter {
        Meter { name, outcome, of }
    }
    [
        meter(DECISIONS, "admitted", |counts| counts.admitted),
        meter(DECISIONS, "denied", |counts| counts.denied),
        meter(DECISIONS, "shadow_denied", |counts| counts.shadow_denied),
        meter(DECISIONS, "overflowed", |counts| counts.overflowed),
        meter(PERMITS, "charged", |counts| counts.charged),
        meter(PERMITS, "forfeited", |counts| counts.forfeited),
    ]
};

/// Those that only rules have which many machines share.
const SHARED: [Meter; 1] = [Meter {
    name: DECISIONS,
    outcome: "by_node",
    of: |counts| counts.by_node,
}];

/// How many there are of both.
const ALL: usize = METERS.len() + SHARED.len();

/// The numbers of a rule, in the order of the meters: those of all rules, and then those of shared ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures([u64; ALL]);

impl Figures {
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

impl From<RuleCounts> for Figures {
    fn from(counts: RuleCounts) -> Self {
        let mut figures = [0; ALL];
        for (figure, meter) in figures.iter_mut().zip(METERS.iter().chain(&SHARED)) {
            *figure = (meter.of)(&counts);
        }
        Self(figures)
    }
}

/// The counters of one rule, as the recorder knows them.
pub(super) struct Counters(Vec<Counter>);

impl Counters {
    pub(super) fn register(rule: &Arc<str>) -> Self {
        Self(METERS.iter().map(|meter| meter.register(rule)).collect())
    }

    /// Registers those of shared rules too, if they are not yet.
    pub(super) fn register_shared(&mut self, rule: &Arc<str>) {
        if self.0.len() < ALL {
            self.0.extend(SHARED.iter().map(|meter| meter.register(rule)));
        }
    }

    pub(super) fn set(&self, figures: Figures) {
        for (counter, figure) in self.0.iter().zip(figures.0) {
            counter.absolute(figure);
        }
    }
}

/// Tells the recorder what the counters mean.
pub(super) fn describe() {
    describe_counter!(
        DECISIONS,
        Unit::Count,
        "Requests, for each rule that was about them: admitted; denied, by this rule among others or alone; shadow_denied: \
         would have been denied, were the rule enforced; overflowed: also one of these, but decided for want of a table \
         entry; by_node: also admitted or denied, but by this node alone, since the store did not answer."
    );
    describe_counter!(
        PERMITS,
        Unit::Count,
        "Permits of each rule: charged for admitted requests; forfeited: could not be given back any more."
    );
}
