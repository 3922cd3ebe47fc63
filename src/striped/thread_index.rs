use core::cell::Cell;
use std::thread_local;

use crate::sync::Tally;

/// The number of threads with an index.
static THREADS: Tally = Tally::new();

const UNASSIGNED: usize = usize::MAX;

/// The mask of an index, which differs from `UNASSIGNED`. Only the lowest bits of an index select a stripe.
const INDEX_MASK: usize = usize::MAX >> 1;

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(UNASSIGNED) };
}

/// Returns the index of this thread, in the order of the threads' first requests.
///
/// It reads one thread-local variable. The first call of a thread also increments a shared counter. Nothing is allocated.
#[inline]
pub(super) fn get() -> usize {
    let index = INDEX.get();
    if index == UNASSIGNED { assign() } else { index }
}

/// Sets the index of the current thread, from 0, for all [striped limiters](crate::StripedLimiter).
///
/// The index selects the stripe of the thread. Indices from the number of stripes on wrap around to the first stripe. This is for
/// runtimes that number their threads or cores: no two workers share a stripe as long as there are [enough
/// stripes](crate::StripedLimiter::stripes). A thread without an index gets the next one at its first request, and may share a
/// stripe with a thread whose index was set. A [`LocalStripe`](crate::striped::LocalStripe) keeps the stripe that it was created
/// with.
///
/// # Examples
///
/// ```
/// use ringgate::striped::set_thread_index;
/// use ringgate::{ManualClock, Quota, StripedLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = StripedLimiter::builder(Quota::per_second(10_000)?).build_with(ManualClock::new())?;
/// std::thread::scope(|scope| {
///     for worker in 0..4 {
///         let limiter = &limiter;
///         scope.spawn(move || {
///             set_thread_index(worker);
///             assert!(limiter.check().is_ok());
///         });
///     }
/// });
/// # Ok(())
/// # }
/// ```
pub fn set_thread_index(index: usize) {
    INDEX.set(index & INDEX_MASK);
}

#[cold]
fn assign() -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "only its lowest bits are used")]
    let index = THREADS.next() as usize & INDEX_MASK;
    INDEX.set(index);
    index
}
