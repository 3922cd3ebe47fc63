//! A store that uses only the public interface, as another crate would. It passes the conformance tests.
//!
//! The store keeps a list of all charges with their times, and adds up those that count.

use alloc::sync::Arc;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::Mutex;

use ringgate::shared::{
    CheckResult, CounterRequest, CounterStatus, CounterStore, Counting, LeaseFuture, LeaseGrant,
    LeaseRequest, LeaseStore, StoreError, StoreErrorKind, StoreFuture, conformance,
};
use ringgate::{Clock, ManualClock};

#[derive(Debug)]
pub(crate) struct Ledger {
    clock: Arc<ManualClock>,
    counters: Mutex<HashMap<String, Counter>>,
    fault: Option<Fault>,
}

/// A fault in the rules of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    GrantsIgnoreOtherLeases,
    RegistrationsLastAWindow,
    CopiesDoNotRenew,
    AnswersInReverse,
    AnswersOnlyTheFirst,
}

/// Times are in nanoseconds.
#[derive(Debug, Default)]
struct Counter {
    /// The time, the permits, and the number of each charge.
    charges: Vec<(u128, u64, u64)>,
    /// The time at which a bucket is empty, in halves of a nanosecond, at the time per permit of the last charge.
    empty_at: u128,
    permit: u64,
    /// The number of charges and refunds so far.
    changes: u64,
    leases: HashMap<u128, Lease>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lease {
    granted: u64,
    sequence: u64,
    ends: u128,
    held: u64,
    held_until: u128,
}

impl Counter {
    fn held(&self, now: u128) -> u64 {
        let current = self.leases.values().filter(|lease| lease.held_until > now);
        current.map(|lease| lease.held).sum()
    }

    /// Returns the time from which on a charge at this time no longer counts.
    fn leaves(request: &CounterRequest, at: u128) -> u128 {
        let window = request.window().as_nanos();
        match request.counting() {
            Counting::Cells(cells) => {
                let width = window.div_ceil(u128::from(cells));
                (at / width + u128::from(cells) + 1) * width
            }
            _ => at + window,
        }
    }

    /// Returns the time until a bucket is empty, at the rate of the request.
    fn ahead(&self, request: &CounterRequest, now: u128) -> u128 {
        let ahead = self.empty_at.saturating_sub(2 * now);
        (ahead * u128::from(request.time_per_permit())).div_ceil(u128::from(self.permit.max(1)))
    }

    /// Returns the permits that are free at a time.
    fn free(&self, request: &CounterRequest, now: u128) -> u64 {
        let free = match request.counting() {
            Counting::Gcra(burst) => {
                let permit = u128::from(request.time_per_permit());
                let free = (u128::from(burst) * permit).saturating_sub(self.ahead(request, now)) / permit;
                u64::try_from(free).expect("at most the burst")
            }
            _ => {
                let counted = self
                    .charges
                    .iter()
                    .filter(|charge| Self::leaves(request, charge.0) > now);
                request
                    .limit()
                    .saturating_sub(counted.map(|charge| charge.1).sum())
            }
        };
        free.saturating_sub(self.held(now))
    }

    fn status(&self, request: &CounterRequest, now: u128) -> CounterStatus {
        let left = |at| self.free(request, at);
        if request.permits() <= left(now) {
            return CounterStatus::with_room(left(now));
        }
        let permit = u128::from(request.time_per_permit());
        let needed = u128::from(request.permits().saturating_sub(left(now)));
        let leaves = self.charges.iter().map(|charge| Self::leaves(request, charge.0));
        let ends = self.leases.values().map(|lease| lease.held_until);
        // A bucket is refilled at a constant rate. After this time it has enough permits.
        let refills = [(2 * now + self.ahead(request, now) + needed * permit).div_ceil(2)];
        let times = leaves.chain(ends).chain(refills).filter(|&at| at > now);
        let first = times.filter(|&at| request.permits() <= left(at)).min();
        let after = first.map(|at| Duration::from_nanos(u64::try_from(at - now).expect("a wait")));
        let is_possible = request.permits() <= request.capacity();
        CounterStatus::without_room(left(now), after.filter(|_| is_possible))
    }

    fn charge(&mut self, request: &CounterRequest, permits: u64, now: u128) -> (u64, u64) {
        self.changes += 1;
        self.charges.push((now, permits, self.changes));
        let time = u128::from(permits) * u128::from(request.time_per_permit());
        self.empty_at = 2 * now + self.ahead(request, now) + time;
        self.permit = request.time_per_permit();
        (self.changes, 0)
    }

    fn refund(&mut self, request: &CounterRequest, receipt: (u64, u64)) -> u64 {
        let permits = request.permits();
        let is_last = self.changes == receipt.0;
        let charge = self.charges.iter_mut().find(|charge| charge.2 == receipt.0);
        match charge {
            Some(charge) if is_last || !matches!(request.counting(), Counting::Gcra(_)) => {
                charge.1 -= permits;
                self.empty_at -= u128::from(permits) * u128::from(request.time_per_permit());
                self.changes += 1;
                permits
            }
            _ => 0,
        }
    }

    fn renew(&mut self, request: &LeaseRequest, now: u128, fault: Option<Fault>) -> LeaseGrant {
        let known = self.leases.get(&request.lease_id).copied();
        let known = known.filter(|lease| lease.ends > now);
        if known.is_none() && !request.is_new {
            return LeaseGrant::unknown();
        }
        // The permits of a lease that has ended stay registered under another id.
        if known.is_none()
            && let Some(ended) = self.leases.remove(&request.lease_id)
        {
            self.leases.insert(!request.lease_id, ended);
        }
        let mut lease = known.unwrap_or_default();
        self.leases.remove(&request.lease_id);
        let is_copy = request.sequence <= lease.sequence;
        if !is_copy {
            if request.charge > 0 {
                self.charge(&request.counter, request.charge, now);
            }
            let covered = lease.granted.min(request.cap).saturating_sub(request.charge);
            let others = match fault {
                Some(Fault::GrantsIgnoreOtherLeases) => self.held(now),
                _ => 0,
            };
            let free = (self.free(&request.counter, now) + others).div_ceil(2);
            lease.granted = covered.max(request.wanted.min(free));
            lease.sequence = request.sequence;
        }
        if !(is_copy && fault == Some(Fault::CopiesDoNotRenew)) {
            lease.ends = now + request.term.as_nanos();
        }
        let held_from = match fault {
            Some(Fault::RegistrationsLastAWindow) => now,
            _ => lease.ends,
        };
        lease.held_until = held_from + request.counter.window().as_nanos();
        lease.held = if request.is_registered { lease.granted } else { 0 };
        let left = self.free(&request.counter, now).saturating_sub(lease.granted);
        self.leases.insert(request.lease_id, lease);
        LeaseGrant::of(lease.granted).with_remaining(left, Duration::ZERO)
    }
}

impl Ledger {
    pub(crate) fn new(clock: Arc<ManualClock>) -> Self {
        Self {
            clock,
            counters: Mutex::default(),
            fault: None,
        }
    }

    fn at_once<T>(
        &self,
        act: impl FnOnce(&mut dyn FnMut(&CounterRequest, &mut dyn FnMut(&mut Counter)), u128) -> T,
    ) -> Result<T, StoreError> {
        let poisoned = |_| StoreError::new(StoreErrorKind::Refused, "a call has panicked");
        let mut counters = self.counters.lock().map_err(poisoned)?;
        let now = u128::from(self.clock.now().get());
        let mut with = |request: &CounterRequest, act: &mut dyn FnMut(&mut Counter)| {
            let (key, rule, index) = (request.key_hash(), request.rule(), request.quota_index());
            let (period, window) = (request.period(), request.window());
            // A bucket keeps its counter when its burst is changed.
            let counting = match request.counting() {
                Counting::Gcra(_) => Counting::Gcra(0),
                other => other,
            };
            let name = format!("{key} {rule} {period:?} {index} {counting:?} {window:?}");
            act(counters.entry(name).or_default());
        };
        Ok(act(&mut with, now))
    }

    fn check(&self, requests: &[CounterRequest], charges: bool) -> Result<CheckResult, StoreError> {
        self.at_once(|with, now| {
            let mut statuses = Vec::new();
            for request in requests {
                with(request, &mut |counter| {
                    statuses.push(counter.status(request, now))
                });
            }
            let is_full = |at: usize| !statuses[at].has_room;
            let all = 0..requests.len();
            let leaves_reserve = |at: usize| {
                let request: &CounterRequest = &requests[at];
                request.permits() + request.reserve() <= statuses[at].remaining
            };
            let denies = |at: usize| requests[at].is_enforced() && (is_full(at) || !leaves_reserve(at));
            let admitted = !all.clone().any(denies);
            let shadow_full = |rule: &str| {
                let mut same = all
                    .clone()
                    .filter(|&at| !requests[at].is_enforced() && requests[at].rule() == rule);
                same.any(is_full)
            };
            let skipped: Vec<bool> = all
                .clone()
                .map(|at| !requests[at].is_enforced() && shadow_full(requests[at].rule()))
                .collect();
            for at in all {
                let request = &requests[at];
                if skipped[at] && statuses[at].has_room {
                    statuses[at] = statuses[at].not_charged();
                } else if statuses[at].has_room && admitted && charges {
                    let left = statuses[at].remaining - request.permits();
                    with(request, &mut |counter| {
                        let receipt = counter.charge(request, request.permits(), now);
                        statuses[at] = CounterStatus::with_room(left).with_receipt(receipt.0, receipt.1);
                    });
                }
            }
            let micros = u64::try_from(now / 1_000).expect("a time");
            match admitted {
                true => CheckResult::admitted(micros, statuses),
                false => CheckResult::denied(micros, statuses),
            }
        })
    }
}

impl CounterStore for Ledger {
    fn decide<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        Box::pin(async move { self.check(requests, true) })
    }

    fn peek<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        Box::pin(async move { self.check(requests, false) })
    }

    fn charge<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.at_once(|with, now| {
                for request in requests {
                    with(request, &mut |counter| {
                        counter.charge(request, request.permits(), now);
                    });
                }
            })
        })
    }

    fn refund<'a>(
        &'a self,
        requests: &'a [CounterRequest],
        charged: &'a CheckResult,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            self.at_once(|with, _| {
                let mut lost = 0;
                for (request, status) in requests.iter().zip(&charged.statuses) {
                    if charged.is_admitted && status.is_charged {
                        with(request, &mut |counter| {
                            lost += request.permits() - counter.refund(request, status.receipt);
                        });
                    }
                }
                lost
            })
        })
    }

    fn reset<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.at_once(|with, _| {
                for request in requests {
                    with(request, &mut |counter| {
                        counter.charges.clear();
                        counter.empty_at = 0;
                        counter.changes += 1;
                    });
                }
            })
        })
    }

    forward!(keeps leases);
}

impl LeaseStore for Ledger {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        Box::pin(async move {
            let one = |request: &LeaseRequest| {
                self.at_once(|with, now| {
                    let mut grant = LeaseGrant::unknown();
                    with(&request.counter, &mut |counter| {
                        grant = counter.renew(request, now, self.fault)
                    });
                    grant
                })
            };
            let mut answers: Vec<_> = requests.iter().map(one).collect();
            match self.fault {
                Some(Fault::AnswersInReverse) => answers.reverse(),
                Some(Fault::AnswersOnlyTheFirst) => {
                    let first = answers[0].clone();
                    answers.fill(first);
                }
                _ => {}
            }
            answers
        })
    }
}

#[tokio::test]
async fn a_store_of_another_crate_keeps_every_promise() {
    let clock = Arc::new(ManualClock::new());
    let store = Ledger::new(Arc::clone(&clock));
    let checked = conformance::check(&store, async |time| clock.advance(time)).await;
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

/// The conformance tests find each fault in the rules of leases.
#[tokio::test]
async fn every_fault_of_leases_is_found() {
    for (fault, promise) in [
        (Fault::GrantsIgnoreOtherLeases, "are no more than the limit"),
        (Fault::RegistrationsLastAWindow, "a window longer than their term"),
        (Fault::CopiesDoNotRenew, "a copy renews"),
        (Fault::AnswersInReverse, "by itself, in their order"),
        (Fault::AnswersOnlyTheFirst, "by itself, in their order"),
    ] {
        let clock = Arc::new(ManualClock::new());
        let mut store = Ledger::new(Arc::clone(&clock));
        store.fault = Some(fault);
        let checked = conformance::check(&store, async |time| clock.advance(time)).await;
        let broken = checked.expect_err(&format!("{fault:?}"));
        assert!(broken.promise().contains(promise), "{fault:?}: {broken}");
    }
}
