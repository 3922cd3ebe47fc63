//! The protocol of leases, of `src/redis.md`, in a simulation: nodes that spend a hold locally and charge it in
//! arrears, a server, and between them a network that delays, repeats and loses. Time is numbers, and everything
//! follows from a seed.
#![cfg(not(any(miri, ringgate_loom)))]

extern crate alloc;

#[path = "lease/model.rs"]
mod model;

use model::{Fault, World};

/// Histories of each kind.
const SEEDS: u64 = 400;

/// The most that any window holds, of all seeds, and how much is admitted in one history.
fn worst(fault: Fault, wipes: bool) -> (u64, u64) {
    let (mut worst, mut all) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed, fault, wipes);
        world.run();
        worst = worst.max(world.most_in_a_window());
        all += world.admitted();
    }
    (worst, all / SEEDS)
}

#[test]
fn no_window_holds_more_than_the_limit() {
    let (most, admitted) = worst(Fault::None, false);
    assert!(most <= model::LIMIT, "{most}");
    assert!(
        most * 10 >= model::LIMIT * 9,
        "{most}: the bound is nearly met, or nothing is shown"
    );
    // Crashes and losses cost permits, and not all of them.
    assert!(admitted >= model::LIMIT * model::WINDOWS / 4, "{admitted}");
}

/// Even when the server comes back with nothing of what it had: nobody is granted anything until all that may be
/// forgotten has left.
#[test]
fn nor_when_the_server_forgets() {
    let (most, _) = worst(Fault::None, true);
    assert!(most <= model::LIMIT, "{most}");
}

/// The simulation can fail: each rule of the protocol, left out, is missed.
#[test]
fn every_rule_is_needed() {
    for (fault, wipes) in [
        (Fault::ChargesIgnoreHolds, false),
        (Fault::GrantsIgnoreTheWindow, false),
        (Fault::HoldsAreKeptForAWindow, false),
        (Fault::DeadlineFromTheAnswer, false),
        (Fault::NoDeadline, false),
        (Fault::RefusedChargesAreForgotten, false),
        (Fault::ChargesAreDatedBack, false),
        (Fault::ShrinksWithoutStopping, false),
        (Fault::LostChargesAreForgotten, false),
        (Fault::GrantsAtOnceAfterAWipe, true),
    ] {
        let is_seen = (0..SEEDS).any(|seed| {
            let mut world = World::new(seed, fault, wipes);
            world.run();
            world.most_in_a_window() > model::LIMIT
        });
        assert!(is_seen, "{fault:?} goes unnoticed");
    }
}
