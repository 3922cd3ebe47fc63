use core::sync::atomic::Ordering;

use super::word::{TotalLayout, TotalWord};
use crate::sync::Words;

/// The words of one key, and their transitions.
#[derive(Clone, Copy)]
pub(super) struct State<W> {
    words: W,
    layout: TotalLayout,
}

impl<W: Words> State<W> {
    const CONTROL: usize = 0;

    #[inline]
    pub(super) fn new(words: W, layout: TotalLayout) -> Self {
        Self { words, layout }
    }

    #[inline]
    pub(super) fn control(self) -> TotalWord {
        // Acquire: pairs with the Release in `open`. A thread that observes an open cell observes its bases and slots.
        // Claim: counter_ring 3, a thread that finds a cell open finds its base.
        self.layout
            .decode(self.words.load(Self::CONTROL, Ordering::Acquire))
    }

    /// Changes the total within a cell, or begins to enter a later cell.
    #[inline]
    pub(super) fn exchange_control(self, seen: TotalWord, new: TotalWord) -> bool {
        // Release: pairs with the Acquire in `control`; publishes the slots as this thread has observed them. This thread may
        // have admitted because a refund had raised a slot, and a thread that enters the next cell must observe that slot
        // raised. The exchange is a read-modify-write, so it continues the release sequence of the last `open`.
        // Claim: counter_ring 3, an admission expects the control word that it was decided by.
        // Claim: counter_ring 6, an admission publishes the slots that were raised.
        self.words
            .exchange(Self::CONTROL, seen.raw(), new.raw(), Ordering::Release)
            .is_ok()
    }

    /// Exchanges `{ n, c, entering }` for `{ n, c, open }`. If this fails, another thread has opened the cell.
    pub(super) fn open(self, entering: TotalWord) {
        // Release: pairs with the Acquire in `control`; publishes the bases and slots of the cell.
        // If it fails, another helper has opened the cell, so nothing is left to do.
        // Claim: counter_ring 3, an open cell has its base.
        let _ = self.words.exchange(
            Self::CONTROL,
            entering.raw(),
            entering.open().raw(),
            Ordering::Release,
        );
    }

    /// Reads a slot or a base.
    #[inline]
    pub(super) fn total(self, index: usize) -> TotalWord {
        // Acquire: pairs with the Release in `change`. A thread that reads a word of a later cell observes the control word
        // that entered that cell, so its exchange of control fails, or its second read of control differs. A thread that
        // reads a slot observes the base that was published before it.
        // Claim: counter_ring 4, a thread that reads a word of a later cell finds control changed.
        self.layout.decode(self.words.load(index, Ordering::Acquire))
    }

    /// Replaces a slot or a base by `total`, unless its tick is that of `total` or newer.
    pub(super) fn publish(self, index: usize, total: TotalWord) {
        // Claim: counter_ring 2, a late helper leaves a newer word unchanged.
        self.change(index, |seen| (seen.tick() < total.tick()).then_some(total));
    }

    /// Exchanges a slot or a base `{ tick, x }` for `{ tick, x + permits }`, unless its tick is not `tick`.
    pub(super) fn raise(self, index: usize, tick: u64, permits: u64) {
        self.change(index, |seen| (seen.tick() == tick).then(|| seen.plus(permits)));
    }

    /// Replaces a slot or a base by `next` of its value. Repeats this until it succeeds or `next` returns `None`. The tick of
    /// a word only grows. Within a tick, the word is only raised, once by each refund.
    fn change(self, index: usize, next: impl Fn(TotalWord) -> Option<TotalWord>) {
        let mut seen = self.total(index);
        while let Some(replacement) = next(seen) {
            // Release: pairs with the Acquire in `total`.
            // - A published word publishes the control word that has entered the cell.
            // - A published slot also publishes the base.
            // - A raised word publishes the words that the same refund has raised before.
            // A failure acquires nothing: a helper that finds the word published writes nothing. A thread that acquires the next
            // word that this thread publishes observes no older value of this word than this thread did.
            // Claim: counter_ring 4, a published word publishes the control word of its cell.
            match self
                .words
                .exchange(index, seen.raw(), replacement.raw(), Ordering::Release)
            {
                Ok(_) => return,
                // These words cannot be exchanged: they are read-only, or their entry belongs to another key now.
                Err(same) if same == seen.raw() => return,
                Err(newer) => seen = self.layout.decode(newer),
            }
        }
    }
}
