//! What those who watch are shown: counters that agree with the rules' own, and no more events than allowed.
#![cfg(all(feature = "observe", not(any(miri, ringgate_loom))))]

extern crate alloc;

#[path = "observe/recorders.rs"]
mod recorders;
#[path = "observe/requests.rs"]
mod requests;

#[path = "observe/counters.rs"]
mod counters;
#[path = "observe/events.rs"]
mod events;
#[path = "observe/reloads.rs"]
mod reloads;
#[cfg(all(feature = "redis", unix))]
#[path = "observe/shared.rs"]
mod shared;

#[cfg(all(feature = "redis", unix))]
#[expect(dead_code, reason = "made for the tests of the stores themselves")]
#[path = "redis/server.rs"]
mod server;
