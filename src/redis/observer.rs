use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use metrics::{Unit, describe_counter, describe_gauge};

use super::breaker::BreakerState;
use super::health::Health;
use super::store::RedisStore;
use super::supervisor::Supervisor;
use crate::shared::{Metric, MetricSet, Publisher};

/// Publishes the [health](RedisStore::health) of a store through the [`metrics`] facade: when somebody asks, and without
/// a change to any call.
///
/// | counter | label `outcome` | counts |
/// |---|---|---|
/// | `ringgate_store_calls_total` | | calls that were made |
/// | `ringgate_store_outcomes_total` | `answered`, `timed_out`, `disconnected`, `refused`, `unexpected_reply` | what became of them |
/// | | `unsent` | calls that were not made: no connection, too many on their way, or left alone by the breaker |
/// | `ringgate_store_connections_total` | | connections that were made |
///
/// | gauge | is |
/// |---|---|
/// | `ringgate_store_connected` | 1 while there is a connection, or 0 |
/// | `ringgate_store_breaker`, by `state` | 1 for the one of `closed`, `open` and `probing` that the breaker is in, 0 for the others |
/// | `ringgate_store_in_flight` | calls that are on their way |
/// | `ringgate_store_stale_seconds` | how long ago the last answer came; infinite before the first |
///
/// The other label is `store`, the name that the observer was given; there are no more. What rules do over the store is
/// shown by an [`Observer`](crate::Observer), to which [`live_counts`](super::SharedRules::live_counts) are handed: the same
/// counters as of rules in one process, and `ringgate_decisions_total` by the outcome `by_node`.
///
/// # Guarantees
///
/// - Fourteen series, however many keys and rules there are.
/// - No counter ever falls: when another store is published, its counts are added to those of the one before. (Calls of
///   that one are not seen when they end after it was dropped.)
///
/// # Caveats
///
/// - Use one for each store, and publish no two stores by turns. (Each would be taken for the other's successor.)
/// - Install the recorder before the first call. (Series are registered with the recorder that is there then, and kept.)
///
/// # Cost
///
/// Fourteen registrations at the first call. After that a [`health`](RedisStore::health), an allocation of 64 bytes and 14
/// stores.
///
/// # Examples
///
/// ```no_run
/// use ringgate::Observer;
/// use ringgate::redis::{RedisObserver, RedisStore};
/// use ringgate::shared::SharedLimiter;
/// use std::sync::Arc;
///
/// # async fn example() -> Result<(), Box<dyn core::error::Error>> {
/// let store = Arc::new(RedisStore::builder("redis://127.0.0.1:6379").build()?);
/// let logins = SharedLimiter::builder("login", "100/60s".parse()?).build(store.clone())?;
///
/// let (rules, health) = (Observer::new(), RedisObserver::new("main"));
/// // Before each scrape.
/// rules.publish_counts(logins.live_counts());
/// health.publish(&store);
/// # Ok(())
/// # }
/// ```
pub struct RedisObserver {
    name: Arc<str>,
    board: Mutex<Publisher<Health, Supervisor>>,
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
    #[expect(clippy::cast_precision_loss, reason = "1,000,000 at the most")]
    Metric::new(IN_FLIGHT, |health| health.in_flight as f64),
    Metric::new(STALE, |health| {
        health.stale.as_ref().map_or(f64::INFINITY, Duration::as_secs_f64)
    }),
];

fn is(health: &Health, state: BreakerState) -> f64 {
    f64::from(health.breaker == state)
}

impl RedisObserver {
    /// An observer of a store, which it calls by this name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            board: Mutex::new(Publisher::new()),
        }
    }

    /// Sets the counters and gauges to how the store is now.
    ///
    /// Call it before each scrape, or by a timer when the recorder sends by itself.
    ///
    /// # Concurrency
    ///
    /// Waits for other threads that publish, and never for the server; nor do calls wait for it, but for the few
    /// instructions in which a [health](RedisStore::health) is read.
    pub fn publish(&self, store: &RedisStore) {
        // A panic of a recorder leaves numbers that were not passed on yet, and will be.
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        board.publish(store.supervisor(), Supervisor::health, || {
            describe();
            MetricSet::register(&COUNTERS, &GAUGES, ("store", &self.name))
        });
    }
}

/// Tells the recorder what the series mean.
fn describe() {
    describe_counter!(CALLS, Unit::Count, "Calls to the store that were made.");
    describe_counter!(
        OUTCOMES,
        Unit::Count,
        "What became of calls to the store: answered; timed_out; disconnected: the connection broke; refused by the server; \
         unexpected_replies: answered with another error; unsent: not made, for want of a connection, too many on their way, or \
         left alone by the breaker."
    );
    describe_counter!(
        CONNECTIONS,
        Unit::Count,
        "Connections to the store that were made."
    );
    describe_gauge!(
        CONNECTED,
        Unit::Count,
        "Whether there is a connection to the store: 1 or 0."
    );
    describe_gauge!(
        BREAKER,
        Unit::Count,
        "The state of the circuit breaker before the store: 1 for the present one of closed, open and probing."
    );
    describe_gauge!(
        IN_FLIGHT,
        Unit::Count,
        "Calls to the store that are on their way."
    );
    describe_gauge!(
        STALE,
        Unit::Seconds,
        "How long ago the last answer of the store came; infinite before the first."
    );
}

impl fmt::Debug for RedisObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisObserver")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
