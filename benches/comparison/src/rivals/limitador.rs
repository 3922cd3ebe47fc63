use std::collections::HashMap;
use std::hint::black_box;

use limitador::RateLimiter;
use limitador::limit::{Limit, Namespace};

use crate::contestant::{Contestant, Key, Keyed, LIMIT, Room};

const NAME: &str = "limitador, in memory";

pub(super) fn direct(room: Room) -> Contestant {
    Contestant::rival(NAME, room, |room| {
        let (limit, seconds) = match room {
            Room::Plenty | Room::Half => (u64::MAX, 60),
            Room::None => (1, 3600),
            Room::Limited => (LIMIT, 1),
        };
        let limiter = limiter(1_000, limit, seconds);
        let namespace = Namespace::from("bench");
        move || decide(&limiter, &namespace, "1")
    })
    .allows(2 * LIMIT, "fixed window, begun by the first call")
}

fn limiter(cache: u64, limit: u64, seconds: u64) -> RateLimiter {
    let limiter = RateLimiter::new(cache);
    let user = "user_id".try_into().expect("a variable");
    limiter.add_limit(Limit::new("bench", limit, seconds, vec![], vec![user]));
    limiter
}

fn decide(limiter: &RateLimiter, namespace: &Namespace, user: &str) -> bool {
    let values = HashMap::from([("user_id".to_string(), user.to_string())]);
    let result = black_box(limiter).check_rate_limited_and_update(namespace, &values.into(), 1);
    !result.expect("a decision").limited
}

/// Limiters for keys of text only.
pub(super) fn keyed<K: Key>() -> Option<Keyed<K>> {
    K::number(0).as_text()?;
    Some(Keyed::rival(NAME, |keys| {
        let limiter = limiter(keys as u64, u64::MAX, 60);
        let namespace = Namespace::from("bench");
        move |key: &K| decide(&limiter, &namespace, key.as_text().unwrap_or_default())
    }))
}
