use core::cell::Cell;
use std::thread_local;

use crate::sync::Tally;

/// How many threads have a number.
static THREADS: Tally = Tally::new();

const UNNUMBERED: usize = usize::MAX;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNNUMBERED) };
}

/// The number of this thread, in the order in which threads first asked.
///
/// One read of memory that belongs to the thread; the first time one addition to a shared count
/// more. Nothing is allocated.
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
