use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::rule_metrics;
use super::rule_series::RuleSeries;
use crate::clock::Clock;
use crate::rules::{LiveCounts, RuleSet, ShardedCounts};

/// Exports the counts of rules through the [`metrics`] facade. This changes no decision.
///
/// | counter | label `outcome` | counts |
/// |---|---|---|
/// | `ringgate_decisions_total` | `admitted` | requests that were admitted and charged to the rule |
/// | | `denied` | requests that were denied by this rule, and perhaps by others too |
/// | | `shadow_denied` | requests that the rule would have denied if it were enforced |
/// | | `overflowed` | decisions by [`OnFull`](crate::keyed::OnFull), which are also counted as one of the above |
/// | | `by_node` | of shared rules: decisions that this node made alone because the store did not answer, which are also counted as admitted or denied |
/// | `ringgate_permits_total` | `charged` | permits of admitted requests, for each of the rule's quotas |
/// | | `refunded` | permits of admitted requests that were given back, which stay part of `charged` |
/// | | `forfeited` | permits that could not be refunded |
/// | `ringgate_blocks_total` | `begun` | blocks of keys that [violated the rule too often](crate::Rule::block) |
///
/// | gauge | value |
/// |---|---|
/// | `ringgate_in_flight` | requests that hold a slot of a rule that limits [requests in flight](crate::Rule::in_flight), in this process |
/// | `ringgate_tracked_keys` | keys with an entry in the table of the rule's first quota, as [`len`](crate::KeyedRateLimiter::len) counts them |
///
/// The only other label is `rule`, the name of the rule. The counters are those of [`RuleCounts`](crate::rules::RuleCounts). A
/// rule without slots lacks the first gauge, and a rule without a key the second. For a shared rule, the first gauge has the
/// slots that requests of this node hold, in the store or in a limiter of this node. The second has the keys in the table of this
/// node's limiter, which decides in the mode `Local` and when the store does not answer.
///
/// A clone exports the same series: a handler of `/metrics` and a timer can each have one.
///
/// # Guarantees
///
/// - Each rule name has eight counters, one more if the rule is shared, and up to two gauges, for any number of keys.
/// - No counter decreases or loses counts over a reload. The counters of a removed rule keep their last values. If a rule with
///   its name is added again, its counts in [`RuleSet::counts`] begin at zero. Its counters continue from their last values,
///   including the counts of decisions that were in progress when the rule was removed.
/// - No event is counted twice. A [renamed](crate::Rule::renamed_from) rule counts under its old name until the first call with
///   the new rules, and under its new name from then on.
/// - The values of rules with the same name in several rule sets are added, shared rules included.
/// - A gauge counts slots of a removed rule until the last of them is released.
///
/// # Caveats
///
/// - Use one observer per process for all rule sets. Two observers would set the same counters to different values.
/// - Install the recorder before the first call, because the first call with a rule name registers its counters.
/// - The counts of a rule that is added and removed between two calls are lost, because they are dropped with the rule.
/// - If every reload has new rule names, the number of series grows, because a recorder cannot remove a series.
///
/// # Cost
///
/// The first call with a rule name makes eight to eleven registrations. Each call reads 8 KiB and makes as many stores for each rule,
/// and allocates once. The 8 KiB of a removed rule are freed by the first call after its last decision.
///
/// # Examples
///
/// With a Prometheus recorder, in a handler of `/metrics`:
///
// Compiled in tests/servers, so that the library itself needs no exporter to be tested.
#[cfg_attr(not(doctest), doc = include_str!("prometheus.md"))]
///
/// `cargo run --release --package ringgate-servers --bin metrics -- --once` sends 20,000 requests under three rules, one of
/// them in the shadow. It prints lines such as these, which are reordered here, without help texts and zeros. The rule that
/// denies a request depends on the timing of threads.
///
/// ```text
/// # TYPE ringgate_decisions_total counter
/// ringgate_decisions_total{rule="user",outcome="admitted"} 2000
/// ringgate_decisions_total{rule="user",outcome="denied"} 8500
/// ringgate_decisions_total{rule="total",outcome="admitted"} 2000
/// ringgate_decisions_total{rule="total",outcome="denied"} 17680
/// ringgate_decisions_total{rule="stricter",outcome="admitted"} 1500
/// ringgate_decisions_total{rule="stricter",outcome="shadow_denied"} 18500
/// # TYPE ringgate_permits_total counter
/// ringgate_permits_total{rule="user",outcome="charged"} 2000
/// ringgate_permits_total{rule="total",outcome="charged"} 2000
/// ringgate_permits_total{rule="stricter",outcome="charged"} 1500
/// ```
#[derive(Clone, Default)]
pub struct Observer(Arc<Mutex<SeriesByName>>);

/// The exported values of each rule, by the rule's name.
type SeriesByName = BTreeMap<Arc<str>, RuleSeries>;

impl Observer {
    /// Creates an observer without rules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the counters of these rules, and of all rules published before, to their current counts.
    ///
    /// Call it before each scrape, or from a timer if the recorder pushes. For rules that are reloaded, publish the current ones:
    /// `observer.publish(&live.load())`.
    ///
    /// # Concurrency
    ///
    /// This call waits for other threads that publish. It does not wait for decisions, and decisions do not wait for it. A
    /// decision in progress may be counted in only some of the counters.
    pub fn publish<R: ?Sized, C: Clock>(&self, rules: &RuleSet<R, C>) {
        self.publish_counts(rules.live_counts());
    }

    /// Sets the counters as [`publish`](Self::publish) does, from a handle to the counts. The handle of shared rules is their
    /// `live_counts`.
    ///
    /// # Concurrency
    ///
    /// This call waits for other threads that publish. It does not wait for decisions.
    pub fn publish_counts(&self, rules: LiveCounts<'_>) {
        let mut all = self.series();
        for (name, counts, usage) in rules.rules() {
            assign(&mut all, name, counts);
            if let Some(series) = all.get_mut(name) {
                series.set_usage(counts, usage);
                if rules.are_shared() {
                    series.register_shared(name);
                }
            }
        }
        for series in all.values_mut() {
            series.publish();
        }
    }

    fn series(&self) -> MutexGuard<'_, SeriesByName> {
        // Poison is ignored: after a panic of a recorder, the next call sets the counters that are behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Assigns the counts to this name, and removes them from any other name.
fn assign(all: &mut SeriesByName, name: &Arc<str>, counts: &ShardedCounts) {
    if all.get(name).is_some_and(|series| series.has(counts)) {
        return;
    }
    if all.is_empty() {
        rule_metrics::describe();
    }
    // Registered before the counts are removed from another name, because a recorder may panic.
    if !all.contains_key(name) {
        all.insert(Arc::clone(name), RuleSeries::new(name));
    }
    let elsewhere = all.values_mut().find_map(|series| series.remove(counts));
    if let Some(series) = all.get_mut(name) {
        series.add(counts, elsewhere.unwrap_or_default());
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("rules", &self.series().keys())
            .finish_non_exhaustive()
    }
}
