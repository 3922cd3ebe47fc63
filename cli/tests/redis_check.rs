//! `ringgate redis check`, run against real servers in good and in bad states.
//!
//! Without a server, each test prints `skipped: no redis-server`, and `ci/test.sh` counts it as skipped.
#![cfg(unix)]

extern crate alloc;

#[path = "redis_check/tool.rs"]
mod tool;

#[path = "redis_check/usage.rs"]
mod usage;

#[path = "redis_check/access.rs"]
mod access;
#[path = "redis_check/clusters.rs"]
mod clusters;
#[path = "redis_check/encrypted.rs"]
mod encrypted;
#[path = "redis_check/servers.rs"]
mod servers;
#[path = "redis_check/silence.rs"]
mod silence;

#[path = "../../tests/redis/support/certificates.rs"]
mod certificates;
#[expect(dead_code, reason = "shared with the tests of the stores")]
#[path = "../../tests/redis/support/server.rs"]
mod server;
#[path = "../../tests/common/skipped.rs"]
mod skipped;
