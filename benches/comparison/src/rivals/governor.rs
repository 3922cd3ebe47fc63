use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use ahash::RandomState;
use governor::clock::QuantaClock;
use governor::state::keyed::DashMapStateStore;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::contestant::{Contestant, Key, Keyed, LIMIT, Room};

pub(super) const NAME: &str = "governor";

fn quota(room: Room) -> Quota {
    let per_second = |limit| Quota::per_second(NonZeroU32::new(limit).expect("not zero"));
    match room {
        Room::Plenty | Room::Half => per_second(1_000_000_000),
        Room::None => Quota::with_period(Duration::from_secs(3600)).expect("not zero"),
        Room::Limited => per_second(LIMIT as u32),
    }
}

pub(super) fn direct(room: Room) -> Contestant {
    Contestant::rival(NAME, room, |room| {
        let limiter: DefaultDirectRateLimiter = RateLimiter::direct(quota(room));
        move || black_box(&limiter).check().is_ok()
    })
    .allows(2 * LIMIT, "bucket: burst and refill")
}

/// The DashMap of governor with ahash, empty at first, and the default clock.
pub(super) fn keyed<K: Key>(room: Room) -> Keyed<K> {
    Keyed::rival(NAME, move |_| {
        let states = DashMapStateStore::with_hasher(RandomState::new());
        let limiter: RateLimiter<K, _, QuantaClock> =
            RateLimiter::new(quota(room), states, QuantaClock::default());
        move |key: &K| black_box(&limiter).check_key(key).is_ok()
    })
}
