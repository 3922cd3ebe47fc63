use alloc::format;

use crate::algorithm::{Algorithm, Gcra};
use crate::clock::{Clock, DefaultClock};
use crate::error::ConfigError;

/// The algorithm and the clock of many [`InlineLimiter`](crate::InlineLimiter)s.
#[derive(Clone, Debug)]
pub struct Policy<A = Gcra, C = DefaultClock> {
    algorithm: A,
    clock: C,
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
