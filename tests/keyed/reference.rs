//! The reference that a table's answers are compared with: the words of each key by themselves, and the log of
//! what each was admitted.

use alloc::collections::BTreeMap;
use core::sync::atomic::Ordering;
use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::{Keys, OnFull};
use ringgate::sync::Words;
use ringgate::{Algorithm, KeyedRateLimiter, ManualClock, Nanos, Peek, Receipt, Settled};

use crate::common::{Any, Log, State, Subject};

#[path = "reference/operations.rs"]
mod operations;

/// A table of at most 64 entries, so that all keys have one region, one thread, and what should become of it.
///
/// A key that gets an entry at the time t begins with words that were renewed at t, where t is the caller's
/// reading or, if that is newer, the one at which some key last lost its entry. From there on its answers are
/// those of its own words alone, whatever the clock does and whatever other keys do, until it loses
/// the entry. It loses the entry only when its words are idle, except by a reset or `Forget`.
///
/// A key without an entry that the catch-all may have admitted is barred until that no longer counts: denied, if
/// there is an entry for it. Whether there is one is known where every key may have every entry.
pub(crate) struct World<'a, K> {
    subject: &'a Subject,
    pub(crate) limiter: KeyedRateLimiter<Any, ManualClock, K>,
    on_full: OnFull,
    hasher: K,
    /// How many entries there are that every key may have, if no key may have another.
    common: Option<u64>,
    keys: BTreeMap<u64, Key>,
    catch_all: State,
    /// When a key last lost its entry to another, or was no longer barred when others were.
    reclaimed: Nanos,
    served: Served,
    /// Entries given up on request.
    left: u64,
    /// From when on every entry that was given up on request is as good as new.
    left_until: Nanos,
    /// Whether the catch-all may have a newer time than its words here.
    vague: bool,
    receipts: Vec<Taken>,
    clearings: u64,
}

/// Until when admissions by the catch-all may count, and of which keys: by 13 marks, in units of 4,096 ns.
#[derive(Default)]
struct Served {
    until: u64,
    marks: u64,
}

impl Served {
    const UNIT: u64 = 4_096;

    fn mark(hash: u64) -> u64 {
        // Hashes of 0, 2^64 - 2 and 2^64 - 1 are taken for 1.
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

/// The results that a lookup of a key without an entry may have, as far as the reference knows.
#[derive(Debug)]
struct Chances {
    entry: bool,
    barred: bool,
    full: bool,
}

#[derive(Default)]
struct Key {
    /// `None`: unknown, as the key took over what another had spent.
    words: Option<State>,
    /// Had an entry when last seen, and was not reset since.
    entered: bool,
    /// A key has lost its entry since, and it may have been this key, idle or forgotten.
    may_be_lost: bool,
    /// The entry may have been lost while something in it counted.
    may_be_forgotten: bool,
    /// Counts the entries that the key got and lost: a receipt of another tenure is worth nothing.
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
    /// In the key's admissions.
    index: usize,
    receipt: Receipt,
    /// Of the words that it was compared with.
    expected: Option<Receipt>,
    overflow: bool,
    /// The number of clearings before it.
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

    /// Makes everything fresh. A receipt of before gives nothing back, unless it charged no state.
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
        let set = state
            .shared()
            .exchange(0, 0, word, Ordering::Relaxed, Ordering::Relaxed);
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

    /// Until when admissions of `key` by the catch-all may count.
    fn served_until(&self, key: u64) -> Nanos {
        self.served.until_of(self.hasher.hash(&key))
    }

    fn is_barred(&self, key: u64, now: Nanos) -> bool {
        self.begin(now) < self.begin(self.served_until(key))
    }

    /// When a key that is barred at `now` may enter and take `permits`, as it is told: in the cell of the end. Of
    /// a log it is the end itself, though the unit of time that this is in would do.
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

    /// Whether some entry is idle or unused at `now`, if that can be said.
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
            // Unused, or given up.
            return (now >= self.left_until).then_some(true);
        }
        (certain.len() as u64 == entries).then_some(false)
    }

    /// The results that a lookup of `key`, which has no entry, may have by the reading `now`.
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
                // An entry that was evicted is a cell newer, and may begin after the end.
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

    /// As many keys have an entry as are counted.
    pub(crate) fn finish(self) {
        let counts = self.limiter.counts();
        let with_entry = self.keys.keys().filter(|key| self.limiter.reset(key)).count();
        assert_eq!(with_entry as u64, counts.tracked);
        assert!(self.limiter.is_empty());
    }
}
