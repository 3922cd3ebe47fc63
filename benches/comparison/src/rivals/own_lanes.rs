//! The striped limiter of this crate, with a local stripe for each thread.

use std::cell::RefCell;
use std::hint::black_box;

use ringgate::striped::{LocalStripe, set_thread_index};
use ringgate::{QuantaClock, StripedLimiter};

use crate::contestant::{Contestant, Decide, LIMIT, Room, Side};
use crate::measure::worker;

use super::ours::{STRIPED_OWN, striped, striped_much};

thread_local! {
    /// The local stripes of this thread, each with its limiter's address. They end with the thread.
    static LANES: RefCell<Vec<(usize, LocalStripe<'static, QuantaClock>)>> = const { RefCell::new(Vec::new()) };
}

/// One limiter, or two that are called in turn.
struct OwnLanes(Vec<&'static StripedLimiter>);

impl Decide for OwnLanes {
    fn batch(&self, decisions: u64) -> u64 {
        let share = decisions / self.0.len() as u64;
        LANES.with_borrow_mut(|lanes| {
            let places: Vec<usize> = self.0.iter().map(|limiter| place(lanes, limiter)).collect();
            match places[..] {
                [one] => {
                    let lane = &mut lanes[one].1;
                    (0..decisions)
                        .map(|_| u64::from(black_box(&mut *lane).check().is_ok()))
                        .sum()
                }
                _ => (0..share)
                    .flat_map(|_| &places)
                    .map(|&one| u64::from(black_box(&mut lanes[one].1).check().is_ok()))
                    .sum(),
            }
        })
    }
}

/// The position of the thread's local stripe of a limiter.
fn place(
    lanes: &mut Vec<(usize, LocalStripe<'static, QuantaClock>)>,
    limiter: &'static StripedLimiter,
) -> usize {
    let address = std::ptr::from_ref(limiter).addr();
    lanes
        .iter()
        .position(|lane| lane.0 == address)
        .unwrap_or_else(|| {
            set_thread_index(worker());
            lanes.push((address, limiter.local_stripe()));
            lanes.len() - 1
        })
}

pub(super) fn direct(room: Room) -> Vec<Contestant> {
    // Local stripes live as long as threads do, so limiters are never dropped.
    let leaked = |limiter: StripedLimiter| -> &'static _ { Box::leak(Box::new(limiter)) };
    let spent = || {
        let limiter = striped(Room::None);
        while limiter.check().is_ok() {}
        limiter
    };
    let limiters = match room {
        Room::Plenty => vec![leaked(striped(room))],
        Room::Half => vec![leaked(striped(Room::Plenty)), leaked(spent())],
        Room::None => vec![leaked(spent())],
        Room::Limited => vec![leaked(striped_much())],
    };
    let one = Contestant::from_work(STRIPED_OWN, Side::Ours, OwnLanes(limiters));
    vec![one.allows(LIMIT, super::ours::BOUND)]
}
