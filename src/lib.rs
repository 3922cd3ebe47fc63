//! Rate limiting that never admits more than it promises, without a lock.
//!
//! ```
//! use ringgate::{CounterRing, Quota, RateLimiter};
//!
//! # #[cfg(feature = "quanta")]
//! # fn main() -> Result<(), ringgate::ConfigError> {
//! // At most 100 requests in any minute, whichever minute is looked at.
//! let limiter = RateLimiter::new(CounterRing::new(Quota::per_minute(100)?)?);
//! if limiter.check().is_ok() {
//!     // Serve the request.
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "quanta"))]
//! # fn main() {}
//! ```
//!
//! # Contents
//!
//! The [guide] shows how things are done, in examples that are compiled and run, and says why, and what to look out
//! for. What there is:
//!
//! | you want | see |
//! |---|---|
//! | to limit one thing | [`RateLimiter`] |
//! | to say how much is allowed | [`Quota`], from numbers or from text such as `"100/60s"` |
//! | the sliding window counter, the default | [`CounterRing`], with its strict, classic and even forms |
//! | several windows decided as one | [`CounterRingBuilder::also`] |
//! | the fixed window | [`CounterRing::fixed_window`] |
//! | the sliding log, exact | [`TimestampRing`] |
//! | the token bucket, the leaky bucket | [`Gcra`] |
//! | a limiter that one connection owns | [`RateLimiter::check_mut`] |
//! | one limiter that many cores ask all the time | [`StripedLimiter`]; with one thread per core, an [`OwnLane`] for each |
//! | to give permits back, or settle an estimate | [`RateLimiter::refund`], [`RateLimiter::settle`] |
//! | to survive a restart | [`RateLimiter::save`], [`RateLimiter::restore`] |
//! | a limit for each of many keys (clients, users, routes) | [`KeyedRateLimiter`] |
//! | to say what happens when the table of keys is full | [`OnFull`] |
//! | other limits for some keys | [`KeyedBuilder::tier`], [`Tiers`] |
//! | client addresses as keys | [`ClientAddress`] |
//! | the keys that are denied most | [`TopKeys`] |
//! | to wait for permits, first come, first served (feature `tokio`) | `Fair`, before a `RateLimiter`, a `KeyedRateLimiter`, a `RuleSet` or `LiveRules` |
//! | a stream or a sink at a limiter's pace (feature `tokio`) | `Fair::stream`, `Fair::sink`, of a `RateLimiter` |
//! | what rules do, on a dashboard | [`Observer`], counters for `metrics` (of leases: `shared::LeaseObserver`; of a store: `redis::RedisObserver`) |
//! | to see refusals as they happen, a few a second | [`DenialEvents`], sampled events for `tracing` |
//! | several limits judged as one, all or nothing | [`RuleSet`], of [`Rule`]s that count by a [`Key`] |
//! | to change limits while others decide | [`LiveRules`] |
//! | what becomes of requests without a key | [`Key::optional`], [`OnMissingKey`](rules::OnMissingKey) |
//! | to see what a rule would do | [`Rule::shadow`], [`Rule::enforce_percent`], [`RuleSet::counts`] |
//! | an algorithm chosen at run time | [`AnyAlgorithm`] |
//! | rules in a file: TOML, JSON or YAML (feature `config`) | `RuleSetBuilder::from_file`, with `Extractors` for what its names mean |
//! | rules that follow their file (feature `watch`) | `RulesWatcher`, or `LiveRules::reload` when you say so |
//! | bytes per window, of a connection and of all together (feature `tokio`) | `Throttled` |
//! | http and gRPC servers limited by rules (feature `tower`) | `http::RateLimitLayer`, with `http::HttpKey` for what rules count by |
//! | one limit over many machines (feature `shared`) | the module `shared`: `SharedLimiter`, `SharedRules`, over any store |
//! | a store in Redis or Valkey (feature `redis`) | `redis::RedisStore` |
//! | the same for hot keys, decided on the node | [`Mode`]: leases, which are exact, and syncs, whose overshoot is stated |
//! | time that you control, in tests | [`ManualClock`] |
//! | many limiters in memory of your own | [`Algorithm`], a policy over a slice of words; [`Reclaim`], to hand them on |
//!
//! # Guarantees
//!
//! L is the limit, W the window, N the cells that the window is divided into.
//!
//! | algorithm | state | worst admitted in any interval of length W | throughput when saturated |
//! |---|---|---|---|
//! | [`TimestampRing`] | 8·(L + 1) bytes | **L** | L per W |
//! | [`CounterRing`], strict | 8 bytes packed, or 8·(N + 2) | **L** | at least L·N/(N + 1) per W |
//! | [`CounterRing`], classic | the same, or 8·(N + 1) | 2L | L per W |
//! | [`CounterRing`], even | the same, or 8·(N + 1) | L + ⌈L/N⌉ | L per W, paced |
//! | fixed window | 8 bytes | 2L | L per W |
//! | [`Gcra`], burst b | 8 bytes | b + L − 1 | L per W |
//! | [`StripedLimiter`], S holds of b | a strict ring's, and 128·S | **L** | at least (L − S·b)·N/(N + 1) per W |
//!
//! These hold for limiters and for rules. What waits, throttles, watches or asks other machines says in its own
//! documentation what it adds to them.
//!
//! - The third column is [`RateLimiter::bound`], or [`StripedLimiter::bound`]. It holds whatever the threads do, and is
//!   measured by the readings that the decisions used. Windows are half-open: an admission at s counts at t when
//!   t − W < s ≤ t.
//! - A decision takes effect at one instruction. A denied request consumes nothing and extends nothing.
//! - No lock, no allocation, no system call, no thread and no timer on the decision path; no thread
//!   ever waits for another. (The first decision of a thread by a [`RuleSet`] takes a lock for a moment and may
//!   allocate, to get a cache line of its own for what it counts. Whatever else allocates says so.)
//! - A table of keys never grows, and no key loses what it has spent to another while its window
//!   runs ([`OnFull::Forget`] excepted, which says so).
//! - A request that is refused by one of several rules is charged to none of them; what cannot be given back after a
//!   lost race is counted ([`RuleSet`]). A rule that keeps its name and its key's name gets no fresh budget by a reload
//!   ([`LiveRules`]).
//! - Whatever a clock does, the bound holds by its readings, and nothing panics: a clock that steps back or stalls
//!   makes a limiter stricter, never looser ([`StripedLimiter`] excepted when it steps back, which says so). One that
//!   jumps ahead ends windows early.
//! - Nothing can fail after construction, and a wrong configuration cannot be built: a
//!   [`ConfigError`] names the field, what was given and what is allowed.
//!
//! # Trade-offs
//!
//! - Strict counter rings deny up to a cell too long, which is the price of never admitting too
//!   much in constant memory. More cells narrow it; a [`TimestampRing`] has none of it, at 8 bytes
//!   a permit.
//! - Several threads on one limiter share one word, which costs a transfer of its cache line for
//!   every admission. Denials share it for reading only. A [`StripedLimiter`] spares most of it, and
//!   most readings of the clock, for admissions without receipts.
//!
//! # Caveats
//!
//! - Windows are 1 µs to 366 days and limits up to 10^12 (what the packed words have room for; a counter ring has less
//!   for narrow cells, 268 million in cells of 200 ms, and says so in its error).
//! - 20 years after its clock's origin a limiter may refuse for good (the words have no more ticks,
//!   and wrapping round could admit too much). [`ManualClock`] can get there; a process does not.
//! - The promise is about readings. Readings of two processors were seen to differ by half a microsecond;
//!   [`RateLimiter::promise`] states the bound in true time.
//! - The clock does not count time during which the machine is suspended (which is stricter).
//! - On targets without 64-bit atomics, those of `portable-atomic` stand in, which may use locks.
//!
//! # Features
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `quanta` | yes | [`QuantaClock`] and [`CoarseClock`]; needs the standard library |
//! | `keyed` | yes | [`KeyedRateLimiter`] |
//! | `striped` | yes | [`StripedLimiter`]; needs the standard library |
//! | `std` | with `quanta`, `striped`, `rules`, `tokio` | random seeds for tables of keys, [`TopKeys`] |
//! | `rules` | no | [`RuleSet`] and [`LiveRules`]; needs the standard library |
//! | `tokio` | no | waiting: `Fair`, `TokioClock`; throttled readers and writers: `Throttled`; needs the standard library |
//! | `serde` | no | [`SavedState`] and [`Quota`] can be serialized |
//! | `observe` | no | [`Observer`] and [`DenialEvents`]; with it comes `rules` |
//! | `config` | no | rules from files in TOML, JSON and YAML; with it comes `rules` |
//! | `watch` | no | reloading rules when their file changes; with it comes `config` |
//! | `tower` | no | the module `http`: a `Layer` and a `Service` of `tower`; with it comes `rules` |
//! | `shared` | no | the module `shared`: limits over many machines, on tokio; with it come `quanta` and `rules` |
//! | `redis` | no | a store in Redis or Valkey; with it comes `shared` |
//! | `redis-cluster` | no | a store in a Redis Cluster; with it comes `redis` |
//!
//! | together | give |
//! |---|---|
//! | `tokio`, `rules` | `Fair` before rules; `Throttled` by rules |
//! | `tokio`, `tower` | `http::RateLimitLayer::wait` |
//! | `config`, `shared` | `on_error` and `mode` in files, for `shared::SharedRulesBuilder::rules` |
//! | `observe`, `shared` | counters of shared rules: `shared::SharedRules::live_counts`; of leases: `shared::LeaseObserver` |
//! | `observe`, `redis` | counters of a store: `redis::RedisObserver` |
//!
//! Without default features the crate is `no_std` and needs `alloc`.

#![cfg_attr(docsrs, feature(doc_cfg))]
// All features are those that link to others, or that others link to.
#![cfg_attr(
    not(all(
        feature = "observe",
        feature = "quanta",
        feature = "redis-cluster",
        feature = "striped",
        feature = "tokio",
        feature = "tower",
        feature = "watch"
    )),
    expect(
        rustdoc::broken_intra_doc_links,
        reason = "what a feature brings is linked to only where it is there"
    )
)]
#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

// Floors, from the ground up: a module names only modules above it in this list.
pub mod sync;
mod time;
mod error;
mod quota;
mod own_words;
mod receipt;
mod clock;
mod algorithm;
mod table;
mod decision;
mod limiter;
mod keyed;
#[cfg(feature = "rules")]
pub mod rules;
#[cfg(feature = "shared")]
pub mod shared;
#[cfg(feature = "tokio")]
pub mod wait;
#[cfg(feature = "tokio")]
pub mod throttle;
#[cfg(feature = "observe")]
pub mod observe;
#[cfg(feature = "tower")]
pub mod http;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(doc, doctest))]
pub mod guide;

pub use algorithm::{
    Algorithm, AnyAlgorithm, Attempt, CounterRing, CounterRingBuilder, Gcra, Reclaim, TimestampRing,
};
pub use clock::{Clock, DefaultClock, ManualClock};
#[cfg(feature = "quanta")]
pub use clock::{CoarseClock, CoarseClockError, QuantaClock};
pub use decision::{Admitted, Denied, Peek};
pub use error::ConfigError;
pub use keyed::{
    AnyKey, ClientAddress, KeyHasher, KeyedBuilder, KeyedRateLimiter, Keys, OnFull, SeededState, TableCounts,
    Tiers,
};
#[cfg(feature = "std")]
pub use keyed::{TopKey, TopKeys};
#[cfg(feature = "striped")]
pub use limiter::{Lane, OwnLane, StripedBuilder, StripedDenied, StripedLimiter};
pub use limiter::{Promise, RateLimiter, SavedState};
#[cfg(feature = "observe")]
pub use observe::{DenialEvents, Observer};
pub use quota::Quota;
pub use receipt::{Receipt, Settled};
#[cfg(feature = "shared")]
pub use rules::KeyParts;
#[cfg(feature = "observe")]
pub use rules::LiveCounts;
#[cfg(feature = "rules")]
pub use rules::{
    Condition, Cost, Key, LiveRules, LoadedRules, Mode, OnError, OnMissingKey, Reloaded, ReplaceError,
    Reservation, Rule, RuleAlgorithm, RuleCounts, RuleError, RulePeek, RuleSet, RuleSetBuilder, RuleView,
    TierOf,
};
#[cfg(feature = "config")]
pub use rules::{Extractors, FileError, FileFormat, FileProblem, ReloadError, Resolver};
#[cfg(feature = "watch")]
pub use rules::{RulesWatcher, WatchError};
#[cfg(feature = "tokio")]
pub use throttle::{Throttled, ThrottledBuilder};
pub use time::Nanos;
#[cfg(feature = "tokio")]
pub use wait::{Fair, PacedSink, PacedStream, TokioClock, WaitError};
