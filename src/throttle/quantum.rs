use core::time::Duration;

use crate::algorithm::Algorithm;

/// The number of bytes that are moved in one turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantum {
    bytes: u64,
    /// The bytes that all waiters share in one round. `None` if a turn does not depend on the number of waiters.
    round_bytes: Option<u64>,
    /// The largest request that can be admitted. `None` if it depends on the request.
    max_request: Option<u64>,
}

/// The duration of one turn at the limiter's rate. A turn is at most half of the largest request, so that a bucket does not
/// overflow if a timer is a few milliseconds late.
const TURN_DURATION: Duration = Duration::from_millis(10);

/// The approximate duration of a round, in which each waiter has one turn. A round is longer if turns of this duration would be
/// smaller than [`MIN_BYTES`].
const ROUND_DURATION: Duration = Duration::from_millis(100);

/// The number of turns after which turns double. The first turns of a connection have [`MIN_BYTES`] (slow start), so connections
/// that start together observe their number before the first one has used all the capacity. This number equals the admissions
/// after which a task yields ([`Fair`](crate::Fair)).
const TURNS_PER_DOUBLING: u32 = 4;

/// The smallest turn in bytes, if the limiter admits as many at once.
const MIN_BYTES: u64 = 1024;

/// The largest turn in bytes.
const MAX_BYTES: u64 = 64 * 1024;

impl Quantum {
    pub(super) fn of(algorithm: &impl Algorithm) -> Self {
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

    /// Turns of `bytes` for any number of waiters, and for requests whose largest is not known.
    #[cfg(feature = "rules")]
    pub(super) const fn of_bytes(bytes: u64) -> Self {
        Self {
            bytes,
            round_bytes: None,
            max_request: None,
        }
    }

    /// Sets the turn to `bytes`, for any number of waiters.
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

    /// The bytes of a turn of a limiter that one connection owns.
    pub(super) const fn local(&self) -> u64 {
        self.bytes
    }

    /// The bytes of a turn of a shared limiter with `waiting` waiters, for a connection that has had `turns` turns.
    pub(super) fn shared(&self, turns: u32, waiting: usize) -> u64 {
        let Some(round_bytes) = self.round_bytes else {
            return self.bytes;
        };
        let part = round_bytes / (waiting as u64).saturating_add(1);
        let slow_start = MIN_BYTES.saturating_mul(1 << (turns / TURNS_PER_DOUBLING).min(30));
        part.max(MIN_BYTES).min(slow_start).min(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::CounterRing;
    use crate::quota::Quota;

    /// The waiters and the connection that asks divide a round of 100 ms, in turns of 10 ms at most.
    #[test]
    fn a_round_is_divided_by_all_that_want_a_turn() {
        let quota = Quota::per_second(1_000_000).expect("a quota");
        let quantum = Quantum::of(&CounterRing::new(quota).expect("a ring"));
        for (waiting, bytes) in [(0, 10_000), (19, 5_000), (39, 2_500), (1_000, MIN_BYTES)] {
            assert_eq!(quantum.shared(u32::MAX, waiting), bytes, "{waiting}");
        }
    }
}
