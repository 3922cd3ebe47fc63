use core::cell::Cell;
use std::thread_local;

use crate::sync::Tally;

/// The number of threads with an index.
static THREADS: Tally = Tally::new();

const UNNUMBERED: usize = usize::MAX;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNNUMBERED) };
}

/// Returns the index of this thread, in the order of the threads' first requests.
///
/// It reads one thread-local variable. The first call of a thread also increments a shared counter. Nothing is allocated.
#[inline]
pub(super) fn number() -> usize {
    let number = NUMBER.get();
    if number == UNNUMBERED { assign() } else { number }
}

#[cold]
fn assign() -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "only its lowest bits are used")]
    let number = THREADS.next() as usize & (usize::MAX >> 1);
    NUMBER.set(number);
    number
}
