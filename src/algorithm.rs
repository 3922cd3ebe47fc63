//! What an algorithm is, and those that come with the crate.

use core::time::Duration;

use crate::decision::{Receipt, Refusal};
use crate::sync::Words;
use crate::time::Nanos;

mod any;
mod counter_ring;
mod gcra;
mod packed_ring;
mod reclaim;
mod span;
mod timestamp_ring;
mod wide_ring;

pub use any::AnyAlgorithm;
pub use counter_ring::{CounterRing, CounterRingBuilder};
pub use gcra::Gcra;
pub use reclaim::Reclaim;
pub use timestamp_ring::TimestampRing;

/// A rate-limiting algorithm: a pure policy over the atomic words of one key.
///
/// The policy itself is immutable. What changes is a slice of [`words`](Self::words) atomic words,
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
/// - Methods neither allocate nor block, whatever other threads do. Given words that nobody but this
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
/// assert!(policy.decide(of(0), Nanos::ZERO, 5).is_ok());
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
    /// used.
    fn bound(&self) -> u64;

    /// The window that [`bound`](Self::bound) speaks of; with several windows, the first.
    fn window(&self) -> Duration;

    /// Takes `permits` at the time `now`, all or none of them.
    ///
    /// # Errors
    ///
    /// When they do not fit; nothing is consumed then.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Result<Receipt, Refusal>;

    /// The earliest instant, `now` or later, at which `permits` would be admitted if nobody else asked;
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

    /// Gives back `permits` of what `receipt` took, so that every later decision is the one that
    /// would have been made had they never been taken; false, and nothing given back, when that can
    /// no longer be done.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool;

    /// Charges `permits` at the time `now` whether they fit or not, and returns how many were booked:
    /// all, unless the words cannot hold as much debt.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64;

    /// What still counts at the time `now`, in permits: charged to a fresh state, it would make
    /// that one at least as strict as this one, from then on and for ever.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Self::words).
    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64;

    /// The earliest instant, `now` or later, at which the words are equal to fresh ones if nobody
    /// asks; `None` when time ends before.
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
/// at the least.
fn earliest<A: Algorithm + ?Sized, W: Words>(
    algorithm: &A,
    words: W,
    now: Nanos,
    permits: u64,
    at_once: u64,
) -> Option<Nanos> {
    let before = permits.saturating_sub(1);
    let windows = u32::try_from(before / algorithm.bound()).unwrap_or(u32::MAX);
    let first = permits.min(before % algorithm.bound() + 1).min(at_once);
    let ready = algorithm.ready_at(words, now, first)?;
    Some(ready.saturating_add(algorithm.window().saturating_mul(windows)))
}

/// What came of one attempt to decide.
///
/// A decision is one attempt in straight code and, where something was in its way, a loop
/// elsewhere. The exchange waits for every store before it, so a spilled register or a result
/// handed over in memory delays each decision: the attempt is inlined into its caller
/// (`inline(always)`, from `check` down), what it says fits into registers, and what is not inlined
/// takes words, never a `State`, whose layout would go through memory. (`benches/README.md`)
enum Attempt {
    /// Decided: the mark of what was taken, none when there was no room.
    Settled(Option<u64>),
    /// Something is to be done first, or somebody else was faster.
    Again,
}

impl Attempt {
    /// What was decided, here or by `retry`.
    #[inline(always)]
    fn or_else(self, retry: impl FnOnce() -> Option<u64>) -> Option<u64> {
        match self {
            Self::Settled(taken) => taken,
            Self::Again => retry(),
        }
    }

    /// What was decided, as the caller is told; `None` to try again.
    #[inline(always)]
    fn answered<T>(self, answer: impl FnOnce(Option<u64>) -> T) -> Option<T> {
        match self {
            Self::Settled(taken) => Some(answer(taken)),
            Self::Again => None,
        }
    }
}
