use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use metrics::{Unit, describe_counter, describe_gauge};

use super::breaker::BreakerState;
use super::health::Health;
use super::live_health::LiveHealth;
use crate::shared::metric_set::{Metric, MetricSet, Publisher};

/// Publishes the [health](LiveHealth) of a supervised store through the [`metrics`] facade, when it is called.
///
/// | counter | label `outcome` | counts |
/// |---|---|---|
/// | `ringgate_store_calls_total` | | calls |
/// | `ringgate_store_outcomes_total` | `answered`, `timed_out`, `disconnected`, `refused`, `unexpected_reply` | their outcomes |
/// | | `unsent` | calls that were not made: no connection, too many concurrent calls, or an open breaker |
/// | `ringgate_store_connections_total` | | connections |
///
/// | gauge | value |
/// |---|---|
/// | `ringgate_store_connected` | 1 with a connection, 0 without |
/// | `ringgate_store_breaker`, by `state` | 1 for the breaker's state among `closed`, `open` and `probing`, 0 for the others |
/// | `ringgate_store_in_flight` | concurrent calls |
/// | `ringgate_store_stale_seconds` | age of the last answer; infinite before the first |
///
/// The other label is `store`, the name that the observer was given. An [`Observer`](crate::observe::Observer)
/// publishes the counts of rules over the store, if it is given their
/// [`live_counts`](crate::shared::SharedRules::live_counts). It uses the counters of rules in one process, and
/// `ringgate_decisions_total` with the outcome `by_node`.
///
/// # Guarantees
///
/// - Fourteen series, however many keys and rules there are.
/// - No counter decreases. When another store is published, its counts are added to the counts of the store before. Calls of
///   a store that end after it was dropped are not counted.
///
/// # Caveats
///
/// - Use one observer for each store, and do not publish two stores in turns. Each would be taken for the successor of the
///   other.
/// - Install the recorder before the first call. The series are registered with the recorder of that moment, and kept.
///
/// # Cost
///
/// Fourteen registrations at the first call. After that, one [reading](LiveHealth::read), an allocation of 64 bytes and 14
/// stores.
///
/// # Examples
///
/// ```no_run
/// # use ringgate::shared::supervision::Server;
/// use ringgate::shared::supervision::{StoreObserver, Supervisor};
///
/// # fn example(supervisor: &Supervisor<impl Server>) {
/// let observer = StoreObserver::new("main");
/// // Before each scrape.
/// observer.publish(supervisor.live_health());
/// # }
/// ```
pub struct StoreObserver {
    name: Arc<str>,
    publisher: Mutex<Publisher<Health, LiveHealth>>,
}

const CALLS: &str = "ringgate_store_calls_total";
const OUTCOMES: &str = "ringgate_store_outcomes_total";
const CONNECTIONS: &str = "ringgate_store_connections_total";
const CONNECTED: &str = "ringgate_store_connected";
const BREAKER: &str = "ringgate_store_breaker";
const IN_FLIGHT: &str = "ringgate_store_in_flight";
const STALE: &str = "ringgate_store_stale_seconds";

const COUNTERS: [Metric<Health, u64>; 8] = {
    const fn outcome(outcome: &'static str, of: fn(&Health) -> u64) -> Metric<Health, u64> {
        Metric::new(OUTCOMES, of).with("outcome", outcome)
    }
    [
        Metric::new(CALLS, |health| health.calls),
        outcome("answered", |health| health.answered),
        outcome("timed_out", |health| health.timed_out),
        outcome("disconnected", |health| health.disconnected),
        outcome("refused", |health| health.refused),
        outcome("unexpected_reply", |health| health.unexpected_replies),
        outcome("unsent", |health| health.unsent),
        Metric::new(CONNECTIONS, |health| health.connections),
    ]
};

const GAUGES: [Metric<Health, f64>; 6] = [
    Metric::new(CONNECTED, |health| f64::from(health.connected)),
    Metric::new(BREAKER, |health| is(health, BreakerState::Closed)).with("state", "closed"),
    Metric::new(BREAKER, |health| is(health, BreakerState::Open)).with("state", "open"),
    Metric::new(BREAKER, |health| is(health, BreakerState::Probing)).with("state", "probing"),
    #[expect(clippy::cast_precision_loss, reason = "at most 1,000,000")]
    Metric::new(IN_FLIGHT, |health| health.in_flight as f64),
    Metric::new(STALE, |health| {
        health.stale.as_ref().map_or(f64::INFINITY, Duration::as_secs_f64)
    }),
];

fn is(health: &Health, state: BreakerState) -> f64 {
    f64::from(health.breaker == state)
}

impl StoreObserver {
    /// An observer of one store, with the value of its label.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            publisher: Mutex::new(Publisher::new()),
        }
    }

    /// Sets the counters and gauges to the present health.
    ///
    /// Call it before each scrape, or by a timer if the recorder sends by itself.
    ///
    /// # Concurrency
    ///
    /// Waits for other threads that publish, but not for the server. Calls wait for it only while it reads the
    /// [health](LiveHealth::read), for a few instructions.
    pub fn publish(&self, health: &Arc<LiveHealth>) {
        // If a recorder panics, the next call publishes the numbers that are missing.
        let mut publisher = self.publisher.lock().unwrap_or_else(PoisonError::into_inner);
        publisher.publish(health, LiveHealth::read, || {
            describe();
            MetricSet::register(&COUNTERS, &GAUGES, ("store", &self.name))
        });
    }
}

fn describe() {
    describe_counter!(CALLS, Unit::Count, "Calls to the store, sent or not.");
    describe_counter!(
        OUTCOMES,
        Unit::Count,
        "Outcomes of calls to the store: answered; timed_out; disconnected; refused: the server does not accept writes; \
         unexpected_reply: another error; unsent: no connection, too many concurrent calls, or an open breaker."
    );
    describe_counter!(CONNECTIONS, Unit::Count, "Connections to the store.");
    describe_gauge!(
        CONNECTED,
        Unit::Count,
        "1 with a connection to the store, 0 without."
    );
    describe_gauge!(
        BREAKER,
        Unit::Count,
        "State of the circuit breaker: 1 for the present one of closed, open and probing."
    );
    describe_gauge!(IN_FLIGHT, Unit::Count, "Concurrent calls to the store.");
    describe_gauge!(
        STALE,
        Unit::Seconds,
        "Age of the last answer of the store; infinite before the first."
    );
}

impl fmt::Debug for StoreObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreObserver")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
