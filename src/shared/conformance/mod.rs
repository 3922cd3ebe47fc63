//! Tests of a store against the promises of [`CounterStore`] and [`LeaseStore`](super::LeaseStore).
//!
//! A store of one's own needs one test:
//!
//! ```
//! use std::sync::Arc;
//!
//! use ringgate::ManualClock;
//! use ringgate::shared::{MemoryStore, conformance};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let clock = Arc::new(ManualClock::new());
//! let store = MemoryStore::with_clock(Arc::clone(&clock));
//! // A store with a clock of its own waits instead.
//! conformance::check(&store, async |time| clock.advance(time)).await?;
//! # Ok(())
//! # }
//! ```

use core::time::Duration;

pub use self::kit::BrokenPromise;
use super::store::{CounterStore, Counting};

mod blocks;
mod counters;
mod kit;
mod lease_ends;
mod leases;
mod slots;
mod windows;

/// Checks every promise of a store, and returns the first that it breaks.
///
/// Leases, slots in flight and blocks are checked if the store says that it keeps them.
///
/// `pause` lets the store's time pass. The store must be empty. If it has [leases](CounterStore::leases), it must have
/// forgotten nothing for twelve minutes, or know so.
///
/// # Errors
///
/// When the store breaks a promise, or does not answer.
pub async fn check(store: &dyn CounterStore, pause: impl AsyncFn(Duration)) -> Result<(), BrokenPromise> {
    for counting in [Counting::Log, Counting::Cells(5), Counting::Gcra(10)] {
        counters::check(store, counting).await?;
        windows::check(store, counting, &pause).await?;
        if store.leases().is_some() {
            leases::check(store, counting).await?;
            lease_ends::check(store, counting, &pause).await?;
        }
    }
    if store.keeps_slots() {
        slots::check(store, &pause).await?;
    }
    if store.keeps_blocks() {
        blocks::check(store, &pause).await?;
    }
    Ok(())
}
