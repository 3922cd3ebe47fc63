use alloc::format;
use core::time::Duration;

use super::TimestampRing;
use crate::algorithm::attempt::{Attempt, lent};
use crate::algorithm::traits::Reclaim;
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

impl Reclaim for TimestampRing {
    fn span(&self) -> Duration {
        // Rounding takes one unit; a slot whose claimer sleeps is filled with one unit after the newest time.
        Duration::from_nanos((self.window + 2).saturating_mul(self.unit.divisor()))
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Attempt {
        if permits == 0 {
            return Attempt::Admitted(Receipt::new(now, 0, 0));
        }
        let attempt = match self.attempt_one(words, now, permits) {
            Attempt::Retry => self.attempt_many(lent(words), now, permits),
            decided => decided,
        };
        attempt.map(|claimed| self.receipt(now, permits, claimed))
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        let head = self.layout.decode(first);
        // No slot was ever claimed later than at `newest`.
        head.newest() + self.window < self.decision_time(now, head)
    }

    /// Keeps the position, and sets the newest time to now. A slot whose claimer still sleeps counts as claimed
    /// now, because it is filled with that time.
    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        let head = self.layout.decode(first);
        let here = (self.unit.quotient(now.get()) + self.first).min(self.layout.last_time());
        let newest = here.max(head.newest() + 1);
        // A recorded reading is rounded up, so it may be a unit ahead.
        (newest <= self.layout.last_time().min(here + 2)).then(|| head.at(newest, head.position()).raw())
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        let idle = self.layout.decode(first).newest() + self.window + 1;
        (idle <= self.layout.last_time()).then(|| self.instant(idle))
    }

    fn latest_time(&self, first: u64) -> Nanos {
        // As in `decision_time`: only the unit before is certain.
        self.instant(self.layout.decode(first).newest().saturating_sub(1))
    }

    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        if limit == self.quota.limit() {
            return Ok(self.clone());
        }
        Err(ConfigError::new(
            "limit",
            format!("{limit}"),
            format!(
                "{} permits for this timestamp ring, which has a slot for each",
                self.quota.limit()
            ),
        ))
    }
}
