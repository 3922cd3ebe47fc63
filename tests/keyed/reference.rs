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

    pub(crate) fn check(&mut self, key: u64, now: Nanos, permits: u64) {
        let it = &self.subject.algorithm;
        let (before, given) = (self.limiter.counts(), self.entries_given());
        let as_of = now.max(self.reclaimed);
        let (chances, barred_until) = (self.chances(key, now), self.barred_until(key, as_of, permits));
        let may_be_barred = self.is_barred(key, as_of);
        let mut retry = None;
        let answer = match self.limiter.check_at(&key, now, permits) {
            Ok(taken) => {
                let overflow = taken.is_overflow();
                (Ok(taken.into_receipt()), overflow)
            }
            Err(denied) => {
                retry = denied.retry_after();
                (Err(denied.at()), denied.is_overflow())
            }
        };
        let (answer, overflow) = answer;
        let after = self.limiter.counts();
        let entered = self.entries_given() - given;
        let lost = after.reclaimed - before.reclaimed;
        let forgotten = after.forgotten - before.forgotten;
        assert!(after.tracked <= self.limiter.capacity() as u64);
        assert!(entered <= 1 && lost + forgotten <= entered);
        assert_eq!(after.overflowed - before.overflowed, u64::from(overflow));
        assert!(self.on_full == OnFull::Forget || forgotten == 0);
        assert!(!overflow || entered == 0);
        if lost + forgotten > 0 {
            self.somebody_lost(key, now, forgotten > 0);
        }
        // No entry that was not idle may have been evicted for lack of another.
        let fresh = lost > 0 || self.on_full != OnFull::Forget || now >= self.left_until;
        let renewed = (entered == 1 && forgotten == 0 && fresh).then(|| self.renewed(as_of));
        let state = self.keys.entry(key).or_default();
        let needs_one = permits > 0 && permits <= it.max_request();
        if state.entered && !state.may_be_lost {
            assert!(entered == 0 && !overflow, "a key keeps its entry while it counts");
        } else if !state.entered && needs_one && !overflow {
            assert_eq!(entered, 1, "a key without an entry gets one");
        }
        let denied_at = |at: Option<Nanos>| at.map(|at| at.saturating_since(as_of));
        let catch_all = it.ready_at(self.catch_all.shared(), as_of, permits);
        let mut barred = false;
        if !state.entered && needs_one {
            assert!(
                chances.entry || overflow,
                "{key} gets no entry at {as_of:?}: {chances:?}"
            );
            assert!(
                !overflow || chances.barred || chances.full,
                "an entry for {key} at {as_of:?}"
            );
        }
        if overflow && answer.is_err() && chances.barred {
            barred = !chances.full || {
                // A peek of a barred key shows nothing of the catch-all.
                self.limiter.clock().set(now);
                let seen = self.limiter.peek(&key);
                let spent = it.spent(self.catch_all.shared(), as_of);
                self.vague |= spent == 0 && it.remaining(self.catch_all.shared(), as_of) == 0;
                // A peek of an entry that is to be forgotten is none of the catch-all either.
                !seen.is_overflow() || (seen.spent(), seen.remaining()) == (0, 0)
            };
            if barred {
                assert_eq!(retry, denied_at(barred_until), "{key} at {as_of:?}");
            }
        }
        if overflow || entered == 1 {
            if state.may_be_forgotten {
                // It begins anew.
                for admission in state.admissions.iter_mut().filter(|it| !it.overflow) {
                    admission.permits = 0;
                }
            }
            state.tenure += u64::from(state.entered || entered == 1);
            state.words = renewed;
            state.entered = entered == 1;
            state.may_be_lost = false;
            state.may_be_forgotten = false;
        }
        let expected = if barred {
            Some(Err(as_of))
        } else if overflow {
            match self.on_full {
                OnFull::Deny => Some(Err(as_of)),
                OnFull::Admit => Some(Ok((as_of, None))),
                _ => {
                    let decision = it.decide(self.catch_all.shared(), as_of, permits);
                    if let Ok(receipt) = &answer {
                        if self.served.until() <= as_of {
                            self.reclaimed = self.reclaimed.max(self.served.until());
                            self.served = Served::default();
                        }
                        let end = receipt.at().saturating_add(it.span());
                        self.served.add(self.hasher.hash(&key), end);
                    } else {
                        if !self.vague && !may_be_barred {
                            assert_eq!(retry, denied_at(catch_all), "{key} at {as_of:?}");
                        }
                        if self.on_full == OnFull::Share
                            && let Some(wait) = retry
                        {
                            // The same request is admitted then, unless another key comes first.
                            self.limiter.clock().set(as_of.saturating_add(wait));
                            let peek = self.limiter.peek(&key);
                            assert_eq!(
                                peek.retry_after(permits),
                                Some(Duration::ZERO),
                                "{key} after {wait:?} from {as_of:?}"
                            );
                        }
                    }
                    let decision = decision.map(|it| (it.at(), Some(it))).ok_or(as_of);
                    (!self.vague).then_some(decision)
                }
            }
        } else if !needs_one && !state.entered {
            Some(if permits == 0 { Ok((now, None)) } else { Err(now) })
        } else {
            state.words.as_ref().map(|words| {
                let decision = it.decide(words.shared(), now, permits);
                decision.map(|it| (it.at(), Some(it))).ok_or(now)
            })
        };
        match (&answer, &expected) {
            (_, None) => {}
            (Ok(taken), Some(Ok((at, _)))) => assert_eq!(taken.at(), *at),
            (Err(at), Some(Err(expected))) => assert_eq!(at, expected),
            _ => panic!("{permits} of {key} at {now:?}: {answer:?} and not {expected:?}"),
        }
        if let Ok(receipt) = answer {
            assert_eq!(receipt.permits(), permits);
            state.admissions.push(Admission {
                at: receipt.at(),
                permits,
                overflow,
            });
            self.receipts.push(Taken {
                key,
                tenure: state.tenure,
                index: state.admissions.len() - 1,
                receipt,
                expected: expected.and_then(|it| it.expect("it was admitted").1),
                overflow,
                clearings: self.clearings,
            });
            self.judge(key);
        }
    }

    /// One of the keys has lost its entry to `newcomer`, by its reading `now`: an idle one or, if `forgotten`, another.
    fn somebody_lost(&mut self, newcomer: u64, now: Nanos, forgotten: bool) {
        self.reclaimed = self.reclaimed.max(now);
        let it = &self.subject.algorithm;
        for (_, key) in self.keys.iter_mut().filter(|(key, _)| **key != newcomer) {
            let idle = key.words.as_ref().map(|words| it.is_idle(first(words), now));
            if idle.is_none_or(|idle| idle != forgotten) {
                key.may_be_lost = true;
                key.may_be_forgotten |= forgotten;
            }
        }
    }

    /// No window of the key holds more than the bound: of all that it was admitted; under `Admit`, by
    /// its own entries; under `Forget`, since it was last forgotten.
    fn judge(&self, key: u64) {
        let mut log = Log::default();
        for admission in &self.keys[&key].admissions {
            if !(admission.overflow && self.on_full == OnFull::Admit) {
                log.add(admission.at, admission.permits);
            }
        }
        assert_eq!(self.subject.broken(&log), None, "key {key}");
    }

    /// Gives the oldest receipt back; false if there is none.
    pub(crate) fn refund_oldest(&mut self) -> bool {
        let oldest = self.receipts.len().checked_sub(1);
        oldest.inspect(|&which| self.refund(which)).is_some()
    }

    /// Gives one of the receipts back, the newest being number 0.
    pub(crate) fn refund(&mut self, which: usize) {
        let Some(index) = self.receipts.len().checked_sub(1 + which) else {
            return;
        };
        let Taken {
            key,
            tenure,
            index,
            receipt,
            expected,
            overflow,
            clearings,
        } = self.receipts.remove(index);
        if clearings != self.clearings {
            let permits = receipt.permits();
            let uncharged = permits == 0 || (overflow && self.on_full == OnFull::Admit);
            let expected = if uncharged {
                Settled::Exact
            } else {
                Settled::Forfeited(permits)
            };
            assert_eq!(self.limiter.refund(&key, receipt), expected, "of key {key}");
            return;
        }
        let it = &self.subject.algorithm;
        let state = self.keys.get_mut(&key).expect("it was admitted");
        if !overflow && tenure != state.tenure && receipt.permits() > 0 {
            let permits = receipt.permits();
            assert_eq!(self.limiter.refund(&key, receipt), Settled::Forfeited(permits));
            return;
        }
        let permits = receipt.permits();
        let settled = self.limiter.refund(&key, receipt);
        let exact = settled == Settled::Exact;
        assert!(exact || settled == Settled::Forfeited(permits));
        let back = match (&expected, overflow) {
            _ if permits == 0 => true,
            (None, true) if self.vague => exact,
            (None, true) => self.on_full == OnFull::Admit,
            (None, false) => exact,
            (Some(receipt), true) => it.refund(self.catch_all.shared(), receipt, permits),
            (Some(_), false) if state.may_be_lost && !exact => false,
            // An entry that may pass on while it counts gives back no time.
            (Some(_), false) if self.on_full == OnFull::Forget && matches!(it, Any::Gcra(_)) => false,
            (Some(receipt), false) => {
                let words = state.words.as_ref().expect("it was compared");
                it.refund(words.shared(), receipt, permits)
            }
        };
        assert_eq!(exact, back, "of key {key}");
        if exact {
            state.admissions[index].permits = 0;
        }
    }

    pub(crate) fn reset(&mut self, key: u64, now: Nanos) {
        self.limiter.clock().set(now);
        let state = self.keys.entry(key).or_default();
        let given_up = self.limiter.reset(&key);
        assert!(given_up || state.may_be_lost || !state.entered);
        assert!(!given_up || state.entered);
        if given_up {
            self.left += 1;
            let reached = state
                .words
                .as_ref()
                .map(|words| self.subject.algorithm.latest_time(first(words)));
            let until = reached.map(|it| it.max(now).saturating_add(3 * self.subject.algorithm.span()));
            self.left_until = self.left_until.max(until.unwrap_or(Nanos::MAX));
            for admission in state.admissions.iter_mut().filter(|it| !it.overflow) {
                admission.permits = 0;
            }
        }
        state.tenure += u64::from(state.entered);
        state.entered = false;
        state.may_be_lost = false;
        if given_up {
            state.may_be_forgotten = false;
        }
    }

    pub(crate) fn peek(&self, key: u64, now: Nanos, permits: u64) {
        self.limiter.clock().set(now);
        let before = self.limiter.counts();
        let peek = self.limiter.peek(&key);
        let seen = (peek.remaining(), peek.spent(), peek.retry_after(permits));
        assert_eq!(self.limiter.counts(), before);
        let state = self.keys.get(&key);
        if state.is_none_or(|it| !it.entered) {
            self.judge_peek_without_entry(key, now, permits, &peek);
        }
        let Some(Key {
            words: Some(words),
            entered: true,
            may_be_lost: false,
            ..
        }) = state
        else {
            return;
        };
        let (it, words) = (&self.subject.algorithm, words.shared());
        let ready = it.ready_at(words, now, permits);
        let expected = (
            it.remaining(words, now),
            it.spent(words, now),
            ready.map(|at| at.saturating_since(now)),
        );
        assert_eq!((peek.is_overflow(), peek.at()), (false, now));
        assert_eq!(seen, expected);
    }

    /// A key that has no entry sees what a check would find, as of when it would be judged.
    fn judge_peek_without_entry(&self, key: u64, now: Nanos, permits: u64, peek: &Peek<'_, Any>) {
        let as_of = now.max(self.reclaimed);
        let chances = self.chances(key, now);
        if self.on_full == OnFull::Forget && self.has_room(now) != Some(true) {
            return;
        }
        assert_eq!(peek.at(), as_of);
        assert!(
            !peek.is_overflow() || chances.barred || chances.full,
            "{key} at {as_of:?}"
        );
        assert!(peek.is_overflow() || chances.entry, "{key} at {as_of:?}");
        if chances.full {
            return;
        }
        let it = &self.subject.algorithm;
        let ready = if peek.is_overflow() && permits > 0 {
            self.barred_until(key, as_of, permits)
        } else {
            let fresh = State::fresh(&self.subject.algorithm);
            it.ready_at(fresh.shared(), as_of, permits)
        };
        assert_eq!(
            peek.retry_after(permits),
            ready.map(|at| at.saturating_since(as_of)),
            "{key} at {as_of:?}"
        );
        assert_eq!(peek.spent(), 0);
    }

    /// As many keys have an entry as are counted.
    pub(crate) fn finish(self) {
        let counts = self.limiter.counts();
        let with_entry = self.keys.keys().filter(|key| self.limiter.reset(key)).count();
        assert_eq!(with_entry as u64, counts.tracked);
        assert!(self.limiter.is_empty());
    }
}
