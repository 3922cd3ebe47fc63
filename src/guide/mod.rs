//! The guide: one page per task, with code first, then reasons, then edge cases.
//!
//! | task | page |
//! |---|---|
//! | choose an algorithm, read the remaining permits, test with a manual clock | [`choosing`] |
//! | make millions of decisions per second | [`hot_path`] |
//! | limit the messages or bytes of a connection | [`per_connection`] |
//! | limit log lines, by a `static` | [`LogLimiter`](crate::LogLimiter) |
//! | limit each client, also during a flood of made-up clients; keep the counts over a restart | [`keys`] |
//! | apply several limits to one request; change limits at run time, also from a file | [`rules`] |
//! | export metrics and events | [`rules`](rules#try-a-rule-before-it-denies-a-request), [`observe`](crate::observe) |
//! | wait for a permit instead of being denied | [`waiting`] |
//! | call an HTTP API that answers with status 429 | [`waiting`](waiting#clients-of-http-apis) |
//! | limit the tokens of a language model | [`token_budgets`] |
//! | refund or settle an estimated cost | [`token_budgets`] |
//! | limit and test a server of axum, tonic or hyper, also behind a proxy | [`servers`] |
//! | share a limit between machines | [`redis`] |
//! | implement a clock, an algorithm or a store | [`extending`] |
//! | move from governor, tower_governor or leaky-bucket, or from a sorted set in Redis | [`migrating`] |
//! | see how the bounds are checked | [`verification`] |
//! | see what a decision costs | [`performance`] |
//! | see the limitations | [`caveats`] |
//!
//! The tests compile all code, and run the code that needs no server. `examples/pictures` runs the algorithms and draws the
//! pictures. Figures are from `benches/README.md` in the repository, which states the machine and the method.

// These modules exist only in documentation builds. Every page is shown, and its examples are tested if their features are
// enabled. The condition is on the text and not on the module, because rustdoc would print it on the page.

#[doc = include_str!("choosing.md")]
#[doc = include_str!("pictures/admitted.svg")]
#[doc = include_str!("choosing/after_silence.md")]
#[doc = include_str!("pictures/worst.svg")]
#[doc = include_str!("choosing/cells.md")]
#[doc = include_str!("pictures/cells.svg")]
#[doc = include_str!("choosing/several.md")]
#[cfg_attr(any(not(doctest), feature = "calendar"), doc = include_str!("choosing/calendar.md"))]
pub mod choosing {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "striped")),
    doc = include_str!("hot_path.md")
)]
pub mod hot_path {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "wait")),
    doc = include_str!("per_connection.md")
)]
pub mod per_connection {}

#[cfg_attr(any(not(doctest), feature = "quanta"), doc = include_str!("keys.md"))]
pub mod keys {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "watch", feature = "observe")),
    doc = include_str!("rules.md")
)]
#[doc = include_str!("pictures/reload.svg")]
#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "watch", feature = "observe")),
    doc = include_str!("rules/reload.md")
)]
pub mod rules {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "wait", feature = "rules")),
    doc = include_str!("waiting.md")
)]
// Its examples need tower, so tests/servers compiles them.
#[cfg_attr(not(doctest), doc = include_str!("waiting/http_clients.md"))]
pub mod waiting {}

#[doc = include_str!("token_budgets.md")]
pub mod token_budgets {}

// Its examples need axum and tonic, so tests/servers compiles them.
#[cfg_attr(not(doctest), doc = include_str!("servers.md"))]
pub mod servers {}

#[cfg_attr(any(not(doctest), feature = "redis"), doc = include_str!("redis.md"))]
#[doc = include_str!("pictures/leases.svg")]
#[cfg_attr(any(not(doctest), feature = "redis"), doc = include_str!("redis/sync.md"))]
pub mod redis {}

#[cfg_attr(any(not(doctest), feature = "redis"), doc = include_str!("extending.md"))]
pub mod extending {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "wait", feature = "redis")),
    doc = include_str!("migrating.md")
)]
pub mod migrating {}

#[doc = include_str!("verification.md")]
pub mod verification {}

#[doc = include_str!("performance.md")]
pub mod performance {}

#[doc = include_str!("caveats.md")]
pub mod caveats {}
