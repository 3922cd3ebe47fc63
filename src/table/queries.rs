use super::counts::Event;
use super::entry::{Entry, EntryState, EntryWord};
use super::insert::{Evictable, Idle, Insertion, NoEntry};
use super::layout::WAYS;
use super::probe::{Lines, NO_ENTRY, Seen};
use super::words::{OccupiedWords, SeenWord};
use crate::algorithm::Reclaim;
use crate::time::Nanos;

/// The state that would decide a request of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'a> {
    /// An entry, the key that owns it, and the time to read it at: the reading for the key's own entry, and the time to which a
    /// takeover would advance the state of another key.
    Entry(Entry<'a>, u64, Nanos),
    /// A fresh state at the reading, or at a newer time at which the key may have lost an entry.
    Fresh(Nanos),
    /// No state: the key has no entry and can get none.
    NoEntry(NoEntry),
}

impl<'a, A: Reclaim> Insertion<'a, A> {
    /// Returns the state that would decide a request of the key, without inserting the key.
    pub(crate) fn peek(&self, forget: bool) -> View<'a> {
        let now = self.begin_time();
        if let Some(own) = self.probe.own_entry() {
            return match own.word {
                EntryWord::UNBEGUN => View::Fresh(now),
                _ => View::Entry(own.entry, self.probe.key, self.now),
            };
        }
        let lines = self.probe.lines();
        let has_vacancy = |choice: usize| self.probe.bucket_at(lines[choice]).has_vacancy();
        let evictable = if self.probe.front().any(has_vacancy) {
            None
        } else {
            let finish = false;
            match self.find_evictable(&lines, forget, finish) {
                Some(evictable) => Some(evictable),
                None => return View::NoEntry(self.full()),
            }
        };
        if let Some(Evictable {
            seen,
            event: Event::Forgotten,
        }) = evictable
        {
            return self.peek_taken_over(seen, now);
        }
        self.barred_when_fresh().map_or(View::Fresh(now), View::NoEntry)
    }

    /// The state of an entry as it would be if the key took it over at the time `now`.
    fn peek_taken_over(&self, seen: Seen<'a>, now: Nanos) -> View<'a> {
        let word = seen.word.word();
        let Some(advanced) = self.algorithm.advance(word, now) else {
            return View::NoEntry(self.full());
        };
        if let Some(barred) = self.barred(advanced, now) {
            return View::NoEntry(barred);
        }
        // A counter ring enters a later cell when it is taken over, so it is read in that cell. The time of a bucket is when it
        // will be full, so it is read at `now`. A takeover would delay that by one unit of time, which a peek leaves out.
        let at = match self.algorithm.latest_time(word) > now {
            true => now,
            false => now.max(self.algorithm.latest_time(advanced)),
        };
        View::Entry(seen.entry, seen.owner, at)
    }

    /// The entry with this number, if the key can own it. The caller checks whether it does.
    ///
    /// A search for the key's own entry could return another one: a thread may give an entry to the key while the search reads
    /// it, and take it back.
    pub(crate) fn entry_numbered(&self, number: usize) -> Option<Entry<'a>> {
        let mut entries = self
            .probe
            .all()
            .flat_map(|choice| self.probe.bucket(choice).entries());
        entries.find(|entry| entry.number() == number)
    }

    /// Returns an entry that the key may take over when the front has no vacant one. The choices are, in this order: a
    /// vacant entry of the backyard; the first idle entry in the order of the key's buckets; with `forget`, the entry
    /// with the fewest spent permits. With `finish`, this thread first finishes a step that another thread has begun in
    /// an entry.
    pub(super) fn find_evictable(
        &self,
        lines: &Lines<'a>,
        forget: bool,
        finish: bool,
    ) -> Option<Evictable<'a>> {
        let of = |event| move |seen| Evictable { seen, event };
        let idle = || self.probe.entries().find_map(|seen| self.if_idle(seen, finish));
        let forgotten = || forget.then(|| self.least_spent()).flatten();
        self.vacant_in_backyard(lines)
            .map(of(Event::Filled))
            .or_else(|| idle().map(of(Event::Reclaimed)))
            .or_else(|| forgotten().map(of(Event::Forgotten)))
    }

    /// The first vacant entry in the emptiest bucket of the backyard.
    fn vacant_in_backyard(&self, lines: &Lines<'a>) -> Option<Seen<'a>> {
        let buckets = self
            .probe
            .backyard()
            .map(|choice| self.probe.bucket_at(lines[choice]));
        let vacant = buckets.filter(|bucket| bucket.has_vacancy());
        let first = vacant.map(|bucket| (bucket, bucket.first_vacancy()));
        let (bucket, way) = first.min_by_key(|&(_, way)| way)?;
        let seen = Seen::new(bucket.entry(way));
        (seen.word == EntryWord::UNBEGUN).then_some(seen)
    }

    /// Searches the key's buckets, in their order, for an idle entry that the key may take over. It stops at an entry in which
    /// another thread may have begun a step. The caller has searched the front for a vacant entry.
    #[inline(always)]
    pub(super) fn find_idle(&self, lines: &Lines<'a>) -> Idle<'a> {
        let has_vacancy = |choice: usize| self.probe.bucket_at(lines[choice]).has_vacancy();
        if self.probe.backyard().any(has_vacancy) {
            return Idle::Unknown;
        }
        for choice in self.probe.all() {
            let bucket = self.probe.bucket_at(lines[choice]);
            for way in 0..WAYS {
                let seen = Seen::new(bucket.entry(way));
                if self.is_idle(seen) {
                    return Idle::Found(seen);
                }
                if self.is_unfinished(seen) {
                    return Idle::Unknown;
                }
            }
        }
        Idle::None
    }

    /// The entry, if it is idle so that the key may take it over. With `finish`, this thread first finishes a step that
    /// another thread has begun in the entry.
    fn if_idle(&self, seen: Seen<'a>, finish: bool) -> Option<Seen<'a>> {
        if self.is_idle(seen) {
            return Some(seen);
        }
        // Claim: table 10, a thread finishes the step of a suspended one.
        if finish && self.is_unfinished(seen) && self.finish(seen) {
            let seen = Seen::new(seen.entry);
            return self.is_idle(seen).then_some(seen);
        }
        None
    }

    /// Whether a step of several exchanges may be unfinished in the entry. Another thread then finishes it, because the entry's
    /// key may never be requested again.
    #[inline(always)]
    fn is_unfinished(&self, seen: Seen<'a>) -> bool {
        seen.word.state() == EntryState::Open && self.algorithm.advance(seen.word.word(), self.now).is_none()
    }

    /// Finishes a step of several exchanges that another thread has begun. Returns false if the entry is as it was seen, because
    /// no step was begun.
    pub(super) fn finish(&self, seen: Seen<'_>) -> bool {
        SeenWord::read(seen.entry, seen.owner).is_some_and(|first| {
            let words = OccupiedWords::new(seen.entry, seen.owner, &first);
            self.algorithm.finish_step(words);
            Seen::new(seen.entry).word != seen.word
        })
    }

    #[inline(always)]
    fn is_idle(&self, seen: Seen<'a>) -> bool {
        if seen.word.state() != EntryState::Open || seen.owner == self.probe.key {
            return false;
        }
        if seen.word == EntryWord::UNBEGUN {
            // No permit counts in it, with any algorithm and at any time.
            return true;
        }
        let first = seen.word.word();
        if seen.owner == Entry::UNUSED {
            // An unused state is fresh as soon as it can advance to a word that is not ahead of the clock.
            let later = self.algorithm.advance(first, self.now);
            return later.is_some_and(|later| self.algorithm.latest_time(later) <= self.now);
        }
        self.algorithm.is_idle(first, self.now)
    }

    /// The entry with the fewest spent permits, of those that can advance at this time.
    fn least_spent(&self) -> Option<Seen<'a>> {
        let is_evictable = |seen: &Seen<'a>| {
            seen.word.state() == EntryState::Open
                && seen.owner != self.probe.key
                && self.algorithm.advance(seen.word.word(), self.now).is_some()
        };
        self.probe.entries().filter(is_evictable).min_by_key(|seen| {
            SeenWord::read(seen.entry, seen.owner).map_or(0, |first| {
                let words = OccupiedWords::new(seen.entry, seen.owner, &first);
                self.algorithm.spent(words, self.now)
            })
        })
    }

    /// The time at which the first of the key's possible entries can be reclaimed, if no other request comes.
    pub(crate) fn evictable_at(&self) -> Option<Nanos> {
        let from = |seen: Seen<'a>| match seen.word.state() {
            EntryState::Open => self.algorithm.idle_from(seen.word.word()),
            // The entry is about to change, so the key may try again at once.
            EntryState::Claimed | EntryState::Tentative => Some(self.now),
        };
        let all = self.probe.entries().map(from);
        all.min_by_key(|time| time.unwrap_or(Nanos::MAX)).flatten()
    }

    /// Whether the key has an entry or is about to get one, or may have lost one at a reading later than `now`. The time is
    /// that of the region, so the loss may be that of another key.
    pub(crate) fn may_have_entry_since(&self, now: Nanos) -> bool {
        self.probe
            .own_in(&self.probe.lines(), self.probe.all(), NO_ENTRY)
            .is_some()
            || self.region.reclaimed() > now
    }

    /// The result for a key whose buckets are full of entries in use.
    #[inline(always)]
    pub(super) fn full(&self) -> NoEntry {
        NoEntry {
            now: self.begin_time(),
            barred_until: None,
        }
    }

    /// Returns `NoEntry` if the catch-all may have admitted the key, and the admission still counts at the time of a state that
    /// begins with `word`.
    #[inline(always)]
    pub(super) fn barred(&self, word: u64, now: Nanos) -> Option<NoEntry> {
        let until = self.region.overflow_until(self.probe.key);
        let barred =
            until > Nanos::ZERO && self.algorithm.latest_time(word) < self.latest_time_of_fresh(until);
        barred.then(|| NoEntry {
            now,
            barred_until: Some(self.entered_from(until)),
        })
    }

    /// Returns `NoEntry` if the catch-all bars a state that begins in a vacant entry.
    #[inline(always)]
    pub(super) fn barred_when_fresh(&self) -> Option<NoEntry> {
        if self.region.overflow_until(self.probe.key) == Nanos::ZERO {
            return None;
        }
        self.barred_at(self.begin_time())
    }

    /// Returns `NoEntry` if the catch-all bars a state that begins at `now`.
    pub(super) fn barred_at(&self, now: Nanos) -> Option<NoEntry> {
        self.barred(self.algorithm.advance(0, now)?, now)
    }

    /// The time at which the key may have an entry, if its admissions by the catch-all bar it from one now.
    pub(crate) fn barred_until(&self) -> Option<Nanos> {
        let until = self.region.overflow_until(self.probe.key);
        let now = self.begin_time();
        (self.latest_time_of_fresh(now) < self.latest_time_of_fresh(until)).then(|| self.entered_from(until))
    }

    /// The latest time of a fresh state that begins at `time`.
    pub(super) fn latest_time_of_fresh(&self, time: Nanos) -> Nanos {
        let fresh = self.algorithm.advance(0, time);
        fresh.map_or(Nanos::MAX, |first| self.algorithm.latest_time(first))
    }

    /// The time at which a key that is barred until `until` can have an entry: `until`, or in a counter ring the beginning of
    /// the cell of `until`.
    fn entered_from(&self, until: Nanos) -> Nanos {
        let begin = self.latest_time_of_fresh(until);
        if self.latest_time_of_fresh(begin) == begin {
            begin
        } else {
            until
        }
    }
}
