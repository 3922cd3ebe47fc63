//! The common cases of an insertion: the front decides, or an idle entry is taken over.

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
    /// All entries of the front have other keys. The backyard may have the key.
    Full(FullFront<'a>),
}

/// A front that is full of other keys.
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
        // The alternate bucket first: the caller has not found the key in the primary one. That one is full, so the key cannot be
        // entered there any more.
        let own = alternate.entry_of(key).or_else(|| primary.entry_of(key));
        if let Some(entry) = own {
            return FrontSearch::Own(entry);
        }
        if alternate.has_vacancy()
            && let Some(entry) = alternate.own_or_vacant(key)
        {
            return FrontSearch::OwnOrVacant(entry);
        }
        let lines = [primary.line(), alternate.line()];
        FrontSearch::Full(FullFront { lines, before })
    }

    /// *enter* in the common case: enters the key into a vacant entry, and returns the time for its first decision. `None`: use
    /// [`find_or_insert`](Self::find_or_insert).
    #[inline(always)]
    pub(crate) fn enter(&self, entry: Entry<'a>) -> Option<Nanos> {
        let is_plain = !self.table.inherits && self.region.overflow_until(self.probe.key) == Nanos::ZERO;
        (is_plain && entry.enter(self.probe.key).is_ok()).then(|| {
            self.table.counts().add(self.probe.key, Event::Filled);
            self.begin_time()
        })
    }

    /// [`find_or_insert`](Self::find_or_insert) in the common cases of a full front: the key has an entry in the backyard, or takes
    /// over an idle one. `None`: use [`find_or_insert`](Self::find_or_insert).
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
