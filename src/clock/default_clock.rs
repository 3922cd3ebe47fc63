#[cfg(feature = "quanta")]
use super::quanta::QuantaClock;
#[cfg(not(feature = "quanta"))]
use super::source::Clock;
#[cfg(not(feature = "quanta"))]
use crate::time::Nanos;

/// The clock of a limiter type without a clock parameter: [`QuantaClock`].
#[cfg(feature = "quanta")]
pub type DefaultClock = QuantaClock;

/// The clock of a limiter type without a clock parameter.
///
/// Without the feature `quanta` there is no default clock, and this type has no values. Name another clock in the type of
/// the limiter, such as [`ManualClock`].
#[cfg(not(feature = "quanta"))]
#[derive(Clone, Copy, Debug)]
pub enum DefaultClock {}

#[cfg(not(feature = "quanta"))]
impl Clock for DefaultClock {
    fn now(&self) -> Nanos {
        match *self {}
    }
}
