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
    /// Refunds the permits that it spent last.
    GiveBack,
}
use Step::*;

/// A step of the thread that manages the lease.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Sends a report that requests permits, with a limit on uncharged permits.
    LeaseRequest(u64),
    /// Applies the grant of the store.
    Hear,
    /// Applies the answer that the store does not know the lease.
    Lose,
    /// Reassigns the lease to another key, if possible, with a grant.
    PassOn(u64, u64),
    /// Moves time to the end of the term.
    End,
}
use Act::*;

/// The answer to a deciding thread.
#[derive(Clone, Copy, Debug)]
struct Use {
    key: u64,
    permits: u64,
    epoch: u32,
    /// The reading, and whether the permits were refunded.
    at: u64,
    back: bool,
}

struct Scene {
    /// The permits of Alice's lease at the start.
    hold: u64,
    deciders: &'static [&'static [Step]],
    desk: &'static [Act],
}

/// The end of every term.
const END: u64 = 10;

/// The store's record of one lease.
#[derive(Clone, Debug)]
struct Life {
    key: u64,
    held: u64,
    charged: u64,
    /// The epochs in which permits of the lease may be spent.
    from: u32,
    until: u32,
    /// Uncharged permits that ended with the lease.
    lost: u64,
    /// Whether the lease was reassigned, which requires that no uncharged permit was spent.
    passed: bool,
}

impl Scene {
    fn run(self, model: Model) {
        model.explore(move || {
            let account = Arc::new(LeaseState::new());
            assert_eq!(account.owner(), VACANT);
            let clock = Arc::new(AtomicU64::new(0));
            assert!(account.reassign(ALICE));
            account.grant(self.hold, END);
            let handles: Vec<_> = self
                .deciders
                .iter()
                .map(|steps| {
                    let (account, clock) = (Arc::clone(&account), Arc::clone(&clock));
                    thread::spawn(move || decide(&account, &clock, steps))
                })
                .collect();
            let (lives, asks) = serve(&account, &clock, self.hold, self.desk);
            let uses: Vec<Use> = handles
                .into_iter()
                .flat_map(|handle| handle.join().unwrap())
                .collect();
            judge(&account, &lives, &uses);
            for (epoch, charge) in asks {
                // The permits are of that epoch only. A charge for a use of another epoch would leave its window too
                // early.
                let of = uses.iter().filter(|of| of.epoch == epoch && !of.back);
                assert_eq!(
                    of.map(|of| of.permits).sum::<u64>(),
                    charge,
                    "{uses:?} in {epoch}"
                );
            }
        });
    }
}

fn decide(account: &LeaseState, clock: &AtomicU64, steps: &[Step]) -> Vec<Use> {
    let mut uses: Vec<Use> = Vec::new();
    for step in steps {
        match *step {
            Spend(key, permits) => {
                let mut at = 0;
                let said = account.spend(key, permits, || {
                    at = clock.load(Ordering::Acquire);
                    at
                });
                match said {
                    SpendResult::Room { epoch, .. } => uses.push(Use {
                        key,
                        permits,
                        epoch,
                        at,
                        back: false,
                    }),
                    // A notice about Bob's key does not apply to Alice, and vice versa.
                    SpendResult::Closed { left, .. } => assert_eq!(left, key, "another key's"),
                    SpendResult::Short | SpendResult::NotOwner => {}
                }
            }
            GiveBack => {
                if let Some(last) = uses.last_mut().filter(|last| !last.back) {
                    last.back = account.refund(last.epoch, last.permits);
                }
            }
        }
    }
    uses
}

/// The desk and the store: what became of each life, and what was asked to be charged of which epoch.
fn serve(account: &LeaseState, clock: &AtomicU64, hold: u64, acts: &[Act]) -> (Vec<Life>, Vec<(u32, u64)>) {
    let mut lives = alloc::vec![Life {
        key: ALICE,
        held: hold,
        charged: 0,
        from: account.balance().epoch(),
        until: u32::MAX,
        lost: 0,
        passed: false,
    }];
    let (mut open, mut asks) = (None, Vec::new());
    for act in acts {
        let life = lives.last_mut().unwrap();
        match *act {
            LeaseRequest(want) => {
                // Only the manager ends an epoch.
                let epoch = account.balance().epoch();
                let question = account.report(want);
                asks.push((epoch, question.charge));
                open = Some((question, want));
            }
            Hear => {
                let (question, want) = open.take().unwrap();
                let used = account.balance().used();
                assert!(
                    question.charge + used <= life.held,
                    "{used} beside {question:?} of {life:?}"
                );
                assert!(question.charge <= question.cap, "{question:?}");
                assert!(question.cap <= life.held, "{question:?} of {life:?}");
                // The charged permits were registered, and the lease shrinks by the same number.
                life.charged += question.charge;
                life.held = (life.held.min(question.cap) - question.charge).max(want);
                account.grant(life.held, END);
            }
            Lose => {
                life.lost += open.take().map_or(0, |(question, _)| question.charge);
                life.until = account.balance().epoch();
                account.lose();
                let next = Life {
                    held: 0,
                    charged: 0,
                    from: account.balance().epoch(),
                    until: u32::MAX,
                    lost: 0,
                    ..life.clone()
                };
                lives.push(next);
            }
            PassOn(key, granted) => {
                life.until = account.balance().epoch();
                if account.reassign(key) {
                    life.passed = true;
                    let life = Life {
                        key,
                        passed: false,
                        held: granted,
                        charged: 0,
                        from: account.balance().epoch(),
                        until: u32::MAX,
                        lost: 0,
                    };
                    lives.push(life);
                    account.close(u64::MAX, key, 0);
                    account.grant(granted, END);
                } else {
                    life.until = u32::MAX;
                }
            }
            End => clock.store(END, Ordering::Release),
        }
    }
    if let Some((question, _)) = open {
        lives.last_mut().unwrap().lost += question.charge;
    }
    (lives, asks)
}

fn judge(account: &LeaseState, lives: &[Life], uses: &[Use]) {
    let left: Balance = account.balance();
    assert!(left.used() <= left.budget(), "{left:?}");
    for (at, life) in lives.iter().enumerate() {
        let of = |of: &&Use| (life.from..=life.until).contains(&of.epoch) && !of.back;
        let used: u64 = uses.iter().filter(of).map(|of| of.permits).sum();
        for of in uses.iter().filter(of) {
            assert_eq!(of.key, life.key, "{of:?} of {life:?}");
            assert!(of.at < END, "{of:?} after the end");
        }
        let last = at + 1 == lives.len();
        let uncharged = if last { left.used() } else { 0 };
        let known = life.charged + uncharged + life.lost;
        // The remaining permits ended with the lease.
        if life.passed {
            assert_eq!(used, known, "{uses:?} {life:?}");
        } else if last {
            assert_eq!(used, known, "{uses:?} {life:?} {left:?}");
            assert!(uncharged <= life.held, "{left:?} of {life:?}");
        } else {
            assert!(used >= known, "{uses:?} {life:?}");
            assert!(used - life.charged <= life.held, "{uses:?} {life:?}");
        }
    }
    let all: u64 = uses.iter().filter(|of| !of.back).map(|of| of.permits).sum();
    let of_lives = uses.iter().filter(|of| !of.back).filter(|of| {
        let in_life = |life: &&Life| (life.from..=life.until).contains(&of.epoch);
        lives.iter().filter(in_life).count() == 1
    });
    assert_eq!(
        all,
        of_lives.map(|of| of.permits).sum::<u64>(),
        "{uses:?} {lives:?}"
    );
}

/// Two threads request more permits than the lease holds.
#[test]
fn lease_holds() {
    Scene {
        hold: 2,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 1)], &[Spend(ALICE, 1)]],
        desk: &[],
    }
    .run(FULL);
}

/// A report and its answer, while another thread spends. The reported permits are charged once, and later ones are
/// not.
#[test]
fn lease_asked() {
    Scene {
        hold: 2,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 1)], &[Spend(ALICE, 2)]],
        desk: &[LeaseRequest(2), Hear],
    }
    .run(BOUNDED);
    Scene {
        hold: 3,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 2), Spend(ALICE, 1)]],
        desk: &[LeaseRequest(1), Hear, LeaseRequest(3), Hear],
    }
    .run(BOUNDED);
}

/// The lease is returned while a thread spends it.
#[test]
fn lease_given_back() {
    Scene {
        hold: 2,
        deciders: &[&[Spend(ALICE, 1)], &[Spend(ALICE, 1)]],
        desk: &[LeaseRequest(0), Hear],
    }
    .run(BOUNDED);
}

/// The lease is lost while a thread spends it.
#[test]
fn lease_lost() {
    Scene {
        hold: 2,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 1)], &[Spend(ALICE, 1)]],
        desk: &[LeaseRequest(2), Lose],
    }
    .run(BOUNDED);
    Scene {
        hold: 2,
        deciders: &[&[Spend(ALICE, 1), GiveBack]],
        desk: &[Lose, LeaseRequest(1), Hear],
    }
    .run(FULL);
}

/// The lease is reassigned. A thread with the old key spends no permit of it, and is not denied by a notice about the
/// new key.
#[test]
fn lease_passed_on() {
    for desk in [&[PassOn(BOB, 1)][..], &[PassOn(BOB, 1), PassOn(ALICE, 1)]] {
        for permits in [1, 3] {
            Scene {
                hold: 1,
                deciders: if permits == 1 {
                    &[&[Spend(ALICE, 1)]]
                } else {
                    &[&[Spend(ALICE, 3)]]
                },
                desk,
            }
            .run(BOUNDED);
        }
    }
}

/// A refund succeeds for permits that no report includes. Other permits remain charged.
#[test]
fn lease_refund() {
    Scene {
        hold: 2,
        deciders: &[&[Spend(ALICE, 1), GiveBack], &[Spend(ALICE, 1), Spend(ALICE, 1)]],
        desk: &[LeaseRequest(2), Hear],
    }
    .run(BOUNDED);
}

/// The term ends, and an answer extends it.
#[test]
fn lease_ends() {
    Scene {
        hold: 2,
        deciders: &[&[Spend(ALICE, 1), Spend(ALICE, 1)], &[Spend(ALICE, 1)]],
        desk: &[LeaseRequest(2), Hear, End],
    }
    .run(BOUNDED);
}

/// A permit is granted together with a notice that the store has no more. No request is denied before the permit is
/// spent.
#[test]
fn lease_granted_with_a_notice() {
    FULL.explore(|| {
        let account = Arc::new(LeaseState::new());
        assert!(account.reassign(ALICE));
        account.grant(0, END);
        let decider = {
            let account = Arc::clone(&account);
            thread::spawn(move || account.spend(ALICE, 1, || 0))
        };
        account.grant(1, END);
        account.close(END << 14, 0, END);
        let said = decider.join().unwrap();
        assert!(!matches!(said, SpendResult::Closed { .. }), "{said:?}");
        assert!(matches!(said, SpendResult::Room { .. }) == (account.balance().used() == 1));
    });
}

/// A budget is granted for a longer term, together with a notice that the store has no more. The notice does not deny
/// a request that has read the ended term.
#[test]
fn lease_granted_for_longer_with_a_notice() {
    FULL.explore(|| {
        let account = Arc::new(LeaseState::new());
        assert!(account.reassign(ALICE));
        account.grant(1, END);
        let decider = {
            let account = Arc::clone(&account);
            thread::spawn(move || account.spend(ALICE, 1, || END))
        };
        account.grant(1, 2 * END);
        account.close(END << 14, 0, END);
        let said = decider.join().unwrap();
        assert!(!matches!(said, SpendResult::Closed { .. }), "{said:?}");
        assert!(matches!(said, SpendResult::Room { .. }) == (account.balance().used() == 1));
    });
}
