//! The doctor, run as a user runs it, at real servers that are well and at others that are not.
//!
//! Where there is no server and none can be installed, each test says `not run` and passes; `ci/redis.sh` tells the
//! two apart.
#![cfg(all(feature = "cli", unix, not(any(miri, ringgate_loom))))]

extern crate alloc;

#[path = "doctor/tool.rs"]
mod tool;

#[path = "doctor/usage.rs"]
mod usage;

#[cfg(feature = "redis")]
#[path = "doctor/access.rs"]
mod access;
#[cfg(feature = "redis-cluster")]
#[path = "doctor/clusters.rs"]
mod clusters;
#[cfg(feature = "redis")]
#[path = "doctor/servers.rs"]
mod servers;
#[cfg(feature = "redis")]
#[path = "doctor/silence.rs"]
mod silence;

#[cfg(feature = "redis")]
#[expect(dead_code, reason = "made for the tests of the stores themselves")]
#[path = "redis/server.rs"]
mod server;
