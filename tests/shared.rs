//! Shared limits over a store in memory: no server is needed.
#![cfg(all(feature = "shared", not(any(miri, ringgate_loom))))]

extern crate alloc;

// First, because its macro is in scope below it only.
#[macro_use]
#[path = "common/forward.rs"]
mod forward;

#[path = "shared/blocks.rs"]
mod blocks;
#[path = "shared/closed.rs"]
mod closed;
#[path = "shared/counts.rs"]
mod counts;
#[path = "shared/cut.rs"]
mod cut;
#[path = "shared/denials.rs"]
mod denials;
#[path = "shared/dropped.rs"]
mod dropped;
#[path = "shared/equal.rs"]
mod equal;
#[cfg(feature = "config")]
#[path = "shared/files.rs"]
mod files;
#[path = "shared/foreign.rs"]
mod foreign;
#[path = "common/equal.rs"]
mod histories;
#[path = "shared/lost.rs"]
mod lost;
#[path = "shared/many.rs"]
mod many;
#[path = "shared/memory.rs"]
mod memory;
#[path = "shared/pausing.rs"]
mod pausing;
#[path = "shared/periods/periods.rs"]
mod periods;
#[path = "common/plain.rs"]
mod plain;
#[path = "common/random.rs"]
mod random;
#[path = "shared/releases.rs"]
mod releases;
#[path = "shared/reloads.rs"]
mod reloads;
#[path = "shared/reserves.rs"]
mod reserves;
#[path = "shared/slots.rs"]
mod slots;
#[path = "shared/supervised.rs"]
mod supervised;
#[path = "shared/third.rs"]
mod third;
#[path = "shared/unserved.rs"]
mod unserved;

use alloc::sync::Arc;

use ringgate::Key;
use ringgate::shared::{MemoryStore, Mode};
use tokio::time::Instant;

/// A key of text, which nodes share.
fn user() -> Key<str> {
    Key::text("user", |user: &str| Some(user))
}

/// A store in tokio's time.
fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::with_clock(many::Paused(Instant::now())))
}

/// A runtime of this thread, whose time stands still while any task can run.
fn runtime() -> tokio::runtime::Runtime {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    builder
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

/// A mode of each kind, with this number of permits.
const fn modes(permits: u64) -> [Mode; 4] {
    let period = core::time::Duration::from_millis(5);
    [
        Mode::Strict,
        Mode::Lease { permits },
        Mode::Sync {
            period,
            pending: permits,
        },
        Mode::Local,
    ]
}
