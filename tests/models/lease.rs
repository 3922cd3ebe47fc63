//! Models of the state of a lease, with its manager and a store.
//!
//! The store is a simple model: one thread sends reports, and gets the answers that follow from the protocol of
//! `src/shared/protocol.md`. After the threads have ended, each execution asserts:
//!
//! - *cover*: at each answer and at the end, the spent permits that are not charged never exceed the permits that the
//!   store holds for them;
//! - *once*: the spent permits are those that were charged, those that are still in the lease, and those that ended
//!   with a lease, each once;
//! - *end*: no permit is spent at a reading after the end of the term, from a lease that has ended, or from the lease
//!   of another key.

use ringgate::sync::{AtomicU64, Ordering};

#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{sync::Arc, thread};
#[cfg(not(ringgate_loom))]
use std::thread;

use super::harness::{BOUNDED, FULL, Model};
use crate::lease_state::{Balance, LeaseState, SpendResult, VACANT};

const ALICE: u64 = 1;
const BOB: u64 = 2;

/// A step of a deciding thread.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Spends this many permits of a key's lease.
    Spend(u64, u64),
    /// Refunds the permits that the thread spent last.
    Refund,
}
use Step::*;

/// A step of the thread that manages the lease.
#[derive(Clone, Copy, Debug)]
enum ManagerStep {
    /// Sends a report that requests this many permits.
    Report(u64),
    /// Applies the grant of the store.
    ApplyGrant,
    /// Applies the answer that the store does not know the lease.
    Lose,
    /// Reassigns the lease to a key, if possible, with a grant of this many permits.
    Reassign(u64, u64),
    /// Moves time to the end of the term.
    EndTerm,
}
use ManagerStep::*;

/// Permits that a deciding thread spent.
#[derive(Clone, Copy, Debug)]
struct Spent {
    key: u64,
    permits: u64,
    epoch: u32,
    /// The reading of the decision.
    at: u64,
    is_refunded: bool,
}

struct Scene {
    /// The permits of Alice's lease at the start.
    granted: u64,
    deciders: &'static [&'static [Step]],
    manager: &'static [ManagerStep],
}

/// The end of every term.
const END: u64 = 10;

/// The store's record of one lease.
#[derive(Clone, Debug)]
struct StoredLease {
    key: u64,
    granted: u64,
    charged: u64,
    /// The first and the last epoch in which permits of the lease may be spent.
    first: u32,
    last: u32,
    /// Spent permits that were never charged, because the lease was lost.
    lost: u64,
    /// Whether the lease was reassigned, which requires that every spent permit was charged.
    is_reassigned: bool,
}

impl Scene {
    fn run(self, model: Model) {
        model.explore(move || {
            let lease = Arc::new(LeaseState::new());
            assert_eq!(lease.owner(), VACANT);
            let clock = Arc::new(AtomicU64::new(0));
            assert!(lease.reassign(ALICE));
            lease.grant(self.granted, END);
            let handles: Vec<_> = self
                .deciders
                .iter()
                .map(|steps| {
                    let (lease, clock) = (Arc::clone(&lease), Arc::clone(&clock));
                    thread::spawn(move || decide(&lease, &clock, steps))
                })
                .collect();
            let (leases, reports) = manage(&lease, &clock, self.granted, self.manager);
            let spent: Vec<Spent> = handles
                .into_iter()
                .flat_map(|handle| handle.join().unwrap())
                .collect();
            check(&lease, &leases, &spent);
            for (epoch, charge) in reports {
                // A report charges permits of its own epoch only. A charge for permits of a later epoch would leave
                // its window too early.
                let spent = spent.iter().filter(|it| it.epoch == epoch && !it.is_refunded);
                let permits: u64 = spent.clone().map(|it| it.permits).sum();
                assert_eq!(permits, charge, "{spent:?} in epoch {epoch}");
            }
        });
    }
}

fn decide(lease: &LeaseState, clock: &AtomicU64, steps: &[Step]) -> Vec<Spent> {
    let mut spent: Vec<Spent> = Vec::new();
    for step in steps {
        match *step {
            Spend(key, permits) => {
                let mut at = 0;
                let result = lease.spend(key, permits, || {
                    at = clock.load(Ordering::Acquire);
                    at
                });
                match result {
                    SpendResult::Covered { epoch, .. } => spent.push(Spent {
                        key,
                        permits,
                        epoch,
                        at,
                        is_refunded: false,
                    }),
                    // A notice about Bob's key does not apply to Alice, and vice versa.
                    SpendResult::Closed { left, .. } => assert_eq!(left, key, "a notice about another key"),
                    SpendResult::NotCovered | SpendResult::NotOwner => {}
                }
            }
            Refund => {
                if let Some(last) = spent.last_mut().filter(|last| !last.is_refunded) {
                    last.is_refunded = lease.refund(last.epoch, last.permits);
                }
            }
        }
    }
    spent
}

/// Runs the manager and the store. Returns the store's leases, and the epoch and the charge of each report.
fn manage(
    lease: &LeaseState,
    clock: &AtomicU64,
    granted: u64,
    steps: &[ManagerStep],
) -> (Vec<StoredLease>, Vec<(u32, u64)>) {
    let mut leases = alloc::vec![StoredLease {
        key: ALICE,
        granted,
        charged: 0,
        first: lease.balance().epoch(),
        last: u32::MAX,
        lost: 0,
        is_reassigned: false,
    }];
    let (mut unanswered, mut reports) = (None, Vec::new());
    for step in steps {
        let stored = leases.last_mut().unwrap();
        match *step {
            Report(wanted) => {
                // Only the manager ends an epoch.
                let epoch = lease.balance().epoch();
                let report = lease.report(wanted);
                reports.push((epoch, report.charge));
                unanswered = Some((report, wanted));
            }
            ApplyGrant => {
                let (report, wanted) = unanswered.take().unwrap();
                let used = lease.balance().used();
                assert!(
                    report.charge + used <= stored.granted,
                    "{used} beside {report:?} of {stored:?}"
                );
                assert!(report.charge <= report.cap, "{report:?}");
                assert!(report.cap <= stored.granted, "{report:?} of {stored:?}");
                // The charged permits were registered, and the lease shrinks by the same number.
                stored.charged += report.charge;
                stored.granted = (stored.granted.min(report.cap) - report.charge).max(wanted);
                lease.grant(stored.granted, END);
            }
            Lose => {
                stored.lost += unanswered.take().map_or(0, |(report, _)| report.charge);
                stored.last = lease.balance().epoch();
                lease.lose();
                let next = StoredLease {
                    granted: 0,
                    charged: 0,
                    first: lease.balance().epoch(),
                    last: u32::MAX,
                    lost: 0,
                    ..stored.clone()
                };
                leases.push(next);
            }
            Reassign(key, granted) => {
                stored.last = lease.balance().epoch();
                if lease.reassign(key) {
                    stored.is_reassigned = true;
                    let next = StoredLease {
                        key,
                        is_reassigned: false,
                        granted,
                        charged: 0,
                        first: lease.balance().epoch(),
                        last: u32::MAX,
                        lost: 0,
                    };
                    leases.push(next);
                    lease.close((0, u64::MAX), key, (u64::MAX, u64::MAX));
                    lease.grant(granted, END);
                } else {
                    stored.last = u32::MAX;
                }
            }
            EndTerm => clock.store(END, Ordering::Release),
        }
    }
    if let Some((report, _)) = unanswered {
        leases.last_mut().unwrap().lost += report.charge;
    }
    (leases, reports)
}

/// Asserts *cover*, *once* and *end*.
fn check(lease: &LeaseState, leases: &[StoredLease], spent: &[Spent]) {
    let left: Balance = lease.balance();
    assert!(left.used() <= left.budget(), "{left:?}");
    let spent: Vec<&Spent> = spent.iter().filter(|it| !it.is_refunded).collect();
    for (at, stored) in leases.iter().enumerate() {
        let from_lease = || (spent.iter()).filter(|it| (stored.first..=stored.last).contains(&it.epoch));
        for it in from_lease() {
            assert_eq!(it.key, stored.key, "{it:?} from {stored:?}");
            assert!(it.at < END, "{it:?} after the end of the term");
        }
        let used: u64 = from_lease().map(|it| it.permits).sum();
        let is_current = at + 1 == leases.len();
        let uncharged = if is_current { left.used() } else { 0 };
        let known = stored.charged + uncharged + stored.lost;
        if stored.is_reassigned {
            assert_eq!(used, known, "{spent:?} {stored:?}");
        } else if is_current {
            assert_eq!(used, known, "{spent:?} {stored:?} {left:?}");
            assert!(uncharged <= stored.granted, "{left:?} of {stored:?}");
        } else {
            // Permits that no report included ended with the lease.
            assert!(used >= known, "{spent:?} {stored:?}");
            assert!(used - stored.charged <= stored.granted, "{spent:?} {stored:?}");
        }
    }
    for it in &spent {
        let has_epoch = |stored: &&StoredLease| (stored.first..=stored.last).contains(&it.epoch);
        assert_eq!(leases.iter().filter(has_epoch).count(), 1, "{it:?} {leases:?}");
    }
}

/// Two threads request more permits than the lease holds.
#[test]
fn lease_spent_by_two_threads() {
    Scene {
        granted: 2,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 1)], &[Spend(ALICE, 1)]],
        manager: &[],
    }
    .run(FULL);
}

/// A report and its answer, while another thread spends. The reported permits are charged once, and later ones are
/// not.
#[test]
fn lease_reported() {
    Scene {
        granted: 2,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 1)], &[Spend(ALICE, 2)]],
        manager: &[Report(2), ApplyGrant],
    }
    .run(BOUNDED);
    Scene {
        granted: 3,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 2), Spend(ALICE, 1)]],
        manager: &[Report(1), ApplyGrant, Report(3), ApplyGrant],
    }
    .run(BOUNDED);
}

/// The lease is returned while a thread spends it.
#[test]
fn lease_returned() {
    Scene {
        granted: 2,
        deciders: &[&[Spend(ALICE, 1)], &[Spend(ALICE, 1)]],
        manager: &[Report(0), ApplyGrant],
    }
    .run(BOUNDED);
}

/// The lease is lost while a thread spends it.
#[test]
fn lease_lost() {
    Scene {
        granted: 2,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 1)], &[Spend(ALICE, 1)]],
        manager: &[Report(2), Lose],
    }
    .run(BOUNDED);
    Scene {
        granted: 2,
        deciders: &[&[Spend(ALICE, 1), Refund]],
        manager: &[Lose, Report(1), ApplyGrant],
    }
    .run(FULL);
}

/// The lease is reassigned. A thread with the old key spends no permit of it, and is not denied by a notice about the
/// new key.
#[test]
fn lease_reassigned() {
    for manager in [&[Reassign(BOB, 1)][..], &[Reassign(BOB, 1), Reassign(ALICE, 1)]] {
        for permits in [1, 3] {
            Scene {
                granted: 1,
                deciders: if permits == 1 {
                    &[&[Spend(ALICE, 1)]]
                } else {
                    &[&[Spend(ALICE, 3)]]
                },
                manager,
            }
            .run(BOUNDED.up_to(2));
        }
    }
}

/// A refund succeeds for permits that no report includes. Other permits remain charged.
#[test]
fn lease_refund() {
    Scene {
        granted: 2,
        deciders: &[&[Spend(ALICE, 1), Refund], &[Spend(ALICE, 1), Spend(ALICE, 1)]],
        manager: &[Report(2), ApplyGrant],
    }
    .run(BOUNDED);
}

/// The term ends, and an answer extends it.
#[test]
fn lease_ends() {
    Scene {
        granted: 2,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 1)], &[Spend(ALICE, 1)]],
        manager: &[Report(2), ApplyGrant, EndTerm],
    }
    .run(BOUNDED.up_to(2));
}

/// A permit is granted together with a notice that the store has no more. No request is denied before the permit is
/// spent.
#[test]
fn lease_granted_with_a_notice() {
    FULL.explore(|| {
        let lease = Arc::new(LeaseState::new());
        assert!(lease.reassign(ALICE));
        lease.grant(0, END);
        let decider = {
            let lease = Arc::clone(&lease);
            thread::spawn(move || lease.spend(ALICE, 1, || 0))
        };
        lease.grant(1, END);
        lease.close((0, END << 14), 0, (1, END << 14));
        let result = decider.join().unwrap();
        assert!(!matches!(result, SpendResult::Closed { .. }), "{result:?}");
        assert!(matches!(result, SpendResult::Covered { .. }) == (lease.balance().used() == 1));
    });
}

/// A budget is granted for a longer term, together with a notice that the store has no more. The notice does not deny
/// a request that has read the ended term.
#[test]
fn lease_granted_for_longer_with_a_notice() {
    FULL.explore(|| {
        let lease = Arc::new(LeaseState::new());
        assert!(lease.reassign(ALICE));
        lease.grant(1, END);
        let decider = {
            let lease = Arc::clone(&lease);
            thread::spawn(move || lease.spend(ALICE, 1, || END))
        };
        lease.grant(1, 2 * END);
        lease.close((0, END << 14), 0, (1, END << 14));
        let result = decider.join().unwrap();
        assert!(!matches!(result, SpendResult::Closed { .. }), "{result:?}");
        assert!(matches!(result, SpendResult::Covered { .. }) == (lease.balance().used() == 1));
    });
}
