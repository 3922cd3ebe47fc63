use core::cell::Cell;
use std::thread_local;

use crate::sync::Tally;

/// The number of threads with an index.
static THREADS: Tally = Tally::new();

const UNASSIGNED: usize = usize::MAX;

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

#[cold]
fn assign() -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "only its lowest bits are used")]
    let index = THREADS.next() as usize & (usize::MAX >> 1);
    INDEX.set(index);
    index
}
