//! Throttled readers and writers keep their limits and lose no bytes.
#![cfg(all(feature = "wait", not(any(miri, ringgate_loom))))]

extern crate alloc;

#[path = "common/random.rs"]
mod random;
#[path = "throttle/spy.rs"]
mod spy;
#[path = "common/windows.rs"]
mod windows;
#[path = "throttle/wire.rs"]
mod wire;

#[path = "throttle/bounds.rs"]
mod bounds;
#[path = "throttle/cancel.rs"]
mod cancel;
#[path = "throttle/edges.rs"]
mod edges;
#[path = "throttle/rates.rs"]
mod rates;
#[cfg(all(feature = "quanta", feature = "rules"))]
#[path = "throttle/rules.rs"]
mod rules;
#[path = "throttle/turns.rs"]
mod turns;
