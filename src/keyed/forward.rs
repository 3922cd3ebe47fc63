use core::cell::Cell;
use core::sync::atomic::Ordering;

use crate::algorithm::Reclaim;
use crate::sync::Words;

/// State words whose first word never returns to an earlier time. Refunds use them in a table whose entries may pass to
/// another key while permits count.
///
/// An entry that passes to another key gets a word above the current one. If a refund could lower the word, the next
/// key could write one of the higher words again. Then the exchange of a thread that was suspended since before the
/// refund would succeed on the next key's state.
///
/// Once an exchange was refused, the words are constant zeros that cannot be exchanged.
#[derive(Debug)]
pub(super) struct Forward<'a, A, W> {
    algorithm: &'a A,
    words: W,
    refused: Cell<bool>,
}

impl<'a, A, W> Forward<'a, A, W> {
    pub(super) fn new(algorithm: &'a A, words: W) -> Self {
        let refused = Cell::new(false);
        Self {
            algorithm,
            words,
            refused,
        }
    }
}

impl<A: Reclaim, W: Words> Words for &Forward<'_, A, W> {
    fn load(self, index: usize, order: Ordering) -> u64 {
        if self.refused.get() {
            return 0;
        }
        self.words.load(index, order)
    }

    fn exchange(self, index: usize, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        if index == 0 && self.algorithm.latest_time(new) < self.algorithm.latest_time(current) {
            self.refused.set(true);
        }
        if self.refused.get() {
            return Err(0);
        }
        self.words.exchange(index, current, new, order)
    }
}
