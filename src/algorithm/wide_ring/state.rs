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
        // Acquire: pairs with the Release in `open`; a thread that observes an open cell observes its bases and slots.
        self.layout
            .decode(self.words.load(Self::CONTROL, Ordering::Acquire))
    }

    /// Moves the control word within a cell, or flags the next cell as being entered.
    #[inline]
    pub(super) fn move_on(self, seen: TotalWord, new: TotalWord) -> bool {
        // Release: pairs with the Acquire in `control`. A thread that enters the next cell observes each slot as this
        // thread did, which may have admitted because a refund had raised it. As a read-modify-write it
        // continues the release sequence of the last `open`.
        // Relaxed on failure: the caller starts over from `control`.
        self.words
            .exchange(
                Self::CONTROL,
                seen.raw(),
                new.raw(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// `{ n, c, entering }` → `{ n, c, open }`; done already when it fails.
    pub(super) fn open(self, entering: TotalWord) {
        // Release: pairs with the Acquire in `control`; publishes the bases and slots of the cell.
        // Relaxed on failure: another helper has opened the cell, there is nothing left to do.
        let _ = self.words.exchange(
            Self::CONTROL,
            entering.raw(),
            entering.open().raw(),
            Ordering::Release,
            Ordering::Relaxed,
        );
    }

    /// A slot or a base.
    #[inline]
    pub(super) fn total(self, index: usize) -> TotalWord {
        // Acquire: pairs with the Release in `publish`; a thread that reads a word of a later cell observes
        // the control word that had entered that cell, so its exchange or its second read fails. A
        // thread that reads a slot observes the base that was published before it.
        self.layout.decode(self.words.load(index, Ordering::Acquire))
    }

    /// Brings a slot or a base to `mark`, unless it is as new already.
    pub(super) fn publish(self, index: usize, mark: TotalWord) {
        self.change(index, |seen| (seen.tick() < mark.tick()).then_some(mark));
    }

    /// `{ tick, x }` → `{ tick, x + permits }` of a slot or a base, unless it is of another tick.
    pub(super) fn raise(self, index: usize, tick: u64, permits: u64) {
        self.change(index, |seen| (seen.tick() == tick).then(|| seen.plus(permits)));
    }

    /// Replaces a slot or a base by `next` of it, until that is `None`. Ticks of a word only grow, and within a tick
    /// the word is only raised, once by each refund.
    fn change(self, index: usize, next: impl Fn(TotalWord) -> Option<TotalWord>) {
        let mut seen = self.total(index);
        while let Some(mark) = next(seen) {
            // Release: pairs with the Acquire in `total`. Of a word that is published it says that the control word has
            // entered the cell, and of a slot that the base is published. Of a word that is raised it says that
            // the words that the same refund has raised before are raised.
            // Relaxed on failure: a helper that finds the word published writes nothing. A thread that acquires the next word
            // that this thread publishes observes no older word here than this thread did.
            match self.words.exchange(
                index,
                seen.raw(),
                mark.raw(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                // Words that cannot be exchanged: a view, or those of an entry that the key has lost.
                Err(same) if same == seen.raw() => return,
                Err(newer) => seen = self.layout.decode(newer),
            }
        }
    }
}
