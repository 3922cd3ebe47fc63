use alloc::boxed::Box;
use core::fmt;
use core::ops::Deref;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::io;

use super::error::to_io_error;
use super::quantum::Quantum;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::decision::Peek;
use crate::limiter::{InlineLimiter, Policy, RateLimiter};
use crate::receipt::Receipt;
use crate::time::Nanos;
use crate::wait::{Runtime, TokioRuntime, TokioTimer, WaitError};

/// The limiter of one direction of one connection, which only this direction uses.
///
/// It is made from a [`RateLimiter`], or from an [`InlineLimiter`] that shares its policy with the limiters of other connections.
/// The latter takes 16 bytes in place of a policy, a clock and a cache line.
pub struct LocalLimit {
    limiter: Box<dyn ByteLimiter>,
    quantum: Quantum,
    /// The timer for the time at which the limiter has capacity.
    timer: Option<TokioTimer>,
}

impl<A, C> From<RateLimiter<A, C>> for LocalLimit
where
    A: Algorithm + Send + Sync + 'static,
    C: Clock + Send + Sync + 'static,
{
    fn from(limiter: RateLimiter<A, C>) -> Self {
        Self::new(Quantum::of(limiter.algorithm()), limiter)
    }
}

impl<A, C, P> From<InlineLimiter<P>> for LocalLimit
where
    A: Algorithm + Send + Sync + 'static,
    C: Clock + Send + Sync + 'static,
    P: Deref<Target = Policy<A, C>> + Send + Sync + 'static,
{
    fn from(limiter: InlineLimiter<P>) -> Self {
        Self::new(Quantum::of(limiter.policy().algorithm()), limiter)
    }
}

impl fmt::Debug for LocalLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalLimit")
            .field("quantum", &self.quantum)
            .finish_non_exhaustive()
    }
}

/// The bytes that a limiter has capacity for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    /// The clock reading at which the capacity was read, and at which the moved bytes are charged.
    pub(super) at: Nanos,
    pub(super) bytes: u64,
}

impl LocalLimit {
    fn new(quantum: Quantum, limiter: impl ByteLimiter + 'static) -> Self {
        Self {
            limiter: Box::new(limiter),
            quantum,
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
                // The timer is set in each poll, because another task may have polled before.
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

/// The time at which bytes can be charged.
enum Readiness {
    Now,
    After(Duration),
    Never,
}

/// Returns the capacity of a limiter at the time of `peek`, and the time at which `bytes` can be charged.
fn capacity<A: Algorithm>(peek: &Peek<'_, A>, bytes: u64) -> (Capacity, Readiness) {
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

// No algorithm of this crate denies a charge of the capacity that it has reported. If another one does, the bytes are charged as
// debt.

impl<A: Algorithm + Send + Sync, C: Clock + Send + Sync> ByteLimiter for RateLimiter<A, C> {
    fn capacity(&self, bytes: u64) -> (Capacity, Readiness) {
        capacity(&self.peek(), bytes)
    }

    fn charge(&mut self, at: Nanos, bytes: u64) {
        if self.check_at_mut(at, bytes).is_err() {
            self.settle(Receipt::new(Nanos::ZERO, 0, 0), bytes);
        }
    }
}

impl<A, C, P> ByteLimiter for InlineLimiter<P>
where
    A: Algorithm + Send + Sync,
    C: Clock + Send + Sync + 'static,
    P: Deref<Target = Policy<A, C>> + Send + Sync,
{
    fn capacity(&self, bytes: u64) -> (Capacity, Readiness) {
        capacity(&self.peek(), bytes)
    }

    fn charge(&mut self, at: Nanos, bytes: u64) {
        if self.check_at_mut(at, bytes).is_err() {
            InlineLimiter::charge(self, at, bytes);
        }
    }
}
