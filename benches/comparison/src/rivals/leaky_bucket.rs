use std::hint::black_box;
use std::time::Duration;

use leaky_bucket::RateLimiter;

use crate::contestant::{Contestant, LIMIT, Room};

pub(super) fn direct(room: Room) -> Contestant {
    Contestant::rival("leaky-bucket", room, |room| {
        let mut builder = RateLimiter::builder();
        let limiter = match room {
            Room::Plenty | Room::Half => builder.initial(1 << 60).max(1 << 60).build(),
            Room::None => builder
                .max(1)
                .refill(1)
                .interval(Duration::from_secs(3600))
                .build(),
            // A refill of a hundredth every hundredth of the window.
            Room::Limited => builder
                .max(LIMIT as usize)
                .initial(LIMIT as usize)
                .refill(LIMIT as usize / 100)
                .interval(Duration::from_millis(10))
                .build(),
        };
        move || black_box(&limiter).try_acquire(1)
    })
    .allows(2 * LIMIT, "bucket: burst and refill")
}
