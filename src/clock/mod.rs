//! Clocks: the sources of readings.

#[cfg(feature = "quanta")]
mod calibration;
#[cfg(feature = "quanta")]
mod coarse;
#[cfg_attr(not(feature = "quanta"), path = "no_default_clock.rs")]
mod default_clock;
#[cfg(all(feature = "std", not(all(target_family = "wasm", target_os = "unknown"))))]
mod instant;
mod manual;
#[cfg(feature = "quanta")]
mod quanta;
mod source;
#[cfg(feature = "std")]
mod system;

#[cfg(feature = "quanta")]
pub use self::{coarse::CoarseClock, quanta::QuantaClock};
pub use default_clock::DefaultClock;
#[cfg(all(feature = "std", not(all(target_family = "wasm", target_os = "unknown"))))]
pub use instant::InstantClock;
pub use manual::ManualClock;
pub use source::Clock;
#[cfg(feature = "std")]
pub use system::SystemClock;
