//! A counter ring in one word.
//!
//! # States and protocol
//!
//! The word (see [`PackedWord`]) is the whole state. Each event is one exchange of it:
//!
//! - *Admit*: load the word, shift it to the current tick, and if the window has the capacity, exchange it for a word with
//!   the permits added. The first admission in a cell enters the cell. A denial writes nothing.
//! - *Charge*: as *admit*, whatever the capacity.
//! - *Refund*, to a cell that the word still sums: exchange the word for one in which the permits are subtracted from each
//!   sum that covers the cell.
//!
//! # Proof sketch
//!
//! An exchange succeeds only on the word that was decided about, so the decision is right at that instruction. The word
//! always equals the counts of the newest [`summed`](CellWindow::summed) cells (`sums_equal_counts` in the tests of the
//! word). The bounds follow as for [the wide ring](super::counter_ring): strict sums the N + 1 cells that an interval of one
//! window can touch. If the word has changed, the exchange fails. If an equal word has returned, the state is the same,
//! since the word is the whole state. (models `packed_*`)

use core::sync::atomic::Ordering;

use super::attempt::{Attempt, until_decided};
use super::cell_window::CellWindow;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::{Cells, Nanos};

mod word;

use self::word::{PackedLayout, PackedWord};

#[derive(Clone, Copy, Debug)]
pub(super) struct PackedRing {
    layout: PackedLayout,
    cells: Cells,
    cell_window: CellWindow,
}

/// The atomic word, and its transitions.
#[derive(Clone, Copy)]
struct State<'a, W> {
    words: W,
    layout: &'a PackedLayout,
}

impl<'a, W: Words> State<'a, W> {
    #[inline]
    fn observe(self) -> PackedWord<'a> {
        // Relaxed: the word is the whole state, so it publishes no other memory.
        self.layout.decode(self.words.load(0, Ordering::Relaxed))
    }

    #[inline]
    fn replace(self, seen: PackedWord<'_>, new: PackedWord<'_>) -> bool {
        // Relaxed, both: as in `observe`. The exchange itself validates the word that was decided about.
        self.words
            .exchange(0, seen.raw(), new.raw(), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

impl PackedRing {
    /// Returns `None` if the sums leave too few bits for the ticks of `horizon` cells.
    pub(super) fn new(cell_window: CellWindow, width: u64, horizon: u64) -> Option<Self> {
        let layout = PackedLayout::new(cell_window.limit(), cell_window.summed())?;
        // The first tick is not 0, so a written word is not 0. With shares it is N, a multiple of their period, as in a wide
        // ring, so that both give the same share to the same cell.
        let first_tick = cell_window.summed();
        (layout.last_tick() >= horizon + first_tick).then(|| Self {
            layout,
            cells: Cells::new(width, first_tick, layout.last_tick()),
            cell_window,
        })
    }

    /// This ring with a lower limit, over the same word.
    pub(super) fn with_limit(&self, limit: u64) -> Self {
        Self {
            cell_window: self.cell_window.with_limit(limit),
            ..*self
        }
    }

    pub(super) const fn cell_window(&self) -> &CellWindow {
        &self.cell_window
    }

    pub(super) const fn cells(&self) -> &Cells {
        &self.cells
    }

    fn state<W: Words>(&self, words: W) -> State<'_, W> {
        State {
            words,
            layout: &self.layout,
        }
    }

    /// Advances the word to `tick`. A word of a newer tick is returned unchanged: another thread has published it with a
    /// newer reading.
    #[inline]
    fn advanced_to(word: PackedWord<'_>, tick: u64) -> PackedWord<'_> {
        if tick > word.tick() {
            word.advance(tick - word.tick())
        } else {
            word
        }
    }

    #[inline]
    fn capacity(&self, word: PackedWord<'_>) -> u64 {
        self.cell_window
            .capacity(word.window(), word.tick(), || word.newest())
    }

    /// Decides, and returns the tick that is charged.
    #[inline(always)]
    pub(super) fn decide<W: Words>(&self, words: W, tick: u64, permits: u64) -> Option<u64> {
        self.attempt(words, tick, permits)
            .or_else(|| self.retry(words, tick, permits))
    }

    /// Repeats the attempt until it decides.
    #[cold]
    #[inline(never)]
    fn retry<W: Words>(&self, words: W, tick: u64, permits: u64) -> Option<u64> {
        until_decided(|| self.attempt(words, tick, permits))
    }

    /// Decides once. `Admitted` has the tick that is charged. `Retry`: another thread changed the word.
    #[inline(always)]
    fn attempt<W: Words>(&self, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        self.attempt_by(|word| self.capacity(word), words, tick, permits)
    }

    /// Decides once, by the capacity that `capacity` returns for the word at the tick.
    #[inline(always)]
    fn attempt_by<W: Words>(
        &self,
        capacity: impl Fn(PackedWord<'_>) -> u64,
        words: W,
        tick: u64,
        permits: u64,
    ) -> Attempt<u64> {
        let state = self.state(words);
        let seen = state.observe();
        let word = Self::advanced_to(seen, tick);
        if permits > capacity(word) {
            Attempt::Denied
        } else if state.replace(seen, word.plus(permits)) {
            Attempt::Admitted(word.tick())
        } else {
            Attempt::Retry
        }
    }

    /// Calls `attempt`. A packed ring has no cell to enter first.
    #[inline(always)]
    pub(super) fn attempt_or_enter<W: Words>(&self, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        self.attempt(words, tick, permits)
    }

    /// Calls [`attempt_or_enter`](Self::attempt_or_enter) with a lower limit.
    #[inline(always)]
    pub(super) fn attempt_with_limit<W: Words>(
        &self,
        limit: u64,
        words: W,
        tick: u64,
        permits: u64,
    ) -> Attempt<u64> {
        let capacity = |word: PackedWord<'_>| {
            let newest = || word.newest();
            self.cell_window
                .capacity_below(limit, word.window(), word.tick(), newest)
        };
        self.attempt_by(capacity, words, tick, permits)
    }

    pub(super) fn is_idle(&self, first: u64, now: Nanos) -> bool {
        let (word, tick) = (self.layout.decode(first), self.cells.tick(now));
        tick > word.tick() && Self::advanced_to(word, tick).window() == 0
    }

    pub(super) fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        let word = self.layout.decode(first);
        let current = self.cells.tick(now);
        let tick = current.max(word.tick() + 1);
        (tick <= self.layout.last_tick().min(current + 1)).then(|| Self::advanced_to(word, tick).raw())
    }

    pub(super) fn idle_from(&self, first: u64) -> Option<Nanos> {
        let word = self.layout.decode(first);
        let empty = (1..=self.cell_window.summed()).find(|&later| word.advance(later).window() == 0)?;
        self.cells.start(word.tick() + empty)
    }

    pub(super) fn latest_time(&self, first: u64) -> Nanos {
        self.cells
            .start(self.layout.decode(first).tick())
            .unwrap_or(Nanos::MAX)
    }

    pub(super) fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let word = self.state(words).observe();
        self.capacity(Self::advanced_to(word, self.cells.tick(now)))
    }

    pub(super) fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let word = self.state(words).observe();
        Self::advanced_to(word, self.cells.tick(now)).window()
    }

    pub(super) fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        self.first_at(words, now, |word| permits <= self.capacity(word))
    }

    pub(super) fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        self.first_at(words, now, |word| word.window() == 0)
    }

    /// The first instant from `now` on at which `condition` holds for the word, if no other request comes before.
    fn first_at<W: Words>(
        &self,
        words: W,
        now: Nanos,
        condition: impl Fn(PackedWord<'_>) -> bool,
    ) -> Option<Nanos> {
        let tick = self.cells.tick(now);
        let word = Self::advanced_to(self.state(words).observe(), tick);
        if condition(word) {
            return Some(now);
        }
        // After the summed cells the window is empty. After one more period of the shares, each share has been current.
        let horizon = self.cell_window.summed()
            + self
                .cell_window
                .shares()
                .map_or(0, super::cell_window::Shares::cells);
        (1..=horizon)
            .take_while(|later| word.tick() + later <= self.layout.last_tick())
            .find(|&later| condition(word.advance(later)))
            .and_then(|later| self.cells.start(word.tick() + later))
    }

    pub(super) fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        let state = self.state(words);
        loop {
            let seen = state.observe();
            let Some(refunded) = seen.refund(receipt.mark(), permits) else {
                return false;
            };
            if state.replace(seen, refunded) {
                return true;
            }
        }
    }

    /// Charges all `permits`. A sum that saturates decides as the exact sum would.
    pub(super) fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        let state = self.state(words);
        let tick = self.cells.tick(now);
        loop {
            let seen = state.observe();
            if state.replace(seen, Self::advanced_to(seen, tick).charged(permits)) {
                return permits;
            }
        }
    }
}
