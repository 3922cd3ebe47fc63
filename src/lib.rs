//! Rate limiting that never admits more than it promises, without a lock.
//!
//! ```
//! use ringgate::RateLimiter;
//!
//! // At most 100 requests in any 60 seconds.
//! let limiter = RateLimiter::per_minute(100)?;
//! if limiter.check().is_ok() {
//!     // Serve the request.
//! }
//! # Ok::<(), ringgate::ConfigError>(())
//! ```
//!
//! # Contents
//!
//! The [guide] has a page for each task, with examples that are compiled and run.
//!
//! | task | item |
//! |---|---|
//! | limit one resource | [`RateLimiter`], such as [`RateLimiter::per_minute`]; [`RateLimiter::check_mut`] for a limiter that one connection owns |
//! | limit each of very many connections | [`InlineLimiter`], 16 bytes each |
//! | limit log lines, by a `static` | [`LogLimiter`], which counts suppressed lines |
//! | choose a limit and a window | [`Quota`], from numbers or from text such as `"100/60s"` |
//! | exact sliding window, the default | [`SlidingWindow`], which chooses one of the next three |
//! | sliding window of 8 bytes, for very many keys | [`UnitRing`] |
//! | sliding window counter | [`CounterRing`]; several windows by [`also`](algorithm::CounterRingBuilder::also) |
//! | sliding log | [`TimestampRing`] |
//! | token bucket, leaky bucket | [`Gcra`] |
//! | fixed window | [`CounterRing::fixed_window`] |
//! | quota for each civil day, week, month or year (in UTC; `calendar` adds time zones) | [`algorithm::Calendar`] |
//! | choose the algorithm at run time | [`AnyAlgorithm`] |
//! | limit one resource from many cores | [`StripedLimiter`] |
//! | refund, or settle an estimate | [`RateLimiter::refund`], [`RateLimiter::settle`]; for language models: [token budgets](guide::token_budgets) |
//! | return a denial as an error that borrows nothing | [`OwnedDenied`] |
//! | keep the state over a restart | [`RateLimiter::save`], [`RateLimiter::restore`]; tables and rule sets (`std`): [`saved`] |
//! | limit each of many keys | [`KeyedRateLimiter`] |
//! | choose what happens when the table is full | [`OnFull`](keyed::OnFull) |
//! | give some keys other limits | [`KeyedBuilder::tier`](keyed::KeyedBuilder::tier) |
//! | use client addresses as keys | [`ClientAddress`](keyed::ClientAddress) |
//! | decide several limits as one (feature `rules`) | [`RuleSet`] of [`Rule`]s, each with a [`Key`] |
//! | replace rules while they are in use (`rules`) | [`LiveRules`] |
//! | limit the requests in flight (`rules`) | [`Rule::in_flight`] |
//! | block keys that violate a rule too often (`rules`) | [`Rule::block`] |
//! | test a rule before it is enforced (`rules`) | [`Rule::shadow`], [`Rule::enforce_percent`] |
//! | read rules from a file (`config`), follow the file (`watch`) | [`RuleSetBuilder::from_file`](rules::RuleSetBuilder::from_file), [`rules::RulesWatcher`] |
//! | export metrics and events (`observe`) | [`observe`] |
//! | wait in order of arrival (`wait`) | [`Fair`]; over several machines [`wait::SharedFair`]; for streams and sinks [`wait`] |
//! | throttle the bytes of a connection (`wait`) | [`throttle::Throttled`] |
//! | limit an HTTP or gRPC server (`tower`) | [`http::RateLimitLayer`] |
//! | obey a server that answers with status 429 (`tower`) | [`http::ClientRateLimitLayer`] |
//! | share limits over many nodes (`shared`), in Redis or Valkey (`redis`) | [`shared`], [`redis`]; [guide](guide::redis) |
//! | control time in tests | [`ManualClock`] |
//! | write an algorithm, or keep its state in your own memory | [`Algorithm`], [`algorithm::Reclaim`] |
//! | move from governor, tower_governor or leaky-bucket | [guide](guide::migrating) |
//!
//! # Guarantees
//!
//! L is the limit, W the window and b the burst. A ring divides the window into N *cells*, and keeps one count for all permits of
//! a cell. A `UnitRing` with a high limit counts in *units* of several permits. A `CounterRing` takes 8 bytes if its quota fits
//! into one word, and otherwise the larger size in the table. A `StripedLimiter` is a strict `CounterRing` with S *stripes*. Each
//! stripe serves some of the threads, and charges the ring in *batches* of up to B permits. A *paced* client asks evenly, at the
//! rate of the limit.
//!
//! | algorithm | state in bytes | most admitted in any interval of length W | admitted share of a paced client's requests | `Retry-After` after a burst |
//! |---|---|---|---|---|
//! | [`SlidingWindow`] | by its choice of the next three rows | **L** | by its choice | by its choice |
//! | [`TimestampRing`] | 8·(L + 1) | **L** | all | W |
//! | [`UnitRing`] | 8 | **L** | 83 to 94 % at limits of 5 to 10,000 per minute | up to W + W/N after the last permit of a *unit* |
//! | [`CounterRing`], strict | 8 or 8·(N + 2) | **L** | about M/(M + 1) with M = min(L, N): 97 to 98 % for L ≥ 60 with the default N = 60 | up to W + W/N |
//! | [`CounterRing`], classic | 8 or 8·(N + 1) | 2L | all | up to W |
//! | [`CounterRing`], even | 8 or 8·(N + 1) | L + ⌈L/N⌉ | all | up to W |
//! | fixed window | 8 | 2L | all | up to W |
//! | [`Calendar`](algorithm::Calendar) | 8 | 2L | all | up to W |
//! | [`Gcra`] | 8 | b + L − 1 | all | W/L |
//! | [`StripedLimiter`] | 8·(N + 2), and 128·S | **L** | (L − S·B)/L times that of a strict ring | up to W + W/N |
//!
//! The bounds hold for limiters and for rules. The pages of waiting, throttling and shared limits state which further bounds
//! hold there.
//!
//! - The third column is [`RateLimiter::bound`]. It holds in every interleaving of threads. The time of an admission is the one
//!   that its decision used. Windows are half-open: an admission at s counts at t if t − W < s ≤ t.
//! - For the algorithms whose state is one word, z3 proves that each transition keeps the bound, for every word, reading and
//!   request. `proofs/README.md` in the repository states what is proved, and what is only modelled or tested.
//! - A decision takes effect at one instruction. A denied request consumes nothing.
//! - A decision takes no lock, allocates nothing, makes no system call, waits for no thread and needs no timer. There is one
//!   exception: the first decision that a thread makes by a `RuleSet` takes a lock, and may allocate a cache line for the
//!   thread's counts.
//! - A table of keys never grows. An entry passes to another key only when no permit of its key counts any more, except with
//!   [`OnFull::Forget`](keyed::OnFull::Forget).
//! - A request that one of several rules denies is charged to none of them, because its charges to the other rules are refunded.
//!   [`RuleCounts::forfeited`](rules::RuleCounts::forfeited) counts permits that an algorithm could not refund.
//! - A reload gives no key a fresh budget, as long as the rule keeps its name and the name of its key.
//! - No reading of the clock leads to a panic. A clock that jumps ahead ends windows early. A clock that steps back or stalls
//!   makes a limiter stricter, except a [`StripedLimiter`], whose documentation states the effect.
//! - An invalid configuration cannot be built. A [`ConfigError`] names the field, the value and the accepted values.
//!
//! # Trade-offs
//!
//! - A strict counter ring denies for up to one cell too long, because it forgets a cell only when all of it has left the window.
//!   More cells shorten that time. A [`TimestampRing`] has no cells, and takes 8 bytes a permit instead.
//! - Threads that share a limiter share one word. An admission moves the cache line of this word to the core of its thread, while
//!   a denial only reads the line. A [`StripedLimiter`] avoids most of these moves and most clock readings.
//!
//! # Caveats
//!
//! - Windows last 1 µs to 366 days. Limits go up to 10^12 permits; a counter ring with narrow cells accepts less (268 million in
//!   cells of 200 ms) and says so in its error.
//! - 20 years after the origin of its clock (15 years for [`Gcra`]) a limiter may deny every request, because later times do
//!   not fit into its words.
//! - Bounds hold in the time that the clock shows, which on two processors can differ by half a microsecond.
//!   [`RateLimiter::promise`] states the bound in true time, for a slightly shorter interval.
//! - The default clock may not count the time during which the machine is suspended, which makes limits stricter. A
//!   [`clock::SystemClock`] counts it.
//! - Targets without 64-bit atomics use those of `portable-atomic`, which may take locks.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `quanta` | yes | [`QuantaClock`] and [`clock::CoarseClock`]; needs the standard library |
//! | `striped` | yes | [`StripedLimiter`]; needs the standard library |
//! | `calendar` | no | time zones for an [`algorithm::CalendarQuota`], which has UTC otherwise; needs the standard library |
//! | `std` | yes, by `quanta` | [random seeds](keyed::random_seeds) for tables of keys (not on `wasm32-unknown-unknown`), and [`saved`] tables |
//! | `rules` | no | [`RuleSet`] and [`LiveRules`]; needs the standard library |
//! | `config`, `watch` | no | rules from TOML, JSON and YAML files; reload when the file changes; both enable `rules` |
//! | `observe` | no | counters for `metrics` and events for `tracing`; enables `rules` |
//! | `wait` | no | [`wait`] and [`throttle`]; needs the standard library |
//! | `tower` | no | [`http`]; enables `rules` and `wait` |
//! | `axum`, `tonic` | no | the client addresses of axum and tonic, for [`http`]; both enable `tower` |
//! | `shared` | no | [`shared`], on tokio; enables `quanta` and `rules` |
//! | `redis`, `redis-cluster` | no | a store in Redis, Valkey or a cluster of them; both enable `shared` |
//! | `redis-tls`, `redis-client` | no | connections by TLS; connections by a `redis::Client` that you pass; both enable `redis` |
//! | `serde` | no | [`Quota`] and [`limiter::SavedState`] can be serialized |
//!
//! Without default features the crate is `no_std` and needs `alloc`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        feature = "calendar",
        feature = "observe",
        feature = "quanta",
        feature = "redis-client",
        feature = "redis-cluster",
        feature = "redis-tls",
        feature = "shared",
        feature = "striped",
        feature = "tower",
        feature = "wait",
        feature = "watch"
    )),
    expect(
        rustdoc::broken_intra_doc_links,
        reason = "links lead to items of features that are not enabled"
    )
)]
// A module is compiled whole, so some of its items are unused if a feature that uses them is not enabled. Items that no feature
// uses are reported when all features are enabled.
#![cfg_attr(
    not(all(feature = "observe", feature = "redis", feature = "tower")),
    expect(
        dead_code,
        unused_imports,
        reason = "the modules of features that are not enabled use these items"
    )
)]
#![no_std]

#[cfg(all(feature = "shared", target_family = "wasm", target_os = "unknown"))]
compile_error!(
    "feature shared is not available on wasm32-unknown-unknown, which has neither random numbers nor a clock"
);

extern crate alloc;
#[cfg(any(feature = "std", test, ringgate_loom))]
extern crate std;

// In order of dependency: a module uses only modules before it in this list.
pub mod sync;
mod debug;
mod time;
mod error;
mod quota;
mod pause;
mod own_words;
mod receipt;
pub mod clock;
pub mod log_limiter;
pub mod algorithm;
mod table;
mod decision;
pub mod limiter;
#[cfg(feature = "std")]
pub mod saved;
#[cfg(feature = "striped")]
pub mod striped;
pub mod keyed;
#[cfg(feature = "rules")]
pub mod rules;
#[cfg(feature = "shared")]
pub mod shared;
#[cfg(feature = "wait")]
pub mod wait;
#[cfg(feature = "wait")]
pub mod throttle;
#[cfg(feature = "observe")]
pub mod observe;
#[cfg(feature = "tower")]
pub mod http;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(doc, doctest))]
pub mod guide;

#[doc(inline)]
pub use algorithm::{Algorithm, AnyAlgorithm, CounterRing, Gcra, SlidingWindow, TimestampRing, UnitRing};
#[cfg(feature = "quanta")]
#[doc(inline)]
pub use clock::QuantaClock;
#[doc(inline)]
pub use clock::{Clock, DefaultClock, ManualClock};
pub use decision::{Admitted, Denied, OwnedDenied, Peek};
pub use error::ConfigError;
#[doc(inline)]
pub use keyed::KeyedRateLimiter;
#[doc(inline)]
pub use limiter::{InlineLimiter, RateLimiter};
#[doc(inline)]
pub use log_limiter::LogLimiter;
pub use quota::Quota;
pub use receipt::{Receipt, Settled};
#[cfg(feature = "rules")]
#[doc(inline)]
pub use rules::{Key, LiveRules, Rule, RuleSet};
#[cfg(feature = "striped")]
#[doc(inline)]
pub use striped::StripedLimiter;
pub use time::Nanos;
#[cfg(feature = "wait")]
#[doc(inline)]
pub use wait::Fair;
