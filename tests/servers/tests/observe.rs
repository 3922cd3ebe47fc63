//! Metrics that agree with the counts of the rules, and events that keep their quota.

extern crate alloc;

#[path = "../../common/random.rs"]
mod random;
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
#[cfg(unix)]
#[path = "observe/shared.rs"]
mod shared;
#[cfg(unix)]
#[path = "observe/store_events.rs"]
mod store_events;

#[cfg(unix)]
#[expect(dead_code, reason = "made for the tests of the stores themselves")]
#[path = "../../redis/support/server.rs"]
mod server;
#[cfg(unix)]
#[path = "../../common/skipped.rs"]
mod skipped;
