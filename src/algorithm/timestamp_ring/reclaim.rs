use core::time::Duration;

use super::{Claims, TimestampRing};
use crate::algorithm::attempt::{Attempt, opaque_copy};
use crate::algorithm::traits::{Reclaim, lowered_limit};
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// In the [form for one limiter](crate::Algorithm::for_limiter), word 0 is only a hint. So its states are never idle, and no
/// table can reuse them.
impl Reclaim for TimestampRing {
    fn span(&self) -> Duration {
        // Rounding adds one unit. `advance` may add another to the newest time, with which an unstored claim is filled.
        Duration::from_nanos((self.window + 2).saturating_mul(self.unit.divisor()))
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        if permits == 0 {
            return Attempt::Admitted(Receipt::new(now, 0, 0));
        }
        let own = self.quota.limit();
        let attempt = match (self.claims, limit) {
            (Claims::InSlots, limit) => {
                self.attempt_in_slots(limit.unwrap_or(own), opaque_copy(words), now, permits)
            }
            (Claims::InHead, Some(limit)) => self.attempt_many(limit, opaque_copy(words), now, permits),
            (Claims::InHead, None) => match self.attempt_one(words, now, permits) {
                Attempt::Retry => self.attempt_many(own, opaque_copy(words), now, permits),
                decided => decided,
            },
        };
        attempt.map(|claimed| self.receipt(now, permits, claimed))
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        let newest = self.layout.decode(first).newest();
        // No slot has a time later than `newest`.
        // Claim: timestamp_ring head 6, a log is idle when its newest time is older than a window.
        self.claims == Claims::InHead && newest + self.window < self.decision_time(now, newest)
    }

    /// Keeps the position, and sets the newest time to `now`. A claim that is not stored yet counts as made at `now`,
    /// because its slot is filled with the newest time.
    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        if self.claims == Claims::InSlots {
            return None;
        }
        let head = self.layout.decode(first);
        let current = (self.unit.quotient(now.get()) + self.origin).min(self.layout.last_time());
        let newest = current.max(head.newest() + 1);
        // A recorded time is rounded up, so a head that is not ahead of `now` may be one unit ahead of `current`.
        (newest <= self.layout.last_time().min(current + 2)).then(|| head.at(newest, head.position()).raw())
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        let idle = self.layout.decode(first).newest() + self.window + 1;
        (self.claims == Claims::InHead && idle <= self.layout.last_time()).then(|| self.instant(idle))
    }

    fn latest_time(&self, first: u64) -> Nanos {
        // The newest time was rounded up from a reading, so only the unit before it is certain to have been reached.
        self.instant(self.layout.decode(first).newest().saturating_sub(1))
    }

    /// The ring keeps its slots. A decision about one permit then reads two slots instead of one.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        lowered_limit(limit, self.quota.limit())?;
        Ok(Self {
            quota: self.quota.with_limit(limit),
            unused_slots: self.layout.slots() - limit,
            at_once: if limit == self.layout.slots() {
                self.at_once
            } else {
                0
            },
            ..self.clone()
        })
    }

    #[inline(always)]
    fn lower_limits(&self) -> (u64, u64) {
        (1, self.quota.limit())
    }

    fn for_table(self, _lowest: u64) -> Result<Self, ConfigError> {
        Ok(Self {
            claims: Claims::InHead,
            at_once: 0,
            ..self
        })
    }
}
