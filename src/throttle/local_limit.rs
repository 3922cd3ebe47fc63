use alloc::boxed::Box;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::io;

use super::error::to_io_error;
use super::quantum::Quantum;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::receipt::Receipt;
use crate::time::Nanos;
use crate::wait::{Runtime, TokioRuntime, TokioTimer, WaitError};

/// A limiter that one direction of one connection owns.
pub(super) struct LocalLimit {
    limiter: Box<dyn ByteLimiter>,
    quantum: Quantum,
    /// The timer for the time at which the limiter has capacity.
    timer: Option<TokioTimer>,
}

/// The bytes that a limiter has capacity for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    /// The clock reading at which the capacity was read, and at which the moved bytes are charged.
    pub(super) at: Nanos,
    pub(super) bytes: u64,
}

impl LocalLimit {
    pub(super) fn new<A, C>(limiter: RateLimiter<A, C>) -> Self
    where
        A: Algorithm + Send + Sync + 'static,
        C: Clock + Send + Sync + 'static,
    {
        Self {
            quantum: Quantum::of(&limiter),
            limiter: Box::new(limiter),
            timer: None,
        }
    }

    pub(super) const fn quantum(&mut self) -> &mut Quantum {
        &mut self.quantum
    }

    /// Waits for the capacity of one turn, or of `want` bytes if these are fewer. Charges nothing.
    pub(super) fn poll_capacity(&mut self, want: u64, waker: &Waker) -> Poll<io::Result<Capacity>> {
        let need = want.min(self.quantum.local());
        let (capacity, readiness) = self.limiter.capacity(need);
        match readiness {
            Readiness::Now => {
                self.timer = None;
                Poll::Ready(Ok(Capacity {
                    bytes: capacity.bytes.min(want),
                    ..capacity
                }))
            }
            Readiness::After(wait) => {
                // The timer is set in each poll, because the task may not be the one of the last poll.
                self.timer = Some(TokioRuntime.set_timer(wait, waker));
                Poll::Pending
            }
            Readiness::Never => Poll::Ready(Err(to_io_error(WaitError::Never))),
        }
    }

    /// Charges the bytes that were moved. They are at most the capacity that was read at `at`.
    pub(super) fn charge(&mut self, at: Nanos, bytes: u64) {
        if bytes > 0 {
            self.limiter.charge(at, bytes);
        }
    }
}

/// A limiter of any algorithm and clock.
trait ByteLimiter: Send + Sync {
    /// Returns the capacity at one reading of the clock, and the time at which `bytes` can be charged.
    fn capacity(&self, bytes: u64) -> (Capacity, Readiness);

    fn charge(&mut self, at: Nanos, bytes: u64);
}

enum Readiness {
    Now,
    After(Duration),
    Never,
}

impl<A: Algorithm + Send + Sync, C: Clock + Send + Sync> ByteLimiter for RateLimiter<A, C> {
    fn capacity(&self, bytes: u64) -> (Capacity, Readiness) {
        let peek = self.peek();
        let capacity = Capacity {
            at: peek.at(),
            bytes: peek.remaining(),
        };
        let readiness = if capacity.bytes >= bytes {
            Readiness::Now
        } else {
            peek.retry_after(bytes).map_or(Readiness::Never, Readiness::After)
        };
        (capacity, readiness)
    }

    fn charge(&mut self, at: Nanos, bytes: u64) {
        if self.check_at_mut(at, bytes).is_err() {
            force_charge(self, bytes);
        }
    }
}

/// Charges bytes that an algorithm denies although it reported the capacity. No algorithm of this crate does.
#[cold]
#[inline(never)]
fn force_charge<A: Algorithm, C: Clock>(limiter: &RateLimiter<A, C>, bytes: u64) {
    limiter.settle(Receipt::new(Nanos::ZERO, 0, 0), bytes);
}
