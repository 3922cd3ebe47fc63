use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;

/// The number of bytes that are moved in one turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantum {
    bytes: u64,
    /// Bytes that all waiters share in one round. `None`: a turn does not depend on the number of waiters.
    round_bytes: Option<u64>,
    /// The largest request that is ever admitted. `None`: it depends on the request.
    max_request: Option<u64>,
}

/// Duration of one turn at the limiter's rate, unless that is more than half of the largest request: then a bucket
/// does not overflow while a timer is a few milliseconds late.
const TURN_DURATION: Duration = Duration::from_millis(10);

/// Approximate duration of a round in which each waiter has one turn, as long as a turn is at least [`MIN_BYTES`].
const ROUND_DURATION: Duration = Duration::from_millis(100);

/// Slow start: the first turns of a connection are of [`MIN_BYTES`], and double after this many turns. Connections that
/// start together thus learn their number before the first has used all the capacity. It equals the number of
/// admissions after which a task yields ([`Fair`](crate::Fair)).
const TURNS_PER_DOUBLING: u32 = 4;

/// Smallest turn, in bytes, where the limiter admits as much at once.
const MIN_BYTES: u64 = 1024;

/// Largest turn, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Turn of rules, in bytes. Their rate depends on the request.
#[cfg(feature = "rules")]
const RULES_BYTES: u64 = 8 * 1024;

impl Quantum {
    pub(super) fn of<A: Algorithm, C: Clock>(limiter: &RateLimiter<A, C>) -> Self {
        let algorithm = limiter.algorithm();
        let (max_request, window) = (algorithm.max_request(), algorithm.window().as_nanos().max(1));
        let bytes_in = |time: Duration| {
            let bytes = u128::from(algorithm.bound()) * time.as_nanos() / window;
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        Self {
            bytes: bytes_in(TURN_DURATION)
                .clamp(MIN_BYTES, MAX_BYTES)
                .min(max_request / 2)
                .max(1),
            round_bytes: Some(bytes_in(ROUND_DURATION)),
            max_request: Some(max_request),
        }
    }

    #[cfg(feature = "rules")]
    pub(super) const fn of_rules() -> Self {
        Self {
            bytes: RULES_BYTES,
            round_bytes: None,
            max_request: None,
        }
    }

    /// A turn of `bytes`, independent of the number of waiters.
    pub(super) fn fixed(self, bytes: u64) -> Self {
        Self {
            bytes,
            round_bytes: None,
            ..self
        }
    }

    pub(super) const fn max_request(&self) -> Option<u64> {
        self.max_request
    }

    /// Bytes of a turn of a limiter that one connection owns.
    pub(super) const fn local(&self) -> u64 {
        self.bytes
    }

    /// Bytes of a turn of a shared limiter, for a connection that has had `turns` turns, beside `waiting` waiters.
    pub(super) fn shared(&self, turns: u32, waiting: usize) -> u64 {
        let Some(round_bytes) = self.round_bytes else {
            return self.bytes;
        };
        let part = round_bytes / (waiting as u64).saturating_add(1);
        let slow_start = MIN_BYTES.saturating_mul(1 << (turns / TURNS_PER_DOUBLING).min(30));
        part.max(MIN_BYTES).min(slow_start).min(self.bytes)
    }
}
