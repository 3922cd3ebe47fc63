use std::hint::black_box;

use atomic_token_bucket::TokenBucket;
use atomic_token_bucket::keyed_rate_limiter::KeyedRateLimiter;

use crate::contestant::{Contestant, Key, Keyed, LIMIT, Room};

const NAME: &str = "atomic_token_bucket";

/// More tokens than any measurement uses up.
const MANY: u64 = 1 << 40;

pub(super) fn direct(room: Room) -> Contestant {
    Contestant::rival(NAME, room, |room| {
        let bucket = match room {
            Room::Plenty | Room::Half => TokenBucket::new(MANY, MANY, 1e9),
            Room::None => TokenBucket::new(0, 1, 1.0 / 3600.0),
            Room::Limited => TokenBucket::new(LIMIT, LIMIT, LIMIT as f64),
        };
        move || black_box(&bucket).consume_tokens(1).is_ok()
    })
    .allows(2 * LIMIT, "bucket: burst and refill")
}

pub(super) fn keyed<K: Key>() -> Keyed<K> {
    Keyed::rival(NAME, |keys| {
        let shards = 64;
        let limiter = KeyedRateLimiter::new(keys, TokenBucket::new(MANY, MANY, 1e9), shards);
        move |key: &K| black_box(&limiter).consume_tokens(key.clone(), 1).is_ok()
    })
}
