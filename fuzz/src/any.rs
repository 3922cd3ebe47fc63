use std::time::Duration;

use ringgate::sync::Words;
use ringgate::{Algorithm, ConfigError, CounterRing, Gcra, Nanos, Receipt, Reclaim, Refusal, TimestampRing};

/// Any of the algorithms, chosen at run time.
#[derive(Clone, Debug)]
pub enum Any {
    Ring(CounterRing),
    Log(TimestampRing),
    Bucket(Gcra),
}

macro_rules! any {
    ($any:expr, $algorithm:ident => $work:expr) => {
        match $any {
            Any::Ring($algorithm) => $work,
            Any::Log($algorithm) => $work,
            Any::Bucket($algorithm) => $work,
        }
    };
}

impl Algorithm for Any {
    fn words(&self) -> usize {
        any!(self, algorithm => algorithm.words())
    }

    fn most(&self) -> u64 {
        any!(self, algorithm => algorithm.most())
    }

    fn bound(&self) -> u64 {
        any!(self, algorithm => algorithm.bound())
    }

    fn window(&self) -> Duration {
        any!(self, algorithm => algorithm.window())
    }

    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Result<Receipt, Refusal> {
        any!(self, algorithm => algorithm.decide(words, now, permits))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        any!(self, algorithm => algorithm.ready_at(words, now, permits))
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        any!(self, algorithm => algorithm.remaining(words, now))
    }

    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        any!(self, algorithm => algorithm.refund(words, receipt, permits))
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        any!(self, algorithm => algorithm.charge(words, now, permits))
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        any!(self, algorithm => algorithm.spent(words, now))
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        any!(self, algorithm => algorithm.idle_at(words, now))
    }
}

impl Reclaim for Any {
    fn span(&self) -> Duration {
        any!(self, algorithm => algorithm.span())
    }

    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Result<Receipt, Refusal>> {
        any!(self, algorithm => algorithm.attempt(words, now, permits))
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        any!(self, algorithm => algorithm.is_idle(first, now))
    }

    fn later(&self, first: u64, now: Nanos) -> Option<u64> {
        any!(self, algorithm => algorithm.later(first, now))
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        any!(self, algorithm => algorithm.idle_from(first))
    }

    fn reached(&self, first: u64) -> Nanos {
        any!(self, algorithm => algorithm.reached(first))
    }

    fn lowered(&self, limit: u64) -> Result<Self, ConfigError> {
        Ok(match self {
            Self::Ring(algorithm) => Self::Ring(algorithm.lowered(limit)?),
            Self::Log(algorithm) => Self::Log(algorithm.lowered(limit)?),
            Self::Bucket(algorithm) => Self::Bucket(algorithm.lowered(limit)?),
        })
    }
}
