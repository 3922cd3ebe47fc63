use core::sync::atomic::Ordering;

use super::word::{TotalLayout, TotalWord};
use crate::sync::Words;

/// The words of one key, the first of which is the control word, and their transitions.
#[derive(Clone, Copy)]
pub(in crate::algorithm) struct State<W> {
    pub(in crate::algorithm) words: W,
    pub(in crate::algorithm) layout: TotalLayout,
}

impl<W: Words> State<W> {
    const CONTROL: usize = 0;

    #[inline]
    pub(in crate::algorithm) fn new(words: W, layout: TotalLayout) -> Self {
        Self { words, layout }
    }

    #[inline]
    pub(in crate::algorithm) fn control(self) -> TotalWord {
        // Acquire: pairs with the Release in `exchange_control`. A thread that observes an open cell observes its bases, and the
        // slots of all cells before it.
        // Claim: counter_ring 3, a thread that finds a cell open finds its base.
        // Claim: grouped_ring orderings, a thread that finds a cell open finds its base.
        self.layout
            .decode(self.words.load(Self::CONTROL, Ordering::Acquire))
    }

    /// Changes the total within a cell, begins to enter a later cell, or opens the cell that is being entered. Returns false if
    /// another thread has changed the control word.
    #[inline]
    pub(in crate::algorithm) fn exchange_control(self, seen: TotalWord, new: TotalWord) -> bool {
        // Release: pairs with the Acquire in `control`; publishes the bases and the slots as this thread has observed them. This
        // thread may have admitted because a refund had changed a slot, and a thread that enters the next cell must observe
        // that slot changed. The exchange is a read-modify-write, so it continues the release sequence of the exchange that
        // has opened the cell.
        // Claim: counter_ring 3, an open cell has its base.
        // Claim: counter_ring 3, an admission expects the control word that it was decided by.
        // Claim: counter_ring 6, an admission publishes the slots that were raised.
        self.words
            .exchange(Self::CONTROL, seen.raw(), new.raw(), Ordering::Release)
            .is_ok()
    }

    /// Reads another word.
    #[inline]
    pub(in crate::algorithm) fn raw(self, index: usize) -> u64 {
        // Acquire: pairs with the Release in `change`. A thread that reads a word of a later cell observes the control word
        // that entered that cell, so its exchange of control fails, or its second read of control differs. A thread that
        // reads a slot observes the base that was published before it.
        // Claim: counter_ring 4, a thread that reads a word of a later cell finds control changed.
        self.words.load(index, Ordering::Acquire)
    }

    /// Reads a word with a tick and a total.
    #[inline]
    pub(in crate::algorithm) fn total(self, index: usize) -> TotalWord {
        self.layout.decode(self.raw(index))
    }

    /// Replaces a word by `next` of its value. Repeats this until it succeeds or `next` returns `None`. Returns whether it
    /// succeeded.
    #[inline]
    pub(in crate::algorithm) fn change(self, index: usize, next: impl Fn(u64) -> Option<u64>) -> bool {
        let mut seen = self.raw(index);
        while let Some(new) = next(seen) {
            // Release: pairs with the Acquire in `raw`.
            // - A published word publishes the control word that has entered the cell.
            // - A published slot also publishes the base.
            // - A word that a refund has changed publishes the words that the same refund has changed before.
            // A failure acquires nothing: a helper that finds the word published writes nothing. A thread that acquires the next
            // word that this thread publishes observes no older value of this word than this thread did.
            // Claim: counter_ring 4, a published word publishes the control word of its cell.
            match self.words.exchange(index, seen, new, Ordering::Release) {
                Ok(_) => return true,
                // These words cannot be exchanged: they are read-only, or their entry belongs to another key now.
                Err(same) if same == seen => return false,
                Err(newer) => seen = newer,
            }
        }
        false
    }
}
