//! A simulation of the protocol of leases and syncs in `src/shared/protocol.md`.
//!
//! Nodes spend a budget without the server, and charge it later. The network delays, repeats and loses messages. Nodes
//! crash, and are suspended for longer than a window and a term. Their clocks run at different rates. The server loses its
//! state, and its clock goes back. Times are numbers, and each history is determined by its seed.
#![cfg(not(any(miri, ringgate_loom)))]

extern crate alloc;

#[path = "lease/fault.rs"]
mod fault;
#[path = "lease/node.rs"]
mod node;
#[path = "common/random.rs"]
mod random;
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
/// The term is longer than the window.
const SHORT: Times = Times { window: 30, term: 60 };

/// Four nodes with leases, and requests that the server decides for others.
const LEASES: Setup = Setup {
    fault: Fault::None,
    modes: &[Mode::Lease; 4],
    times: LONG,
    every_nth: 12,
    others: true,
    crashes: true,
    wipes: false,
    steps: false,
};

const SYNC: Mode = Mode::Sync { pending: 15 };

/// A budget that exceeds the limit, so that the server grants less.
const FULL: Mode = Mode::Sync { pending: 2 * LIMIT };

/// Four nodes with budgets that are not registered, and no other requests.
const SYNCS: Setup = Setup {
    modes: &[SYNC; 4],
    others: false,
    ..LEASES
};

/// Two such nodes, which send every other request to the server. So both budgets can be full when the last permit is
/// charged.
const PAIR: Setup = Setup {
    modes: &[SYNC; 2],
    every_nth: 2,
    crashes: false,
    ..SYNCS
};

/// Returns the worst windows of `seeds` histories, and the permits that are admitted in a history on average.
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
            assert!(
                worst.most * 10 >= LIMIT * 9,
                "{worst:?}: no window is nearly full"
            );
            // Crashes and losses cost only a part of the permits.
            let windows = LENGTH / times.window;
            assert!(admitted * 5 >= LIMIT * windows, "{admitted}");
        }
    }
}

/// The bound is L + (K − 1)·min(pending, L), where all nodes without such a budget count as one. It is nearly reached.
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
            assert!(worst.most > LIMIT, "{worst:?}: no window exceeds the limit");
            // If nodes crash, K counts each lease that overlaps with the window.
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
    assert!(
        alone.most + 3 >= LIMIT + 15,
        "{alone:?}: the bound is not nearly reached"
    );
    // All clients for which the server decides count as one more node.
    let (beside, _) = worst(Setup { others: true, ..PAIR }, 80);
    assert_eq!(beside.over, 0, "{beside:?}");
    assert!(beside.most > LIMIT + 15, "{beside:?}");
}

/// A server without its state grants no lease until all charges that it may have lost have expired. It grants budgets of
/// syncs at once, which admit their bound once more.
#[test]
fn bounds_hold_when_the_server_loses_its_state_or_its_clock_goes_back() {
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

/// Without any one rule of the protocol, the simulation fails.
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
        (Fault::GrantsIgnoreOtherLeases, LEASES),
        (Fault::GrantsIgnoreUnchargedPermits, LEASES),
        (Fault::StrictIgnoresLeases, LEASES),
        (Fault::RegistrationsLastAWindow, LEASES),
        (Fault::RegistrationsLastATerm, LEASES),
        (Fault::CopiesDoNotRenew, LEASES),
        (Fault::CopiesAreCharged, LEASES),
        (Fault::OldReportsAreApplied, LEASES),
        (Fault::ChargesAreDatedByNodes, LEASES),
        (Fault::GrantsAtOnceAfterAWipe, wipes),
        (Fault::FutureChargesAreRemoved, steps),
        (Fault::ErasAreNotCompared, steps),
        (Fault::RegistrationsEndWithTerms, steps),
        (Fault::EndsAreRoundedDown, LEASES),
        (Fault::EndedBudgetsAreNotCharged, SYNCS),
        (Fault::TermFromTheAnswer, LEASES),
        (Fault::TermFromTheLastCopy, LEASES),
        (Fault::NoTerm, LEASES),
        (Fault::ClockStopsInSleep, LEASES),
        (Fault::ClocksAreAssumedEqual, LEASES),
        (Fault::ShrinksAfterTheAnswer, LEASES),
        (Fault::UnansweredChargesAreForgotten, LEASES),
        (Fault::OldAnswersAreApplied, LEASES),
        (Fault::PendingChargesAreRefunded, LEASES),
        (Fault::PastChargesAreRefunded, LEASES),
        (Fault::LeaseIdsAreReused, LEASES),
        (Fault::GrantsIgnoreTheWindow, SYNCS),
        (Fault::PendingIsIgnored, PAIR),
        (Fault::StrictIgnoresItsOwnBudget, PAIR),
    ] {
        let is_seen = (0..600).any(|seed| {
            let mut world = World::new(seed, Setup { fault, ..setup });
            world.run();
            world.worst().over > 0
        });
        assert!(is_seen, "no window exceeds the bound with {fault:?}");
    }
}
