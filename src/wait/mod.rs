//! Waiting for permits instead of being denied, first come, first served (feature `wait`).
//!
//! [`Fair`] wraps a limiter and adds wait queues. Its methods return an [`Acquire`], a future that completes when the
//! permits were charged. Dropping it charges nothing. [`PacedStream`] and [`PacedSink`] pass items at the rate of a
//! limiter. For bytes, see [`throttle`](crate::throttle).
//!
//! `SharedFair` (feature `shared`) adds wait queues to rules over many machines: a waiter asks the store when it is its turn.
//!
//! [`TokioRuntime`] wakes waiters by tokio's timers. Another runtime implements [`Runtime`]. [`TokioClock`] follows
//! tokio's paused time in tests. The [guide](crate::guide::waiting) has examples of them.

mod acquire;
#[cfg(feature = "shared")]
mod asks;
mod direct;
mod error;
mod fair;
mod keyed;
mod paced;
mod queue;
#[cfg(feature = "rules")]
mod rules;
mod runtime;
mod tokio_clock;
mod waitable;

pub use acquire::Acquire;
#[cfg(feature = "shared")]
pub use asks::{SharedAdmission, SharedFair, SharedSource};
pub use error::{CheckError, WaitError};
pub use fair::{Fair, FairRef};
pub use keyed::{KeyReceipt, KeyRequest};
pub use paced::{PacedSink, PacedStream};
pub(crate) use queue::GRACE_PERIOD;
#[cfg(feature = "rules")]
pub use rules::RuleSource;
pub use runtime::{Runtime, TokioRuntime};
pub use tokio_clock::TokioClock;
pub(crate) use waitable::WaitRequest;
