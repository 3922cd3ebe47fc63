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
use crate::wait::{Runtime, TokioRuntime, WaitError};

/// The limiter of one direction of one connection, which only this direction uses.
///
/// It is made from a [`RateLimiter`], or from an [`InlineLimiter`] that shares its policy with the limiters of other connections.
/// The latter takes 16 bytes in place of a policy, a clock and a cache line.
pub struct LocalLimit {
    limiter: Box<dyn ByteLimiter>,
    quantum: Quantum,
    /// The timer for the time at which the limiter has capacity.
    timer: Option<<TokioRuntime as Runtime>::Timer>,
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

/// The bytes that may be moved now.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteBudget {
    /// The clock reading at which the capacity was read, and at which the moved bytes are charged to the local limit.
    pub(super) at: Nanos,
    pub(super) bytes: usize,
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
    pub(super) fn poll_capacity(&mut self, want: usize, waker: &Waker) -> Poll<io::Result<ByteBudget>> {
        let need = self.quantum.local().min(want as u64);
        let Capacity { at, bytes, ready_in } = self.limiter.capacity(need);
        match ready_in {
            Some(Duration::ZERO) if bytes >= need => {
                self.timer = None;
                let bytes = to_usize(bytes).min(want);
                Poll::Ready(Ok(ByteBudget { at, bytes }))
            }
            Some(wait) => {
                // The timer is set in each poll, because another task may have polled before.
                self.timer = Some(TokioRuntime.set_timer(wait, waker));
                Poll::Pending
            }
            None => Poll::Ready(Err(to_io_error(WaitError::Never))),
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
    /// Returns the capacity at one reading of the clock, and the time until `bytes` can be charged.
    fn capacity(&self, bytes: u64) -> Capacity;

    fn charge(&mut self, at: Nanos, bytes: u64);
}

/// The capacity of a limiter at one time.
struct Capacity {
    at: Nanos,
    bytes: u64,
    /// The time until the bytes of a request can be charged. `None` if they never can.
    ready_in: Option<Duration>,
}

impl Capacity {
    /// The capacity at the time of `peek`, for a request for `needed` bytes.
    fn of<A: Algorithm>(peek: &Peek<'_, A>, needed: u64) -> Self {
        let bytes = peek.remaining();
        Self {
            at: peek.at(),
            bytes,
            ready_in: if bytes >= needed {
                Some(Duration::ZERO)
            } else {
                peek.retry_after(needed)
            },
        }
    }
}

pub(super) fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

// No algorithm of this crate denies a charge of the capacity that it has reported. If another one does, the bytes are charged as
// debt.

impl<A: Algorithm + Send + Sync, C: Clock + Send + Sync> ByteLimiter for RateLimiter<A, C> {
    fn capacity(&self, bytes: u64) -> Capacity {
        Capacity::of(&self.peek(), bytes)
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
    fn capacity(&self, bytes: u64) -> Capacity {
        Capacity::of(&self.peek(), bytes)
    }

    fn charge(&mut self, at: Nanos, bytes: u64) {
        if self.check_at_mut(at, bytes).is_err() {
            InlineLimiter::charge(self, at, bytes);
        }
    }
}
