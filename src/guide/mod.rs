//! The guide: a page per task, each with code first, then reasons, then edge cases.
//!
//! | task | page |
//! |---|---|
//! | choose an algorithm | [`choosing`] |
//! | decide millions of times per second | [`hot_path`] |
//! | limit the messages or bytes of a connection | [`per_connection`] |
//! | limit each client, also in a flood of made-up clients | [`keys`] |
//! | apply several limits to one request, from a file that is reloaded | [`rules`] |
//! | wait for a permit instead of being denied | [`waiting`] |
//! | limit a server of axum, tonic or hyper | [`servers`] |
//! | share a limit between machines | [`redis`] |
//! | implement a clock, an algorithm or a store | [`extending`] |
//! | move from governor, or from a sorted set in Redis | [`migrating`] |
//! | see how the bounds are checked | [`verification`] |
//! | see what a decision costs | [`performance`] |
//! | see the limitations | [`caveats`] |
//!
//! All code is compiled by the tests, and run where it needs no server. `examples/pictures` draws the pictures with the
//! algorithms. Figures are from `benches/README.md`, which states the machine and the method, or from a test that is named
//! beside them.

// The modules exist only in documentation builds. The examples of a page are tested if their features are enabled, and
// the page is always shown. (A condition on the module would appear on the page.)

#[doc = include_str!("choosing.md")]
#[doc = include_str!("pictures/admitted.svg")]
#[doc = include_str!("choosing/after_silence.md")]
#[doc = include_str!("pictures/worst.svg")]
#[doc = include_str!("choosing/cells.md")]
#[doc = include_str!("pictures/cells.svg")]
#[doc = include_str!("choosing/several.md")]
pub mod choosing {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "striped")),
    doc = include_str!("hot_path.md")
)]
pub mod hot_path {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "tokio")),
    doc = include_str!("per_connection.md")
)]
pub mod per_connection {}

#[cfg_attr(any(not(doctest), feature = "quanta"), doc = include_str!("keys.md"))]
pub mod keys {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "watch", feature = "observe")),
    doc = include_str!("rules.md")
)]
pub mod rules {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "tokio", feature = "rules")),
    doc = include_str!("waiting.md")
)]
pub mod waiting {}

// Its examples need servers: they are compiled in tests/servers.
#[cfg_attr(not(doctest), doc = include_str!("servers.md"))]
pub mod servers {}

#[cfg_attr(any(not(doctest), feature = "redis"), doc = include_str!("redis.md"))]
pub mod redis {}

#[cfg_attr(any(not(doctest), feature = "redis"), doc = include_str!("extending.md"))]
pub mod extending {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "tokio", feature = "redis")),
    doc = include_str!("migrating.md")
)]
pub mod migrating {}

#[doc = include_str!("verification.md")]
pub mod verification {}

#[doc = include_str!("performance.md")]
pub mod performance {}

#[doc = include_str!("caveats.md")]
pub mod caveats {}
