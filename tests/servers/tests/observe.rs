//! What those who watch are shown: counters that agree with the rules' own, and no more events than allowed.

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
#[cfg(unix)]
#[path = "observe/shared.rs"]
mod shared;

#[cfg(unix)]
#[expect(dead_code, reason = "made for the tests of the stores themselves")]
#[path = "../../redis/server.rs"]
mod server;
