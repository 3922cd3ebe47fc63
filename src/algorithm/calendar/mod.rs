//! A quota for each calendar period, in one word.
//!
//! # States and protocol
//!
//! | bits, from the top | field | meaning |
//! |---|---|---|
//! | 2 | | clear, for the owner of the words |
//! | 14 | `period` | the number of the newest period that was charged: 1 for the period of the clock's origin; 0 in a fresh word |
//! | 48 | `used` | the permits that are charged to this period |
//!
//! L is the limit. P(now) is the number of the period that contains the reading `now`. The starts of the periods are computed when
//! the algorithm is created, so P depends on nothing else.
//!
//! | event | instruction | by |
//! |---|---|---|
//! | *admit* n | exchange `{ period, used }` → `{ p, used' + n }`, where p = max(`period`, P(now)), and `used'` is `used` if p is `period`, else 0 | a caller for which `used'` + n ≤ L |
//! | *charge* n | as *admit*, whatever the sum; `used` saturates | a caller that charges debt |
//! | *refund* n | exchange `{ period, used }` → `{ period, used − n }` | a caller whose charge was to `period` |
//!
//! # Proof sketch
//!
//! No event decreases `period`, and each period's `used` begins at 0. While the word has period p, `used` is the number of permits
//! that are charged to p and not refunded. An admission to p leaves at most L. So each period has at most L, in every interleaving
//! and with readings in any order: a reading of an earlier period is decided in the newest one. (models `calendar_*`)
//!
//! An exchange succeeds only on the word that was decided about. If that word returns after a refund, the state is the same, since
//! the word is the whole state.
//!
//! A refund subtracts only from the period that its receipt names. If the word has left that period, the charge counts no more.
//!
//! When a table reuses the word for another key, it is idle: P(now) is above `period`. The new word has the period P(now), so it is
//! above every word of the old key, and an exchange of a suspended thread fails.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use super::attempt::{Attempt, until_decided};
use super::one_word::OneWord;
use super::traits::{Algorithm, begin_and_charge};
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::{Divider, Nanos};

mod date;
mod of_rules;
#[cfg(feature = "std")]
mod origin;
mod quota;
mod reclaim;
mod word;
#[cfg_attr(not(feature = "calendar"), path = "utc.rs")]
mod zone;

pub use quota::CalendarQuota;
use word::Word;

/// A quota for each calendar day, week, month or year: exactly L permits in each period.
///
/// Use it for quotas that a contract states, such as "50,000 per month". A client can spend the whole limit at the end of a period,
/// and again at the start of the next one. So an interval as long as the shortest period can hold 2L permits, which is the
/// [`bound`](Algorithm::bound). To protect a server, add a [`CounterRing`](crate::CounterRing).
///
/// In rules, it is `Rule::calendar`. Periods in another time zone than UTC need the feature `calendar`.
///
/// A denial's retry time is the start of the next period.
///
/// # Clocks
///
/// The starts of all periods within 20 years are computed when the algorithm is created, as readings of one clock. So the limiter
/// must use that clock.
///
/// A [`SystemClock`](crate::clock::SystemClock) follows the time of the operating system, also when that is corrected. Other clocks
/// do not: after 100 days the periods of a [`QuantaClock`](crate::QuantaClock) can begin minutes early or late, and later by the
/// time for which the machine was suspended.
///
/// A clock that steps back gives no second budget: permits are charged to the newest period of their key. In a period that a clock
/// skips, nothing is admitted.
///
/// # Cost
///
/// A decision is one load and one compare-exchange, and the search of the period, which is a multiplication and two or three
/// comparisons. The state takes 8 bytes. The starts take 8 bytes each, and clones share them: 59 KB for days, 2 KB for months. They
/// are computed in a few milliseconds.
///
/// # Examples
///
/// ```
/// use ringgate::algorithm::{Calendar, CalendarQuota};
/// use ringgate::clock::SystemClock;
/// use ringgate::KeyedRateLimiter;
/// use ringgate::keyed::AnyKey;
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let quota: CalendarQuota = "50_000/month from 5".parse()?;
/// let clock = SystemClock::new();
/// let plan = Calendar::new(&quota, &clock)?;
/// let limiter = KeyedRateLimiter::builder(plan).build_with(clock, AnyKey::with_seeds([1, 2, 3, 4]))?;
/// assert!(limiter.check_n("customer 17", 50_000).is_ok());
/// let denied = limiter.check("customer 17").unwrap_err();
/// // It is the fifth of next month.
/// assert!(denied.retry_after().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Calendar {
    limit: u64,
    /// The readings at which the periods begin. The first is 0, since the period of the origin began at or before it.
    starts: Arc<[u64]>,
    /// The nanoseconds from the start of the first period to the origin.
    before_origin: u64,
    /// The mean length of a period, for a guess of the period of a reading.
    mean: Divider,
    /// The lengths of the shortest and of the longest period.
    shortest: Duration,
    longest: Duration,
}

impl Calendar {
    /// Creates the algorithm for limiters whose clock has its origin at this time since 1970. `None`: it is out of the range of the
    /// calendar.
    pub(in crate::algorithm) fn with_origin_since_1970(
        quota: &CalendarQuota,
        origin: Duration,
    ) -> Option<Self> {
        let (starts, before_origin) = quota.starts(origin)?;
        // The first period is left out: it may have begun before the origin.
        let lengths = || starts.windows(2).skip(1).map(|pair| pair[1] - pair[0]);
        let periods = lengths().count().max(1) as u64;
        Some(Self {
            limit: quota.limit(),
            mean: Divider::new((lengths().sum::<u64>() / periods).max(1)),
            shortest: Duration::from_nanos(lengths().min().unwrap_or(1)),
            longest: Duration::from_nanos(lengths().max().unwrap_or(1)),
            starts: starts.into(),
            before_origin,
        })
    }

    /// The number of the period that contains `now`. The last period has no end.
    #[inline]
    fn period_at(&self, now: Nanos) -> u64 {
        let last = self.starts.len() - 1;
        // Periods differ from their mean by a few days at most, so the guess is wrong by one or two.
        #[expect(clippy::cast_possible_truncation, reason = "the minimum is an index")]
        let mut index = self.mean.quotient(now.get()).min(last as u64) as usize;
        while self.starts[index] > now.get() {
            index -= 1;
        }
        while index < last && self.starts[index + 1] <= now.get() {
            index += 1;
        }
        index as u64 + 1
    }

    /// The start of a period. `None`: it begins after the end of time.
    fn start_of(&self, period: u64) -> Option<Nanos> {
        let index = usize::try_from(period).ok()?.checked_sub(1)?;
        self.starts.get(index).copied().map(Nanos::new)
    }

    /// The word as a decision at `now` reads it.
    #[inline]
    fn current<W: Words>(&self, words: W, now: Nanos) -> Word {
        self.without_earlier(Word(OneWord(words).read()), now)
    }

    /// The word that a decision at `now` replaces, without the permits of earlier periods.
    #[inline]
    fn without_earlier(&self, seen: Word, now: Nanos) -> Word {
        let period = self.period_at(now);
        if period > seen.period() {
            Word::new(period, 0)
        } else {
            seen
        }
    }

    /// Decides once. `Admitted` has the number of the period. `Retry`: another thread changed the word.
    #[inline]
    fn attempt_once<W: Words>(&self, limit: u64, words: W, now: Nanos, permits: u64) -> Attempt<u64> {
        let word = OneWord(words);
        let seen = word.read();
        let current = self.without_earlier(Word(seen), now);
        let fits = permits <= limit.saturating_sub(current.used());
        word.finish(seen, fits.then(|| (current.plus(permits).0, current.period())))
    }

    /// The receipt of a charge to a period. An older reading was decided at the start of the period.
    #[inline]
    fn receipt(&self, now: Nanos, permits: u64, period: u64) -> Receipt {
        let start = self.start_of(period).unwrap_or(now);
        Receipt::new(now.max(start), permits, period)
    }
}

impl Algorithm for Calendar {
    fn words(&self) -> usize {
        1
    }

    fn max_request(&self) -> u64 {
        self.limit
    }

    /// 2L, in an interval as long as the shortest period. A period has at most L.
    fn bound(&self) -> u64 {
        2 * self.limit
    }

    /// The length of the shortest period: 23 hours for days in many time zones, 28 days or an hour less for months.
    fn window(&self) -> Duration {
        self.shortest
    }

    #[inline]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        if permits == 0 {
            return Some(Receipt::new(now, 0, 0));
        }
        until_decided(|| self.attempt_once(self.limit, words, now, permits))
            .map(|period| self.receipt(now, permits, period))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        if permits == 0 || permits > self.limit {
            return (permits == 0).then_some(now);
        }
        let current = self.current(words, now);
        if permits <= self.limit.saturating_sub(current.used()) {
            return Some(now);
        }
        self.start_of(current.period() + 1)
    }

    /// The result is exact, since each period admits the limit.
    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        let Some(before) = permits.checked_sub(1) else {
            return Some(now);
        };
        let current = self.current(words, now);
        let left = self.limit.saturating_sub(current.used());
        if before < left {
            return Some(now);
        }
        self.start_of((current.period() + 1).saturating_add((before - left) / self.limit))
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.limit.saturating_sub(self.spent(words, now))
    }

    /// Succeeds until the period of the charge has ended and a later request was charged.
    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        if permits == 0 || permits > receipt.permits() {
            return permits == 0;
        }
        let refunded = |seen: Word| {
            let used = seen.used().checked_sub(permits)?;
            (seen.period() == receipt.mark()).then(|| (Word::new(seen.period(), used).0, ()))
        };
        OneWord(words).update(|seen| refunded(Word(seen))).is_some()
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        if permits == 0 {
            return 0;
        }
        let charged = |seen: Word| {
            let current = self.without_earlier(seen, now);
            let charged = permits.min(Word::MAX_USED - current.used());
            Some((current.plus(charged).0, charged))
        };
        OneWord(words).update(|seen| charged(Word(seen))).unwrap_or(0)
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.current(words, now).used()
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        let current = self.current(words, now);
        let idle = match current.used() {
            0 => self.start_of(current.period()),
            _ => self.start_of(current.period() + 1),
        };
        idle.map(|idle| idle.max(now))
    }

    fn restore<W: Words>(&self, words: W, at: Nanos, permits: u64) -> u64 {
        begin_and_charge(self, words, at, permits)
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calendar")
            .field("limit", &self.limit)
            .field("periods", &self.starts.len())
            .field("longest", &self.longest)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "calendar"))]
mod tests;
