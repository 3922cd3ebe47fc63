//! Limits over many machines, against real servers that the tests start and stop: single ones and a cluster.
//!
//! Where there is no server and none can be installed, each test says `not run` and passes; `ci/redis.sh` tells the
//! two apart.
#![cfg(all(feature = "redis", unix, not(any(miri, ringgate_loom))))]

extern crate alloc;

#[path = "redis/account_faults.rs"]
mod account_faults;
#[path = "redis/accounts.rs"]
mod accounts;
#[path = "redis/attacks.rs"]
mod attacks;
#[path = "redis/clocks.rs"]
mod clocks;
#[cfg(feature = "redis-cluster")]
#[path = "redis/cluster.rs"]
mod cluster;
#[path = "shared/cut.rs"]
mod cut;
#[path = "redis/dropped.rs"]
mod dropped;
#[path = "redis/faults.rs"]
mod faults;
#[path = "redis/histories.rs"]
mod histories;
#[path = "redis/leases.rs"]
mod leases;
#[path = "redis/load.rs"]
mod load;
#[path = "redis/node.rs"]
mod node;
#[path = "redis/nodes.rs"]
mod nodes;
#[path = "redis/on_error.rs"]
mod on_error;
#[path = "redis/oracle.rs"]
mod oracle;
#[path = "redis/origins.rs"]
mod origins;
#[path = "redis/proxy.rs"]
mod proxy;
#[path = "redis/rules.rs"]
mod rules;
#[path = "redis/scenes.rs"]
mod scenes;
#[path = "redis/scripts.rs"]
mod scripts;
#[cfg_attr(
    not(feature = "redis-cluster"),
    expect(dead_code, reason = "nodes of a cluster")
)]
#[path = "redis/server.rs"]
mod server;
#[path = "redis/settings.rs"]
mod settings;
#[path = "redis/settling.rs"]
mod settling;
#[path = "redis/shim.rs"]
mod shim;
#[path = "redis/strict.rs"]
mod strict;
#[path = "redis/syncs.rs"]
mod syncs;
#[path = "redis/terms.rs"]
mod terms;
#[path = "redis/watch.rs"]
mod watch;
#[path = "common/windows.rs"]
mod windows;
