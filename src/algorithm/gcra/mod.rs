//! The generic cell rate algorithm, in one word.
//!
//! # States and protocol
//!
//! | bits, from the top | field | meaning |
//! |---|---|---|
//! | 2 | | clear ([`FIRST_WORD_BITS`]) |
//! | 61 | `time` | the theoretical arrival time: when the bucket is empty again without further requests |
//! | 1 | `refunded` | the last to write the word has given permits back |
//!
//! One event, *admit*: load the word, and if `max(time, now) + n·T` is at most `now + b·T`, exchange
//! the word for it. (T: the time in which one permit is due; b: the burst.) Time begins at 1 ns, so
//! a word that was written is never 0.
//!
//! # Proof sketch
//!
//! Take the admissions whose stamps s lie in an interval of length W, in the order of their
//! exchanges. The first leaves the word above the interval's beginning by its own n·T at least;
//! each further one adds its n·T, since words never decrease (except by a refund, which takes back
//! exactly the newest admission); the last leaves it at most b·T above its own stamp, which is less
//! than W after the first. So the sum of all n·T is less than W + b·T, and since T ≥ W/L the sum of all
//! n is less than L + b: at most b + L − 1. A caller that takes the burst, then each permit when it is
//! due, gets exactly that, unless the rounding of T costs it a permit. Nowhere does the argument need
//! stamps to be in order, so a clock that steps back can only refuse more. (models `gcra_*`; tests
//! `a_greedy_caller_reaches_the_bound_of_a_bucket`, `no_rounding_lets_a_bucket_admit_more`)
//!
//! An exchange succeeds only on the word that was judged. The same word met again after a refund is the same
//! state, since nothing else exists.
//!
//! # Where the word passes to another key
//!
//! There the same word is not the same state: a thread that has slept since before a refund must not charge
//! the next key. So the next key's words must lie above all words there ever were, of which the highest may
//! have been taken back. (Where an entry may pass on before it is idle, [a table](crate::keyed::OnFull::Forget) gives nothing
//! back that would lower the word.) A refund writes no earlier time than its receipt's stamp, and the highest word it
//! takes back was at most b·T above that. Nor does any refund after it come below what it wrote: the word that
//! an older receipt knows lies below, or differs in the flag, so it is refused. So all words there ever
//! were lie at most b·T above the present one; and a word so much older than the clock is
//! [idle](super::Reclaim::is_idle). (tests `later_is_above_every_word_before`,
//! `a_bucket_gives_back_its_newest_charge_only`)

use alloc::format;
use core::time::Duration;

use super::attempt::{Attempt, until_decided};
use super::traits::Algorithm;
use super::traits::FIRST_WORD_BITS;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

mod reclaim;
mod state;

use state::{State, Word};

/// GCRA, the token bucket or leaky bucket as a meter: a burst of b permits, refilled at L per W.
///
/// Worst case in any interval of one window: b + L − 1. With the default burst b = L that is 2L − 1, right
/// after an idle time. A burst of 1 paces requests evenly, and admits at most L.
///
/// # Cost
///
/// One load, one compare-exchange, 8 bytes. Time is counted in halves of a nanosecond, and the
/// time per permit is rounded up to one: the rate is low by at most one part in 2·W/L (W in
/// nanoseconds): by 0.05 % at a million permits per second, never high.
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
/// assert_eq!(bucket.bound(), 109);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "token bucket")]
pub struct Gcra {
    quota: Quota,
    burst: u64,
    /// T, the time of one permit, in units.
    permit: u64,
    /// The longest that an admission leaves the word ahead of its stamp, in units: of this policy, and of
    /// every other that was or can be lowered from the same.
    ahead: u64,
}

/// Units of time in a nanosecond.
const UNITS: u64 = 2;

/// Where time stands still: thirty years after the clock's origin, in nanoseconds.
const END: u64 = 30 * 366 * 24 * 3600 * 1_000_000_000;

/// The last instant in units; six years more are left for the burst and for debt.
const LAST: u64 = (END + 1) * UNITS;

/// The longest window in units: a 56-bit number.
const LONGEST: u64 = Quota::MAX_WINDOW.as_secs() * 1_000_000_000 * UNITS;

/// The latest time that a word can hold, in units.
const LARGEST: u64 = (1 << (FIRST_WORD_BITS - 1)) - 1;

impl Gcra {
    /// The quota's limit as burst, refilled at the quota's rate.
    ///
    /// # Errors
    ///
    /// `limit`: more than one permit per nanosecond.
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::token_bucket(quota, quota.limit())
    }

    /// The token bucket: holds `burst` tokens, and is refilled at the quota's rate. A leaky bucket as a meter that holds
    /// `burst` requests and drains at that rate decides the same.
    ///
    /// # Errors
    ///
    /// - `limit`: more than one permit per nanosecond;
    /// - `burst`: zero, or more than the limit and so many permits that they take more than 366
    ///   days to refill.
    #[doc(alias = "leaky bucket")]
    pub fn token_bucket(quota: Quota, burst: u64) -> Result<Self, ConfigError> {
        let (limit, window) = (quota.limit(), quota.window_nanos());
        if limit > window {
            return Err(ConfigError::new(
                "limit",
                format!("{limit} permits in {:?}", quota.window()),
                format!("at most one permit per nanosecond, here {window} permits"),
            ));
        }
        // A window is at most 366 days, so twice as much is below 2^56.
        let permit = (window * UNITS).div_ceil(limit);
        // The limit itself is always a burst: rounded up, its time is longer than a window by less
        // than ten minutes.
        let most = (LONGEST / permit).max(limit);
        if burst == 0 || burst > most {
            return Err(ConfigError::new(
                "burst",
                format!("{burst}"),
                format!("1 to {most} permits, the limit or what 366 days refill"),
            ));
        }
        // A lower limit l ≤ L takes l/L of the burst (at least 1) at W/l each, rounded up to a unit
        // each; so its burst takes as long as this one's and at most a unit per permit more, or one window.
        let ahead = (burst * permit + burst).max(window * UNITS);
        Ok(Self {
            quota,
            burst,
            permit,
            ahead,
        })
    }

    /// The most permits that an idle limiter gives at once.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// Whether the words of `before` can be this bucket's from now on, so that none admits more than the bound of the
    /// most generous of them. `fastest` has the highest rate of all that there were.
    ///
    /// The word says when the bucket is empty, not how many permits were taken: at a lower rate they look fewer, so the
    /// tolerance must not grow then (except for rounding), nor later.
    #[cfg(feature = "rules")]
    pub(crate) fn can_follow(&self, before: &Self, fastest: &Self) -> bool {
        let window = self.quota.window() == before.quota.window();
        // A time per permit is rounded up to a unit.
        let narrower = self.tolerance() <= before.tolerance() + self.burst;
        window && (self.permit <= fastest.permit || narrower)
    }

    #[cfg(feature = "rules")]
    pub(crate) const fn time_per_permit(&self) -> u64 {
        self.permit
    }

    /// The one of the two with the higher rate.
    #[cfg(feature = "rules")]
    pub(crate) fn faster<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.permit < self.permit { other } else { self }
    }

    /// This bucket over words that `before` has written.
    #[cfg(feature = "rules")]
    pub(crate) fn following(self, before: &Self) -> Self {
        let ahead = self.ahead.max(before.ahead);
        Self { ahead, ..self }
    }

    /// This bucket with an unlimited burst, to charge permits that were spent elsewhere.
    #[cfg(feature = "rules")]
    pub(crate) fn bottomless(&self) -> Self {
        Self {
            burst: self.burst.max(LONGEST / self.permit),
            ..self.clone()
        }
    }

    /// An instant in units; the clock's origin is 1 ns.
    #[inline]
    fn units(now: Nanos) -> u64 {
        (now.get().min(END) + 1) * UNITS
    }

    /// The first instant at which so many units have passed.
    fn instant(units: u64) -> Nanos {
        Nanos::new(units.div_ceil(UNITS).saturating_sub(1))
    }

    /// Decides once, and returns the time before the charge. Retry: another thread was faster.
    #[inline(always)]
    fn attempt_once<W: Words>(&self, words: W, now: u64, permits: u64) -> Attempt<u64> {
        let state = State(words);
        let seen = state.observe();
        let after = self.later_by(seen.time_from(now), permits);
        if after - now > self.tolerance() {
            Attempt::Denied
        } else if state.replace(seen, Word::charged(after)) {
            Attempt::Admitted(seen.time())
        } else {
            Attempt::Retry
        }
    }

    /// The time after an admission of `permits` at `now`, whether they fit or not.
    #[inline]
    fn after(&self, seen: u64, now: u64, permits: u64) -> u64 {
        self.later_by(seen.max(now), permits)
    }

    #[inline]
    const fn later_by(&self, from: u64, permits: u64) -> u64 {
        from.saturating_add(permits.saturating_mul(self.permit))
    }

    /// b·T, how far the time may be ahead of the clock.
    #[inline]
    const fn tolerance(&self) -> u64 {
        self.burst * self.permit
    }
}

impl Algorithm for Gcra {
    fn words(&self) -> usize {
        1
    }

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
            .map(|before| Receipt::new(now, permits, before))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        if permits == 0 || permits > self.burst {
            return (permits == 0).then_some(now);
        }
        let after = self.after(State(words).observe().time(), Self::units(now), permits);
        let ready = after.saturating_sub(self.tolerance());
        (ready <= LAST).then(|| now.max(Self::instant(ready)))
    }

    /// Exact: the bucket is refilled at one pace.
    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        let ready = self.ready_at(words, now, permits.min(self.burst))?;
        let refill = permits.saturating_sub(self.burst).saturating_mul(self.permit) / UNITS;
        Some(ready.saturating_add(Duration::from_nanos(refill)))
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let now = Self::units(now);
        let ahead = State(words).observe().time().saturating_sub(now);
        self.tolerance().saturating_sub(ahead) / self.permit
    }

    /// Succeeds while nothing was charged since, nor given back: the time before the charge is then put
    /// back, or the time of the charge if that is later. (Later charges began where this one ended; how much
    /// earlier they would have begun without it cannot be told from the word.)
    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        if permits == 0 || permits > receipt.permits() {
            return permits == 0;
        }
        let before = receipt.mark();
        let now = Self::units(receipt.at());
        let charged = self.after(before, now, receipt.permits());
        let after = self.after(before, now, receipt.permits() - permits);
        let state = State(words);
        let charged = Word::charged(charged);
        state.observe() == charged && state.replace(charged, Word::refunded(after))
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        if permits == 0 {
            return 0;
        }
        let state = State(words);
        let units = Self::units(now);
        loop {
            let seen = state.observe();
            let room = LARGEST.saturating_sub(seen.time().max(units)) / self.permit;
            let charged = permits.min(room);
            if state.replace(seen, Word::charged(self.after(seen.time(), units, charged))) {
                return charged;
            }
        }
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let ahead = State(words).observe().time().saturating_sub(Self::units(now));
        ahead.div_ceil(self.permit)
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        let empty = State(words).observe().time();
        (empty <= LAST).then(|| now.max(Self::instant(empty)))
    }
}
