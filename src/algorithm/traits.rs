//! The traits of algorithms, and their contracts.

use alloc::format;
use core::time::Duration;

use super::attempt::Attempt;
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::{Ordering, Words};
use crate::time::Nanos;

/// The number of bits that an algorithm uses of its first word. It leaves the two bits above them clear.
///
/// These two bits belong to the owner of the words: a table of keys stores the state of an entry in them. Every decision
/// exchanges the same word. So a decision fails if the entry has changed since it read the word, and a change of the entry
/// fails if a decision was made since.
pub(crate) const FIRST_WORD_BITS: u32 = 62;

/// A rate-limiting algorithm: a pure policy over the atomic words of one key.
///
/// The policy is immutable. The state of a key is a slice of [`words`](Self::words) atomic words, so one policy serves
/// a single limiter or a table of millions of keys. The words of a new key are zero. After a long enough idle time, the
/// words of a key are equivalent to zeros.
///
/// # What an implementation promises
///
/// - A decision takes effect at one instruction. A denied request consumes nothing.
/// - Any interval of one [`window`](Self::window), measured by [`Receipt::at`], holds at most
///   [`bound`](Self::bound) permits. This holds for clock readings in any order, however far they jump.
/// - Zero permits are always admitted, and charge nothing.
/// - [`max_request`](Self::max_request) is at most [`bound`](Self::bound).
/// - Methods do not allocate. They do not block, even if another thread is suspended.
/// - Methods panic only if the slice is shorter than `words`. This requires that only this policy has written the words
///   since they were zero.
///
/// # Examples
///
/// ```
/// use ringgate::sync::{AtomicU64, Shared};
/// use ringgate::{Algorithm, CounterRing, Nanos, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // One policy, and the words of three keys.
/// let policy = CounterRing::new(Quota::per_minute(5)?)?;
/// let words: Vec<AtomicU64> = (0..3 * policy.words()).map(|_| AtomicU64::new(0)).collect();
/// let words_of = |key: usize| Shared::new(&words[key * policy.words()..][..policy.words()]);
///
/// assert!(policy.decide(words_of(0), Nanos::ZERO, 5).is_some());
/// assert_eq!(policy.remaining(words_of(0), Nanos::ZERO), 0);
/// assert_eq!(policy.remaining(words_of(2), Nanos::ZERO), 5);
/// # Ok(())
/// # }
/// ```
pub trait Algorithm {
    /// The number of words that the state of one key takes.
    fn words(&self) -> usize;

    /// The most permits that one request can get. A request for more is never admitted.
    fn max_request(&self) -> u64;

    /// The most permits that are admitted in any interval of one window, measured by the times that the decisions
    /// used. It is 0 only for an algorithm that never admits a permit.
    fn bound(&self) -> u64;

    /// The window of [`bound`](Self::bound). With several windows, the first.
    fn window(&self) -> Duration;

    /// Takes all `permits` at the time `now`. Returns `None`, and takes nothing, if they do not fit.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt>;

    /// The earliest instant, `now` or later, at which `permits` would be admitted if no other request came before.
    /// `None` if they never would be.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos>;

    /// A lower bound of the instant at which all `permits` can have been admitted, in any number of requests. `None` if
    /// time ends before.
    ///
    /// The provided method uses [`bound`](Self::bound) alone: of `bound` + 1 permits, the last is admitted at least one
    /// window after the first. A saturated limiter may admit less than its bound in a window. The permits are then
    /// admitted later than the returned instant.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        earliest(self, words, now, permits, self.max_request())
    }

    /// The most permits that one request would get at the time `now`.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64;

    /// Refunds `permits` of the charge of `receipt`. Later decisions are as if these permits had never been charged, except that
    /// fewer permits than one unit of a [`UnitRing`](crate::UnitRing) may count for longer. Returns false, and refunds nothing, if
    /// this is no longer possible.
    ///
    /// Decisions that are made during the refund may still count the permits. So may all decisions in a cell of a
    /// [`CounterRing`](crate::CounterRing) that is entered during the refund.
    ///
    /// `receipt` must be of a charge to these words. With a receipt of other words, the refund may be more than was
    /// charged to these.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool;

    /// Charges `permits` at the time `now`, whether they fit or not. Returns the number that was charged: all of them,
    /// unless the words cannot hold so much debt.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64;

    /// The permits that still count at the time `now`. A fresh state that is charged with them is at least as strict as
    /// this state from then on.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64;

    /// The earliest instant, `now` or later, at which the words are equivalent to zeros if no other request comes
    /// before. `None` if time ends before.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos>;

    /// The time at which a saved state begins in the process that restores it, at the reading `now`. It is `now` or later. The
    /// saved permits counted for `idle_after` when they were saved.
    ///
    /// The cells of a ring began at other times in the process that saved the state, so a ring returns the start of the
    /// next cell. The provided method returns `now`.
    fn restored_at(&self, now: Nanos, idle_after: Duration) -> Nanos {
        let _ = idle_after;
        now
    }

    /// Begins fresh words at the time `at`, and charges `permits` of a saved state to them. Every later decision is made as of
    /// `at` or later. Returns the number of permits that was charged.
    ///
    /// The provided method only charges the permits.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn restore<W: Words>(&self, words: W, at: Nanos, permits: u64) -> u64 {
        self.charge(words, at, permits)
    }

    /// The form of this algorithm for a limiter whose words are never reused for another key. A
    /// [`RateLimiter`](crate::RateLimiter) asks for it once, before it makes the words. The provided method returns the
    /// algorithm as it is.
    ///
    /// The words of the two forms must not be mixed. The promises of [`Reclaim`] about word 0 do not hold for this form.
    #[must_use]
    fn for_limiter(self) -> Self
    where
        Self: Sized,
    {
        self
    }
}

/// Begins fresh words at the time `at`, and charges them, as [`Algorithm::restore`] does.
pub(super) fn begin_and_charge<A: Reclaim, W: Words>(
    algorithm: &A,
    words: W,
    at: Nanos,
    permits: u64,
) -> u64 {
    // Relaxed, both: no other thread uses the words yet.
    let first = words.load(0, Ordering::Relaxed);
    if algorithm.latest_time(first) < at
        && let Some(begun) = algorithm.advance(first, at)
    {
        let _ = words.exchange(0, first, begun, Ordering::Relaxed);
    }
    algorithm.charge(words, at, permits)
}

/// Computes [`Algorithm::earliest`] from the bound.
///
/// Up to `at_once` permits are never admitted sooner in several requests than in one. Let the permits be numbered in the
/// order of their admission. Then permit n + `bound` is admitted at least one window after permit n.
pub(super) fn earliest<A: Algorithm + ?Sized, W: Words>(
    algorithm: &A,
    words: W,
    now: Nanos,
    permits: u64,
    at_once: u64,
) -> Option<Nanos> {
    let Some(before) = permits.checked_sub(1) else {
        return Some(now);
    };
    // With a bound of 0, no permit is ever admitted.
    let windows = before.checked_div(algorithm.bound())?;
    let windows = u32::try_from(windows).unwrap_or(u32::MAX);
    let first = (before % algorithm.bound() + 1).min(at_once);
    let ready = algorithm.ready_at(words, now, first)?;
    Some(ready.saturating_add(algorithm.window().saturating_mul(windows)))
}

/// The most permits that one request would get at the time `now`, and the earliest instant at which it would get more. `None`
/// if it never would.
pub(super) fn remaining_and_reset<A: Algorithm, W: Words>(
    algorithm: &A,
    words: W,
    now: Nanos,
) -> (u64, Option<Nanos>) {
    let remaining = algorithm.remaining(words, now);
    let more = remaining.checked_add(1);
    (
        remaining,
        more.and_then(|more| algorithm.ready_at(words, now, more)),
    )
}

/// Checks a limit that is to replace the limit `current`.
#[inline(always)]
pub(super) fn lowered_limit(limit: u64, current: u64) -> Result<(), ConfigError> {
    if (1..=current).contains(&limit) {
        Ok(())
    } else {
        Err(invalid_limit(limit, current))
    }
}

#[cold]
#[inline(never)]
fn invalid_limit(limit: u64, current: u64) -> ConfigError {
    ConfigError::new(
        "limit",
        format!("{limit}"),
        format!("1 to {current} permits, the limit that is lowered"),
    )
}

/// An algorithm whose words can be reused for another key while threads still access them, as in a table of keys.
///
/// The table reuses the words of an idle key by one exchange of word 0, from the value that it has read to
/// [`advance`](Self::advance) of that value. Meanwhile another thread may be in the middle of a decision on the old key:
/// it reads words before the exchange, and writes after it. Its writes must change no decision on the new key.
///
/// # What an implementation promises
///
/// In addition to [the promises of every algorithm](Algorithm):
///
/// - **Word 0 orders everything.** A decision and a charge take effect by one exchange of word 0. The expected value is one
///   that the same call has loaded from word 0 before it read any other word. A refund may exchange other words instead,
///   if it only subtracts what its charge still counts for in them.
/// - **Word 0 grows with time.** Time (or the tick) is in its highest bits. So [`advance`](Self::advance) returns a value
///   above every earlier value of word 0 of this key, not only above the current one. Within a tick, word 0 may decrease,
///   for example by a refund.
/// - **Word 0 is below 2^62.** The two highest bits belong to the table.
/// - **Word 0 is 0 only until it is first written.**
/// - **All other words are changed by exchanges only.** Once the time in word 0 is later than the time that a writer has
///   seen there, its exchanges fail or change no decision. Those of a refund do so once its charge no longer counts. So a
///   thread that was suspended while the table reused the words cannot affect the new key.
/// - **Read-only methods and `refund` end** in a bounded number of steps over words that are
///   constant zeros: [`remaining`](Algorithm::remaining), [`spent`](Algorithm::spent),
///   [`ready_at`](Algorithm::ready_at), [`idle_at`](Algorithm::idle_at) and
///   [`refund`](Algorithm::refund).
/// - **Any thread can finish a step of several exchanges.** An algorithm whose [`advance`](Self::advance) returns `None` during such
///   a step implements [`finish_step`](Self::finish_step).
/// - **There is at least one word.** [`KeyedBuilder`](crate::keyed::KeyedBuilder) checks this promise.
///
/// # Examples
///
/// ```
/// use ringgate::sync::{AtomicU64, Ordering, Shared};
/// use ringgate::algorithm::Reclaim;
/// use ringgate::{Algorithm, CounterRing, Nanos, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let ring = CounterRing::builder(Quota::per_second(5)?).cells(5).build()?;
/// let words = [AtomicU64::new(0)];
/// assert!(ring.decide(Shared::new(&words), Nanos::ZERO, 5).is_some());
///
/// // After this idle time the words are equivalent to zeros, and can be reused for another key.
/// let now = Nanos::from_duration(ring.span());
/// let seen = words[0].load(Ordering::Relaxed);
/// assert!(ring.is_idle(seen, now));
/// let later = ring.advance(seen, now).expect("time ends in decades");
/// assert!(words[0].compare_exchange(seen, later, Ordering::Relaxed, Ordering::Relaxed).is_ok());
/// assert_eq!(ring.remaining(Shared::new(&words), now), 5);
/// # Ok(())
/// # }
/// ```
pub trait Reclaim: Algorithm {
    /// The longest time for which an admission counts. After an idle time of this length the words are equivalent to
    /// zeros.
    ///
    /// - Counter ring: the width of the summed cells of its longest window (N + 1 cells for strict, N for classic and even).
    /// - Timestamp ring: its window and two units of time.
    /// - GCRA: the time in which the burst is refilled.
    ///
    /// The time is rounded up to nanoseconds. Debt may count for longer.
    fn span(&self) -> Duration;

    /// Returns a time until which the charges in `words` count, with `permits` more that are charged at the time `at`. By
    /// default this is one [`span`](Self::span) after `at`, which holds for every algorithm. A token bucket returns the
    /// time at which it is full again, which may be much earlier.
    fn counts_until<W: Words>(&self, words: W, at: Nanos, permits: u64) -> Nanos {
        let _ = (words, permits);
        // Claim: table 8, a charge counts for one span.
        at.saturating_add(self.span())
    }

    /// Tries once to take `permits` at the time `now`. [`decide`](Algorithm::decide) repeats this until it is decided.
    ///
    /// With a `limit`, which [`with_limit`](Self::with_limit) accepts, the attempt decides as the algorithm [with that
    /// lower limit](Self::with_limit) does. No algorithm of this crate makes that algorithm. `None` stands for the own limit.
    ///
    /// The number of steps is bounded for all values of the words, and even if every exchange fails.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Algorithm::words).
    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt;

    /// Whether a table inlines [`attempt`](Self::attempt) into its decisions. Otherwise it calls `attempt` in a function of its
    /// own, so that no other decision saves the registers that this attempt needs. The provided method returns true.
    #[inline(always)]
    fn is_inline(&self) -> bool {
        true
    }

    /// Whether the state whose word 0 is `first` is equivalent to a fresh one from `now` on. It may return false for a
    /// state that is equivalent, and never returns true for one that is not.
    ///
    /// If it returns true, [`advance`](Self::advance) with the same arguments returns a word, whose time is not after `now`.
    fn is_idle(&self, first: u64, now: Nanos) -> bool;

    /// A greater word 0 for the state whose word 0 is `first`. It is above `first`, and above every earlier word 0 of the
    /// state. If the state [is idle](Self::is_idle), the result is equivalent to a fresh state from `now` on.
    ///
    /// If the time of `first` is `now`, the time of the result is one tick (one unit of time) later. This is the word that
    /// a decision with such a reading would have published. The state decides as it would have from that tick on.
    ///
    /// `None`:
    ///
    /// - if time ends before;
    /// - if the time of `first` is after `now`, unless it is the time at which a bucket will be full;
    /// - while a cell is being entered. The next [attempt](Self::attempt) finishes that, and so does
    ///   [`finish_step`](Self::finish_step).
    fn advance(&self, first: u64, now: Nanos) -> Option<u64>;

    /// The earliest instant at which the state whose word 0 is `first` [is idle](Self::is_idle), if no other request comes
    /// before. `None` if time ends before, and while a cell is being entered.
    fn idle_from(&self, first: u64) -> Option<Nanos>;

    /// The newest time in the state whose word 0 is `first`. A decision with an older reading is made as of that time, or
    /// is at least as strict.
    fn latest_time(&self, first: u64) -> Nanos;

    /// Finishes a step of several exchanges that another thread has begun, and charges nothing. A table calls it for a state that
    /// does not [advance](Self::advance), because no request of the state's key may ever come.
    ///
    /// It begins no step. The number of exchanges is bounded. If it finishes a step, word 0 changes. The provided method does nothing,
    /// because most algorithms have no such step.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Algorithm::words).
    fn finish_step<W: Words>(&self, words: W) {
        let _ = words;
    }

    /// This algorithm with a lower limit, for keys with a lower limit. Both algorithms use the same words and interpret them
    /// in the same way. A state that holds more than the lower limit denies.
    ///
    /// # Errors
    ///
    /// - `limit`: zero, or more than the limit of this algorithm.
    /// - `windows`: the algorithm has more than one, so it is not clear which one the limit is for.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError>
    where
        Self: Sized;

    /// Returns the number of cells in a window and the number of permits in a unit, if one word counts units of permits in cells.
    ///
    /// The description of a saved table names both, so a table of another layout is refused. The provided method returns `None`.
    fn cells_and_unit(&self) -> Option<(u64, u64)> {
        None
    }

    /// The form of this algorithm for a table of keys whose lowest limit is `lowest`. A [`KeyedBuilder`](crate::keyed::KeyedBuilder)
    /// asks for it once, before it lays out the table. The provided method returns the algorithm as it is.
    ///
    /// # Errors
    ///
    /// A field that is invalid for a table. The algorithms of this crate return the errors of their constructors.
    fn for_table(self, lowest: u64) -> Result<Self, ConfigError>
    where
        Self: Sized,
    {
        let _ = lowest;
        Ok(self)
    }

    /// The lowest and the highest limit of a range. [`with_limit`](Self::with_limit) accepts every limit in it, so the limit of a
    /// request is validated without making an algorithm. The provided method returns no limit, (1, 0). Then `with_limit` validates
    /// every limit.
    fn lower_limits(&self) -> (u64, u64) {
        (1, 0)
    }
}
