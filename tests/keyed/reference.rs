//! What a table's answers are compared with: the words of each key by themselves, and the log of
//! what each was admitted.

use core::sync::atomic::Ordering;
use std::collections::HashMap;

use ringgate::sync::Words;
use ringgate::{Algorithm, KeyedRateLimiter, Keys, ManualClock, Nanos, OnFull, Receipt, Reclaim, Settled};

use crate::common::{Any, Log, State, Subject};

/// A table of at most 64 entries, so that all keys have one home, one thread, and what should become of it.
///
/// A key that gets an entry at the time t begins with words that were renewed at t, where t is the caller's
/// reading or, if that is newer, the one at which some key last lost its entry. From there on its answers are
/// those of its own words alone, whatever the clock does and whatever other keys do, until it loses
/// the entry. It does not lose it while its words are not idle (but for a reset, and `Forget`).
pub(crate) struct World<'a, K> {
    subject: &'a Subject,
    pub(crate) limiter: KeyedRateLimiter<Any, ManualClock, K>,
    on_full: OnFull,
    keys: HashMap<u64, Key>,
    catch_all: State,
    /// When a key last lost its entry to another.
    reclaimed: Nanos,
    /// Entries given up on request.
    left: u64,
    receipts: Vec<Taken>,
}

#[derive(Default)]
struct Key {
    /// `None`: unknown, as the key took over what another had spent.
    words: Option<State>,
    /// Had an entry when last seen, and was not reset since.
    entered: bool,
    /// Somebody has lost an entry since, and it may have been this key, idle or forgotten.
    may_be_lost: bool,
    /// The entry may have been lost while something in it counted.
    may_be_forgotten: bool,
    /// Counts the entries that the key got and lost: a receipt of another tenure is worth nothing.
    tenure: u64,
    /// The key was reset once. What it took before that in the same instant looks like what it took after.
    was_reset: bool,
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
}

fn first(state: &State) -> u64 {
    state.shared().load(0, Ordering::Relaxed)
}

impl<'a, K: Keys<u64>> World<'a, K> {
    pub(crate) fn new(
        subject: &'a Subject,
        limiter: KeyedRateLimiter<Any, ManualClock, K>,
        on_full: OnFull,
    ) -> Self {
        assert!(limiter.capacity() <= 64);
        Self {
            subject,
            limiter,
            on_full,
            keys: HashMap::new(),
            catch_all: State::fresh(&subject.algorithm),
            reclaimed: Nanos::ZERO,
            left: 0,
            receipts: Vec::new(),
        }
    }

    /// Fresh words that have reached `now`.
    fn renewed(&self, now: Nanos) -> State {
        let state = State::fresh(&self.subject.algorithm);
        let word = self.subject.algorithm.later(0, now).expect("time goes on");
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

    pub(crate) fn check(&mut self, key: u64, now: Nanos, permits: u64) {
        let it = &self.subject.algorithm;
        let (before, given) = (self.limiter.counts(), self.entries_given());
        let as_of = now.max(self.reclaimed);
        let answer = match self.limiter.check_at(&key, now, permits) {
            Ok(taken) => {
                let overflow = taken.is_overflow();
                (Ok(taken.into_receipt()), overflow)
            }
            Err(denied) => (Err(denied.at()), denied.is_overflow()),
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
            self.somebody_lost(key, as_of, forgotten > 0);
        }
        let renewed = (entered == 1 && forgotten == 0).then(|| self.renewed(as_of));
        let state = self.keys.entry(key).or_default();
        let needs_one = permits > 0 && permits <= it.most();
        if state.entered && !state.may_be_lost {
            assert!(entered == 0 && !overflow, "a key keeps its entry while it counts");
        } else if !state.entered && needs_one && !overflow {
            assert_eq!(entered, 1, "a key without an entry gets one");
        }
        assert!(needs_one || entered == 0);
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
        let expected = if overflow {
            match self.on_full {
                OnFull::Deny => Some(Err(as_of)),
                OnFull::Admit => Some(Ok((as_of, None))),
                _ => {
                    let decision = it.decide(self.catch_all.shared(), as_of, permits);
                    Some(decision.map(|it| (it.at(), Some(it))).map_err(|it| it.at()))
                }
            }
        } else if !needs_one && !state.entered {
            Some(if permits == 0 { Ok((now, None)) } else { Err(now) })
        } else {
            state.words.as_ref().map(|words| {
                let decision = it.decide(words.shared(), now, permits);
                decision.map(|it| (it.at(), Some(it))).map_err(|it| it.at())
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
            });
            self.judge(key);
        }
    }

    /// One of the keys has lost its entry to `newcomer`, at `now`: an idle one or, if `forgotten`, another.
    fn somebody_lost(&mut self, newcomer: u64, now: Nanos, forgotten: bool) {
        self.reclaimed = now;
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
        } = self.receipts.remove(index);
        let it = &self.subject.algorithm;
        let state = self.keys.get_mut(&key).expect("it was admitted");
        if !overflow && tenure != state.tenure && receipt.permits() > 0 {
            let permits = receipt.permits();
            if !state.was_reset && self.on_full != OnFull::Forget {
                assert_eq!(self.limiter.refund(&key, receipt), Settled::Forfeited(permits));
            }
            return;
        }
        let permits = receipt.permits();
        let settled = self.limiter.refund(&key, receipt);
        let exact = settled == Settled::Exact;
        assert!(exact || settled == Settled::Forfeited(permits));
        let back = match (&expected, overflow) {
            _ if permits == 0 => true,
            (None, true) => self.on_full == OnFull::Admit,
            (None, false) => exact,
            (Some(receipt), true) => it.refund(self.catch_all.shared(), receipt, permits),
            (Some(_), false) if state.may_be_lost && !exact => false,
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
            for admission in state.admissions.iter_mut().filter(|it| !it.overflow) {
                admission.permits = 0;
            }
        }
        state.tenure += u64::from(state.entered);
        state.entered = false;
        state.may_be_lost = false;
        if given_up {
            state.may_be_forgotten = false;
            state.was_reset = true;
        }
    }

    pub(crate) fn peek(&self, key: u64, now: Nanos, permits: u64) {
        self.limiter.clock().set(now);
        let before = self.limiter.counts();
        let peek = self.limiter.peek(&key);
        let seen = (peek.remaining(), peek.spent(), peek.retry_after(permits));
        let Some(Key {
            words: Some(words),
            entered: true,
            may_be_lost: false,
            ..
        }) = self.keys.get(&key)
        else {
            assert_eq!(self.limiter.counts(), before);
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
        assert_eq!(self.limiter.counts(), before);
    }

    /// As many keys have an entry as are counted.
    pub(crate) fn finish(self) {
        let counts = self.limiter.counts();
        let with_entry = self.keys.keys().filter(|key| self.limiter.reset(key)).count();
        assert_eq!(with_entry as u64, counts.tracked);
        assert!(self.limiter.is_empty());
    }
}
