//! The doctor, run as a user runs it, at real servers that are well and at others that are not.
//!
//! Where there is no server and none can be installed, each test says `not run` and passes; `ci/redis.sh` tells the
//! two apart.
#![cfg(unix)]

extern crate alloc;

#[path = "doctor/tool.rs"]
mod tool;

#[path = "doctor/usage.rs"]
mod usage;

#[path = "doctor/access.rs"]
mod access;
#[path = "doctor/clusters.rs"]
mod clusters;
#[path = "doctor/servers.rs"]
mod servers;
#[path = "doctor/silence.rs"]
mod silence;

#[expect(dead_code, reason = "made for the tests of the stores themselves")]
#[path = "../../tests/redis/server.rs"]
mod server;
