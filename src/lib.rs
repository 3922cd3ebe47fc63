//! Rate limiting that never admits more than it promises, without a lock.
//!
//! ```
//! use ringgate::{CounterRing, Quota, RateLimiter};
//!
//! # #[cfg(feature = "quanta")]
//! # fn main() -> Result<(), ringgate::ConfigError> {
//! // At most 100 requests in any minute, whichever minute is looked at.
//! let limiter = RateLimiter::new(CounterRing::new(Quota::per_minute(100)?)?);
//! if limiter.check().is_ok() {
//!     // Serve the request.
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "quanta"))]
//! # fn main() {}
//! ```

#![no_std]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

// Floors, from the ground up: a module names only modules above it in this list.
pub mod sync;
mod time;
mod error;
mod quota;
mod word;
mod decision;
mod clock;
mod algorithm;
mod limiter;

pub use algorithm::{Algorithm, CounterRing, CounterRingBuilder, Gcra, TimestampRing};
pub use clock::{Clock, ManualClock};
#[cfg(feature = "quanta")]
pub use clock::{CoarseClock, CoarseClockError, QuantaClock};
pub use decision::{Receipt, Refusal, Settled};
pub use error::ConfigError;
pub use limiter::{Admitted, Denied, Peek, Promise, RateLimiter, SavedState};
pub use quota::Quota;
pub use time::Nanos;
