use core::time::Duration;

use super::breaker::BreakerState;
use crate::shared::store::StoreError;

/// The health of a supervised store.
///
/// Each number is exact by itself. Under load, the numbers may be of slightly different instants.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Health {
    /// Whether there is a connection.
    pub connected: bool,
    /// The state of the circuit breaker.
    pub breaker: BreakerState,
    /// Concurrent calls at this time.
    pub in_flight: usize,
    /// Calls so far.
    pub calls: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// Calls without an answer in time.
    pub timed_out: u64,
    /// Calls whose connection broke.
    pub disconnected: u64,
    /// Calls that the server did not execute: it does not accept writes.
    pub refused: u64,
    /// Calls that were answered with another error, or with a reply of the wrong form.
    pub unexpected_replies: u64,
    /// Calls that were not made: no connection, too many concurrent calls, or an open breaker.
    pub unsent: u64,
    /// Connections that were made.
    pub connections: u64,
    /// The age of the last answer. `None`: there was none yet.
    pub stale: Option<Duration>,
    /// The last error.
    pub last_error: Option<StoreError>,
    /// The reason why the server registers no leases, if it does not. Then the server decides about each request. With the feature
    /// `observe` one error is logged.
    pub lease_error: Option<StoreError>,
    /// The reason why the role of the server is not known, if it is not. Then a replica is recognized only when it denies a write.
    /// With the feature `observe` one error is logged.
    pub role_error: Option<StoreError>,
}
