use super::quanta::QuantaClock;

/// The clock of a limiter type without a clock parameter: [`QuantaClock`].
pub type DefaultClock = QuantaClock;
