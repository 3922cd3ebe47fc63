use core::time::Duration;
use std::io::{self, Read, Write};

use crate::algorithm::Reclaim;
use crate::keyed::key_states::KeyStates;
use crate::limiter::SavedState;
use crate::own_words::OwnWords;
use crate::saved::{Reader, RestoreError, SavedWriter};
use crate::sync::{Ordering, Shared, Words};
use crate::table::{AloneWords, Entry, InsertOutcome, Insertion, OccupiedWords, SeenWord};
use crate::time::Nanos;

impl SavedState {
    /// The permits that count at `now`, and for how long. If none counts, the time is that by which the state is ahead of the
    /// clock.
    pub(crate) fn of<A: Reclaim>(algorithm: &A, words: impl Words, now: Nanos) -> Self {
        // The permits are read before the time, so a charge in between makes them count for longer, not shorter.
        let spent = algorithm.spent(words, now);
        let until = match spent {
            // Relaxed: the word is only read.
            0 => algorithm.latest_time(words.load(0, Ordering::Relaxed)),
            _ => algorithm.idle_at(words, now).unwrap_or(Nanos::MAX),
        };
        Self::new(spent, until.saturating_since(now))
    }
}

/// The charges of a restore: of all states to one algorithm, at one reading.
pub(crate) struct Charger<'a, A> {
    algorithm: &'a A,
    now: Nanos,
    /// The time at which a state begins if it was not ahead of its clock.
    begin: Nanos,
    /// The time since the save.
    elapsed: Duration,
    /// The longest time by which a state is ahead of its clock after a restore: the width of a cell.
    cell: Duration,
    /// The longest time for which a state counts if it was not ahead of its clock for any other reason.
    longest: Duration,
}

impl<'a, A: Reclaim> Charger<'a, A> {
    pub(crate) fn new(algorithm: &'a A, now: Nanos, elapsed: Duration) -> Self {
        let begin = algorithm.restored_at(now, Duration::ZERO);
        let next = algorithm.restored_at(begin, Duration::ZERO);
        let cell = next.saturating_since(begin);
        Self {
            algorithm,
            now,
            begin,
            elapsed,
            cell,
            longest: algorithm.span() + cell,
        }
    }

    /// Begins words that no other thread uses, and charges them the permits that still count. Returns the time of the charge, or
    /// `None` if none counts.
    #[inline]
    pub(crate) fn charge(&self, words: impl Words, state: SavedState) -> Option<Nanos> {
        let spent = state.spent_after(self.elapsed);
        if spent == 0 {
            let at = self.begin_of_uncharged(state);
            self.algorithm.restore(words, at, 0);
            return None;
        }
        // A state that was restored within the last cell is ahead of its clock by up to a cell. It would be ahead by one more
        // after each restart if that counted.
        let at = if state.idle_after() <= self.longest {
            self.begin
        } else {
            self.charged_at(state)
        };
        self.algorithm.restore(words, at, spent);
        Some(at)
    }

    /// The time at which a state begins if none of its permits is charged.
    fn begin_of_uncharged(&self, state: SavedState) -> Nanos {
        let ahead = match state.spent {
            0 => state.idle_after().saturating_sub(self.elapsed),
            _ => Duration::ZERO,
        };
        self.begin_ahead(ahead)
    }

    /// The time at which a state begins if it was ahead of its clock by `ahead`. As in [`charge`](Self::charge), a state that was
    /// ahead by at most a cell is not ahead any more.
    fn begin_ahead(&self, ahead: Duration) -> Nanos {
        if ahead <= self.cell {
            self.begin
        } else {
            self.algorithm
                .restored_at(self.now.saturating_add(ahead), Duration::ZERO)
        }
    }

    /// The time at which the permits of a state that counts for longer than a span are charged.
    #[cold]
    fn charged_at(&self, state: SavedState) -> Nanos {
        let (algorithm, now) = (self.algorithm, self.now);
        let idle_at = now.saturating_add(state.idle_after());
        let at = algorithm.restored_at(now, state.idle_after());
        // The permits may be debt of a token bucket, or of a ring that `at` makes as far ahead as before. Then they count for as
        // long as before if they are charged at `at`.
        let fresh = OwnWords::new(algorithm.words());
        let words = Shared::new(fresh.get());
        algorithm.restore(words, at, state.spent);
        if algorithm.idle_at(words, now).is_none_or(|idle| idle >= idle_at) {
            return at;
        }
        // The state was ahead of its clock. No permit was admitted later than the time at which it would have become
        // idle.
        idle_at
    }

    /// Charges the catch-all the permits of `state` that still count. Returns the time from which on no permit of the catch-all
    /// counts, or `now` if nothing was charged.
    fn charge_catch_all(&self, words: impl Words, state: SavedState) -> Nanos {
        let at = self.charge(words, state);
        at.map_or(self.now, |at| {
            self.algorithm.idle_at(words, at).unwrap_or(Nanos::MAX)
        })
    }
}

impl KeyStates {
    /// Writes the permits that count at `now`, for each key and for the catch-all. Returns the number of keys.
    pub(crate) fn save<A: Reclaim>(
        &self,
        algorithm: &A,
        now: Nanos,
        to: &mut SavedWriter<impl Write>,
    ) -> io::Result<u64> {
        let mut keys = 0;
        // Keys outside of their primary bucket come last. In another order they would take entries that other keys have in their
        // primary bucket, and more keys would find no entry in a full table. A key that changes its bucket between the passes is
        // written twice. It is then charged twice, which is stricter.
        for in_primary in [true, false] {
            for (entry, key) in self.table.owned_entries() {
                if self.table.is_in_primary(entry, key) != in_primary {
                    continue;
                }
                match Self::state_of(entry, key, algorithm, now) {
                    Some(state) if !state.idle_after().is_zero() => {
                        to.put_key(key, state)?;
                        keys += u64::from(state.spent > 0);
                    }
                    _ => {}
                }
            }
        }
        let catch_all = SavedState::of(algorithm, Shared::new(self.catch_all.get()), now);
        to.put_key(Entry::VACANT, catch_all)?;
        to.put(&self.table.regions_count().to_le_bytes())?;
        for (marks, ahead) in self.table.saved_regions(now) {
            to.put(&marks.to_le_bytes())?;
            let ahead = u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX);
            to.put(&ahead.to_le_bytes())?;
        }
        Ok(keys)
    }

    /// The state of a key that owns the entry. `None` if the key has lost it, or no decision was charged to it.
    fn state_of<A: Reclaim>(entry: Entry<'_>, key: u64, algorithm: &A, now: Nanos) -> Option<SavedState> {
        let first = SeenWord::read(entry, key)?;
        // If the key loses the entry now, its state was idle, reset, or forgotten. The words are then those of a moment before, or
        // zeros.
        // Claim: saved beside decisions, a key that decides meanwhile is saved.
        Some(SavedState::of(
            algorithm,
            OccupiedWords::new(entry, key, &first),
            now,
        ))
    }

    /// Charges the permits that [`save`](Self::save) has written, `elapsed` ago, to fresh states that no other thread
    /// uses.
    pub(crate) fn restore<A: Reclaim>(
        &self,
        algorithm: &A,
        now: Nanos,
        elapsed: Duration,
        from: &mut Reader<impl Read>,
    ) -> Result<(), RestoreError> {
        let charger = Charger::new(algorithm, now, elapsed);
        // The permits of a key that is not charged no longer count now, but they may count at an older reading. In a ring, a
        // window that includes the restore may still hold permits of a cell that the saved state did not sum any more.
        self.table.begin_after(charger.begin);
        let catch_all = Shared::new(self.catch_all.get());
        let mut pages = [0; 2];
        let last = loop {
            let (key, state) = from.take_key()?;
            if key == Entry::VACANT {
                break state;
            }
            let key = Self::fingerprint(key);
            if state.spent == 0 {
                self.table
                    .region(key)
                    .reclaim_at(charger.begin_of_uncharged(state));
            } else if state.spent_after(elapsed) > 0 && !self.charge_key(&charger, key, state, &mut pages) {
                // The table is smaller than it was, or was filled in another order.
                let end = charger.charge_catch_all(catch_all, state);
                // Claim: saved no fresh budget, a key without an entry is marked.
                self.table.region(key).mark_overflow(key, now, end);
            }
        };
        // Once the catch-all is idle, none of its admissions counts.
        let end = charger.charge_catch_all(catch_all, last);
        let regions = from.take_u32()?;
        for index in 0..regions {
            let marks = from.take_u16()?;
            if marks != 0 && end > now {
                self.table.restore_marks(index, regions, marks, now, end);
            }
            let ahead = Duration::from_nanos(from.take_u64()?).saturating_sub(elapsed);
            if !ahead.is_zero() {
                // Keys of the region were admitted at readings after that of the save, and have lost their entries.
                let at = charger.begin_ahead(ahead);
                self.table.restore_reclaimed(index, regions, at);
            }
        }
        Ok(())
    }

    /// Charges a key in an entry of its own. Returns false if it gets none. `pages` are the last pages of the table that were
    /// written to.
    #[inline]
    fn charge_key<A: Reclaim>(
        &self,
        charger: &Charger<'_, A>,
        key: u64,
        state: SavedState,
        pages: &mut [usize; 2],
    ) -> bool {
        let entry = self.table.enter_alone(key, pages).or_else(|| {
            let insertion = Insertion::new(&self.table, charger.algorithm, key, charger.now);
            let forget = false;
            loop {
                match insertion.find_or_insert::<false>(forget) {
                    InsertOutcome::Entry(entry, ..) => return Some(entry),
                    InsertOutcome::NoEntry(_) => return None,
                    InsertOutcome::Retry => {}
                }
            }
        });
        let words = entry.and_then(|entry| AloneWords::new(entry, key));
        if let Some(words) = words {
            charger.charge(words, state);
        }
        words.is_some()
    }
}
