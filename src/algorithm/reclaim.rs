use core::time::Duration;

use super::Algorithm;
use crate::decision::{Receipt, Refusal};
use crate::error::ConfigError;
use crate::sync::Words;
use crate::time::Nanos;

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
/// - **Word 0 orders everything.** Whatever changes what the key may do (a decision, a charge, a
///   refund) takes effect by one exchange of word 0, from a value that the same call has loaded from word 0
///   before it read any other word.
/// - **Word 0 grows with time.** Time (or the tick) is in its highest bits, so [`advance`](Self::advance)
///   is above every word 0 that this key ever had, not only the present one. Within a tick it may
///   fall, as by a refund.
/// - **Word 0 is below 2^62, and 0 only as long as it was never written.** The two highest bits
///   belong to the table.
/// - **All other words are changed by exchanges only, which fail or change no decision once word 0's time has
///   moved past what their writer has seen.** So a thread that sleeps through a hand-over finds its
///   exchanges failing, or writes what the old key's silence has made meaningless already.
/// - **Who only looks, or refunds, ends**, in a bounded number of steps over words that are
///   constant zeros: [`remaining`](Algorithm::remaining), [`spent`](Algorithm::spent),
///   [`ready_at`](Algorithm::ready_at), [`idle_at`](Algorithm::idle_at) and
///   [`refund`](Algorithm::refund).
///
/// # Examples
///
/// ```
/// use ringgate::sync::{AtomicU64, Ordering, Shared};
/// use ringgate::{Algorithm, CounterRing, Nanos, Quota, Reclaim};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let ring = CounterRing::new(Quota::per_second(5)?)?;
/// let words = [AtomicU64::new(0)];
/// assert!(ring.decide(Shared::new(&words), Nanos::ZERO, 5).is_ok());
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

    /// Tries once to take `permits` at the time `now`, as [`decide`](Algorithm::decide) does until it
    /// has succeeded.
    ///
    /// `None` when something had to be done first (it was done, if it could be), or somebody else was
    /// faster: try again. Takes a bounded number of steps whatever the words hold, and even if
    /// every exchange fails.
    ///
    /// # Panics
    ///
    /// When `words` has fewer words than [`words`](Algorithm::words).
    ///
    /// # Errors
    ///
    /// `Some` of an error when the permits do not fit; nothing is consumed then.
    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Result<Receipt, Refusal>>;

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
    /// [is idle](Self::is_idle), if nobody uses it; `None` when time ends before, and while a cell
    /// is being entered.
    fn idle_from(&self, first: u64) -> Option<Nanos>;

    /// The instant that the state which begins with the word `first` has reached: a decision with an
    /// older reading is made as of that instant, or is as strict as if it were.
    fn latest_time(&self, first: u64) -> Nanos;

    /// The same algorithm over the same words with the limit `limit`, for keys that are allowed
    /// less: what one of them has counted the other understands. A state that holds more than the
    /// lower limit refuses.
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
