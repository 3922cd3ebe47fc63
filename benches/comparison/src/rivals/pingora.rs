use std::hint::black_box;
use std::time::Duration;

use pingora_limits::rate::Rate;

use crate::contestant::{Contestant, Key, Keyed, LIMIT, Room};

const NAME: &str = "pingora-limits";

pub(super) fn direct(room: Room) -> Contestant {
    Contestant::rival(NAME, room, |room| {
        let rate = Rate::new(Duration::from_secs(1));
        let limit = match room {
            Room::Plenty | Room::Half => isize::MAX,
            Room::None => 0,
            Room::Limited => LIMIT as isize,
        };
        move || black_box(&rate).observe(&"key", 1) <= limit
    })
    .allows(2 * LIMIT, "fixed window, begun by the last reset")
}

pub(super) fn keyed<K: Key>() -> Keyed<K> {
    Keyed::rival(NAME, |_| {
        let rate = Rate::new(Duration::from_secs(1));
        move |key: &K| black_box(&rate).observe(key, 1) < isize::MAX
    })
}
