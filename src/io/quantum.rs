use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;

/// How many bytes are moved in one turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantum {
    bytes: u64,
    /// What all who wait share in one round; `None` when a turn is the same however many wait.
    round: Option<u64>,
    /// The most that is ever admitted at once; `None` where that depends on the request.
    most: Option<u64>,
}

/// A turn is for so long, or for half of what is admitted at once when that is less: then an alarm that is a few
/// milliseconds late finds no bucket that has run over.
const TURN: Duration = Duration::from_millis(10);

/// A round of all who wait takes about so long, as long as that leaves everybody [`LEAST`].
const ROUND: Duration = Duration::from_millis(100);

/// The first turns are for [`LEAST`], and after every so many they are for twice as much: those who begin together find
/// out how many they are before the first has had all that there is. As many as a task has in a row
/// ([`Fair`](crate::Fair)).
const SLOW: u32 = 4;

/// As long as more is admitted, no turn is for less than this, in bytes.
const LEAST: u64 = 1024;

/// No turn is for more than this, in bytes.
const LARGEST: u64 = 64 * 1024;

/// A turn by rules, in bytes: their rate depends on the request.
#[cfg(feature = "rules")]
const BY_RULES: u64 = 8 * 1024;

impl Quantum {
    pub(super) fn of<A: Algorithm, C: Clock>(limiter: &RateLimiter<A, C>) -> Self {
        let algorithm = limiter.algorithm();
        let (most, window) = (algorithm.max_request(), algorithm.window().as_nanos().max(1));
        let within = |time: Duration| {
            let bytes = u128::from(algorithm.bound()) * time.as_nanos() / window;
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        Self {
            bytes: within(TURN).clamp(LEAST, LARGEST).min(most / 2).max(1),
            round: Some(within(ROUND)),
            most: Some(most),
        }
    }

    #[cfg(feature = "rules")]
    pub(super) const fn by_rules() -> Self {
        Self {
            bytes: BY_RULES,
            round: None,
            most: None,
        }
    }

    /// The same turn however many wait: of `bytes`.
    pub(super) fn fixed(self, bytes: u64) -> Self {
        Self {
            bytes,
            round: None,
            ..self
        }
    }

    pub(super) const fn most(&self) -> Option<u64> {
        self.most
    }

    /// A turn of somebody who asks nobody but itself.
    pub(super) const fn alone(&self) -> u64 {
        self.bytes
    }

    /// A turn after so many of the same connection, when so many others wait.
    pub(super) fn among(&self, turns: u32, waiting: usize) -> u64 {
        let Some(round) = self.round else {
            return self.bytes;
        };
        let part = round / (waiting as u64).saturating_add(1);
        let slow = LEAST.saturating_mul(1 << (turns / SLOW).min(30));
        part.max(LEAST).min(slow).min(self.bytes)
    }
}
