//! The traits of algorithms, and their contracts.

use core::time::Duration;

use super::attempt::Attempt;
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// Bits that the first word of every algorithm keeps to. The two bits above them are clear.
///
/// They belong to the owner of the words: a table of keys stores an entry's state there, in the word whose
/// exchange decides, so that a decision and a change of the entry cannot miss each other.
pub(crate) const FIRST_WORD_BITS: u32 = 62;

/// A rate-limiting algorithm: a pure policy over the atomic words of one key.
///
/// The policy itself is immutable. Its state is a slice of [`words`](Self::words) atomic words,
/// all zero for a key that was never seen, so that the same policy serves one limiter or a table of
/// millions of keys, and a key that was idle for long enough is equal to a fresh one.
///
/// # What an implementation promises
///
/// - A decision takes effect at one instruction; a denied request consumes nothing.
/// - Readings may arrive in any order and may jump anywhere: that never leads to a panic, and never to more
///   admissions than [`bound`](Self::bound) in an interval of one [`window`](Self::window), measured
///   by [`Receipt::at`].
/// - Zero permits are always admitted, and charge nothing.
/// - [`max_request`](Self::max_request) is at most [`bound`](Self::bound).
/// - Methods neither allocate nor block, whatever other threads do. Given words that nothing but this
///   policy has written since they were zero, they panic only when the slice is shorter than `words`.
///
/// # Examples
///
/// ```
/// use ringgate::sync::{AtomicU64, Shared};
/// use ringgate::{Algorithm, CounterRing, Nanos, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // One policy, and the words of as many keys as there are: here three.
/// let policy = CounterRing::new(Quota::per_minute(5)?)?;
/// let words: Vec<AtomicU64> = (0..3 * policy.words()).map(|_| AtomicU64::new(0)).collect();
/// let of = |key: usize| Shared::new(&words[key * policy.words()..][..policy.words()]);
///
/// assert!(policy.decide(of(0), Nanos::ZERO, 5).is_some());
/// assert_eq!(policy.remaining(of(0), Nanos::ZERO), 0);
/// assert_eq!(policy.remaining(of(2), Nanos::ZERO), 5);
/// # Ok(())
/// # }
/// ```
pub trait Algorithm {
    /// How many words one key takes.
    fn words(&self) -> usize;

    /// The most permits that one request can ever get; a request for more is never admitted.
    fn max_request(&self) -> u64;

    /// The most permits admitted in any interval of one window, by the readings that the decisions
    /// used; 0 only for an algorithm that never admits any.
    fn bound(&self) -> u64;

    /// The window that [`bound`](Self::bound) speaks of; with several windows, the first.
    fn window(&self) -> Duration;

    /// Takes `permits` at the time `now`, all or none of them. `None` if they do not fit; nothing is consumed then.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt>;

    /// The earliest instant, `now` or later, at which `permits` would be admitted without other requests;
    /// `None` when there is none.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos>;

    /// An instant before which `permits` cannot all have been admitted, in however many requests; `None` when time ends
    /// before.
    ///
    /// The provided method goes by the bound alone: the last of `bound` + 1 permits comes a window after the first, at
    /// the earliest. Where a saturated limiter admits less than its bound in a window, the permits are in fact admitted
    /// later than that.
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

    /// Gives back `permits` of what `receipt` took, so that later decisions are those that
    /// would have been made had they never been taken; false, and nothing given back, when that can
    /// no longer be done.
    ///
    /// Decisions at the same time as the refund may count the permits, and so may those in a cell of a
    /// [`CounterRing`](crate::CounterRing) that is entered at the same time. `receipt` must be of these words: of a
    /// receipt of others, more than was taken may be given back.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool;

    /// Charges `permits` at the time `now` whether they fit or not, and returns how many were charged:
    /// all, unless the words cannot hold as much debt.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64;

    /// The permits that still count at the time `now`. Charged to a fresh state, they would make
    /// that state at least as strict as this one from then on.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64;

    /// The earliest instant, `now` or later, at which the words are equal to fresh ones without further
    /// requests; `None` when time ends before.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos>;
}

/// [`Algorithm::earliest`] of an algorithm that never admits up to `at_once` permits sooner in several requests than in
/// one.
///
/// Number the permits in the order of their admission: two whose numbers are a bound apart are admitted a window apart
/// at least.
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
    // A bound of 0: never.
    let windows = before.checked_div(algorithm.bound())?;
    let windows = u32::try_from(windows).unwrap_or(u32::MAX);
    let first = (before % algorithm.bound() + 1).min(at_once);
    let ready = algorithm.ready_at(words, now, first)?;
    Some(ready.saturating_add(algorithm.window().saturating_mul(windows)))
}

/// An algorithm whose words can pass from an idle key to another while threads use them: what a
/// table of keys needs.
///
/// Such a table hands the words of an idle key over by one exchange of word 0, from what it has read to
/// [`advance`](Self::advance) of it. Threads may be in the middle of a decision on the old key: they
/// read words before the exchange, and write after it. They must do no harm.
///
/// # What an implementation promises
///
/// On top of [what every algorithm promises](Algorithm):
///
/// - **Word 0 orders everything.** Whatever lets the key do less (a decision, a charge) takes effect by one exchange
///   of word 0, from a value that the same call has loaded from word 0 before it read any other word. A refund may
///   exchange other words instead, if it only takes back what its charge still counts for in them.
/// - **Word 0 grows with time.** Time (or the tick) is in its highest bits, so [`advance`](Self::advance)
///   is above every word 0 that this key ever had, not only the present one. Within a tick it may
///   fall, as by a refund.
/// - **Word 0 is below 2^62, and 0 only as long as it was never written.** The two highest bits
///   belong to the table.
/// - **All other words are changed by exchanges only, which fail or change no decision once word 0's time has
///   moved past what their writer has seen.** (Those of a refund: once its charge no longer counts.) So a thread that sleeps through a hand-over finds its
///   exchanges failing, or writes what the old key's silence has made meaningless already.
/// - **Read-only methods and `refund` end** in a bounded number of steps over words that are
///   constant zeros: [`remaining`](Algorithm::remaining), [`spent`](Algorithm::spent),
///   [`ready_at`](Algorithm::ready_at), [`idle_at`](Algorithm::idle_at) and
///   [`refund`](Algorithm::refund).
///
/// - **A request for [`u64::MAX`] permits is never admitted**: [`max_request`](Algorithm::max_request) is less. A table
///   attempts it where a step that another thread has begun must be finished and nothing may be charged.
/// - **There is at least one word.** [`KeyedBuilder`](crate::keyed::KeyedBuilder) checks this and the item above.
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
/// // After so much silence the words are as good as new, and may be another key's.
/// let now = Nanos::from_duration(ring.span());
/// let seen = words[0].load(Ordering::Relaxed);
/// assert!(ring.is_idle(seen, now));
/// let later = ring.advance(seen, now).expect("time goes on for decades");
/// assert!(words[0].compare_exchange(seen, later, Ordering::Relaxed, Ordering::Relaxed).is_ok());
/// assert_eq!(ring.remaining(Shared::new(&words), now), 5);
/// # Ok(())
/// # }
/// ```
pub trait Reclaim: Algorithm {
    /// The longest time for which an admission counts: after so much silence since the last one, the
    /// words are equal to fresh ones.
    ///
    /// For a counter ring the cells that are summed of its widest window (N + 1 for strict, N for
    /// classic and even); for a log its window and two units of time; for GCRA the time that the
    /// burst takes to refill. Rounded up to nanoseconds. Debt may count for longer.
    fn span(&self) -> Duration;

    /// Tries once to take `permits` at the time `now`. [`decide`](Algorithm::decide) repeats this until it succeeds.
    ///
    /// Takes a bounded number of steps whatever the words hold, and even if every exchange fails.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Algorithm::words).
    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Attempt;

    /// Whether the state that begins with the word `first` is equal to a fresh one from `now` on,
    /// judged by these two alone. May say no though it is, never the other way round.
    ///
    /// When it is, [`advance`](Self::advance) of the same exists, and is not ahead of `now`.
    fn is_idle(&self, first: u64, now: Nanos) -> bool;

    /// A first word for the same state, which is above `first` and above every first word before it.
    /// For a state that [is idle](Self::is_idle), one that is equal to a fresh state from `now` on.
    ///
    /// Where `first` is as new as `now` already, it is one tick (one unit of time) newer than
    /// `first`, as if a decision with such a reading had published it: the state then decides as it would
    /// have from that tick on.
    ///
    /// `None` where time ends; where `first` is ahead of `now` already; and while a cell is being
    /// entered, which another [attempt](Self::attempt) changes.
    fn advance(&self, first: u64, now: Nanos) -> Option<u64>;

    /// The earliest instant at which the state that begins with the word `first`
    /// [is idle](Self::is_idle), without further requests; `None` when time ends before, and while a cell
    /// is being entered.
    fn idle_from(&self, first: u64) -> Option<Nanos>;

    /// The instant that the state which begins with the word `first` has reached: a decision with an
    /// older reading is made as of that instant, or is as strict as if it were.
    fn latest_time(&self, first: u64) -> Nanos;

    /// This algorithm with a lower limit over the same words, for keys with a lower limit. Both interpret the words
    /// in the same way. A state that holds more than the lower limit denies.
    ///
    /// # Errors
    ///
    /// - `limit`: zero, or more than this algorithm's own; for a [`TimestampRing`](crate::TimestampRing) any
    ///   but its own, since it has one slot per permit;
    /// - `windows`: more than one, of which it is not said which the limit is for.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError>
    where
        Self: Sized;
}
