use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::meters;
use super::series::Series;
use crate::clock::Clock;
use crate::rules::{LiveCounts, RuleSet, Tallies};

/// Publishes the counts of rules through the [`metrics`] facade: when somebody asks, and without a change to any
/// decision.
///
/// | counter | label `outcome` | counts |
/// |---|---|---|
/// | `ringgate_decisions_total` | `admitted` | requests that were admitted and charged to the rule |
/// | | `denied` | requests that were refused, by this rule among others or alone |
/// | | `shadow_denied` | requests that the rule would have refused, had it not been in the shadow |
/// | | `overflowed` | decisions that [`OnFull`](crate::OnFull) made: not to be added to the others, where they are counted too |
/// | | `by_node` | of rules that many machines share: decisions that this node has made alone, since the store did not answer; not to be added either |
/// | `ringgate_permits_total` | `charged` | permits that admitted requests were charged, for each of the rule's quotas |
/// | | `forfeited` | permits that could not be given back |
///
/// The other label is `rule`, the rule's name; there are no more. The numbers are those of
/// [`RuleCounts`](crate::RuleCounts).
///
/// # Guarantees
///
/// - Six series for each name that a rule has had, and one more for one that many machines share, however many keys
///   there are.
/// - No counter ever falls, and no counter loses anything over a reload: a rule that is removed and comes back begins
///   afresh in [`RuleSet::counts`], but its counters go on from where they were, and with what was still
///   counted by old rules after the last call. Those of a rule that is gone stay at their last value.
/// - Nothing is counted twice: a rule that [was](crate::Rule::was) called otherwise begins its new counters at
///   what has happened since the first call under the new name; until then the old ones count.
/// - Rules with one name in several rule sets are added up, also those of one process with those of many.
///
/// # Caveats
///
/// - Use one for the whole process, for all its rule sets. (Two would each set the same counters to what they know.)
/// - Install the recorder before the first call. (A rule's counters are registered with the recorder that is
///   there when its name is first seen, and kept.)
/// - What a rule has done that came and went between two calls is not seen. (Nobody has kept its counts.)
/// - Names that are made up anew at every reload make new series every time. (A recorder cannot be told to forget one.)
///
/// # Cost
///
/// Six registrations when a name is first seen, and a seventh for a rule that many machines share. After that, for each
/// rule, one look at the counts of 64 threads (8 KiB) and as many stores: 1.5 µs for ten rules and 280 µs for a
/// thousand, with nobody deciding. A rule that is gone keeps its 8 KiB until the first call after the last decision by
/// it.
///
/// # Examples
///
/// In a handler of `/metrics`, with a Prometheus recorder:
///
// Compiled in tests/servers, so that the library itself needs no exporter to be tested.
#[cfg_attr(not(doctest), doc = include_str!("prometheus.md"))]
///
/// `cargo run --release --package ringgate-servers --bin metrics -- --once` sends 20,000 requests under three rules, one of
/// them in the shadow, and prints for example (who is refused by which rule depends on which thread is faster; without
/// the lines of help, those that are 0, and in another order):
///
/// ```text
/// # TYPE ringgate_decisions_total counter
/// ringgate_decisions_total{rule="user",outcome="admitted"} 2000
/// ringgate_decisions_total{rule="user",outcome="denied"} 8500
/// ringgate_decisions_total{rule="everybody",outcome="admitted"} 2000
/// ringgate_decisions_total{rule="everybody",outcome="denied"} 17680
/// ringgate_decisions_total{rule="stricter",outcome="admitted"} 1500
/// ringgate_decisions_total{rule="stricter",outcome="shadow_denied"} 18500
/// # TYPE ringgate_permits_total counter
/// ringgate_permits_total{rule="user",outcome="charged"} 2000
/// ringgate_permits_total{rule="everybody",outcome="charged"} 2000
/// ringgate_permits_total{rule="stricter",outcome="charged"} 1500
/// ```
#[derive(Default)]
pub struct Observer(Mutex<Names>);

/// The series of each name.
type Names = BTreeMap<Arc<str>, Series>;

impl Observer {
    /// An observer that has seen no rules yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Sets the counters of these rules, and of all that were published before, to what has been counted by now.
    ///
    /// For rules that change, publish those in force: `observer.publish(&live.load())`. Call it before each scrape, or
    /// by a timer when the recorder sends by itself.
    ///
    /// # Concurrency
    ///
    /// Waits for other threads that publish, and never for those that decide, nor they for it. What they do meanwhile
    /// may show in some counters and not yet in others.
    pub fn publish<R: ?Sized, C: Clock>(&self, rules: &RuleSet<R, C>) {
        self.publish_counts(rules.live_counts());
    }

    /// The same for whatever has counts: rules that many machines share, by `redis::SharedRules::live_counts`.
    ///
    /// # Concurrency
    ///
    /// As [`publish`](Self::publish).
    pub fn publish_counts(&self, rules: LiveCounts<'_>) {
        let mut names = self.names();
        for (name, tallies) in rules.tallies() {
            follow(&mut names, name, tallies);
            if rules.are_shared()
                && let Some(series) = names.get_mut(name)
            {
                series.show_shared(name);
            }
        }
        for series in names.values_mut() {
            series.publish();
        }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        // A panic of a recorder leaves numbers that were not passed on yet, and will be.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts by `tallies` under this name, and under no other.
fn follow(names: &mut Names, name: &Arc<str>, tallies: &Arc<Tallies>) {
    if names.get(name).is_some_and(|series| series.has(tallies)) {
        return;
    }
    if names.is_empty() {
        meters::describe();
    }
    // Before anything is taken from another name, since a recorder may panic.
    if !names.contains_key(name) {
        names.insert(Arc::clone(name), Series::new(name));
    }
    let before = names.values_mut().find_map(|series| series.end(tallies));
    if let Some(series) = names.get_mut(name) {
        series.begin(tallies, before.unwrap_or_default());
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("rules", &self.names().keys())
            .finish_non_exhaustive()
    }
}
