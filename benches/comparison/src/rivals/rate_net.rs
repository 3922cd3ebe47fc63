use std::hint::black_box;
use std::time::Duration;

use rate_net::{Algorithm, Eviction, RateLimiter};

use crate::contestant::{Contestant, Key, Keyed, LIMIT, Room};

pub(super) fn direct(room: Room) -> Vec<Contestant> {
    let mut all = vec![
        of("rate-net, token bucket", Algorithm::TokenBucket, room)
            .allows(2 * LIMIT, "bucket: burst and refill"),
        of("rate-net, sliding counter", Algorithm::SlidingWindowCounter, room)
            .allows(2 * LIMIT, "two-window estimate"),
    ];
    if room == Room::Limited {
        let log = of("rate-net, sliding log", Algorithm::SlidingWindowLog, room);
        all.push(log.allows(LIMIT, "exact log"));
    }
    all
}

fn of(name: &'static str, algorithm: Algorithm, room: Room) -> Contestant {
    Contestant::rival(name, room, |room| {
        let (limit, period) = match room {
            Room::Plenty | Room::Half => (1_000_000_000, Duration::from_secs(1)),
            Room::None => (1, Duration::from_secs(3600)),
            Room::Limited => (LIMIT as u32, Duration::from_secs(1)),
        };
        let limiter = RateLimiter::builder()
            .quota(limit, period)
            .algorithm(algorithm)
            .try_build_direct()
            .expect("a limiter");
        move || black_box(&limiter).check().is_allow()
    })
}

/// The capacity is twice the number of keys: shards fill unevenly, and a full shard evicts.
pub(super) fn keyed<K: Key>() -> Keyed<K> {
    Keyed::rival("rate-net, token bucket", |keys| {
        let limiter = RateLimiter::builder()
            .per_second(1_000_000_000)
            .eviction(Eviction::capacity(keys * 2))
            .try_build()
            .expect("a limiter");
        move |key: &K| {
            let limiter = black_box(&limiter);
            let decision = match key.as_text() {
                Some(text) => limiter.check(text),
                None => limiter.check(key.as_integer().unwrap_or_default()),
            };
            decision.is_allow()
        }
    })
}
