use core::sync::atomic::Ordering;

use super::word::{HeadWord, LogLayout, SlotPosition, SlotWord};
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
        // Acquire: pairs with the Release in `claim`. A thread that observes a claim observes no older value of a slot than
        // the claimer did. So it never reads a value that is two laps old, whose lap bit would match.
        // Claim: timestamp_ring head 2, a thread that reads the head reads no slot of two laps before.
        self.layout.decode(self.words.load(Self::HEAD, Ordering::Acquire))
    }

    /// Claims the positions from `seen` to `new`.
    #[inline]
    pub(super) fn claim(self, seen: HeadWord, new: HeadWord) -> bool {
        // Release: pairs with the Acquire in `head`; publishes the slots as the claimer has observed them.
        // Claim: timestamp_ring head 2, a claim publishes the slots that its thread has observed.
        // Claim: timestamp_ring head 4, a claim expects the head that it was decided by.
        self.words
            .exchange(Self::HEAD, seen.raw(), new.raw(), Ordering::Release)
            .is_ok()
    }

    #[inline]
    pub(super) fn slot(self, position: SlotPosition) -> SlotWord {
        // Acquire: pairs with the Release in `store`. A thread that observes a slot of a later lap observes the head that
        // claimed it. So its exchange of the head fails, or its second read of the head differs.
        // Claim: timestamp_ring head 5, a thread that reads a slot of a later lap finds the head changed.
        SlotWord::decode(self.words.load(Self::index(position), Ordering::Acquire))
    }

    #[inline]
    pub(super) fn store(self, position: SlotPosition, seen: SlotWord, new: SlotWord) -> bool {
        // Release: pairs with the Acquire in `slot`; publishes the head by which the position was claimed.
        // If it fails, another thread has stored a time that is not earlier.
        // Claim: timestamp_ring head 5, a stored slot publishes the head of its claim.
        self.words
            .exchange(Self::index(position), seen.raw(), new.raw(), Ordering::Release)
            .is_ok()
    }

    #[inline]
    pub(super) fn index(position: SlotPosition) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "below the number of slots, which are in memory"
        )]
        let index = position.index as usize;
        index + 1
    }

    /// Returns the slot at `position` if its last claim is stored.
    ///
    /// Otherwise the claimer was suspended between claim and store. This thread does not wait for it: it fills the slot with
    /// the newest time, which is not earlier than that of the claim, and returns `None`. The caller starts over.
    #[inline]
    pub(super) fn filled(self, head: HeadWord, position: SlotPosition) -> Option<SlotWord> {
        let slot = self.slot(position);
        if slot.is_due(position.lap) {
            return Some(slot);
        }
        // Claim: timestamp_ring head 7, a thread fills the slot of a suspended owner.
        self.fill(head, position, slot);
        None
    }

    #[cold]
    pub(super) fn fill(self, head: HeadWord, position: SlotPosition, slot: SlotWord) {
        // If the head has changed, the slot may be of a later lap. Then it must not be filled.
        if self.head() == head {
            // Claim: timestamp_ring head 2, a slot is filled with a time not before that of its claim.
            self.store(position, slot, SlotWord::stored(head.newest(), position.lap ^ 1));
        }
    }
}
