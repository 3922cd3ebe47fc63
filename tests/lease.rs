//! The protocol of leases and syncs, of `src/shared/protocol.md`, in a simulation: nodes that spend a budget by themselves and
//! charge it in arrears, a server, and between them a network that delays, repeats and loses. Nodes crash, and sleep for
//! longer than everything; their clocks differ; the server forgets all, and its clock goes back. Time is numbers, and
//! everything follows from a seed.
#![cfg(not(any(miri, ringgate_loom)))]

extern crate alloc;

#[path = "lease/fault.rs"]
mod fault;
#[path = "lease/node.rs"]
mod node;
#[path = "lease/server.rs"]
mod server;
#[path = "lease/world.rs"]
mod world;

use fault::Fault;
use server::{LIMIT, Mode, Times};
use world::{LENGTH, Setup, World, Worst};

const LONG: Times = Times {
    window: 100,
    term: 32,
};
/// As users have it: the term is longer than the window.
const SHORT: Times = Times { window: 30, term: 60 };

/// Four nodes with leases, and requests that the server decides for others.
const LEASES: Setup = Setup {
    fault: Fault::None,
    modes: &[Mode::Lease; 4],
    times: LONG,
    asks: 12,
    others: true,
    crashes: true,
    wipes: false,
    steps: false,
};

const SYNC: Mode = Mode::Sync { pending: 15 };

/// As much as the limit, and what goes beyond it is not granted.
const FULL: Mode = Mode::Sync { pending: 2 * LIMIT };

/// Four nodes with budgets that are not registered, and no other requests.
const SYNCS: Setup = Setup {
    modes: &[SYNC; 4],
    others: false,
    ..LEASES
};

/// Two of them, which have the server decide every other request: so that all budgets are full when the last permit
/// is charged.
const PAIR: Setup = Setup {
    modes: &[SYNC; 2],
    asks: 2,
    crashes: false,
    ..SYNCS
};

/// The worst of so many histories, and how much is admitted in one.
fn worst(setup: Setup, seeds: u64) -> (Worst, u64) {
    let (mut worst, mut all) = (Worst::default(), 0);
    for seed in 0..seeds {
        let mut world = World::new(seed, setup);
        world.run();
        let this = world.worst();
        worst.most = worst.most.max(this.most);
        worst.over = worst.over.max(this.over);
        all += world.admitted();
    }
    (worst, all / seeds)
}

#[test]
fn leases_keep_the_limit() {
    for times in [LONG, SHORT] {
        for others in [true, false] {
            let (worst, admitted) = worst(
                Setup {
                    times,
                    others,
                    ..LEASES
                },
                100,
            );
            assert_eq!(worst.over, 0, "{worst:?}");
            assert!(worst.most * 10 >= LIMIT * 9, "{worst:?}: or nothing is shown");
            // Crashes and losses cost permits, and not all of them.
            let windows = LENGTH / times.window;
            assert!(admitted * 5 >= LIMIT * windows, "{admitted}");
        }
    }
}

/// L + (K − 1)·min(pending, L), where all that have no such budget count as one node, whatever they hold; and the bound
/// is nearly met.
#[test]
fn budgets_keep_their_bound() {
    for modes in [&[SYNC; 4], &[SYNC, SYNC, Mode::Lease, Mode::Lease], &[FULL; 4]] {
        for times in [LONG, SHORT] {
            let setup = Setup {
                modes,
                times,
                crashes: false,
                ..SYNCS
            };
            let (worst, _) = worst(setup, 80);
            assert_eq!(worst.over, 0, "{worst:?}");
            assert!(worst.most > LIMIT, "{worst:?}: or nothing is shown");
            // With leases that end, each counts that a window has seen.
            let (worst, _) = self::worst(
                Setup {
                    crashes: true,
                    ..setup
                },
                50,
            );
            assert_eq!(worst.over, 0, "{worst:?}");
        }
    }
    let (alone, _) = worst(PAIR, 80);
    assert_eq!(alone.over, 0, "{alone:?}");
    assert!(alone.most + 3 >= LIMIT + 15, "{alone:?}: nearly met");
    // Those for whom the server decides count as one more node, and need to.
    let (beside, _) = worst(Setup { others: true, ..PAIR }, 80);
    assert_eq!(beside.over, 0, "{beside:?}");
    assert!(beside.most > LIMIT + 15, "{beside:?}");
}

/// Even when the server comes back with nothing of what it had (no lease is granted until all that may be forgotten has
/// left; budgets are, and admit their bound once more), and when its clock goes back.
#[test]
fn bounds_hold_when_the_server_forgets_or_its_clock_steps_back() {
    for setup in [LEASES, SYNCS] {
        for (wipes, steps) in [(true, false), (false, true), (true, true)] {
            for times in [LONG, SHORT] {
                let setup = Setup {
                    wipes,
                    steps,
                    times,
                    // Decisions by the server have another bound.
                    others: setup.others && !wipes,
                    ..setup
                };
                let (worst, admitted) = worst(setup, 50);
                assert_eq!(worst.over, 0, "{setup:?}: {worst:?}");
                assert!(admitted > 0, "{setup:?}");
            }
        }
    }
}

/// The simulation can fail: each rule of the protocol, left out, is missed.
#[test]
fn the_simulation_fails_without_any_rule_of_the_protocol() {
    let wipes = Setup {
        wipes: true,
        others: false,
        ..LEASES
    };
    let steps = Setup {
        steps: true,
        ..LEASES
    };
    for (fault, setup) in [
        (Fault::GrantsIgnoreTheWindow, LEASES),
        (Fault::GrantsIgnoreTheHolds, LEASES),
        (Fault::GrantsIgnoreWhatIsUncharged, LEASES),
        (Fault::StrictIgnoresTheHolds, LEASES),
        (Fault::HoldsAreKeptForAWindow, LEASES),
        (Fault::HoldsAreKeptForATerm, LEASES),
        (Fault::CopiesDoNotRenew, LEASES),
        (Fault::CopiesAreCharged, LEASES),
        (Fault::OldQuestionsAreApplied, LEASES),
        (Fault::ChargesAreDatedByNodes, LEASES),
        (Fault::GrantsAtOnceAfterAWipe, wipes),
        (Fault::WhatIsAheadIsForgotten, steps),
        (Fault::ErasAreNotCompared, steps),
        (Fault::HoldsEndWithTheirTerms, steps),
        (Fault::EndsAreRoundedDown, LEASES),
        (Fault::EndedBudgetsAreNotCharged, SYNCS),
        (Fault::TermFromTheAnswer, LEASES),
        (Fault::TermFromTheLastCopy, LEASES),
        (Fault::NoTerm, LEASES),
        (Fault::ClockStopsInSleep, LEASES),
        (Fault::ClocksAreTakenToAgree, LEASES),
        (Fault::ShrinksWithoutStopping, LEASES),
        (Fault::LostChargesAreForgotten, LEASES),
        (Fault::OldAnswersAreHeard, LEASES),
        (Fault::WhatIsAskedIsGivenBack, LEASES),
        (Fault::WhatWasChargedIsGivenBack, LEASES),
        (Fault::LivesHaveOneName, LEASES),
        (Fault::GrantsIgnoreTheWindow, SYNCS),
        (Fault::PendingIsIgnored, PAIR),
        (Fault::StrictIgnoresItsOwnBudget, PAIR),
    ] {
        let is_seen = (0..600).any(|seed| {
            let mut world = World::new(seed, Setup { fault, ..setup });
            world.run();
            world.worst().over > 0
        });
        assert!(is_seen, "{fault:?} goes unnoticed");
    }
}
