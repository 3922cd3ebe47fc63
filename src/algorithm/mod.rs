//! The traits of algorithms, and the algorithms of the crate.

mod any;
mod attempt;
mod calendar;
mod cell_window;
mod counter_ring;
mod entered_ring;
mod forward;
mod gcra;
mod grouped_ring;
mod in_flight;
mod in_units;
mod lowered;
mod one_word;
mod sliding_window;
#[cfg(test)]
mod specification;
mod timestamp_ring;
mod traits;
mod unit_ring;
mod violations;
mod wide_ring;

pub use any::AnyAlgorithm;
pub use attempt::Attempt;
pub use calendar::{Calendar, CalendarQuota};
pub use counter_ring::{CounterRing, CounterRingBuilder};
pub use gcra::Gcra;
pub(crate) use in_flight::InFlight;
pub use in_units::InUnits;
pub use lowered::Lowered;
pub use sliding_window::SlidingWindow;
pub use timestamp_ring::TimestampRing;
pub(crate) use traits::FIRST_WORD_BITS;
pub use traits::{Algorithm, Reclaim};
pub use unit_ring::UnitRing;
pub(crate) use violations::{BlockLength, Violations};
