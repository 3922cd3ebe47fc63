//! The store in Redis, against real servers that the tests start and stop: single ones and a cluster.
//!
//! Without a server, each test prints `skipped: no redis-server`, and `ci/test.sh` counts it as skipped.
#![cfg(all(feature = "redis", unix, not(any(miri, ringgate_loom))))]

extern crate alloc;

#[path = "redis/attacks.rs"]
mod attacks;
#[path = "redis/blocks.rs"]
mod blocks;
#[cfg(feature = "redis-tls")]
#[path = "redis/support/certificates.rs"]
mod certificates;
#[path = "redis/clocks.rs"]
mod clocks;
#[cfg(feature = "redis-cluster")]
#[path = "redis/cluster.rs"]
mod cluster;
#[path = "shared/cut.rs"]
mod cut;
#[path = "redis/deployed/deployed.rs"]
mod deployed;
#[path = "redis/dropped.rs"]
mod dropped;
#[path = "redis/leases/ended.rs"]
mod ended;
#[path = "redis/equal.rs"]
mod equal;
#[path = "common/equal.rs"]
mod equal_histories;
#[path = "redis/faults.rs"]
mod faults;
#[macro_use]
#[path = "common/forward.rs"]
mod forward;
#[path = "redis/leases/lease_faults.rs"]
mod lease_faults;
#[path = "redis/leases/leases.rs"]
mod leases;
#[path = "redis/support/load.rs"]
mod load;
#[path = "redis/deployed/misconfigured.rs"]
mod misconfigured;
#[path = "redis/support/node.rs"]
mod node;
#[path = "redis/leases/nodes.rs"]
mod nodes;
#[path = "redis/on_error.rs"]
mod on_error;
#[path = "redis/leases/one_node.rs"]
mod one_node;
#[path = "redis/support/oracle.rs"]
mod oracle;
#[path = "redis/origins.rs"]
mod origins;
#[path = "common/plain.rs"]
mod plain;
#[path = "redis/support/proxy.rs"]
mod proxy;
#[path = "common/random.rs"]
mod random;
#[path = "redis/leases/renewals.rs"]
mod renewals;
#[path = "redis/rules.rs"]
mod rules;
#[path = "redis/support/scenes.rs"]
mod scenes;
#[path = "redis/support/scripts.rs"]
mod scripts;
#[cfg_attr(
    not(feature = "redis-cluster"),
    expect(dead_code, reason = "nodes are for the tests of clusters")
)]
#[path = "redis/support/server.rs"]
mod server;
#[path = "redis/settings.rs"]
mod settings;
#[path = "redis/support/shim.rs"]
mod shim;
#[path = "redis/deployed/sentinels.rs"]
mod sentinels;
#[path = "common/skipped.rs"]
mod skipped;
#[path = "redis/slots.rs"]
mod slots;
#[path = "redis/strict.rs"]
mod strict;
#[path = "redis/leases/terms.rs"]
mod terms;
#[cfg(feature = "redis-tls")]
#[path = "redis/deployed/tls.rs"]
mod tls;
#[path = "redis/support/watch.rs"]
mod watch;
#[path = "common/windows.rs"]
mod windows;
