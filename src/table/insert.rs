use super::counts::Event;
use super::entry::{Entry, EntryState, EntryWord};
use super::layout::WAYS;
use super::memory::Table;
use super::probe::{Lines, NO_ENTRY, Probe, Seen};
use super::region::Region;
use crate::algorithm::Reclaim;
use crate::time::Nanos;

/// Finds or inserts one key by [the protocol](super). `now` is the thread's reading of the clock.
///
/// The two functions that are not inlined, `resolve` and `withdraw`, take what they need as arguments instead of `&self`. A
/// reference would keep all fields in memory, so the inlined functions would load them again after each Acquire.
pub(crate) struct Insertion<'a, A> {
    pub(super) table: &'a Table,
    pub(super) algorithm: &'a A,
    pub(super) probe: Probe<'a>,
    pub(super) region: Region<'a>,
    pub(super) now: Nanos,
}

/// How the search for a key's entry ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InsertOutcome<'a> {
    /// The key's entry, which may have had decisions before.
    Occupied(Entry<'a>),
    /// The key's entry, in which no decision was made yet, and its first word. The first decision is made at `now` or
    /// later.
    Entered {
        entry: Entry<'a>,
        first: u64,
        now: Nanos,
    },
    /// The key has no entry and can get none.
    NoEntry(NoEntry),
}

/// A key that can get no entry now: all entries of its buckets are in use, or the catch-all may have admitted it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoEntry {
    /// The time at which the catch-all decides: the reading, or a newer time of the region, since the key may have lost an entry
    /// then.
    pub(crate) now: Nanos,
    /// The time before which the key gets no entry, because admissions of the key by the catch-all may count until then. `None`
    /// if there are no such admissions.
    pub(crate) barred_until: Option<Nanos>,
}

/// An entry that the key may take over, and the event that is counted if a key loses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evictable<'a> {
    pub(super) seen: Seen<'a>,
    pub(super) event: Event,
}

/// The result of a [search for an idle entry](Insertion::find_idle).
#[derive(Clone, Copy, Debug)]
pub(super) enum Idle<'a> {
    Found(Seen<'a>),
    /// An entry is in a step of its algorithm that another thread has begun. Whether it is idle is known when that is finished.
    Unknown,
    None,
}

impl<'a, A: Reclaim> Insertion<'a, A> {
    #[inline(always)]
    pub(crate) fn new(table: &'a Table, algorithm: &'a A, key: u64, now: Nanos) -> Self {
        let probe = Probe::new(table, key);
        Self {
            table,
            algorithm,
            probe,
            region: probe.region(),
            now,
        }
    }

    /// Finds the key's entry, or inserts the key. With `forget`, a key that can get no other entry gets the entry of the key
    /// that has spent least.
    #[inline(always)]
    pub(crate) fn find_or_insert(&self, forget: bool) -> InsertOutcome<'a> {
        loop {
            // The search starts over only after a step of another thread has succeeded.
            if let Some(outcome) = self.try_insert(forget) {
                return outcome;
            }
        }
    }

    /// *scan* and *enter*: the key's own entry, or else the first vacant one, in index order.
    #[inline(always)]
    fn try_insert(&self, forget: bool) -> Option<InsertOutcome<'a>> {
        let before = self.region.rendezvous_count();
        let lines = &self.probe.lines();
        // Claim: table I2, no entry is claimed beside a vacant one.
        for choice in self.probe.front() {
            let bucket = self.probe.bucket_at(lines[choice]);
            for way in 0..WAYS {
                let mut owner = bucket.fingerprint(way);
                if owner != self.probe.key && owner != Entry::VACANT {
                    continue;
                }
                let entry = bucket.entry(way);
                if owner == Entry::VACANT {
                    if let Some(barred) = self.barred_when_fresh() {
                        return Some(InsertOutcome::NoEntry(barred));
                    }
                    owner = self.enter_vacant(entry);
                }
                if owner == self.probe.key {
                    let seen = Seen::new(entry);
                    if seen.is_of(self.probe.key) {
                        return self.take_own(seen);
                    }
                }
            }
        }
        // From here on no thread can enter the key into a vacant entry, because both buckets stay full.
        self.insert_full(before, lines, forget)
    }

    /// *scan* of the backyard, and *evict*, where the front was full of other keys. `before` is the number of rendezvous before
    /// the scan of the front. `None`: the search has to start over.
    #[inline(always)]
    fn insert_full(&self, before: u64, lines: &Lines<'a>, forget: bool) -> Option<InsertOutcome<'a>> {
        if let Some(own) = self.probe.own_in(lines, self.probe.backyard(), NO_ENTRY) {
            return self.take_own(own);
        }
        match self.find_evictable(lines, forget, true) {
            Some(Evictable { seen, event }) => self.take_over(before, seen, event),
            None => Some(InsertOutcome::NoEntry(self.full())),
        }
    }

    /// Enters the key into a vacant entry, and returns the fingerprint that the entry has afterwards.
    #[inline(always)]
    fn enter_vacant(&self, entry: Entry<'a>) -> u64 {
        match entry.enter(self.probe.key) {
            Ok(()) => {
                self.table.counts().add(self.probe.key, Event::Filled);
                self.probe.key
            }
            // Claim: table 2, a thread whose exchange fails compares the key of the winner.
            Err(owner) => owner,
        }
    }

    #[inline(always)]
    fn take_own(&self, own: Seen<'a>) -> Option<InsertOutcome<'a>> {
        match own.word.state() {
            EntryState::Open if own.word == EntryWord::UNBEGUN => Some(InsertOutcome::Entered {
                entry: own.entry,
                first: EntryWord::UNBEGUN.word(),
                now: self.begin_time(),
            }),
            EntryState::Open => Some(InsertOutcome::Occupied(own.entry)),
            EntryState::Tentative => {
                let overflow_until = self.region.rendezvous(self.probe.key).overflow_until;
                Self::resolve(
                    self.table,
                    self.algorithm,
                    self.probe.key,
                    own.entry.number(),
                    own.word,
                    Nanos::ZERO,
                    overflow_until,
                )
                .then_some(InsertOutcome::Occupied(own.entry))
            }
            // The callers pass no such entry: they test `Seen::is_of`, which is false for a claimed one.
            EntryState::Claimed => None,
        }
    }

    /// The time at which a state of the key begins: the reading, or the newest loss of an entry in the region if that is later. The
    /// caller has scanned before, and found no other entry of the key.
    #[inline(always)]
    pub(super) fn begin_time(&self) -> Nanos {
        // If the scan missed an entry because the key has lost it, `reclaimed` is no earlier than the loss.
        self.now.max(self.region.reclaimed())
    }

    /// *evict*: takes over an entry, where neither the primary nor the alternate bucket has a vacant one. `before` is the number of
    /// rendezvous before the scan that found no entry of the key. `event` is counted if a key loses the entry. `None`: the search
    /// has to start over.
    #[inline(always)]
    pub(super) fn take_over(&self, before: u64, seen: Seen<'a>, event: Event) -> Option<InsertOutcome<'a>> {
        let now = self.begin_time();
        let Some(word) = self.algorithm.advance(seen.word.word(), now) else {
            return Some(InsertOutcome::NoEntry(self.full()));
        };
        if let Some(barred) = self.barred(word, now) {
            return Some(InsertOutcome::NoEntry(barred));
        }
        let has_owner = Entry::is_key(seen.owner);
        if has_owner {
            // Before the claim, because a thread that finds the evicted key gone must see `reclaimed`. The evicted key was idle at
            // `self.now`. The local `now` may be a later time, that of the region of the inserted key, and must not be passed on:
            // otherwise a reading far ahead of the clock would spread from one region to another.
            // Claim: table 7, an eviction raises the time of the region before its claim.
            self.table.region(seen.owner).reclaim_at(self.now);
        }
        // Claim: table 6, an entry is renamed only after it is claimed.
        let claimed = seen.entry.claim(seen.word, word)?;
        let event = if has_owner { event } else { Event::Filled };
        self.table.counts().add(self.probe.key, event);
        seen.entry.rename(self.probe.key);
        let tentative = seen.entry.publish(claimed);
        // Of two threads that have each published an entry for the key, the one with the later rendezvous sees the other's
        // entry: in its scan, or in `resolve`.
        let met = self.region.rendezvous(self.probe.key);
        let entered = InsertOutcome::Entered {
            entry: seen.entry,
            first: word,
            now,
        };
        // Claim: table 4, an entry is opened without a second scan only if no other rendezvous came between.
        if met.earlier == before && self.is_current(tentative, now, met.overflow_until) {
            // *resolve* without a second scan, because no thread of the region had a rendezvous since the count was read. If
            // another thread has published an entry for the key meanwhile, its rendezvous comes later, so it sees this entry.
            let is_open = seen.entry.open(tentative);
            return is_open.then_some(entered);
        }
        Self::resolve(
            self.table,
            self.algorithm,
            self.probe.key,
            seen.entry.number(),
            tentative,
            now,
            met.overflow_until,
        )
        .then_some(entered)
    }

    /// *resolve*: leaves the key at most one entry, and opens it if it is tentative. All threads that insert the key
    /// select the same one: the open entry if there is one, otherwise the tentative entry with the lowest number.
    /// Returns true if this thread has opened the entry `number`.
    ///
    /// The caller has found that entry tentative, with the word `tentative`. The state in it begins at `begun` or later. The caller
    /// has had its *rendezvous* afterwards, which returned `overflow_until`.
    #[cold]
    #[inline(never)]
    fn resolve(
        table: &'a Table,
        algorithm: &'a A,
        key: u64,
        number: usize,
        tentative: EntryWord,
        begun: Nanos,
        overflow_until: Nanos,
    ) -> bool {
        // The time is not used: `resolve` compares times of words and of the region only.
        let this = Self::new(table, algorithm, key, Nanos::ZERO);
        let lines = this.probe.lines();
        let Some(mut entry) = this.entry_numbered(number) else {
            return false;
        };
        let (mut tentative, mut begun, mut overflow_until) = (tentative, begun, overflow_until);
        loop {
            let Some(other) = this.probe.own_in(&lines, this.probe.all(), entry.number()) else {
                if this.is_current(tentative, begun, overflow_until) {
                    return entry.open(tentative) && entry.number() == number;
                }
                // Admissions of the key may still count at the time of this entry. They were made by the catch-all, or
                // in an entry that the key has lost since.
                Self::withdraw(table, key, entry, tentative);
                return false;
            };
            match other.word.state() {
                EntryState::Open => {
                    Self::withdraw(table, key, entry, tentative);
                    return false;
                }
                EntryState::Tentative if other.entry.number() < entry.number() => {
                    Self::withdraw(table, key, entry, tentative);
                    (entry, tentative, begun) = (other.entry, other.word, Nanos::ZERO);
                }
                EntryState::Tentative => {
                    Self::withdraw(table, key, other.entry, other.word);
                }
                // Never: `own_in` skips claimed entries. A thread that has claimed one for this key has its rendezvous after that
                // of this thread, so it will see the entry of this thread. So this thread need not wait for it.
                EntryState::Claimed => {}
            }
            overflow_until = this.region.rendezvous(key).overflow_until;
        }
    }

    /// Whether a tentative state begins no earlier than the end of the key's mark, `overflow_until`, and no earlier than the
    /// newest loss of an entry in the region. The caller knows that the state begins at `begun` or later. The time in the word is
    /// read only if `begun` is too early.
    #[inline(always)]
    fn is_current(&self, tentative: EntryWord, begun: Nanos, overflow_until: Nanos) -> bool {
        let latest = overflow_until.max(self.region.reclaimed());
        latest <= begun || self.algorithm.latest_time(tentative.word()) >= self.latest_time_of_fresh(latest)
    }

    /// *withdraw*: takes a tentative entry from the key. Returns false if another thread has opened or withdrawn it.
    #[cold]
    #[inline(never)]
    fn withdraw(table: &Table, key: u64, entry: Entry<'_>, tentative: EntryWord) -> bool {
        let Some(claimed) = entry.withdraw(tentative) else {
            return false;
        };
        entry.rename(Entry::UNUSED);
        table.counts().add(key, Event::Emptied);
        entry.open(claimed);
        true
    }

    /// *reset*: takes the key's open entry from it. Returns false if the key has none, or if the algorithm has no later time.
    pub(crate) fn reset(&self) -> bool {
        while let Some(own) = self.probe.own_entry() {
            let first = own.word.word();
            let now = self.now.max(self.algorithm.latest_time(first));
            let Some(word) = self.algorithm.advance(first, now) else {
                if !self.finish(own) {
                    // No step is unfinished, so `advance` failed because the algorithm has no later time.
                    return false;
                }
                continue;
            };
            if let Some(claimed) = own.entry.claim(own.word, word) {
                // Claim: table I1, a reset leaves no vacant entry.
                own.entry.rename(Entry::TOMBSTONE);
                own.entry.open(claimed);
                self.table.counts().add(self.probe.key, Event::Emptied);
                return true;
            }
        }
        false
    }
}
