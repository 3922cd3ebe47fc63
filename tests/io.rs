//! Readers and writers that move so many bytes per window.
#![cfg(all(feature = "tokio", not(any(miri, ringgate_loom))))]

extern crate alloc;

#[path = "io/spy.rs"]
mod spy;
#[path = "common/windows.rs"]
mod windows;
#[path = "io/wire.rs"]
mod wire;

#[path = "io/bounds.rs"]
mod bounds;
#[path = "io/cancel.rs"]
mod cancel;
#[path = "io/edges.rs"]
mod edges;
#[path = "io/quantum.rs"]
mod quantum;
#[path = "io/rates.rs"]
mod rates;
#[cfg(all(feature = "quanta", feature = "rules"))]
#[path = "io/rules.rs"]
mod rules;
#[path = "io/turns.rs"]
mod turns;
