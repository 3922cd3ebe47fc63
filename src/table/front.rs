//! The common cases of an insertion: the key has an entry, or takes a vacant or an idle one.

use super::counts::Event;
use super::entry::Entry;
use super::insert::{Idle, InsertOutcome, Insertion};
use super::probe::FrontLines;
use crate::algorithm::Reclaim;
use crate::time::Nanos;

/// The result of a [search of the front](Insertion::search_front).
#[derive(Clone, Copy, Debug)]
pub(crate) enum FrontSearch<'a> {
    /// The key's entry.
    Own(Entry<'a>),
    /// An entry that is the key's, or was vacant.
    OwnOrVacant(Entry<'a>),
    /// No entry of the front is vacant or has the key. The backyard may have it.
    Full(FullFront<'a>),
}

/// A front without a vacant entry and without the key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullFront<'a> {
    lines: FrontLines<'a>,
    /// The number of rendezvous before the scan.
    before: u64,
}

impl<'a, A: Reclaim> Insertion<'a, A> {
    /// Searches the front for the key's entry, or else for the first vacant one.
    #[inline(always)]
    pub(crate) fn search_front(&self) -> FrontSearch<'a> {
        let key = self.probe.key;
        let primary = self.probe.bucket(0);
        if primary.has_vacancy()
            && let Some(entry) = primary.own_or_vacant(key)
        {
            return FrontSearch::OwnOrVacant(entry);
        }
        let before = self.region.rendezvous_count();
        let alternate = self.probe.bucket(self.probe.front().end - 1);
        // Before the search: a bucket that was full cannot get the key by *enter* after it was searched. If it is searched first,
        // another thread can enter the key into its last vacant entry between the two reads.
        let has_vacancy = alternate.has_vacancy();
        // The alternate bucket first, since most callers have searched the primary one. It is searched again, because another thread
        // may have entered the key meanwhile. It is full now, so the key cannot be entered there after this search.
        let own = alternate.entry_of(key).or_else(|| primary.entry_of(key));
        if let Some(entry) = own {
            return FrontSearch::Own(entry);
        }
        // A search that finds neither has seen each entry with another key, so it counts as a search of a full bucket.
        // Claim: table 3, a vacancy is read before the bucket is searched.
        if has_vacancy && let Some(entry) = alternate.own_or_vacant(key) {
            return FrontSearch::OwnOrVacant(entry);
        }
        let lines = [primary.line(), alternate.line()];
        FrontSearch::Full(FullFront { lines, before })
    }

    /// *enter* in the common case: enters the key into a vacant entry, and returns the time for its first decision. `None`: use
    /// [`find_or_insert`](Self::find_or_insert).
    #[inline(always)]
    pub(crate) fn enter(&self, entry: Entry<'a>) -> Option<Nanos> {
        let is_plain = self.region.overflow_until(self.probe.key) == Nanos::ZERO;
        (is_plain && entry.enter(self.probe.key).is_ok()).then(|| {
            self.table.counts().add(self.probe.key, Event::Filled);
            self.begin_time()
        })
    }

    /// Handles the common cases of a full front: the key has an entry in the backyard, takes over an idle entry, or can get none.
    /// `None`: use [`find_or_insert`](Self::find_or_insert).
    #[inline(always)]
    pub(crate) fn insert_with_full_front(
        &self,
        FullFront { lines, before }: FullFront<'a>,
        forget: bool,
    ) -> Option<InsertOutcome<'a>> {
        let lines = &self.probe.lines_with(lines);
        for choice in self.probe.backyard() {
            let bucket = self.probe.bucket_at(lines[choice]);
            if bucket.has_key(self.probe.key) {
                // The decision validates the entry.
                return bucket.entry_of(self.probe.key).map(InsertOutcome::Occupied);
            }
        }
        let has_vacancy = |choice: usize| self.probe.bucket_at(lines[choice]).has_vacancy();
        if self.probe.backyard().any(has_vacancy) {
            return None;
        }
        match self.find_idle(lines) {
            Idle::Found(idle) => self.take_over(before, idle, Event::Reclaimed),
            Idle::None if !forget => Some(InsertOutcome::NoEntry(self.full())),
            Idle::None | Idle::Unknown => None,
        }
    }
}
