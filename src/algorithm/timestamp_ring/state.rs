use core::sync::atomic::Ordering;

use super::word::{HeadWord, LogLayout, Position, SlotWord};
use crate::sync::Words;

/// The words of one key, and their transitions.
#[derive(Clone, Copy)]
pub(super) struct State<W> {
    words: W,
    layout: LogLayout,
}

impl<W: Words> State<W> {
    const HEAD: usize = 0;

    #[inline]
    pub(super) fn new(words: W, layout: LogLayout) -> Self {
        Self { words, layout }
    }

    #[inline]
    pub(super) fn head(self) -> HeadWord {
        // Acquire: pairs with the Release in `claim`; a thread that observes a claim observes of each slot at least
        // the claimer's value, so never one two laps old, whose tag would match.
        self.layout.decode(self.words.load(Self::HEAD, Ordering::Acquire))
    }

    /// Claims positions.
    #[inline]
    pub(super) fn claim(self, seen: HeadWord, new: HeadWord) -> bool {
        // Release: pairs with the Acquire in `head`; publishes which slots the claimer has seen.
        // Relaxed on failure: the caller starts over from `head`, or gives up.
        self.words
            .exchange(
                Self::HEAD,
                seen.raw(),
                new.raw(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    #[inline]
    pub(super) fn slot(self, position: Position) -> SlotWord {
        // Acquire: pairs with the Release in `store`; a thread that observes a slot of a later lap observes
        // the head that had claimed it, so its exchange or its second read of the head fails.
        SlotWord::decode(self.words.load(Self::index(position), Ordering::Acquire))
    }

    #[inline]
    pub(super) fn store(self, position: Position, seen: SlotWord, new: SlotWord) -> bool {
        // Release: pairs with the Acquire in `slot`; publishes the claim whose time the slot holds.
        // Relaxed on failure: the other thread has stored this time or a later one.
        self.words
            .exchange(
                Self::index(position),
                seen.raw(),
                new.raw(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    #[inline]
    pub(super) fn index(position: Position) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "below the number of slots, which are in memory"
        )]
        let index = position.index as usize;
        index + 1
    }

    /// The slot at `position`, if its last claim is stored.
    ///
    /// If it is not, the claimer sleeps between claim and store. No thread waits for it: the slot is filled with
    /// the newest time of all, which is no earlier than the claimer's, and `None` says to start over.
    #[inline]
    pub(super) fn filled(self, head: HeadWord, position: Position) -> Option<SlotWord> {
        let slot = self.slot(position);
        if slot.is_due(position.lap) {
            return Some(slot);
        }
        self.fill(head, position, slot);
        None
    }

    #[cold]
    pub(super) fn fill(self, head: HeadWord, position: Position, slot: SlotWord) {
        // Only if the head is unchanged: otherwise the slot may be of a later lap, and needs no fill.
        if self.head() == head {
            self.store(position, slot, SlotWord::stored(head.newest(), position.lap ^ 1));
        }
    }
}
