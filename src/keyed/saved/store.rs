use alloc::vec::Vec;
use core::time::Duration;
use std::io::{self, Read, Write};

use crate::algorithm::Reclaim;
use crate::keyed::store::Store;
use crate::limiter::SavedState;
use crate::own_words::OwnWords;
use crate::saved::{Reader, RestoreError, Writer};
use crate::sync::{Shared, Words};
use crate::table::{Entry, InsertOutcome, Insertion, OccupiedWords, SeenWord};
use crate::time::Nanos;

impl SavedState {
    /// The permits that count at `now`.
    pub(crate) fn of<A: Reclaim>(algorithm: &A, words: impl Words, now: Nanos) -> Self {
        // The permits are read before the time, so a charge in between makes them count for longer, not shorter.
        let spent = algorithm.spent(words, now);
        let idle_at = algorithm.idle_at(words, now).unwrap_or(Nanos::MAX);
        Self::new(spent, idle_at.saturating_since(now))
    }

    /// The time at which the permits are charged in another process, whose clock shows `now`.
    fn charged_at<A: Reclaim>(&self, algorithm: &A, now: Nanos) -> Nanos {
        if self.idle_after() <= algorithm.span() {
            return now;
        }
        let idle_at = now.saturating_add(self.idle_after());
        // Debt of a token bucket: the permits count for as long when they are charged now.
        let fresh = OwnWords::new(algorithm.words());
        let words = Shared::new(fresh.get());
        algorithm.charge(words, now, self.spent());
        if algorithm.idle_at(words, now).is_none_or(|idle| idle >= idle_at) {
            return now;
        }
        // The state was ahead of its clock. No permit was admitted later than the time at which it would have become
        // idle.
        idle_at
    }

    /// Charges the permits, `elapsed` after they were saved, to words that no other thread uses. Returns the time at
    /// which they no longer count, or `None` if none counts.
    pub(crate) fn charge<A: Reclaim>(
        &self,
        algorithm: &A,
        words: impl Words,
        now: Nanos,
        elapsed: Duration,
    ) -> Option<Nanos> {
        let spent = self.spent_after(elapsed);
        if spent == 0 {
            return None;
        }
        let at = self.charged_at(algorithm, now);
        algorithm.charge(words, at, spent);
        Some(algorithm.idle_at(words, at).unwrap_or(Nanos::MAX))
    }
}

impl Store {
    /// Writes the permits that count at `now`, for each key and for the catch-all. Returns the number of keys.
    pub(crate) fn save<A: Reclaim>(
        &self,
        algorithm: &A,
        now: Nanos,
        to: &mut Writer<impl Write>,
    ) -> io::Result<u64> {
        let mut keys = 0;
        // Keys outside of their primary bucket come last. In another order they would take entries that other keys have
        // in their primary bucket, and more keys would find no entry in a full table.
        let mut others = Vec::new();
        for (entry, key) in self.table.owned_entries() {
            let state = Self::state_of(entry, key, algorithm, now);
            if let Some(state) = state.filter(|state| state.spent() > 0) {
                keys += 1;
                if self.table.find_in_primary(key).is_some() {
                    to.put_key(key, state)?;
                } else {
                    others.push((key, state));
                }
            }
        }
        for (key, state) in others {
            to.put_key(key, state)?;
        }
        to.put(&0_u64.to_le_bytes())?;
        to.put_record(SavedState::of(algorithm, Shared::new(self.catch_all.get()), now))?;
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
        // If the key loses the entry now, its state was idle, or was reset. The words are then those of a moment before, or zeros.
        Some(SavedState::of(
            algorithm,
            OccupiedWords::new(entry, key, &first),
            now,
        ))
    }

    /// Charges the permits that [`save`](Self::save) has written, `elapsed` ago, to a fresh store that no other thread
    /// uses.
    pub(crate) fn restore<A: Reclaim>(
        &self,
        algorithm: &A,
        now: Nanos,
        elapsed: Duration,
        from: &mut Reader<impl Read>,
    ) -> Result<(), RestoreError> {
        // The permits of a key that is not charged no longer count now, but they may count at an older reading.
        self.table.begin_alone_after(now);
        let catch_all = Shared::new(self.catch_all.get());
        while let Some((key, state)) = from.take_key()? {
            if state.spent_after(elapsed) > 0 && !self.charge_key(algorithm, key, &state, now, elapsed) {
                // The table is smaller than it was, or was filled in another order.
                let end = state.charge(algorithm, catch_all, now, elapsed).unwrap_or(now);
                self.table
                    .region(Self::fingerprint(key))
                    .mark_overflow(Self::fingerprint(key), now, end);
            }
        }
        // Once the catch-all is idle, none of its admissions counts.
        let end = from
            .take_record()?
            .charge(algorithm, catch_all, now, elapsed)
            .unwrap_or(now);
        let regions = from.take_u32()?;
        for index in 0..regions {
            let marks = from.take_u16()?;
            if marks != 0 && end > now {
                self.table.restore_marks(index, regions, marks, now, end);
            }
            let ahead = Duration::from_nanos(from.take_u64()?).saturating_sub(elapsed);
            if !ahead.is_zero() {
                // Keys of the region were admitted at readings after that of the save, and have lost their entries.
                self.table
                    .restore_reclaimed(index, regions, now.saturating_add(ahead));
            }
        }
        Ok(())
    }

    /// Charges a key in an entry of its own. Returns false if it gets none.
    #[inline]
    fn charge_key<A: Reclaim>(
        &self,
        algorithm: &A,
        key: u64,
        state: &SavedState,
        now: Nanos,
        elapsed: Duration,
    ) -> bool {
        let key = Self::fingerprint(key);
        let insertion = Insertion::new(&self.table, algorithm, key, now);
        let (entry, first) = match insertion.find_or_insert(false) {
            InsertOutcome::Entered { entry, first, .. } => (entry, Some(SeenWord::known(first))),
            InsertOutcome::Occupied(entry, _) => (entry, SeenWord::read(entry, key)),
            InsertOutcome::Full(_) | InsertOutcome::Barred { .. } => return false,
        };
        let Some(first) = first else {
            return false;
        };
        let words = OccupiedWords::new(entry, key, &first);
        state.charge(algorithm, words, now, elapsed);
        true
    }
}
