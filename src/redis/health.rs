use core::time::Duration;

use super::breaker::BreakerState;
use crate::shared::StoreError;

/// How a [`RedisStore`](super::RedisStore) is.
///
/// Each number is exact by itself; read under load, they may be of slightly different instants.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Health {
    /// Whether there is a connection.
    pub connected: bool,
    /// Whether calls are made at all.
    pub breaker: BreakerState,
    /// Calls that are on their way.
    pub in_flight: usize,
    /// Calls that were made so far.
    pub calls: u64,
    /// Of these, those that were answered.
    pub answered: u64,
    /// Of these, those that were not answered in time.
    pub timed_out: u64,
    /// Calls whose connection broke.
    pub disconnected: u64,
    /// Calls that the server has refused.
    pub refused: u64,
    /// Calls that were answered with another error.
    pub unexpected_replies: u64,
    /// Calls that were not made: no connection, too many on their way, or left alone by the breaker.
    pub unsent: u64,
    /// Connections that were made.
    pub connections: u64,
    /// How long ago the last answer came; `None`: there was none yet.
    pub stale: Option<Duration>,
    /// What went wrong last.
    pub last_error: Option<StoreError>,
}
