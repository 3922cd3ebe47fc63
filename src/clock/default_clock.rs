#[cfg(feature = "quanta")]
use super::quanta::QuantaClock;
#[cfg(not(feature = "quanta"))]
use super::source::Clock;
#[cfg(not(feature = "quanta"))]
use crate::time::Nanos;

/// The clock of a limiter whose type names none: [`QuantaClock`].
#[cfg(feature = "quanta")]
pub type DefaultClock = QuantaClock;

/// The clock of a limiter whose type names none.
///
/// Without the feature `quanta` there is no such clock, and this type has no values: name a clock of your own, such as
/// [`ManualClock`].
#[cfg(not(feature = "quanta"))]
#[derive(Clone, Copy, Debug)]
pub enum DefaultClock {}

#[cfg(not(feature = "quanta"))]
impl Clock for DefaultClock {
    fn now(&self) -> Nanos {
        match *self {}
    }
}
