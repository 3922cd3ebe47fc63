#![doc = include_str!("protocol.md")]

use alloc::format;
use core::time::Duration;

use self::state::State;
use self::word::{HeadWord, LogLayout, SlotPosition, SlotWord};
use super::attempt::{Attempt, opaque_copy, until_decided};
use super::traits::{Algorithm, begin_and_charge};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::{Divider, HORIZON, Nanos};

mod reclaim;
mod slots;
mod state;
mod word;

/// The sliding log: a ring of the times of the last L admissions, of which each decision compares the oldest.
///
/// The limiter is exact: it denies a request only if an admission would exceed L permits in an interval of one window, up to
/// the rounding described below.
/// Its state takes 8·(L + 1) bytes.
///
/// # Cost
///
/// In a limiter, a decision for one permit is three loads, and an admission also one compare-exchange and one store. An admission
/// of n permits is n compare-exchanges. In a table of keys, a decision for n permits reads the head and n slots, and an admission
/// exchanges all of them.
///
/// [`remaining`](Algorithm::remaining), [`spent`](Algorithm::spent) and [`idle_at`](Algorithm::idle_at) read up to L slots.
/// [`ready_at`](Algorithm::ready_at) reads one slot per requested permit. These methods start over if a permit is admitted
/// meanwhile. With a large limit under load this takes milliseconds to seconds, so keep them off the hot path.
///
/// Times are counted in units of 1, 2, 5, 10, 20, 50, … nanoseconds (50 ns at a limit of 100, 500 ns at 1,000). The unit is the
/// smallest in which the head can hold 20 years in addition to the index. Recorded times are rounded up, and times of queries are
/// rounded down. So rounding makes the limiter stricter, by less than two units. Readings in whole units, such as whole seconds
/// of a log file, are exact.
///
/// # Examples
///
/// ```
/// use ringgate::{Algorithm, Quota, TimestampRing};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let log = TimestampRing::new(Quota::per_minute(100)?)?;
/// assert_eq!((log.bound(), log.words()), (100, 101));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "sliding log")]
pub struct TimestampRing {
    quota: Quota,
    layout: LogLayout,
    /// Nanoseconds per unit of time.
    unit: Divider,
    /// W in units, rounded up.
    window: u64,
    /// The time of the clock's origin, in units: one window and one unit. So a zeroed slot, with the time 0, is at least one
    /// window old.
    origin: u64,
    /// The slots beyond a lower limit (`with_limit`). A decision requires that this many further times, oldest first, are at
    /// least one window old.
    unused_slots: u64,
    claims: Claims,
    /// The size of the requests that [`attempt_one_in_slots`](Self::attempt_one_in_slots) decides: 1 permit. It is 0, the size of
    /// no request that needs a decision, if all requests go to [`take`](Self::take).
    at_once: u64,
    in_place: InPlace,
}

/// The largest limit in permits.
const MAX_LIMIT: u64 = 1 << 20;

/// The times that a decision about one slot compares, [in place](LogLayout::in_place).
#[derive(Clone, Copy, Debug)]
struct InPlace {
    /// A mask of the bits below the time.
    below_time: u64,
    /// W.
    window: u64,
    /// A reading up to which no recorded time reaches the [last one](LogLayout::last_time).
    last_reading: Nanos,
}

/// The word whose exchange claims a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claims {
    /// The head, for words that a table may reuse for another key.
    InHead,
    /// The slot, for the words of one limiter.
    InSlots,
}

impl TimestampRing {
    /// Creates a ring with one slot per permit of the quota's limit.
    ///
    /// # Errors
    ///
    /// - `limit`: more than 1,048,576, with which the state takes 8 MiB.
    /// - `window`: shorter than ten units of time (0.5 µs at a limit of 100, 5 µs at 1,000, 5 ms at 10^6).
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        quota.validate()?;
        if quota.limit() > MAX_LIMIT {
            return Err(ConfigError::new(
                "limit",
                format!("{}", quota.limit()),
                format!("1 to {MAX_LIMIT} permits for a timestamp ring"),
            ));
        }
        let layout = LogLayout::new(quota.limit());
        let unit = Self::unit(HORIZON.div_ceil(layout.last_time()));
        let window = quota.window_nanos().div_ceil(unit);
        if window < 10 {
            return Err(ConfigError::new(
                "window",
                format!("{:?} with a limit of {}", quota.window(), quota.limit()),
                format!("at least {:?} with such a limit", Duration::from_nanos(10 * unit)),
            ));
        }
        Ok(Self {
            quota,
            layout,
            unit: Divider::new(unit),
            window,
            origin: window + 1,
            unused_slots: 0,
            claims: Claims::InHead,
            at_once: 0,
            in_place: InPlace {
                below_time: layout.in_place(1) - 1,
                window: layout.in_place(window),
                last_reading: Nanos::new((layout.last_time() - (window + 1)).saturating_sub(2) * unit),
            },
        })
    }

    /// The smallest of 1, 2, 5, 10, 20, … that is at least `least`. In such units, most windows and the readings of coarse
    /// clocks are whole numbers.
    fn unit(least: u64) -> u64 {
        let mut power = 1;
        loop {
            if let Some(unit) = [power, 2 * power, 5 * power]
                .into_iter()
                .find(|&unit| unit >= least)
            {
                return unit;
            }
            power *= 10;
        }
    }

    fn state<W: Words>(&self, words: W) -> State<W> {
        State::new(words, self.layout)
    }

    /// The time at which a query or a decision is made, rounded down. The newest recorded time is `newest`.
    #[inline]
    fn decision_time(&self, now: Nanos, newest: u64) -> u64 {
        let time = self.unit.quotient(now.get()) + self.origin;
        // The newest time was rounded up from a reading, so only the unit before it is certain to have been reached.
        time.min(self.layout.last_time()).max(newest.saturating_sub(1))
    }

    /// The time that a claim records: rounded up, and not before `newest`, the newest recorded time.
    #[inline]
    fn record_time(&self, now: Nanos, newest: u64) -> u64 {
        let whole = self.unit.quotient(now.get());
        let part = u64::from(whole * self.unit.divisor() < now.get());
        let time = whole + part + self.origin;
        // Claim: timestamp_ring head 1, a recorded time is not before the newest one.
        time.min(self.layout.last_time()).max(newest)
    }

    /// The first instant of a time in units.
    fn instant(&self, time: u64) -> Nanos {
        Nanos::new(
            time.saturating_sub(self.origin)
                .saturating_mul(self.unit.divisor()),
        )
    }

    /// Stores the time of a claim in its slots, except in those that another thread has filled.
    #[inline]
    fn record<W: Words>(&self, state: State<W>, first: SlotPosition, permits: u64, time: u64) {
        for offset in 0..permits {
            let position = self.layout.after(first, offset);
            let slot = state.slot(position);
            // When the position was claimed, the time in its slot was earlier than `time`. If another thread has stored
            // there since, for this claim or one of a later lap, the slot's time is not earlier than `time`.
            // Claim: timestamp_ring head 3, an owner stores over no later time.
            if slot.time() < time {
                state.store(position, slot, SlotWord::stored(time, position.lap));
            }
        }
    }

    /// The latest time in the next `permits` slots, and in the `unused_slots` after them that a lower limit leaves unused. The
    /// request is admitted if this time is at least one window old. `None`: a slot had to be filled first, so start over.
    #[inline]
    fn latest<W: Words>(
        &self,
        unused_slots: u64,
        state: State<W>,
        head: HeadWord,
        permits: u64,
    ) -> Option<u64> {
        let time_in = |offset| {
            let position = self.layout.after(head.position(), offset);
            state.filled(head, position).map(SlotWord::time)
        };
        // No claim records a time before that of an earlier claim, so the last of the unused slots has the latest time.
        let mut latest = match unused_slots {
            0 => 0,
            unused => time_in(permits + unused - 1)?,
        };
        for offset in 0..permits {
            latest = latest.max(time_in(offset)?);
        }
        Some(latest)
    }

    /// Decides once, about one permit. `Retry`: the claim of the slot is not stored, another thread changed the head, the
    /// request is for several permits, or the limit is lower than the number of slots.
    #[inline(always)]
    fn attempt_one<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Attempt<u64> {
        let state = self.state(words);
        let head = state.head();
        let decided_at = self.decision_time(now, head.newest());
        let position = head.position();
        let slot = state.slot(position);
        let young = slot.time() + self.window > decided_at;
        let needs_many = ((permits ^ 1) | self.unused_slots) != 0;
        if needs_many || !slot.is_due(position.lap) || (young && state.head() != head) {
            return Attempt::Retry;
        }
        if young {
            // The slot was read between two equal reads of the head. At the second read, it was too young.
            return Attempt::Denied;
        }
        let time = self.record_time(now, head.newest());
        let next = head.at(time, self.layout.after(position, 1));
        if !state.claim(head, next) {
            return Attempt::Retry;
        }
        // If this fails, another thread has filled the slot or has stored the claim of a later lap. In both cases the time in
        // the slot is not earlier than `time`. The word that was read cannot return, since every later word has a later time.
        state.store(position, slot, SlotWord::stored(time, position.lap));
        Attempt::Admitted(next.raw())
    }

    /// Repeats the attempt until it decides.
    #[inline(never)]
    fn take<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<u64> {
        if self.claims == Claims::InSlots {
            return self.take_in_slots(words, now, permits);
        }
        let first = self.attempt_one(words, now, permits);
        first.or_else(|| until_decided(|| self.attempt_many(self.quota.limit(), words, now, permits)))
    }

    /// Decides once, about any number of permits, by `limit`, which is at most the number of slots. `Retry`: another thread
    /// changed the head, or the claim of a slot was not stored and this call has filled the slot.
    #[inline(never)]
    fn attempt_many<W: Words>(&self, limit: u64, words: W, now: Nanos, permits: u64) -> Attempt<u64> {
        if permits > limit {
            return Attempt::Denied;
        }
        let unused_slots = self.layout.slots() - limit;
        let state = self.state(words);
        let head = state.head();
        let decided_at = self.decision_time(now, head.newest());
        let Some(latest) = self.latest(unused_slots, state, head, permits) else {
            return Attempt::Retry;
        };
        let young = latest + self.window > decided_at;
        if young && state.head() == head {
            // The slots were read between two equal reads of the head.
            return Attempt::Denied;
        }
        let time = self.record_time(now, head.newest());
        let next = head.at(time, self.layout.after(head.position(), permits));
        if young || !state.claim(head, next) {
            return Attempt::Retry;
        }
        self.record(state, head.position(), permits, time);
        Attempt::Admitted(next.raw())
    }

    /// Makes the receipt of a claim at the reading `now`. `claimed` is the word that it has written, of the head or of a slot.
    #[inline(always)]
    fn receipt(&self, now: Nanos, permits: u64, claimed: u64) -> Receipt {
        // The time in `claimed` is either the rounded-up reading `now` or the newest time before the claim, so
        // `decision_time` returns the time at which the claim was decided.
        let decided_at = self.decision_time(now, self.layout.time_of(claimed));
        Receipt::new(now.max(self.instant(decided_at)), permits, claimed)
    }

    /// Calls `query` with a consistent state of the words: repeats it until the head is unchanged afterwards. The arguments
    /// are the newest time and the times of the slots, oldest first. A claim that is not stored has the newest time, with which it
    /// would be filled.
    fn observe<W: Words, T>(
        &self,
        words: W,
        mut query: impl FnMut(u64, &mut dyn Iterator<Item = u64>) -> T,
    ) -> T {
        if self.claims == Claims::InSlots {
            return self.observe_in_slots(words, query);
        }
        let state = self.state(words);
        loop {
            let head = state.head();
            let mut times = (0..self.layout.slots()).map(|offset| {
                let position = self.layout.after(head.position(), offset);
                let slot = state.slot(position);
                if slot.is_due(position.lap) {
                    slot.time()
                } else {
                    head.newest()
                }
            });
            let result = query(head.newest(), &mut times);
            if state.head() == head {
                return result;
            }
        }
    }
}

impl Algorithm for TimestampRing {
    fn words(&self) -> usize {
        1 + usize::try_from(self.layout.slots()).expect("a limit of at most 2^20")
    }

    fn max_request(&self) -> u64 {
        self.quota.limit()
    }

    fn bound(&self) -> u64 {
        self.quota.limit()
    }

    fn window(&self) -> Duration {
        self.quota.window()
    }

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        if permits == 0 {
            return Some(Receipt::new(now, 0, 0));
        }
        let attempt = if permits == self.at_once {
            self.attempt_one_in_slots(words, now)
        } else {
            Attempt::Retry
        };
        let claimed = attempt.or_else(|| self.take(opaque_copy(words), now, permits));
        claimed.map(|claimed| self.receipt(now, permits, claimed))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        if permits == 0 || permits > self.quota.limit() {
            return (permits == 0).then_some(now);
        }
        let compared = usize::try_from(permits + self.unused_slots).ok()?;
        self.observe(words, |newest, times| {
            let Some(latest) = times.take(compared).max() else {
                return Some(now);
            };
            let ready = latest + self.window;
            if ready <= self.decision_time(now, newest) {
                Some(now)
            } else {
                (ready <= self.layout.last_time()).then(|| self.instant(ready))
            }
        })
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.observe(words, |newest, times| {
            let decided_at = self.decision_time(now, newest);
            let old = times.take_while(|time| time + self.window <= decided_at).count() as u64;
            old.saturating_sub(self.unused_slots)
        })
    }

    /// Succeeds only for zero permits. A refund would have to return the head to an earlier word, and a thread that was
    /// suspended meanwhile could then not detect that its reads are outdated.
    fn refund<W: Words>(&self, _words: W, _receipt: &Receipt, permits: u64) -> bool {
        permits == 0
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        if self.claims == Claims::InSlots {
            return self.charge_in_slots(words, now, permits);
        }
        let state = self.state(words);
        let mut charged = 0;
        while charged < permits {
            let head = state.head();
            let time = self.record_time(now, head.newest());
            let Some(slot) = state.filled(head, head.position()) else {
                continue;
            };
            if slot.time() >= time {
                if state.head() == head {
                    // The oldest slot already has this time, so every slot has it, and a further charge changes no decision.
                    return permits;
                }
                continue;
            }
            let next = head.at(time, self.layout.after(head.position(), 1));
            if state.claim(head, next) {
                self.record(state, head.position(), 1, time);
                charged += 1;
            }
        }
        charged
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.observe(words, |newest, times| {
            let decided_at = self.decision_time(now, newest);
            times.filter(|time| time + self.window > decided_at).count() as u64
        })
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        self.ready_at(words, now, self.quota.limit())
    }

    /// Returns two units after the reading, so that a decision time, which is rounded down, is not before the reading. A state
    /// that was ahead of its clock stays as far ahead.
    fn restored_at(&self, now: Nanos, idle_after: Duration) -> Nanos {
        let ahead = idle_after.saturating_sub(self.quota.window());
        let units = Duration::from_nanos(2 * self.unit.divisor());
        now.saturating_add(ahead).saturating_add(units)
    }

    fn restore<W: Words>(&self, words: W, at: Nanos, permits: u64) -> u64 {
        begin_and_charge(self, words, at, permits)
    }

    /// A limiter's own words are not reused for another key, so one exchange of a slot is an admission.
    fn for_limiter(self) -> Self {
        Self {
            claims: Claims::InSlots,
            at_once: u64::from(self.unused_slots == 0),
            ..self
        }
    }
}
