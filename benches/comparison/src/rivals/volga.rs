use std::hint::black_box;
use std::time::Duration;

use volga_rate_limiter::{GcraRateLimiter, RateLimiter, SlidingWindowRateLimiter};

use crate::contestant::{Contestant, Key, Keyed, LIMIT, Room};

const GCRA: &str = "volga, GCRA";

fn gcra(room: Room) -> GcraRateLimiter {
    match room {
        Room::Plenty | Room::Half => GcraRateLimiter::new(1e6, u32::MAX),
        Room::None => GcraRateLimiter::new(1.0 / 3600.0, 1),
        Room::Limited => GcraRateLimiter::new(LIMIT as f64, LIMIT as u32),
    }
}

fn sliding(room: Room) -> SlidingWindowRateLimiter {
    let (limit, seconds) = match room {
        Room::Plenty | Room::Half => (u32::MAX, 60),
        Room::None => (1, 3600),
        Room::Limited => (LIMIT as u32, 1),
    };
    SlidingWindowRateLimiter::new(limit, Duration::from_secs(seconds))
}

pub(super) fn direct(room: Room) -> Vec<Contestant> {
    vec![
        Contestant::rival(GCRA, room, |room| {
            let limiter = gcra(room);
            move || black_box(&limiter).check(1)
        })
        .allows(2 * LIMIT, "bucket: burst and refill"),
        Contestant::rival("volga, sliding window", room, |room| {
            let limiter = sliding(room);
            move || black_box(&limiter).check(1)
        })
        .allows(2 * LIMIT, "two-window estimate"),
    ]
}

/// Limiters for integer keys only.
pub(super) fn keyed<K: Key>() -> Option<Keyed<K>> {
    K::number(0).as_integer()?;
    Some(Keyed::rival(GCRA, |_| {
        let limiter = gcra(Room::Plenty);
        move |key: &K| black_box(&limiter).check(key.as_integer().unwrap_or_default())
    }))
}
