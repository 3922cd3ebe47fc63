//! A counter ring in one word.
//!
//! # States and protocol
//!
//! The word (see [`PackedWord`]) is the whole state, so there is one event, *admit*: load the word,
//! carry it to the current tick by a shift, and if the window has room exchange it for the same
//! with the permits added. Entering a cell is no event of its own: it happens within the admission
//! that first charges the cell, and a denial writes nothing at all. A *refund* to a cell that the
//! word still sums exchanges it for the same with the permits subtracted from each sum that covers
//! the cell.
//!
//! # Proof sketch
//!
//! An exchange succeeds only on the word that was judged, so the judgement holds at that
//! instruction, and the word always equals the counts of the newest [`summed`](CellWindow::summed) cells
//! (`sums_equal_counts` in the tests of the word). From there on the argument is the one of [the
//! wide ring](super::counter_ring): strict sums the N + 1 cells that an interval of one window can
//! touch. A stale word fails the exchange; the same word met again later is the same state, since
//! nothing else exists. (models `packed_*`)

use core::sync::atomic::Ordering;

use super::attempt::{Attempt, until_decided};
use super::cell_window::CellWindow;
use crate::receipt::Receipt;
use crate::sync::Words;
mod word;

use self::word::{PackedLayout, PackedWord};
use crate::time::{Cells, Nanos};

#[derive(Clone, Copy, Debug)]
pub(super) struct PackedRing {
    layout: PackedLayout,
    cells: Cells,
    cell_window: CellWindow,
}

/// The one word, and its transitions.
#[derive(Clone, Copy)]
struct State<'a, W> {
    words: W,
    layout: &'a PackedLayout,
}

impl<'a, W: Words> State<'a, W> {
    #[inline]
    fn observe(self) -> PackedWord<'a> {
        // Relaxed: the word is the whole state, nothing is published beside it.
        self.layout.decode(self.words.load(0, Ordering::Relaxed))
    }

    #[inline]
    fn replace(self, seen: PackedWord<'_>, new: PackedWord<'_>) -> bool {
        // Relaxed, both: as in `observe`; the exchange itself validates what was judged.
        self.words
            .exchange(0, seen.raw(), new.raw(), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }
}

impl PackedRing {
    /// `None` when the sums leave too few bits for ticks that count `horizon` cells.
    pub(super) fn new(cell_window: CellWindow, width: u64, horizon: u64) -> Option<Self> {
        let layout = PackedLayout::new(cell_window.limit(), cell_window.summed())?;
        // Not 0, so that a written word is not; and a multiple of the cells that shares repeat after, so
        // that they fall on the same cells as in a wide ring.
        let first_tick = cell_window.summed();
        (layout.last_tick() >= horizon + first_tick).then(|| Self {
            layout,
            cells: Cells::new(width, first_tick, layout.last_tick()),
            cell_window,
        })
    }

    /// This ring over its own word, with a lower limit.
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

    /// The word carried to `tick`; to its own tick when that is newer (a clock that ran ahead of
    /// the caller's has published it).
    #[inline]
    fn carried(word: PackedWord<'_>, tick: u64) -> PackedWord<'_> {
        if tick > word.tick() {
            word.advance(tick - word.tick())
        } else {
            word
        }
    }

    #[inline]
    fn room(&self, word: PackedWord<'_>) -> u64 {
        self.cell_window
            .capacity(word.window(), word.tick(), || word.newest())
    }

    /// Decides: the tick that is charged.
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

    /// Decides once, and returns the tick that is charged. Retry: another thread was faster.
    #[inline(always)]
    fn attempt<W: Words>(&self, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        let state = self.state(words);
        let seen = state.observe();
        let word = Self::carried(seen, tick);
        if permits > self.room(word) {
            Attempt::Denied
        } else if state.replace(seen, word.plus(permits)) {
            Attempt::Admitted(word.tick())
        } else {
            Attempt::Retry
        }
    }

    /// Decides as `attempt`: there is nothing to do before.
    #[inline(always)]
    pub(super) fn attempt_or_enter<W: Words>(&self, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        self.attempt(words, tick, permits)
    }

    pub(super) fn is_idle(&self, first: u64, now: Nanos) -> bool {
        let (word, tick) = (self.layout.decode(first), self.cells.tick(now));
        tick > word.tick() && Self::carried(word, tick).window() == 0
    }

    pub(super) fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        let word = self.layout.decode(first);
        let here = self.cells.tick(now);
        let tick = here.max(word.tick() + 1);
        (tick <= self.layout.last_tick().min(here + 1)).then(|| Self::carried(word, tick).raw())
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
        self.room(Self::carried(word, self.cells.tick(now)))
    }

    pub(super) fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let word = self.state(words).observe();
        Self::carried(word, self.cells.tick(now)).window()
    }

    pub(super) fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        self.first_at(words, now, |word| permits <= self.room(word))
    }

    pub(super) fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        self.first_at(words, now, |word| word.window() == 0)
    }

    /// The first instant from `now` on at which the word, left alone, is as `wanted`.
    fn first_at<W: Words>(
        &self,
        words: W,
        now: Nanos,
        wanted: impl Fn(PackedWord<'_>) -> bool,
    ) -> Option<Nanos> {
        let tick = self.cells.tick(now);
        let word = Self::carried(self.state(words).observe(), tick);
        if wanted(word) {
            return Some(now);
        }
        // By then the window is empty and every share has come round.
        let horizon = self.cell_window.summed()
            + self
                .cell_window
                .shares()
                .map_or(0, super::cell_window::Shares::cells);
        (1..=horizon)
            .take_while(|later| word.tick() + later <= self.layout.last_tick())
            .find(|&later| wanted(word.advance(later)))
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

    /// Books all of it: a sum that stops decides as the exact one would.
    pub(super) fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        let state = self.state(words);
        let tick = self.cells.tick(now);
        loop {
            let seen = state.observe();
            if state.replace(seen, Self::carried(seen, tick).charged(permits)) {
                return permits;
            }
        }
    }
}
