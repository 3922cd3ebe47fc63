use std::hint::black_box;
use std::sync::Mutex;
use std::time::Duration;

use gcra::{RateLimit, RateLimitGuard, RateLimiter};

use super::at_once;
use crate::contestant::{Contestant, Key, Keyed, LIMIT, Room};

fn limit(room: Room) -> RateLimit {
    match room {
        Room::Plenty | Room::Half => RateLimit::per_sec(1_000_000_000),
        Room::None => RateLimit::new(1, Duration::from_secs(3600)),
        Room::Limited => RateLimit::per_sec(LIMIT as u32),
    }
}

pub(super) fn direct(room: Room) -> Contestant {
    Contestant::rival("gcra, guard in a Mutex", room, |room| {
        let guard = Mutex::new(RateLimitGuard::new_state(limit(room)));
        move || {
            let mut guard = black_box(&guard).lock().expect("no thread panics");
            guard.check_and_modify(1).is_ok()
        }
    })
    .allows(2 * LIMIT, "bucket: burst and refill")
}

pub(super) fn keyed<K: Key>() -> Keyed<K> {
    Keyed::rival("gcra", |keys| {
        let limiter = RateLimiter::<K>::new(keys);
        let limit = limit(Room::Plenty);
        move |key: &K| {
            let check = black_box(&limiter).check(key.clone(), &limit, 1);
            at_once(check).is_some_and(|answer| answer.is_ok())
        }
    })
}
