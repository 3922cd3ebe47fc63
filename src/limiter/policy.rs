use alloc::format;

use crate::algorithm::{Algorithm, Gcra};
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
use crate::clock::{Clock, DefaultClock};
use crate::error::ConfigError;

/// The algorithm and the clock of many [`InlineLimiter`](crate::InlineLimiter)s.
#[derive(Clone, Debug)]
pub struct Policy<A = Gcra, C = DefaultClock> {
    algorithm: A,
    clock: C,
}

#[cfg(feature = "quanta")]
impl<A: Algorithm> Policy<A, QuantaClock> {
    /// Creates a policy with a new clock.
    ///
    /// The first clock of a process calibrates the processor's counter, for up to 200 ms.
    ///
    /// # Errors
    ///
    /// `algorithm`: the algorithm has not one word. See [`with_clock`](Self::with_clock).
    pub fn new(algorithm: A) -> Result<Self, ConfigError> {
        Self::with_clock(algorithm, QuantaClock::new())
    }
}

impl<A: Algorithm, C: Clock> Policy<A, C> {
    /// Creates a policy with the given clock.
    ///
    /// # Errors
    ///
    /// `algorithm`: the algorithm has not one word. These have one: a [`Gcra`], a fixed window, and a
    /// [`CounterRing`](crate::CounterRing) whose limit is low enough for the number of its cells.
    pub fn with_clock(algorithm: A, clock: C) -> Result<Self, ConfigError> {
        match algorithm.words() {
            1 => Ok(Self { algorithm, clock }),
            words => Err(ConfigError::new(
                "algorithm",
                format!("{words} words"),
                "1 word, as a Gcra or a fixed window has",
            )),
        }
    }
}

impl<A, C> Policy<A, C> {
    /// Returns the algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Returns the clock.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}
