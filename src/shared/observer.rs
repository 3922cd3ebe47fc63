use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use metrics::{Unit, describe_counter, describe_gauge};

use super::lease::{LeaseStats, LeaseTable};
use super::metric_set::{Metric, MetricSet, Publisher};
use super::rules::SharedRules;

/// Publishes the [leases](SharedRules::lease_stats) of a node through the [`metrics`] facade, when it is called.
///
/// | counter | counts |
/// |---|---|
/// | `ringgate_leases_denied_total` | requests that leases have denied |
/// | `ringgate_leases_remote_total` | requests about which the store was asked although one of their rules uses leases |
///
/// | gauge | value |
/// |---|---|
/// | `ringgate_leases_capacity` | the most leases that the node keeps at once |
/// | `ringgate_leases_in_use` | leases that belong to a key |
/// | `ringgate_leases_uncharged_permits` | permits that were admitted here and that the store has not confirmed to have charged |
/// | `ringgate_leases_held_permits` | permits that this node may spend, the uncharged ones included |
/// | `ringgate_leases_stale_seconds` | age of the stalest lease that holds or owes permits; 0 if there is none |
///
/// The only label is `rules`, the name that the observer was given.
///
/// # Guarantees
///
/// - Seven series, however many keys and rules there are.
/// - No counter decreases. When other rules are published, their counts are added to the counts of the rules before.
///
/// # Caveats
///
/// - Use one observer for each rule set, and do not publish two rule sets in turns. Each would be taken for the
///   successor of the other.
/// - Install the recorder before the first call. The series are registered with the recorder of that moment, and kept.
///
/// # Cost
///
/// Seven registrations at the first call. After that, one [`lease_stats`](SharedRules::lease_stats) and seven stores.
pub struct LeaseObserver {
    name: Arc<str>,
    publisher: Mutex<Publisher<LeaseStats, LeaseTable>>,
}

const DENIED: &str = "ringgate_leases_denied_total";
const REMOTE: &str = "ringgate_leases_remote_total";
const CAPACITY: &str = "ringgate_leases_capacity";
const IN_USE: &str = "ringgate_leases_in_use";
const UNCHARGED: &str = "ringgate_leases_uncharged_permits";
const HELD: &str = "ringgate_leases_held_permits";
const STALE: &str = "ringgate_leases_stale_seconds";

const COUNTERS: [Metric<LeaseStats, u64>; 2] = [
    Metric::new(DENIED, |stats| stats.denied),
    Metric::new(REMOTE, |stats| stats.remote),
];

const GAUGES: [Metric<LeaseStats, f64>; 5] = [
    Metric::new(CAPACITY, |stats| number(stats.capacity)),
    Metric::new(IN_USE, |stats| number(stats.leases)),
    Metric::new(UNCHARGED, |stats| number(stats.uncharged)),
    Metric::new(HELD, |stats| number(stats.held)),
    Metric::new(STALE, |stats| {
        stats.stale.as_ref().map_or(0.0, Duration::as_secs_f64)
    }),
];

#[expect(clippy::cast_precision_loss, reason = "a gauge is shown, not computed with")]
fn number(number: u64) -> f64 {
    number as f64
}

impl LeaseObserver {
    /// An observer of the leases of one rule set, with the value of its label.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            publisher: Mutex::new(Publisher::new()),
        }
    }

    /// Sets the counters and gauges to the present numbers. Does nothing for rules that keep no leases.
    ///
    /// # Concurrency
    ///
    /// Waits for other threads that publish. Decisions do not wait for it.
    pub fn publish<R: ?Sized>(&self, rules: &SharedRules<R>) {
        let Some(table) = rules.lease_table() else { return };
        // If a recorder panics, the next call publishes the numbers that are missing.
        let mut publisher = self.publisher.lock().unwrap_or_else(PoisonError::into_inner);
        publisher.publish(table, LeaseTable::stats, || {
            describe();
            MetricSet::register(&COUNTERS, &GAUGES, ("rules", &self.name))
        });
    }
}

fn describe() {
    describe_counter!(DENIED, Unit::Count, "Requests that leases have denied.");
    describe_counter!(
        REMOTE,
        Unit::Count,
        "Requests about which the store was asked although one of their rules uses leases."
    );
    describe_gauge!(
        CAPACITY,
        Unit::Count,
        "The most leases that the node keeps at once."
    );
    describe_gauge!(IN_USE, Unit::Count, "Leases that belong to a key.");
    describe_gauge!(
        UNCHARGED,
        Unit::Count,
        "Permits that were admitted here and that the store has not confirmed to have charged."
    );
    describe_gauge!(
        HELD,
        Unit::Count,
        "Permits that this node may spend, the uncharged ones included."
    );
    describe_gauge!(
        STALE,
        Unit::Seconds,
        "Age of the stalest lease that holds or owes permits; 0 if there is none."
    );
}

impl fmt::Debug for LeaseObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseObserver")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
