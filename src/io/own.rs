use alloc::boxed::Box;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::io;

use super::quantum::Quantum;
use super::side::refusal;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::receipt::Receipt;
use crate::time::Nanos;
use crate::wait::{Runtime, TokioAlarm, TokioRuntime, WaitError};

/// A limiter that nobody but one connection asks.
pub(super) struct Own {
    limiter: Box<dyn Bytes>,
    quantum: Quantum,
    /// For when there is room.
    alarm: Option<TokioAlarm>,
}

/// What there is room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// When there was: the time at which what is moved is charged.
    pub(super) at: Nanos,
    pub(super) bytes: u64,
}

impl Own {
    pub(super) fn new<A, C>(limiter: RateLimiter<A, C>) -> Self
    where
        A: Algorithm + Send + Sync + 'static,
        C: Clock + Send + Sync + 'static,
    {
        Self {
            quantum: Quantum::of(&limiter),
            limiter: Box::new(limiter),
            alarm: None,
        }
    }

    pub(super) const fn quantum(&mut self) -> &mut Quantum {
        &mut self.quantum
    }

    /// Waits for room for a turn, or for all that is wanted when that is less; charges nothing.
    pub(super) fn poll_room(&mut self, want: u64, waker: &Waker) -> Poll<io::Result<Room>> {
        let need = want.min(self.quantum.alone());
        let Look { room, ready } = self.limiter.look(need);
        match ready {
            Ready::Now => {
                self.alarm = None;
                Poll::Ready(Ok(Room {
                    bytes: room.bytes.min(want),
                    ..room
                }))
            }
            Ready::After(after) => {
                // Each time anew: the task may be another one by now.
                self.alarm = Some(TokioRuntime.alarm(after, waker));
                Poll::Pending
            }
            Ready::Never => Poll::Ready(Err(refusal(WaitError::Never))),
        }
    }

    /// Charges what was moved: no more than there was room for.
    pub(super) fn charge(&mut self, at: Nanos, bytes: u64) {
        if bytes > 0 {
            self.limiter.charge(at, bytes);
        }
    }
}

/// A limiter, whatever its algorithm and clock.
trait Bytes: Send + Sync {
    /// Looks for room for so many bytes, by one reading of the clock.
    fn look(&self, bytes: u64) -> Look;

    fn charge(&mut self, at: Nanos, bytes: u64);
}

struct Look {
    room: Room,
    ready: Ready,
}

enum Ready {
    Now,
    After(Duration),
    Never,
}

impl<A: Algorithm + Send + Sync, C: Clock + Send + Sync> Bytes for RateLimiter<A, C> {
    fn look(&self, bytes: u64) -> Look {
        let peek = self.peek();
        let room = Room {
            at: peek.at(),
            bytes: peek.remaining(),
        };
        let ready = if room.bytes >= bytes {
            Ready::Now
        } else {
            peek.retry_after(bytes).map_or(Ready::Never, Ready::After)
        };
        Look { room, ready }
    }

    fn charge(&mut self, at: Nanos, bytes: u64) {
        if self.check_at_mut(at, bytes).is_err() {
            owe(self, bytes);
        }
    }
}

/// Charges what an algorithm has no room for although it said that it had: none of ours does.
#[cold]
#[inline(never)]
fn owe<A: Algorithm, C: Clock>(limiter: &RateLimiter<A, C>, bytes: u64) {
    limiter.settle(Receipt::new(Nanos::ZERO, 0, 0), bytes);
}
