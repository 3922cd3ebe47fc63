//! The operations of the reference, and the answers that a table must give.

use super::*;

impl<K: Keys<u64>> World<'_, K> {
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
        // An entry that was not idle can be evicted only if no other was available.
        let fresh = lost > 0 || self.on_full != OnFull::Forget || now >= self.left_until;
        let renewed = (entered == 1 && forgotten == 0 && fresh).then(|| self.renewed(as_of));
        let state = self.keys.entry(key).or_default();
        let needs_one = permits > 0 && permits <= it.max_request();
        if state.entered && !state.may_be_lost {
            assert!(entered == 0 && !overflow, "a key keeps its entry while it counts");
        } else if !state.entered && needs_one && !overflow {
            assert_eq!(entered, 1, "a key without an entry gets one");
        }
        let decided_at = if entered == 1 { as_of } else { now };
        // The caller waits by its own readings.
        let denied_at = |at: Option<Nanos>| at.map(|at| at.saturating_since(now));
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
                // A peek of an entry that would be forgotten shows nothing of the catch-all.
                !seen.is_overflow() || (seen.spent(), seen.remaining()) == (0, 0)
            };
            if barred {
                assert_eq!(retry, denied_at(barred_until), "{key} at {as_of:?}");
            }
        }
        if overflow || entered == 1 {
            if state.may_be_forgotten {
                // The state begins anew.
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
            Some(Err(now))
        } else if overflow {
            match self.on_full {
                OnFull::Deny => Some(Err(now)),
                OnFull::Admit => Some(Ok((as_of, None))),
                _ => {
                    let decision = it.decide(self.catch_all.shared(), as_of, permits);
                    if let Ok(receipt) = &answer {
                        if self.served.until() <= as_of {
                            self.reclaimed = self.reclaimed.max(self.served.until());
                            self.served = Served::default();
                        }
                        let end = it.counts_until(self.catch_all.shared(), receipt.at(), 0);
                        self.served.add(self.hasher.hash(&key), end);
                    } else {
                        if !self.vague && !may_be_barred {
                            assert_eq!(retry, denied_at(catch_all), "{key} at {as_of:?}");
                        }
                        if self.on_full == OnFull::Share
                            && let Some(wait) = retry
                        {
                            // The same request is admitted then, unless another key comes first.
                            self.limiter.clock().set(now.saturating_add(wait));
                            let peek = self.limiter.peek(&key);
                            assert_eq!(
                                peek.retry_after(permits),
                                Some(Duration::ZERO),
                                "{key} after {wait:?} from {now:?}"
                            );
                        }
                    }
                    let decision = decision.map(|it| (it.at(), Some(it))).ok_or(now);
                    (!self.vague).then_some(decision)
                }
            }
        } else if !needs_one && !state.entered {
            Some(if permits == 0 { Ok((now, None)) } else { Err(now) })
        } else {
            state.words.as_ref().map(|words| {
                let decision = it.decide(words.shared(), decided_at, permits);
                decision.map(|it| (it.at(), Some(it))).ok_or(now)
            })
        };
        match (&answer, &expected) {
            (_, None) => {}
            (Ok(taken), Some(Ok((at, _)))) => assert_eq!(taken.at(), *at),
            (Err(at), Some(Err(expected))) => assert_eq!(at, expected),
            _ => panic!("{permits} of {key} at {now:?}: {answer:?} and not {expected:?}"),
        }
        if answer.is_err() && entered == 1 {
            // No charge counts in the entry, so it may pass to another key at once. In the front, its state has not
            // begun.
            state.may_be_lost = true;
            state.words = None;
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

    /// One of the keys has lost its entry to `newcomer` at this reading: an idle key, or if `forgotten` another one.
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

    /// No window of a key exceeds the bound. Under `Admit` this counts admissions by its own entries, and under
    /// `Forget` those since it was last forgotten.
    fn judge(&self, key: u64) {
        let mut log = Log::default();
        for admission in &self.keys[&key].admissions {
            if !(admission.overflow && self.on_full == OnFull::Admit) {
                log.add(admission.at, admission.permits);
            }
        }
        assert_eq!(self.subject.broken(&log), None, "key {key}");
    }

    /// Refunds the oldest receipt. Returns false if there is none.
    pub(crate) fn refund_oldest(&mut self) -> bool {
        let oldest = self.receipts.len().checked_sub(1);
        oldest.inspect(|&which| self.refund(which)).is_some()
    }

    /// Refunds a receipt. The newest has number 0.
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
            let before = self.limiter.peek(&key).spent();
            let settled = self.limiter.refund(&key, receipt);
            let refunded = before - self.limiter.peek(&key).spent();
            if settled == Settled::Forfeited(permits) {
                assert_eq!(refunded, 0, "of key {key}");
            } else {
                // Under `Forget`, the key may have got the same entry again while the charge counts in it.
                let holds_charge = self.on_full == OnFull::Forget && state.entered && state.words.is_none();
                assert!(holds_charge && settled == Settled::Exact, "of key {key}");
                assert!(refunded <= permits, "{refunded} of {permits}, of key {key}");
            }
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
            // An entry that may be forgotten while it counts refunds no time.
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

    /// A key without an entry sees the state that a check would find, at the time at which the check would decide.
    fn judge_peek_without_entry(&self, key: u64, now: Nanos, permits: u64, peek: &Peek<'_, Any>) {
        let as_of = now.max(self.reclaimed);
        let mut chances = self.chances(key, now);
        if self.on_full == OnFull::Forget && self.has_room(now) != Some(true) {
            return;
        }
        assert_eq!(peek.at(), now);
        // A state of several words that was reset has a step to be finished before it is idle. A check finishes it, and a
        // peek shows the state that decides in place of an entry.
        let has_reset_entry = self.left > 0 && self.common > Some(self.limiter.counts().tracked);
        chances.full |= has_reset_entry && self.subject.algorithm.words() > 1;
        assert!(
            !peek.is_overflow() || chances.barred || chances.full,
            "an entry for {key} at {as_of:?}: {chances:?}"
        );
        assert!(
            peek.is_overflow() || chances.entry,
            "no entry for {key} at {as_of:?}: {chances:?}"
        );
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
        // A request that would be admitted at once is admitted at the reading, although its state begins later.
        let wait = |ready: Nanos| ready.saturating_since(if ready == as_of { as_of } else { now });
        assert_eq!(peek.retry_after(permits), ready.map(wait), "{key} at {as_of:?}");
        assert_eq!(peek.spent(), 0);
    }
}
