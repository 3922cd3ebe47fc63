use super::source::Clock;
use crate::time::Nanos;

/// The clock of a limiter type without a clock parameter.
///
/// Without the feature `quanta` there is no default clock, and this type has no values. Name another clock in the type of
/// the limiter, such as [`ManualClock`](super::ManualClock).
#[derive(Clone, Copy, Debug)]
pub enum DefaultClock {}

impl Clock for DefaultClock {
    fn now(&self) -> Nanos {
        match *self {}
    }
}
