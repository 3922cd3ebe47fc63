//! How to do things with this crate: first the code, then why it is so, then the edges.
//!
//! | you want | read |
//! |---|---|
//! | to know which algorithm is yours | [`choosing`] |
//! | to decide millions of times a second | [`hot_path`] |
//! | a limit that one connection has to itself | [`per_connection`] |
//! | a limit for each client, and to survive a flood of made-up ones | [`keys`] |
//! | several limits on one request, from a file, changed while you serve | [`rules`] |
//! | to wait for a permit instead of being refused | [`waiting`] |
//! | to limit a server of axum, tonic or hyper | [`servers`] |
//! | one limit over many machines | [`redis`] |
//! | a clock, memory, a store or an algorithm of your own | [`extending`] |
//! | to come from governor, or from a sorted set in Redis | [`migrating`] |
//! | to know why the bounds should be believed | [`verification`] |
//! | to know what it costs, and how that was measured | [`performance`] |
//! | to know what it does not do, and why | [`caveats`] |
//!
//! The code is compiled and, where it needs no server, run by the crate's tests. The pictures are drawn by the
//! algorithms themselves (`examples/pictures`). Figures come from `benches/README.md`, which says on which machine and
//! how, or from a test that is named beside them.

// Documentation only, so nobody who uses the crate pays for it. A page's examples are tested where the features that
// they need are there; a page itself is always shown. (A condition on the module would be shown as one on the page.)

#[doc = include_str!("guide/choosing.md")]
#[doc = include_str!("guide/pictures/admitted.svg")]
#[doc = include_str!("guide/choosing/after_silence.md")]
#[doc = include_str!("guide/pictures/worst.svg")]
#[doc = include_str!("guide/choosing/cells.md")]
#[doc = include_str!("guide/pictures/cells.svg")]
#[doc = include_str!("guide/choosing/several.md")]
pub mod choosing {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "keyed", feature = "striped")),
    doc = include_str!("guide/hot_path.md")
)]
pub mod hot_path {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "tokio")),
    doc = include_str!("guide/per_connection.md")
)]
pub mod per_connection {}

#[cfg_attr(any(not(doctest), all(feature = "quanta", feature = "keyed")), doc = include_str!("guide/keys.md"))]
pub mod keys {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "watch", feature = "observe")),
    doc = include_str!("guide/rules.md")
)]
pub mod rules {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "keyed", feature = "tokio", feature = "rules")),
    doc = include_str!("guide/waiting.md")
)]
pub mod waiting {}

// Its examples need servers: they are compiled in tests/servers.
#[cfg_attr(not(doctest), doc = include_str!("guide/servers.md"))]
pub mod servers {}

#[cfg_attr(any(not(doctest), feature = "redis"), doc = include_str!("guide/redis.md"))]
pub mod redis {}

#[cfg_attr(any(not(doctest), all(feature = "keyed", feature = "redis")), doc = include_str!("guide/extending.md"))]
pub mod extending {}

#[cfg_attr(
    any(not(doctest), all(feature = "quanta", feature = "keyed", feature = "tokio", feature = "redis")),
    doc = include_str!("guide/migrating.md")
)]
pub mod migrating {}

#[doc = include_str!("guide/verification.md")]
pub mod verification {}

#[doc = include_str!("guide/performance.md")]
pub mod performance {}

#[doc = include_str!("guide/caveats.md")]
pub mod caveats {}
