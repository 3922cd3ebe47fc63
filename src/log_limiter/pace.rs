use crate::time::Nanos;

/// The rate and the burst of a limiter, and the transitions of its word.
///
/// The word is a *time* in ticks, above the *count* of suppressed calls. A tick is 2^`tick_bits` nanoseconds. The count has
/// `tick_bits` + [`SPARE_BITS`] bits, so the time has 60 − `tick_bits` bits and ends after 2^60 ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    limit: u16,
    burst: u16,
    /// The time per call in ticks.
    ticks_per_call: u16,
    tick_bits: u8,
}

/// The time per call is at least 2^`CALL_BITS` ticks. So rounding it up costs less than 2 % of the rate.
const CALL_BITS: u32 = 7;

/// The bits of a word beyond the 60 of a time in nanoseconds. They belong to the count. A time per call has fewer than
/// 2^(`CALL_BITS` + 1) ticks, so the count has room for 2^4 / 2^8 calls per nanosecond of it, which is 62 million per second.
const SPARE_BITS: u32 = 4;

impl Pace {
    /// The pace of `limit` calls in `seconds`, with a burst of the limit.
    pub(super) const fn new(limit: u16, seconds: u64) -> Self {
        assert!(limit > 0, "invalid limit: 0 (expected 1 to 65535 calls)");
        let (nanos, calls) = (seconds * 1_000_000_000, limit as u64);
        let tick_bits = (nanos / calls).ilog2() - CALL_BITS;
        // The most ticks between two readings in one window. Readings are rounded down to a tick, so this is the largest distance
        // in nanoseconds, `nanos - 1`, rounded up to ticks.
        let span = ((nanos - 2) >> tick_bits) + 1;
        // As many times of a call as the limit are longer than the span. The bound follows from that (protocol, claim 1).
        // Claim: log_limiter 1, the time of a call is rounded up.
        let ticks_per_call = span / calls + 1;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most 257 ticks, and fewer than 64 bits"
        )]
        Self {
            limit,
            burst: limit,
            ticks_per_call: ticks_per_call as u16,
            tick_bits: tick_bits as u8,
        }
    }

    pub(super) const fn with_burst(self, calls: u16) -> Self {
        assert!(calls > 0, "invalid burst: 0 (expected 1 to 65535 calls)");
        Self { burst: calls, ..self }
    }

    pub(super) const fn bound(self) -> u64 {
        self.burst as u64 + self.limit as u64 - 1
    }

    /// Returns the word after a call at the time `now`, and the count of `word` if the call passes.
    ///
    /// The word after a call that passes has a later time, and a count of zero. Otherwise it has a count of one more, or is the same
    /// word if the count is full.
    #[inline]
    pub(super) fn step(self, word: u64, now: Nanos) -> (u64, Option<u64>) {
        let now = now.get() >> self.tick_bits;
        let (time, suppressed) = (word >> self.count_bits(), self.suppressed(word));
        let call = self.ticks_per_call as u64;
        let earliest = time.saturating_sub((self.burst as u64 - 1) * call);
        let later = if time > now { time } else { now } + call;
        // Claim: log_limiter 3, a full count stays.
        if now >= earliest && later <= u64::MAX >> self.count_bits() {
            (later << self.count_bits(), Some(suppressed))
        } else if suppressed == self.count_mask() {
            (word, None)
        } else {
            (word + 1, None)
        }
    }

    #[inline]
    pub(super) const fn suppressed(self, word: u64) -> u64 {
        word & self.count_mask()
    }

    #[inline]
    const fn count_bits(self) -> u32 {
        self.tick_bits as u32 + SPARE_BITS
    }

    #[inline]
    const fn count_mask(self) -> u64 {
        (1 << self.count_bits()) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every limit of every window: the premise of the bound, the rate and the room for the count.
    #[test]
    fn every_pace_is_as_documented() {
        for seconds in [1, 60, 3_600] {
            for limit in 1..=u16::MAX {
                let pace = Pace::new(limit, seconds);
                let (nanos, calls) = (seconds * 1_000_000_000, u64::from(limit));
                let tick = 1_u64 << pace.tick_bits;
                let farthest = (nanos - 1).div_ceil(tick);
                let ticks = u64::from(pace.ticks_per_call);
                assert!(calls * ticks > farthest, "{pace:?}");
                assert!(nanos * 100 >= calls * ticks * tick * 98, "{pace:?}");
                // Calls per second that fill the count in the time per call.
                let room =
                    u128::from(pace.count_mask() + 1) * 1_000_000_000 * u128::from(calls) / u128::from(nanos);
                assert!(room >= 62_000_000 && pace.count_mask() >= 1_023, "{pace:?}");
            }
        }
        assert_eq!(Pace::new(5, 1).count_mask(), 16_777_215);
    }
}
