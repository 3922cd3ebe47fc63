//! The limiters, each used as in its own documentation.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::contestant::{Contestant, Key, Keyed, Room};

mod atomic_token_bucket;
mod gcra;
mod governor;
mod leaky_bucket;
mod limitador;
pub mod ours;
mod own_lanes;
mod pingora;
mod rate_net;
mod ratelimit;
mod tower_resilience;
mod trypema;
mod volga;

pub const GOVERNOR: &str = governor::NAME;

/// The ring that a striped limiter charges, and the striped limiters that are compared with it.
pub const RING: &str = ours::WIDE;
pub const STRIPED: [&str; 3] = [ours::STRIPED, ours::STRIPED_LANE, ours::STRIPED_OWN];

/// Returns the limiters without keys, those of this crate first.
pub fn direct(room: Room) -> Vec<Contestant> {
    let mut all = ours::direct(room);
    all.push(governor::direct(room));
    all.push(ratelimit::direct(room));
    all.push(leaky_bucket::direct(room));
    all.push(pingora::direct(room));
    all.push(trypema::direct(room));
    all.extend(rate_net::direct(room));
    all.push(limitador::direct(room));
    all.push(atomic_token_bucket::direct(room));
    all.extend(tower_resilience::direct(room));
    all.extend(volga::direct(room));
    all.push(gcra::direct(room));
    all
}

/// Limiters of this crate, and governor.
pub fn direct_few(room: Room) -> Vec<Contestant> {
    let mut all = ours::direct(room);
    all.push(governor::direct(room));
    all
}

/// Returns the limiters of many keys of this type, those of this crate first.
pub fn keyed<K: Key>() -> Vec<Keyed<K>> {
    let mut all = keyed_few(Room::Plenty);
    all.push(pingora::keyed());
    all.extend(trypema::keyed());
    all.push(rate_net::keyed());
    all.extend(limitador::keyed());
    all.push(atomic_token_bucket::keyed());
    all.extend(volga::keyed());
    all.push(gcra::keyed());
    all
}

/// Returns limiters of this crate, and governor, with keys that are never used up or after one request.
pub fn keyed_few<K: Key>(room: Room) -> Vec<Keyed<K>> {
    let mut all = ours::keyed(room);
    all.push(governor::keyed(room));
    all
}

/// Governor alone.
pub fn governor_keyed<K: Key>() -> Keyed<K> {
    governor_keyed_in(Room::Plenty)
}

/// Governor alone, with this capacity.
pub fn governor_keyed_in<K: Key>(room: Room) -> Keyed<K> {
    governor::keyed(room)
}

/// Limiters without a workload of many keys, and the reason.
pub const ABSENT_KEYED: &[(&str, &str)] = &[
    ("ratelimit", "has no keys"),
    ("leaky-bucket", "has no keys"),
    ("tower-resilience-ratelimiter", "has no keys, one limiter a layer"),
    ("trypema, limitador", "no u64 keys: they take text only"),
    ("volga-rate-limiter", "no string keys: it takes u64 only"),
];

/// Limiters that are used in a special way, and the difference.
pub const REMARKS: &[(&str, &str)] = &[
    (
        "pingora-limits, trypema, limitador, volga-rate-limiter",
        "have no limiter without keys: one key stands in for it",
    ),
    (
        "gcra",
        "its limiter for one thing needs `&mut` and is in a `Mutex`; its keyed one is async, never waits, and \
         is polled once",
    ),
    (
        "tower-resilience-ratelimiter",
        "a tower service: cloned, called and polled once for each request; the service inside does nothing",
    ),
    (
        "limitador",
        "a context is made for each request, as in its documentation",
    ),
    (
        "pingora-limits",
        "counts keys in a sketch of fixed size: keys share counters, and a denied request is counted too",
    ),
];

/// Returns the result of a future that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
