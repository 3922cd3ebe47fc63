use core::sync::atomic::Ordering;

use crate::sync::Words;
use crate::word::{Head, LapLayout, Place, Slot};

/// The words of one key, and what may happen to them.
#[derive(Clone, Copy)]
pub(super) struct State<W> {
    words: W,
    layout: LapLayout,
}

impl<W: Words> State<W> {
    const HEAD: usize = 0;

    #[inline]
    pub(super) fn new(words: W, layout: LapLayout) -> Self {
        Self { words, layout }
    }

    #[inline]
    pub(super) fn head(self) -> Head {
        // Acquire: pairs with the Release in `claim`; whoever sees a claim sees of each slot what its claimer
        // saw, so never a value two laps old, whose tag would look right.
        self.layout.decode(self.words.load(Self::HEAD, Ordering::Acquire))
    }

    /// Claims positions.
    #[inline]
    pub(super) fn claim(self, seen: Head, new: Head) -> bool {
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
    pub(super) fn slot(self, place: Place) -> Slot {
        // Acquire: pairs with the Release in `store`; whoever sees a slot of a later lap sees the
        // head that had claimed it, so its exchange or its second look at the head fails.
        Slot::decode(self.words.load(Self::index(place), Ordering::Acquire))
    }

    #[inline]
    pub(super) fn store(self, place: Place, seen: Slot, new: Slot) -> bool {
        // Release: pairs with the Acquire in `slot`; publishes the claim that the slot tells of.
        // Relaxed on failure: whoever came first has stored as much or more.
        self.words
            .exchange(
                Self::index(place),
                seen.raw(),
                new.raw(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    #[inline]
    pub(super) fn index(place: Place) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "below the number of slots, which are in memory"
        )]
        let index = place.index as usize;
        index + 1
    }

    /// The slot at `place`, when its last claim is stored.
    ///
    /// If it is not, the claimer sleeps between claim and store. Nobody waits for it: the slot is filled with
    /// the newest time of all, which is no earlier than the claimer's, and `None` says to start over.
    #[inline]
    pub(super) fn settled(self, head: Head, place: Place) -> Option<Slot> {
        let slot = self.slot(place);
        if slot.is_due(place.lap) {
            return Some(slot);
        }
        self.fill(head, place, slot);
        None
    }

    #[cold]
    pub(super) fn fill(self, head: Head, place: Place, slot: Slot) {
        // Only if the head still stands: else the slot may be of a later lap, and nothing is missing.
        if self.head() == head {
            self.store(place, slot, Slot::stored(head.newest(), place.lap ^ 1));
        }
    }
}
