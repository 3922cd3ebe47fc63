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

#[doc = include_str!("guide/choosing.md")]
#[doc = include_str!("guide/pictures/admitted.svg")]
#[doc = include_str!("guide/choosing/after_silence.md")]
#[doc = include_str!("guide/pictures/worst.svg")]
#[doc = include_str!("guide/choosing/cells.md")]
#[doc = include_str!("guide/pictures/cells.svg")]
#[doc = include_str!("guide/choosing/several.md")]
pub mod choosing {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "striped")),
    doc = include_str!("guide/hot_path.md")
)]
pub mod hot_path {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "tokio")),
    doc = include_str!("guide/per_connection.md")
)]
pub mod per_connection {}

#[cfg_attr(any(not(doctest), feature = "quanta"), doc = include_str!("guide/keys.md"))]
pub mod keys {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "watch", feature = "observe")),
    doc = include_str!("guide/rules.md")
)]
pub mod rules {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "tokio", feature = "rules")),
    doc = include_str!("guide/waiting.md")
)]
pub mod waiting {}

// Its examples need servers: they are compiled in tests/servers.
#[cfg_attr(not(doctest), doc = include_str!("guide/servers.md"))]
pub mod servers {}

#[cfg_attr(any(not(doctest), feature = "redis"), doc = include_str!("guide/redis.md"))]
pub mod redis {}

#[cfg_attr(any(not(doctest), feature = "redis"), doc = include_str!("guide/extending.md"))]
pub mod extending {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "tokio", feature = "redis")),
    doc = include_str!("guide/migrating.md")
)]
pub mod migrating {}

#[doc = include_str!("guide/verification.md")]
pub mod verification {}

#[doc = include_str!("guide/performance.md")]
pub mod performance {}

#[doc = include_str!("guide/caveats.md")]
pub mod caveats {}
