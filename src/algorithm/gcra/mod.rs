//! The generic cell rate algorithm, in one word.
//!
//! # States and protocol
//!
//! | bits, from the top | field | meaning |
//! |---|---|---|
//! | 2 | | clear ([`FIRST_WORD_BITS`]) |
//! | 60 | `time` | the theoretical arrival time: the instant at which the bucket is full again if no other request comes before |
//! | 1 | `lowered` | whether a refund has lowered the word of the current key |
//! | 1 | `refunded` | whether a refund was the last write of the word |
//!
//! T is the time per permit, and b is the burst. Time begins at 1 ns, so a written word is never 0.
//!
//! | event | instruction | by |
//! |---|---|---|
//! | *admit* n | exchange `{ time, lowered, _ }` → `{ max(time, now) + n·T, lowered, refunded: false }` | a caller for which this time is at most `now + b·T` |
//! | *charge* n | as *admit*, whatever the time | a caller that charges debt |
//! | *refund* n | exchange the word that the charge has written → `{ time, lowered: true, refunded: true }`, where `time` is the one that a charge of n permits less would have written | a caller whose charge was the last write |
//!
//! # Proof sketch
//!
//! Consider the admissions whose stamps lie in an interval of length W, in the order of their exchanges.
//!
//! - The first admission writes a time that is at least its n·T after the beginning of the interval.
//! - Each further admission adds at least its n·T to the time. A refund is the only write that decreases the time, and it
//!   subtracts at most the newest admission.
//! - The last admission writes a time that is at most b·T after its stamp.
//!
//! The interval is half-open, so the sum of all n·T is less than W + b·T. Since T ≥ W/L, the sum of all n is less than L + b,
//! which means at most b + L − 1. A caller that takes the burst, and then each permit when it is due, gets exactly this
//! number, unless the rounding of T costs it a permit. The argument does not depend on the order of the stamps, so a clock
//! that steps back can only cause more denials. (models `gcra_*`; tests
//! `a_greedy_caller_reaches_the_bound_of_a_bucket`, `no_rounding_exceeds_the_bound_of_a_bucket`)
//!
//! An exchange succeeds only on the word that was decided about. If that word returns after a refund, the state is the same,
//! since the word is the whole state.
//!
//! # When a table reuses the word for another key
//!
//! In a table, an equal word may belong to another key. A thread that was suspended must not charge the new key, so the words
//! of the new key must be above every word of the old key.
//!
//! Without a refund, the words of a key only grow. So a word is [idle](super::Reclaim::is_idle) as soon as the clock has passed
//! its time. (model `keyed_late_gcra`)
//!
//! A refund sets `lowered`, which every later write of the same key keeps. Such a word is idle later:
//!
//! 1. A refund writes a time that is not before its receipt's stamp. The word that it replaces was at most b·T after that
//!    stamp.
//! 2. No later refund writes a time before that. It would need an older receipt, whose word is lower or differs in `refunded`,
//!    so the refund is rejected.
//! 3. So every word of the old key is at most b·T above the current one. The word is idle when its time is before the clock by
//!    more than `ahead`, which is at least b·T.
//!
//! (tests `an_advanced_word_is_above_every_earlier_word`, `a_bucket_refunds_only_its_newest_charge`)
//!
//! Several policies may use the same words: lower limits, tiers, and the rules before and after a reload. A caller of one
//! policy may evict a key that another policy has charged, so b·T above is the maximum over all of them. They have one
//! `ahead`, which covers this maximum: a lower limit and a tier are known when the words are made, and a policy whose own
//! `ahead` is longer gets new words at a reload. (model `rules_reload_to_a_longer_burst`)
//!
//! If a table may reuse an entry before it is idle ([`OnFull::Forget`](crate::keyed::OnFull::Forget)), it rejects every
//! refund that would lower the word.

use alloc::format;
use core::time::Duration;

use super::attempt::{Attempt, until_decided};
use super::one_word::OneWord;
use super::traits::{Algorithm, FIRST_WORD_BITS, begin_and_charge};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::{Divider, Nanos};

mod reclaim;
mod word;

use word::Word;

/// GCRA: the token bucket, or the leaky bucket as a meter, with a burst of b permits that is refilled at L per W.
///
/// Any interval of one window holds at most b + L − 1 permits. With the default burst b = L this is 2L − 1, after an idle
/// time. A burst of 1 paces requests evenly, and admits at most L.
///
/// # Cost
///
/// A decision is one load and one compare-exchange. The state takes 8 bytes.
///
/// Time is counted in half nanoseconds, and the time per permit is rounded up to a whole number of them. So the rate is
/// never too high, and too low by at most one part in 2·W/L (W in nanoseconds). This is 0.05 % at a million permits per
/// second.
///
/// The formula is the virtual scheduling algorithm of ITU-T I.371, annex A.
///
/// # Examples
///
/// ```
/// use ringgate::{Algorithm, Gcra, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let bucket = Gcra::token_bucket(Quota::per_second(100)?, 10)?;
/// assert_eq!(bucket.bound(), 109);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "token bucket")]
pub struct Gcra {
    quota: Quota,
    /// L, the limit of the quota, as a divisor.
    limit: Divider,
    burst: u64,
    /// T, the time per permit, in units.
    permit: u64,
    /// b·T, the longest time by which an admission may leave the word ahead of the clock, in units.
    tolerance: u64,
    /// The longest time by which an admission leaves the word ahead of its stamp, in units. It covers this policy and all
    /// others that use the same words. It is two windows, or four, or eight and so on, so that most policies that
    /// [follow](Self::can_follow) each other have the same.
    ahead: u64,
}

/// Units of time in a nanosecond.
const UNITS: u64 = 2;

/// The end of time: fifteen years after the clock's origin, in nanoseconds. Later readings are treated as this instant.
const END_NANOS: u64 = 15 * 366 * 24 * 3600 * 1_000_000_000;

/// The end of time in units. A word can hold three more years, for the burst and for debt.
const LAST_TIME: u64 = (END_NANOS + 1) * UNITS;

/// The longest window in units, which fits into 56 bits.
const LONGEST_WINDOW: u64 = Quota::MAX_WINDOW.as_secs() * 1_000_000_000 * UNITS;

/// The latest time that a word can hold, in units.
const MAX_TIME: u64 = (1 << (FIRST_WORD_BITS - Word::FLAGS)) - 1;

/// Returns [`LAST_TIME`] by a call, for which the compiler makes a branch that is always predicted. A conditional move would
/// delay each decision, since its exchange waits for the time.
#[cold]
#[inline(never)]
fn last_time() -> u64 {
    LAST_TIME
}

impl Gcra {
    /// Creates a bucket whose burst is the quota's limit, refilled at the quota's rate.
    ///
    /// # Errors
    ///
    /// `limit`: more than one permit per nanosecond.
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::token_bucket(quota, quota.limit())
    }

    /// Creates a token bucket that holds `burst` tokens and is refilled at the quota's rate. A leaky bucket as a meter that
    /// holds `burst` requests and drains at that rate makes the same decisions.
    ///
    /// # Errors
    ///
    /// - `limit`: more than one permit per nanosecond.
    /// - `burst`: zero, or more than both the limit and the permits that 366 days refill.
    #[doc(alias = "leaky bucket")]
    pub fn token_bucket(quota: Quota, burst: u64) -> Result<Self, ConfigError> {
        quota.validate()?;
        let (limit, window) = (quota.limit(), quota.window_nanos());
        if limit > window {
            return Err(ConfigError::new(
                "limit",
                format!("{limit} permits in {:?}", quota.window()),
                format!("at most one permit per nanosecond, here {window} permits"),
            ));
        }
        // A window is at most 366 days, so in units it is below 2^56.
        let permit = (window * UNITS).div_ceil(limit);
        // A burst of the limit is always accepted: rounding makes its refill time longer than a window by less than ten
        // minutes.
        let max_burst = (LONGEST_WINDOW / permit).max(limit);
        if burst == 0 || burst > max_burst {
            return Err(ConfigError::new(
                "burst",
                format!("{burst}"),
                format!("1 to {max_burst} permits, the limit or what 366 days refill"),
            ));
        }
        // A policy with a lower limit l has a burst of b·l/L permits, or 1, and a time per permit of W/l, rounded up to a
        // unit. So its burst takes at most as long as this one and one unit per permit more, or one window. All bursts up
        // to the limit are refilled within two windows.
        let windows = (burst * permit + burst).div_ceil(window * UNITS).max(2);
        let ahead = windows.next_power_of_two() * window * UNITS;
        Ok(Self {
            quota,
            limit: Divider::new(limit),
            burst,
            permit,
            tolerance: burst * permit,
            ahead,
        })
    }

    /// Whether this bucket can continue over the words of `before`, so that no window holds more than the largest bound of
    /// all buckets that used the words. `fastest` is the one of them with the highest rate.
    ///
    /// The word holds the time at which the bucket is full again, and not the number of permits. At a lower rate the same time
    /// stands for fewer permits. So the tolerance must not grow (except by rounding) unless this rate is at least the
    /// highest one.
    ///
    /// Callers of `before` must not evict an entry too early, so `ahead` must not grow.
    pub(crate) fn can_follow(&self, before: &Self, fastest: &Self) -> bool {
        let same_window = self.quota.window() == before.quota.window();
        let can_keep_time = self.permit <= fastest.permit || self.is_narrower(before);
        // Claim: rules reloading, a bucket with a much longer burst gets new words.
        same_window && self.ahead <= before.ahead && can_keep_time
    }

    /// Whether this bucket can continue with the time at which `before` is full, in words of its own: the window is the same, and
    /// the burst does not take longer to refill. The sum over a window is then as in [`can_follow`](Self::can_follow).
    pub(crate) fn can_keep_time_of(&self, before: &Self) -> bool {
        self.quota.window() == before.quota.window() && self.is_narrower(before)
    }

    const fn is_narrower(&self, before: &Self) -> bool {
        // The time per permit is rounded up to a unit, so the tolerance may grow by one unit per permit.
        self.tolerance <= before.tolerance + self.burst
    }

    pub(crate) const fn time_per_permit(&self) -> u64 {
        self.permit
    }

    /// Returns the bucket with the higher rate.
    pub(crate) fn faster<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.permit < self.permit { other } else { self }
    }

    /// This bucket over words that `before` has written.
    pub(crate) fn following(self, before: &Self) -> Self {
        let ahead = self.ahead.max(before.ahead);
        Self { ahead, ..self }
    }

    /// This bucket with as large a burst as the longest window allows, to charge permits that were spent elsewhere.
    pub(crate) fn bottomless(&self) -> Self {
        let burst = self.burst.max(LONGEST_WINDOW / self.permit);
        Self {
            burst,
            tolerance: burst * self.permit,
            ..self.clone()
        }
    }

    /// Converts an instant to units. The clock's origin is 1 ns.
    #[inline]
    fn units(now: Nanos) -> u64 {
        if now.get() < END_NANOS {
            (now.get() + 1) * UNITS
        } else {
            last_time()
        }
    }

    /// Converts units to an instant, rounded up.
    fn instant(units: u64) -> Nanos {
        Nanos::new(units.div_ceil(UNITS).saturating_sub(1))
    }

    /// Decides once. `Admitted` has the time before the charge. `Retry`: another thread changed the word.
    #[inline(always)]
    fn attempt_once<W: Words>(&self, words: W, now: u64, permits: u64) -> Attempt<u64> {
        let seen = Word::read(words);
        let Some(after) = self.later_by(seen.time_from(now), permits) else {
            return Attempt::Denied;
        };
        if after - now > self.tolerance {
            Attempt::Denied
        } else if OneWord(words).replace(seen.0, seen.charged(after).0) {
            Attempt::Admitted(seen.time())
        } else {
            Attempt::Retry
        }
    }

    /// The time after a charge of `permits` at `now` to a word with the time `seen`.
    #[inline]
    fn after(&self, seen: u64, now: u64, permits: u64) -> u64 {
        self.later_by(seen.max(now), permits).unwrap_or(u64::MAX)
    }

    #[inline]
    fn later_by(&self, from: u64, permits: u64) -> Option<u64> {
        from.checked_add(permits.checked_mul(self.permit)?)
    }
}

impl Algorithm for Gcra {
    fn words(&self) -> usize {
        1
    }

    /// The burst: the permits that an idle limiter admits at once.
    fn max_request(&self) -> u64 {
        self.burst
    }

    fn bound(&self) -> u64 {
        self.burst + self.quota.limit() - 1
    }

    fn window(&self) -> Duration {
        self.quota.window()
    }

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        if permits == 0 {
            return Some(Receipt::new(now, 0, 0));
        }
        let units = Self::units(now);
        until_decided(|| self.attempt_once(words, units, permits))
            .map(|before| Receipt::new(now, permits, before).with_permit_time(self.permit))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        if permits == 0 || permits > self.burst {
            return (permits == 0).then_some(now);
        }
        let after = self.after(Word::read(words).time(), Self::units(now), permits);
        let ready = after.saturating_sub(self.tolerance);
        (ready <= LAST_TIME).then(|| now.max(Self::instant(ready)))
    }

    /// The result is exact, since the bucket is refilled at a constant rate.
    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        let ready = self.ready_at(words, now, permits.min(self.burst))?;
        let refill = permits.saturating_sub(self.burst).saturating_mul(self.permit) / UNITS;
        Some(ready.saturating_add(Duration::from_nanos(refill)))
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let now = Self::units(now);
        let ahead = Word::read(words).time().saturating_sub(now);
        self.tolerance.saturating_sub(ahead) / self.permit
    }

    /// Succeeds only if the charge is the last write of the word. Then the word gets the time that a charge of fewer permits
    /// would have written. After a later charge this is not possible: the word does not show how much earlier that charge
    /// would have begun.
    ///
    /// The time per permit is that of the charge. With the time of another limit, `charged` might be the time that a later charge
    /// has written.
    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        if permits == 0 || permits > receipt.permits() {
            return permits == 0;
        }
        let before = receipt.mark();
        let now = Self::units(receipt.at());
        let permit = match receipt.permit_time() {
            // A receipt that a caller has made with `Receipt::new`.
            0 => self.permit,
            permit => permit,
        };
        let after = |permits: u64| before.max(now).saturating_add(permits.saturating_mul(permit));
        let (charged, after) = (after(receipt.permits()), after(receipt.permits() - permits));
        let refunded = |seen: Word| {
            let is_last_write = seen.time() == charged && !seen.is_refunded();
            is_last_write.then(|| (Word::refunded(after).0, ()))
        };
        OneWord(words).update(|seen| refunded(Word(seen))).is_some()
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        if permits == 0 {
            return 0;
        }
        let units = Self::units(now);
        let charged = |seen: Word| {
            let capacity = MAX_TIME.saturating_sub(seen.time().max(units)) / self.permit;
            let charged = permits.min(capacity);
            let after = seen.charged(self.after(seen.time(), units, charged));
            Some((after.0, charged))
        };
        OneWord(words).update(|seen| charged(Word(seen))).unwrap_or(0)
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let ahead = Word::read(words).time().saturating_sub(Self::units(now));
        ahead.div_ceil(self.permit)
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        let full = Word::read(words).time();
        (full <= LAST_TIME).then(|| now.max(Self::instant(full)))
    }

    fn restore<W: Words>(&self, words: W, at: Nanos, permits: u64) -> u64 {
        begin_and_charge(self, words, at, permits)
    }
}
