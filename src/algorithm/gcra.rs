//! The generic cell rate algorithm, in one word.
//!
//! # States and protocol
//!
//! The word is the theoretical arrival time: when the bucket would be empty again if nobody asked. One event,
//! *admit*: load the word, and if `max(word, now) + n·T` is at most `now + b·T`, exchange the word for it.
//! (T: the time in which one permit is due; b: the burst.)
//!
//! # Proof sketch
//!
//! Take the admissions whose stamps s lie in an interval of length W, in the order of their
//! exchanges. The first leaves the word above the interval's beginning by its own n·T at least;
//! each further one adds its n·T, since words never decrease (but for a refund, which takes back
//! exactly the newest admission); the last leaves it at most b·T above its own stamp. So the sum of
//! all n·T is less than W + b·T, and with T ≥ W/L the sum of all n at most L + b. Nowhere does the
//! argument need stamps to be in order, so a clock that steps back can only refuse more. (models
//! `gcra_*`)
//!
//! An exchange succeeds only on the word that was judged. The same word met again after a refund is the same
//! state, since nothing else exists.

use alloc::format;
use core::sync::atomic::Ordering;
use core::time::Duration;

use super::Algorithm;
use crate::decision::{Receipt, Refusal};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::sync::Words;
use crate::time::Nanos;

/// GCRA, the token bucket or leaky bucket as a meter: a burst of b permits, refilled at L per W.
///
/// Worst case in any interval of one window: b + L. With the default burst b = L that is 2L, right
/// after an idle time; a burst of 1 paces requests evenly.
///
/// # Cost
///
/// One load, one compare-exchange, 8 bytes. Time is counted in sixteenths of a nanosecond, and the
/// time per permit is rounded up to one: the rate is low by at most one part in 16·W/L (W in
/// nanoseconds): by 0.006 % at a million permits per second, never high.
///
/// Source of the formula: ITU-T I.371, annex A, in the form of the virtual scheduling algorithm.
///
/// # Examples
///
/// ```
/// use ringgate::{Algorithm, Gcra, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let bucket = Gcra::token_bucket(Quota::per_second(100)?, 10)?;
/// assert_eq!(bucket.bound(), 110);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "token bucket")]
#[doc(alias = "leaky bucket")]
pub struct Gcra {
    quota: Quota,
    burst: u64,
    /// T, the time of one permit, in units.
    permit: u64,
}

/// Units of time in a nanosecond.
const UNITS: u64 = 16;

/// Thirty years in units, after which time stands still; six more are left for the burst and for debt.
const LAST: u64 = 30 * 366 * 24 * 3600 * 1_000_000_000 * UNITS;

/// The one word, and what may happen to it.
#[derive(Clone, Copy)]
struct State<W>(W);

impl<W: Words> State<W> {
    #[inline]
    fn observe(self) -> u64 {
        // Relaxed: the word is the whole state, nothing is published beside it.
        self.0.load(0, Ordering::Relaxed)
    }

    #[inline]
    fn replace(self, seen: u64, new: u64) -> bool {
        // Relaxed, both: as in `observe`; the exchange itself validates what was judged.
        self.0
            .exchange(0, seen, new, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

impl Gcra {
    /// The quota's limit as burst, refilled at the quota's rate.
    ///
    /// # Errors
    ///
    /// As [`token_bucket`](Self::token_bucket).
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::token_bucket(quota, quota.limit())
    }

    /// The token bucket: holds `burst` tokens, and is refilled at the quota's rate.
    ///
    /// # Errors
    ///
    /// - `limit`: more than one permit per nanosecond;
    /// - `burst`: zero, or more than the limit and so many permits that they take more than 366
    ///   days to refill.
    pub fn token_bucket(quota: Quota, burst: u64) -> Result<Self, ConfigError> {
        let (limit, window) = (quota.limit(), quota.window_nanos());
        if limit > window {
            return Err(ConfigError::new(
                "limit",
                format!("{limit} permits in {:?}", quota.window()),
                format!("at most one permit per nanosecond, here {window} permits"),
            ));
        }
        // A window is at most 366 days, so sixteen times as much is below 2^59.
        let permit = (window * UNITS).div_ceil(limit);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "366 days are 55 bits of nanoseconds"
        )]
        let longest = Quota::MAX_WINDOW.as_nanos() as u64 * UNITS;
        // The limit itself is always a burst: rounded up, its time is longer than a window by less
        // than 23 days.
        let most = (longest / permit).max(limit);
        if burst == 0 || burst > most {
            return Err(ConfigError::new(
                "burst",
                format!("{burst} permits"),
                format!("1 to {most} permits, the limit or what 366 days refill"),
            ));
        }
        Ok(Self { quota, burst, permit })
    }

    /// The leaky bucket as a meter: holds up to `capacity` requests, and drains at the quota's
    /// rate. Another name for the same thing.
    ///
    /// # Errors
    ///
    /// As [`token_bucket`](Self::token_bucket).
    pub fn leaky_bucket(quota: Quota, capacity: u64) -> Result<Self, ConfigError> {
        Self::token_bucket(quota, capacity)
    }

    /// The most permits that an idle limiter gives at once.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    #[inline]
    fn units(now: Nanos) -> u64 {
        now.get().min(LAST / UNITS) * UNITS
    }

    /// The word after an admission of `permits` at `now`, whether they fit or not.
    #[inline]
    fn after(&self, seen: u64, now: u64, permits: u64) -> u64 {
        seen.max(now).saturating_add(permits.saturating_mul(self.permit))
    }

    /// b·T, how far the word may be ahead of the clock.
    #[inline]
    const fn tolerance(&self) -> u64 {
        self.burst * self.permit
    }
}

impl Algorithm for Gcra {
    fn words(&self) -> usize {
        1
    }

    fn most(&self) -> u64 {
        self.burst
    }

    fn bound(&self) -> u64 {
        self.burst + self.quota.limit()
    }

    fn window(&self) -> Duration {
        self.quota.window()
    }

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Result<Receipt, Refusal> {
        if permits == 0 {
            return Ok(Receipt::new(now, 0, 0));
        }
        let state = State(words);
        let units = Self::units(now);
        loop {
            let seen = state.observe();
            let after = self.after(seen, units, permits);
            if after - units > self.tolerance() {
                return Err(Refusal::new(now, permits));
            }
            if state.replace(seen, after) {
                return Ok(Receipt::new(now, permits, seen));
            }
        }
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        if permits == 0 || permits > self.burst {
            return (permits == 0).then_some(now);
        }
        let after = self.after(State(words).observe(), Self::units(now), permits);
        let ready = after.saturating_sub(self.tolerance());
        (ready <= LAST).then(|| now.max(Nanos::new(ready.div_ceil(UNITS))))
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let now = Self::units(now);
        let ahead = State(words).observe().saturating_sub(now);
        self.tolerance().saturating_sub(ahead) / self.permit
    }

    /// Succeeds while nothing was charged since: the word before the charge is then put back.
    /// (Later charges began where this one ended; how much earlier they would have begun without it
    /// cannot be told from the word.)
    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        if permits == 0 || permits > receipt.permits() {
            return permits == 0;
        }
        let before = receipt.mark();
        let now = Self::units(receipt.at());
        let charged = self.after(before, now, receipt.permits());
        let kept = receipt.permits() - permits;
        let after = if kept == 0 {
            before
        } else {
            self.after(before, now, kept)
        };
        State(words).replace(charged, after)
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        if permits == 0 {
            return 0;
        }
        let state = State(words);
        let units = Self::units(now);
        loop {
            let seen = state.observe();
            let room = (u64::MAX - seen.max(units)) / self.permit;
            let booked = permits.min(room);
            if state.replace(seen, self.after(seen, units, booked)) {
                return booked;
            }
        }
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let ahead = State(words).observe().saturating_sub(Self::units(now));
        ahead.div_ceil(self.permit)
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        let empty = State(words).observe();
        (empty <= LAST).then(|| now.max(Nanos::new(empty.div_ceil(UNITS))))
    }
}
