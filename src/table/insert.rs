use super::bucket::Bucket;
use super::counts::Event;
use super::entry::{Entry, EntryState, EntryWord};
use super::layout::WAYS;
use super::memory::Table;
use super::probe::{FrontLines, NO_ENTRY, Probe, Seen};
use super::region::Region;
use crate::algorithm::Reclaim;
use crate::time::Nanos;

/// Finds or inserts one key by [the protocol](super). `now` is the thread's reading of the clock.
///
/// A comment "Claim:" names a claim or invariant of the protocol's proof, and not the event *claim*.
///
/// `resolve` and `withdraw` are not inlined, and take their inputs as arguments instead of `&self`. If a call passed a reference
/// to an `Insertion`, the compiler would keep all of its fields in memory, and the inlined functions would load them again after
/// each Acquire.
pub(crate) struct Insertion<'a, A> {
    pub(super) table: &'a Table,
    pub(super) algorithm: &'a A,
    pub(super) probe: Probe<'a>,
    pub(super) region: Region<'a>,
    pub(super) now: Nanos,
}

/// How a search for a key's entry ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InsertOutcome<'a> {
    /// The key's entry, its first word (0 if no state has begun), and the time to decide at: `begin_time` if this thread begins a
    /// state of the key, else the reading.
    Entry(Entry<'a>, u64, Nanos),
    /// The key has no entry and can get none.
    NoEntry(NoEntry),
    /// A step of another thread came first, or the case is rare and the search was for common cases only (`COMMON`). The search
    /// starts over.
    Retry,
}

/// A key that gets no entry now. If all entries of its buckets are in use, `OnFull` decides the request. If the catch-all may
/// have admitted the key earlier, the key is *barred*: the request is denied, because those admissions may still count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoEntry {
    /// The time of the decision: the thread's reading, or the region's `reclaimed` if that is later.
    pub(crate) now: Nanos,
    /// The time from which a barred key can have an entry. `None` if all entries are in use.
    pub(crate) barred_until: Option<Nanos>,
}

/// An entry that the key may take over, and the event to count if another key owns the entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evictable<'a> {
    pub(super) seen: Seen<'a>,
    pub(super) event: Event,
}

/// The result of a [search for an idle entry](Insertion::find_idle).
#[derive(Clone, Copy, Debug)]
pub(super) enum Idle<'a> {
    Found(Seen<'a>),
    /// The search stopped early, for one of two reasons. The backyard has a vacant entry, which the key takes rather than an
    /// idle one. Or an entry may have an unfinished step of another thread, so its word does not show yet whether it is idle.
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

    /// Finds the key's entry, or inserts the key: *scan*, then *enter* or *evict*. With `forget`, a key that can get no other
    /// entry gets the entry of the key that has spent least.
    ///
    /// If `COMMON`, a rare case ends as `Retry`, so that its code takes no registers. Then the caller repeats the search with
    /// `COMMON` false.
    #[inline(always)]
    pub(crate) fn find_or_insert<const COMMON: bool>(&self, forget: bool) -> InsertOutcome<'a> {
        let primary = self.probe.bucket(0);
        // Claim: table I2, no entry is claimed beside a vacant one.
        if primary.has_vacancy()
            && let Some(outcome) = self.scan::<COMMON>(primary)
        {
            return outcome;
        }
        let before = self.region.rendezvous_count();
        let alternate = self.probe.bucket(self.probe.front().end - 1);
        // The vacancy is read before the bucket is searched. If the bucket is full at this read, no thread can *enter* the key
        // into it after the search. If the search came first, another thread could enter the key into the last vacant entry
        // between the search and this read.
        let has_vacancy = alternate.has_vacancy();
        // The alternate bucket comes first, because most callers have searched the primary one. The primary one is searched
        // again, because another thread may have entered the key since, before it was full.
        let key = self.probe.key;
        if let Some(entry) = alternate.entry_of(key).or_else(|| primary.entry_of(key)) {
            let seen = Seen::new(entry);
            if seen.is_of(key) {
                return self.take_own::<COMMON>(seen);
            }
            // The entry is claimed, or has passed to another key. `entry_of` returns the first match only, so the key may have
            // another entry in the front.
            if COMMON {
                return InsertOutcome::Retry;
            }
            let (lines, front) = (self.probe.lines(), self.probe.front());
            if let Some(own) = self.probe.own_in(&lines, front, entry.number()) {
                return self.take_own::<COMMON>(own);
            }
        }
        // If this `scan` returns `None`, the alternate bucket has neither the key's entry nor a vacant one, and need not be
        // searched again.
        // Claim: table 3, a vacancy is read before the bucket is searched.
        if has_vacancy && let Some(outcome) = self.scan::<COMMON>(alternate) {
            return outcome;
        }
        self.insert_full::<COMMON>(before, [primary.line(), alternate.line()], forget)
    }

    /// *scan* and *enter* in a bucket that had a vacancy: takes the key's own entry, or enters the key into the first vacant
    /// one. `None` if there is neither.
    #[inline(always)]
    fn scan<const COMMON: bool>(&self, bucket: Bucket<'a>) -> Option<InsertOutcome<'a>> {
        let first = bucket.own_or_vacant(self.probe.key);
        if COMMON {
            let is_unmarked = self.region.overflow_until(self.probe.key) == Nanos::ZERO;
            let entered = if is_unmarked {
                self.enter::<COMMON>(bucket.entry(first))
            } else {
                None
            };
            return Some(entered.unwrap_or(InsertOutcome::Retry));
        }
        (first..WAYS).find_map(|way| {
            let entry = bucket.entry(way);
            match self.barred_when_fresh() {
                Some(barred) if entry.fingerprint() == Entry::VACANT => Some(InsertOutcome::NoEntry(barred)),
                _ => self.enter::<COMMON>(entry),
            }
        })
    }

    /// Enters the key into the entry if it is vacant, or takes the entry if it is the key's already. `None` if the entry is
    /// another key's or is claimed.
    #[inline(always)]
    fn enter<const COMMON: bool>(&self, entry: Entry<'a>) -> Option<InsertOutcome<'a>> {
        // Claim: table 2, a thread whose exchange fails compares the key of the winner.
        match entry.enter(self.probe.key) {
            Ok(()) => {
                self.table.counts().add(self.probe.key, Event::Filled);
                Some(InsertOutcome::Entry(entry, 0, self.begin_time()))
            }
            Err(owner) if owner == self.probe.key => {
                let seen = Seen::new(entry);
                seen.is_of(self.probe.key).then(|| self.take_own::<COMMON>(seen))
            }
            Err(_) => None,
        }
    }

    /// *scan* of the backyard, then *evict*. The front is full of other keys and stays full, so no thread can enter the key
    /// there any more. `before` is the number of rendezvous before the scan of the front.
    #[inline(always)]
    fn insert_full<const COMMON: bool>(
        &self,
        before: u64,
        front: FrontLines<'a>,
        forget: bool,
    ) -> InsertOutcome<'a> {
        let lines = &self.probe.lines_with(front);
        if let Some(own) = self.probe.own_in(lines, self.probe.backyard(), NO_ENTRY) {
            return self.take_own::<COMMON>(own);
        }
        let evictable = match self.find_idle(lines) {
            Idle::Found(seen) => Some(Evictable {
                seen,
                event: Event::Reclaimed,
            }),
            Idle::None if !forget => None,
            Idle::None | Idle::Unknown if COMMON => return InsertOutcome::Retry,
            Idle::None | Idle::Unknown => {
                let finish = true;
                self.find_evictable(lines, forget, finish)
            }
        };
        match evictable {
            Some(Evictable { seen, event }) => self.take_over(before, seen, event),
            None => InsertOutcome::NoEntry(self.full()),
        }
    }

    /// The outcome of a search that has found the key's own entry. If the entry is tentative, resolves it first.
    #[inline(always)]
    fn take_own<const COMMON: bool>(&self, own: Seen<'a>) -> InsertOutcome<'a> {
        let (entry, first) = (own.entry, own.word.word());
        match own.word.state() {
            EntryState::Open if own.word != EntryWord::UNBEGUN => {
                InsertOutcome::Entry(entry, first, self.now)
            }
            EntryState::Open | EntryState::Tentative if COMMON => InsertOutcome::Retry,
            EntryState::Open => InsertOutcome::Entry(entry, first, self.begin_time()),
            EntryState::Tentative => {
                let overflow_until = self.region.rendezvous(self.probe.key).overflow_until;
                let (number, begun) = (entry.number(), Nanos::ZERO);
                let (table, algorithm, key) = (self.table, self.algorithm, self.probe.key);
                match Self::resolve(table, algorithm, key, number, own.word, begun, overflow_until) {
                    true => InsertOutcome::Entry(entry, first, self.now),
                    false => InsertOutcome::Retry,
                }
            }
            // The callers pass no such entry: they test `Seen::is_of`, which is false for a claimed one.
            EntryState::Claimed => InsertOutcome::Retry,
        }
    }

    /// The time at which a state of the key begins: the reading, or the region's `reclaimed` if that is later. A thread that
    /// decides calls this after its scan. If the scan found no entry because the key was evicted, `reclaimed` is no earlier
    /// than the reading of the evicting thread.
    #[inline(always)]
    pub(super) fn begin_time(&self) -> Nanos {
        self.now.max(self.region.reclaimed())
    }

    /// *evict*: takes over an entry, because neither the primary nor the alternate bucket has a vacant one. `before` is the
    /// number of rendezvous before the scan that found no entry of the key. `event` is counted if another key owns the entry.
    #[inline(always)]
    fn take_over(&self, before: u64, seen: Seen<'a>, event: Event) -> InsertOutcome<'a> {
        let now = self.begin_time();
        let Some(word) = self.algorithm.advance(seen.word.word(), now) else {
            return InsertOutcome::NoEntry(self.full());
        };
        if let Some(barred) = self.barred(word, now) {
            return InsertOutcome::NoEntry(barred);
        }
        let has_owner = Entry::is_key(seen.owner);
        if has_owner {
            // This precedes the claim: a thread that finds the evicted key gone must see `reclaimed`. The evicted key's region
            // gets the reading, `self.now`. The local `now` may be the time of the inserted key's region. If that is far ahead of
            // the clock, it must not spread to another.
            // Claim: table 7, an eviction raises the time of the region before its claim.
            self.table.region(seen.owner).reclaim_at(self.now);
        }
        // Claim: table 6, an entry is renamed only after it is claimed.
        let Some(claimed) = seen.entry.claim(seen.word, word) else {
            return InsertOutcome::Retry;
        };
        let event = if has_owner { event } else { Event::Filled };
        self.table.counts().add(self.probe.key, event);
        seen.entry.rename(self.probe.key);
        let tentative = seen.entry.publish(claimed);
        let met = self.region.rendezvous(self.probe.key);
        // Suppose that the scan has missed an entry that another thread has published for the key. Then the rendezvous of the
        // other comes after `before` was read. If none came between that read and this thread's, the other thread comes later,
        // and sees this entry. So no second scan is needed.
        // Claim: table 4, an entry is opened without a second scan only if no other rendezvous came between.
        let is_open = if met.earlier == before && self.is_current(tentative, now, met.overflow_until) {
            seen.entry.open(tentative)
        } else {
            let (table, algorithm, key) = (self.table, self.algorithm, self.probe.key);
            let number = seen.entry.number();
            Self::resolve(table, algorithm, key, number, tentative, now, met.overflow_until)
        };
        if !is_open {
            return InsertOutcome::Retry;
        }
        InsertOutcome::Entry(seen.entry, word, now)
    }

    /// *resolve*: leaves the key at most one entry, and opens it if it is tentative. All threads that insert the key select the
    /// same one: the open entry if there is one, otherwise the tentative entry with the lowest number. Returns true if this
    /// thread has opened the entry `number`.
    ///
    /// The caller has found the entry `number` tentative, with the word `tentative`, and its state begins at `begun` or later.
    /// Afterwards the caller has had its *rendezvous*, which returned `overflow_until`.
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
                // The state begins too early: admissions by the catch-all, or in an entry that the key has lost, may still
                // count.
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
                // Never: `own_in` skips claimed entries. This thread need not wait for them: a thread that has claimed one for
                // this key has its rendezvous after that of this thread, and sees this entry.
                EntryState::Claimed => {}
            }
            // The next round may open an entry that this round has found, so a rendezvous comes in between.
            overflow_until = this.region.rendezvous(key).overflow_until;
        }
    }

    /// Whether a tentative state begins at or after two times: `overflow_until`, at which the key's mark ends, and `reclaimed`
    /// of the region. The state begins at `begun` or later, so the time in its word is read only if `begun` is too early.
    #[inline(always)]
    fn is_current(&self, tentative: EntryWord, begun: Nanos, overflow_until: Nanos) -> bool {
        let latest = overflow_until.max(self.region.reclaimed());
        latest <= begun || self.algorithm.latest_time(tentative.word()) >= self.latest_time_of_fresh(latest)
    }

    /// *withdraw*: takes a tentative entry from the key, unless another thread has opened or withdrawn it.
    #[cold]
    #[inline(never)]
    fn withdraw(table: &Table, key: u64, entry: Entry<'_>, tentative: EntryWord) {
        if let Some(claimed) = entry.withdraw(tentative) {
            entry.rename(Entry::UNUSED);
            table.counts().add(key, Event::Emptied);
            entry.open(claimed);
        }
    }

    /// *reset*: takes the key's open entry from it. Returns false if the key has none, or if the algorithm cannot advance the
    /// entry's word to a later time.
    pub(crate) fn reset(&self) -> bool {
        while let Some(own) = self.probe.own_entry() {
            let first = own.word.word();
            let now = self.now.max(self.algorithm.latest_time(first));
            let Some(word) = self.algorithm.advance(first, now) else {
                if !self.finish(own) {
                    // No step is unfinished, so `advance` failed because the word can hold no later time.
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
