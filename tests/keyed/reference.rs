//! The reference for the answers of a table: separate words for each key, and the log of its admissions.

use alloc::collections::BTreeMap;
use core::sync::atomic::Ordering;
use core::time::Duration;

use crate::common::{Any, Log, State, Subject};
use ringgate::algorithm::Reclaim;
use ringgate::keyed::{Keys, OnFull};
use ringgate::sync::Words;
use ringgate::{Algorithm, KeyedRateLimiter, ManualClock, Nanos, Peek, Receipt, Settled};

#[path = "reference/operations.rs"]
mod operations;

/// A table of at most 64 entries, so that all keys have one region, used by one thread.
///
/// A key that gets an entry at the time t starts with words that were renewed at t. The time t is the caller's
/// reading or, if that is newer, the reading at which some key last lost its entry. From then on the answers equal
/// those of the key's own words, whatever the clock and other keys do, until the key loses the entry. It loses the
/// entry only when its words are idle, except by a reset or under `Forget`.
///
/// A key without an entry that the catch-all may have admitted is barred until that admission expires. A barred key
/// is denied if there is an entry for it. The reference knows whether there is one if every key may have every entry.
pub(crate) struct World<'a, K> {
    subject: &'a Subject,
    pub(crate) limiter: KeyedRateLimiter<Any, ManualClock, K>,
    on_full: OnFull,
    hasher: K,
    /// The number of entries, if every key may have each of them.
    common: Option<u64>,
    keys: BTreeMap<u64, Key>,
    catch_all: State,
    /// The time at which a key last lost its entry to another key, or at which it was no longer barred while others
    /// were.
    reclaimed: Nanos,
    served: Served,
    /// The entries that were reset.
    left: u64,
    /// The time from which on every entry that was reset equals a fresh one.
    left_until: Nanos,
    /// Whether the catch-all may have a newer time than its words here.
    vague: bool,
    receipts: Vec<Taken>,
    clearings: u64,
}

/// The keys that the catch-all may have admitted, and the times until which that counts: 13 filter slots, in units of
/// 4,096 ns.
#[derive(Default)]
struct Served {
    until: u64,
    marks: u64,
}

impl Served {
    const UNIT: u64 = 4_096;

    fn mark(hash: u64) -> u64 {
        // Hashes of 0, 2^64 - 2 and 2^64 - 1 count as 1.
        let is_reserved = hash == 0 || hash >= u64::MAX - 1;
        1 << (if is_reserved { 1 } else { hash } % 13)
    }

    fn until(&self) -> Nanos {
        Nanos::new(self.until * Self::UNIT)
    }

    fn until_of(&self, hash: u64) -> Nanos {
        if self.marks & Self::mark(hash) == 0 {
            Nanos::ZERO
        } else {
            self.until()
        }
    }

    fn add(&mut self, hash: u64, end: Nanos) {
        let end = end.get().div_ceil(Self::UNIT).min((1 << 51) - 1);
        self.until = self.until.max(end);
        self.marks |= Self::mark(hash);
    }
}

/// The possible results of a lookup of a key without an entry.
#[derive(Debug)]
struct Chances {
    entry: bool,
    barred: bool,
    full: bool,
}

#[derive(Default)]
struct Key {
    /// `None`: unknown, because the key took over the charges of a forgotten key.
    words: Option<State>,
    /// The key had an entry at its last request, and was not reset since.
    entered: bool,
    /// Some key has lost its entry since. It may have been this key, idle or forgotten.
    may_be_lost: bool,
    /// The entry may have been lost while a charge in it counted.
    may_be_forgotten: bool,
    /// The number of entries that the key got and lost. A receipt for an earlier entry is forfeited.
    tenure: u64,
    admissions: Vec<Admission>,
}

#[derive(Clone, Copy)]
struct Admission {
    at: Nanos,
    permits: u64,
    overflow: bool,
}

struct Taken {
    key: u64,
    tenure: u64,
    /// The index in the key's admissions.
    index: usize,
    receipt: Receipt,
    /// The index in the words that the receipt was compared with.
    expected: Option<Receipt>,
    overflow: bool,
    /// The number of clearings before the receipt.
    clearings: u64,
}

fn first(state: &State) -> u64 {
    state.shared().load(0, Ordering::Relaxed)
}

impl<'a, K: Keys<u64>> World<'a, K> {
    pub(crate) fn new(
        subject: &'a Subject,
        limiter: KeyedRateLimiter<Any, ManualClock, K>,
        on_full: OnFull,
        hasher: K,
        common: Option<u64>,
    ) -> Self {
        assert!(limiter.capacity() <= 64);
        Self {
            subject,
            limiter,
            on_full,
            hasher,
            common,
            keys: BTreeMap::new(),
            catch_all: State::fresh(&subject.algorithm),
            reclaimed: Nanos::ZERO,
            served: Served::default(),
            left: 0,
            left_until: Nanos::ZERO,
            vague: false,
            receipts: Vec::new(),
            clearings: 0,
        }
    }

    /// Makes everything fresh. An earlier receipt refunds nothing, unless it charged no state.
    pub(crate) fn clear(&mut self) {
        self.limiter.clear();
        for key in self.keys.values_mut() {
            *key = Key {
                tenure: key.tenure + 1,
                ..Key::default()
            };
        }
        self.catch_all = State::fresh(&self.subject.algorithm);
        (self.reclaimed, self.left, self.left_until) = (Nanos::ZERO, 0, Nanos::ZERO);
        self.served = Served::default();
        self.vague = false;
        self.clearings += 1;
        assert!(self.limiter.is_empty());
    }

    /// Fresh words that have reached `now`.
    fn renewed(&self, now: Nanos) -> State {
        let state = State::fresh(&self.subject.algorithm);
        let word = self
            .subject
            .algorithm
            .advance(0, now)
            .expect("a key that gets an entry has time left");
        let set = state.shared().exchange(0, 0, word, Ordering::Relaxed);
        assert!(set.is_ok());
        state
    }

    /// Keys that ever got an entry.
    fn entries_given(&self) -> u64 {
        let counts = self.limiter.counts();
        counts.tracked + counts.reclaimed + counts.forgotten + self.left
    }

    /// The newest time in a fresh state that begins at `time`.
    fn begin(&self, time: Nanos) -> Nanos {
        let first = self.subject.algorithm.advance(0, time);
        first.map_or(Nanos::MAX, |first| self.subject.algorithm.latest_time(first))
    }

    /// The time until which admissions of `key` by the catch-all may count.
    fn served_until(&self, key: u64) -> Nanos {
        self.served.until_of(self.hasher.hash(&key))
    }

    fn is_barred(&self, key: u64, now: Nanos) -> bool {
        self.begin(now) < self.begin(self.served_until(key))
    }

    /// The retry time of a key that is barred at `now`, for `permits`: in the cell in which the bar ends. For a log
    /// it is the end itself, although the unit of time that contains the end would suffice.
    fn barred_until(&self, key: u64, now: Nanos, permits: u64) -> Option<Nanos> {
        let end = self.served_until(key).get();
        let (mut barred, mut free) = (now.get(), end);
        while free > barred + 1 {
            let between = barred + (free - barred) / 2;
            if self.is_barred(key, Nanos::new(between)) {
                barred = between;
            } else {
                free = between;
            }
        }
        if matches!(self.subject.algorithm, Any::Log(_)) {
            free = end;
        }
        let fresh = State::fresh(&self.subject.algorithm);
        self.subject
            .algorithm
            .ready_at(fresh.shared(), Nanos::new(free), permits)
    }

    /// Whether some entry is idle or unused at `now`, if the reference knows.
    fn has_room(&self, now: Nanos) -> Option<bool> {
        let entries = self.common?;
        let tracked = self.limiter.counts().tracked;
        let certain: Vec<_> = self
            .keys
            .values()
            .filter(|it| it.entered && !it.may_be_lost)
            .filter_map(|it| it.words.as_ref())
            .collect();
        let it = &self.subject.algorithm;
        if certain.iter().any(|words| it.is_idle(first(words), now)) {
            return Some(true);
        }
        if tracked < entries {
            // Unused, or reset.
            return (now >= self.left_until).then_some(true);
        }
        (certain.len() as u64 == entries).then_some(false)
    }

    /// The possible results of a lookup of `key`, which has no entry, at the reading `now`.
    fn chances(&self, key: u64, now: Nanos) -> Chances {
        let barred = self.is_barred(key, now.max(self.reclaimed));
        let room = self.has_room(now);
        if self.on_full == OnFull::Forget {
            let it = &self.subject.algorithm;
            let can_forget = |key: &Key| {
                let words = key.words.as_ref().filter(|_| key.entered && !key.may_be_lost);
                words.is_some_and(|words| it.advance(first(words), now).is_some())
            };
            let some = self.common.is_some() && self.keys.values().any(can_forget);
            return Chances {
                // An entry that was evicted is newer by a cell, and may begin after the end.
                entry: !barred || room != Some(true),
                barred,
                full: !some && room != Some(true),
            };
        }
        Chances {
            entry: room != Some(false) && !barred,
            barred: room != Some(false) && barred,
            full: room != Some(true),
        }
    }

    /// The number of keys with an entry equals the count of the table.
    pub(crate) fn finish(self) {
        let counts = self.limiter.counts();
        let with_entry = self.keys.keys().filter(|key| self.limiter.reset(key)).count();
        assert_eq!(with_entry as u64, counts.tracked);
        assert!(self.limiter.is_empty());
    }
}
