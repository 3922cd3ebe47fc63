//! This crate.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Duration;

use ringgate::algorithm::{CounterRingBuilder, Reclaim};
use ringgate::clock::CoarseClock;
use ringgate::keyed::AnyKey;
use ringgate::striped::set_thread_index;
use ringgate::{
    Algorithm, CounterRing, Gcra, KeyedRateLimiter, Quota, RateLimiter, SlidingWindow, StripedLimiter,
    TimestampRing,
};

use crate::contestant::{Contestant, Key, Keyed, LIMIT, Room, Side};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The period of the coarse clock.
pub(crate) const UPKEEP: Duration = Duration::from_millis(1);

pub(super) const BOUND: &str = "as promised by bound()";

pub(super) const WIDE: &str = "ringgate, CounterRing wide";

const GCRA_COARSE: &str = "ringgate, Gcra, coarse clock";

pub(super) const STRIPED: &str = "ringgate, StripedLimiter";

pub(super) const STRIPED_LANE: &str = "ringgate, StripedLimiter, numbered threads";

pub(super) const STRIPED_OWN: &str = "ringgate, StripedLimiter, own lanes";

pub(super) fn direct(room: Room) -> Vec<Contestant> {
    let mut all = vec![
        of("ringgate, Gcra", room, gcra),
        of("ringgate, TimestampRing", room, log),
        of("ringgate, SlidingWindow", room, window),
    ];
    if room == Room::Limited {
        let strict = |cells| move |_| ring(CounterRing::builder(limited()).cells(cells));
        all.push(of("ringgate, CounterRing, 5 cells", room, strict(5)));
        all.push(of("ringgate, CounterRing, 60 cells", room, strict(60)));
        all.push(of("ringgate, CounterRing even", room, |_| {
            ring(CounterRing::builder(limited()).even())
        }));
        all.push(of("ringgate, CounterRing classic", room, |_| {
            ring(CounterRing::builder(limited()).classic())
        }));
        all.push(of("ringgate, fixed window", room, |_| {
            CounterRing::fixed_window(limited()).expect("a ring")
        }));
    } else {
        all.push(of("ringgate, CounterRing packed", room, packed));
        all.push(of(WIDE, room, wide));
        all.push(Contestant::new(GCRA_COARSE, Side::Ours, room, |room| {
            let limiter = RateLimiter::with_clock(gcra(room), coarse());
            move || black_box(&limiter).check().is_ok()
        }));
    }
    all.push(
        Contestant::new(STRIPED, Side::Ours, room, |room| {
            let limiter = striped(room);
            move || black_box(&limiter).check().is_ok()
        })
        .allows(LIMIT, BOUND),
    );
    all.push(
        Contestant::numbered(STRIPED_LANE, Side::Ours, room, |room| {
            let limiter = striped(room);
            move |worker| {
                set_thread_index(worker);
                black_box(&limiter).check().is_ok()
            }
        })
        .allows(LIMIT, BOUND),
    );
    all.extend(super::own_lanes::direct(room));
    if room == Room::Limited {
        let limiter = striped_much();
        let name = "ringgate, StripedLimiter, 4 stripes of 50";
        let check = move || black_box(&limiter).check().is_ok();
        all.push(Contestant::from_work(name, Side::Ours, check).allows(LIMIT, BOUND));
    }
    all
}

/// Without keys: 60 cells.
fn window(room: Room) -> SlidingWindow {
    SlidingWindow::new(match room {
        Room::Plenty | Room::Half => Quota::per_minute(10_000_000_000).expect("a quota"),
        Room::None => Quota::new(100, DAY).expect("a quota"),
        Room::Limited => limited(),
    })
    .expect("a window")
}

fn of<A>(name: &'static str, room: Room, algorithm: impl Fn(Room) -> A) -> Contestant
where
    A: Algorithm + Send + Sync + 'static,
{
    // The bound is printed for `Room::Limited` only.
    let bound = algorithm(room).bound();
    Contestant::new(name, Side::Ours, room, |room| {
        let limiter = RateLimiter::new(algorithm(room));
        move || black_box(&limiter).check().is_ok()
    })
    .allows(bound, BOUND)
}

/// The default stripes and batches, with a wide ring behind them.
pub(super) fn striped(room: Room) -> StripedLimiter {
    let limiter = StripedLimiter::builder(match room {
        Room::Plenty | Room::Half => Quota::per_minute(17_000_000_000).expect("a quota"),
        Room::None => Quota::new(1_000_000, DAY).expect("a quota"),
        Room::Limited => limited(),
    })
    .cells(5)
    .build()
    .expect("a limiter");
    assert!(room != Room::Limited || limiter.bound() == LIMIT);
    limiter
}

/// Batches that reserve a fifth of the limit.
pub(super) fn striped_much() -> StripedLimiter {
    let many = StripedLimiter::builder(limited()).cells(5).stripes(4).batch(50);
    many.build().expect("a limiter")
}

fn ring(builder: CounterRingBuilder) -> CounterRing {
    builder.build().expect("a ring")
}

/// One clock for all limiters, since a process has one upkeep thread. It runs from the first use on.
pub(crate) fn coarse() -> CoarseClock {
    static COARSE: LazyLock<CoarseClock> =
        LazyLock::new(|| CoarseClock::start(UPKEEP).expect("the only upkeep thread"));
    COARSE.clone()
}

fn limited() -> Quota {
    Quota::per_second(LIMIT).expect("a quota")
}

pub(crate) fn gcra(room: Room) -> Gcra {
    Gcra::new(match room {
        Room::Plenty | Room::Half => Quota::per_second(1_000_000_000).expect("a quota"),
        Room::None => Quota::per_hour(1).expect("a quota"),
        Room::Limited => limited(),
    })
    .expect("a bucket")
}

/// A ring in one word. It has one cell; the code does not depend on the number of cells.
pub(crate) fn packed(room: Room) -> CounterRing {
    let ring = match room {
        Room::Plenty | Room::Half => {
            CounterRing::fixed_window(Quota::per_second(1_000_000_000).expect("a quota"))
        }
        Room::None | Room::Limited => CounterRing::builder(Quota::per_hour(1).expect("a quota"))
            .cells(5)
            .build(),
    }
    .expect("a ring");
    assert_eq!(ring.words(), 1);
    ring
}

/// Five cells: 7 words.
fn wide(room: Room) -> CounterRing {
    let ring = CounterRing::builder(match room {
        Room::Plenty | Room::Half => Quota::per_minute(10_000_000_000).expect("a quota"),
        Room::None | Room::Limited => Quota::new(1_000_000, DAY).expect("a quota"),
    })
    .cells(5)
    .build()
    .expect("a ring");
    assert_eq!(ring.words(), 7);
    ring
}

/// A thousand in five microseconds is never used up: a lap of the ring takes longer, so every slot is old enough.
fn log(room: Room) -> TimestampRing {
    TimestampRing::new(match room {
        Room::Plenty | Room::Half => Quota::new(1_000, Duration::from_micros(5)).expect("a quota"),
        Room::None => Quota::new(100, DAY).expect("a quota"),
        Room::Limited => limited(),
    })
    .expect("a ring")
}

pub(super) fn keyed<K: Key>(room: Room) -> Vec<Keyed<K>> {
    // One request uses up the limit, as with the other algorithms.
    let one = || CounterRing::builder(Quota::per_hour(1).expect("a quota"));
    let wide = move || match room {
        Room::None => ring(one().cells(5).unpacked()),
        room => wide(room),
    };
    let default = move || match room {
        Room::None => ring(one()),
        _ => CounterRing::new(Quota::new(1_000_000_000_000, DAY).expect("a quota")).expect("a ring"),
    };
    let window = move || {
        SlidingWindow::new(match room {
            Room::None => Quota::per_hour(1).expect("a quota"),
            _ => Quota::new(1_000_000_000, DAY).expect("a quota"),
        })
        .expect("a window")
    };
    vec![
        table("ringgate, SlidingWindow", window),
        table("ringgate, Gcra", move || gcra(room)),
        Keyed::new(GCRA_COARSE, Side::Ours, move |keys| {
            let builder = KeyedRateLimiter::builder(gcra(room)).capacity(keys as u64);
            let limiter = builder.build_with(coarse(), AnyKey::random()).expect("a table");
            move |key: &K| black_box(&limiter).check(key).is_ok()
        }),
        table("ringgate, CounterRing packed", move || packed(room)),
        table("ringgate, CounterRing wide", wide),
        table("ringgate, CounterRing, 60 cells", default),
    ]
}

/// The quota of a ring whose table has several counts in a word.
pub(crate) fn a_minute() -> Quota {
    Quota::per_minute(1_000).expect("a quota")
}

/// A table of 60 cells with several counts in a word.
pub(crate) fn grouped<K: Key>() -> Keyed<K> {
    table("ringgate, CounterRing, 60 cells, 1,000 a minute", || {
        CounterRing::new(a_minute()).expect("a ring")
    })
}

pub(crate) fn table<K: Key, A>(name: &'static str, algorithm: impl Fn() -> A + 'static) -> Keyed<K>
where
    A: Reclaim + Send + Sync + 'static,
{
    Keyed::new(name, Side::Ours, move |keys| {
        let limiter = KeyedRateLimiter::new(algorithm(), keys as u64).expect("a table");
        move |key: &K| black_box(&limiter).check(key).is_ok()
    })
}
