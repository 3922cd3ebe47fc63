use std::hint::black_box;
use std::time::Duration;

use ratelimit::Ratelimiter;

use crate::contestant::{Contestant, LIMIT, Room};

pub(super) fn direct(room: Room) -> Contestant {
    Contestant::rival("ratelimit", room, |room| {
        let limiter = match room {
            Room::Plenty | Room::Half => Ratelimiter::builder(1_000_000_000)
                .initial_available(1_000_000_000)
                .build()
                .expect("a bucket"),
            Room::None => Ratelimiter::builder(1)
                .period(Duration::from_secs(3600))
                .build()
                .expect("a bucket"),
            Room::Limited => Ratelimiter::new(LIMIT),
        };
        move || black_box(&limiter).try_wait().is_ok()
    })
    .allows(2 * LIMIT, "bucket: burst and refill, empty at first")
}
